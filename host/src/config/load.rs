//! Files to types: reading with a size limit, resolving paths, checking job and policy against each other.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::job::Job;
use super::name::TableName;
use super::policy::Policy;
use super::read::{Cursor, Reader, code};
use super::span::SourceFile;
use super::suggest::nearest;
use super::yaml::{self, Places};
use super::{job_reader, policy_reader};

/// The largest job or policy file. A policy of a thousand tables with fifty columns each, all masked, has about 3 MiB.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// What was read, with the warnings that came with it.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// What was read.
    pub value: T,
    /// Warnings; never errors.
    pub warnings: Diagnostics,
}

/// A job file and its policy file, which fit each other.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The job file.
    pub job: Job,
    /// The policy file that it names.
    pub policy: Policy,
}

/// Reads a job file and the policy file that it names, and compares their tables.
///
/// # Errors
/// Everything that is wrong with either.
pub fn load(job_file: &Path) -> Result<Loaded<Configuration>, Diagnostics> {
    let job = load_job(job_file)?;
    let policy = load_policy(&job.value.policy.file.value).map_err(|mut errors| {
        errors.extend(job.warnings.clone());
        errors
    })?;
    let mut found = job.warnings;
    found.extend(policy.warnings);
    found.extend(compare_tables(&job.value, &policy.value));
    finish(Configuration { job: job.value, policy: policy.value }, found)
}

/// Reads a job file alone.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_job(path: &Path) -> Result<Loaded<Job>, Diagnostics> {
    parse_job(read_file(path)?)
}

/// Reads a policy file alone.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_policy(path: &Path) -> Result<Loaded<Policy>, Diagnostics> {
    parse_policy(read_file(path)?)
}

/// Reads a job from the text of a file. Paths in it are relative to the directory of [`SourceFile::path`].
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_job(file: SourceFile) -> Result<Loaded<Job>, Diagnostics> {
    parse(file, job_reader::read)
}

/// Reads a policy from the text of a file. Paths in it are relative to the directory of [`SourceFile::path`].
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_policy(file: SourceFile) -> Result<Loaded<Policy>, Diagnostics> {
    parse(file, policy_reader::read)
}

fn parse<T>(
    file: SourceFile,
    read: impl FnOnce(&mut Reader, &Cursor<'_>) -> Option<T>,
) -> Result<Loaded<T>, Diagnostics> {
    let file = Arc::new(file);
    let mut reader = Reader::new(&file);
    if file.text.len() > FILE_BYTES_MAX {
        return Err(too_large(&file));
    }
    let value = match yaml::parse(&file.text) {
        Ok(root) => read(&mut reader, &Cursor::top(&root)),
        Err(error) => {
            let diagnostic = Diagnostic::error(&file, "", error.message).at(error.span);
            reader.diagnostics.push(Diagnostic { remedy: error.remedy.map(str::to_owned), ..diagnostic });
            None
        }
    };
    match value {
        Some(value) => finish(value, reader.diagnostics),
        None => {
            reader.diagnostics.sort();
            Err(reader.diagnostics)
        }
    }
}

fn finish<T>(value: T, mut found: Diagnostics) -> Result<Loaded<T>, Diagnostics> {
    found.sort();
    if found.has_errors() { Err(found) } else { Ok(Loaded { value, warnings: found }) }
}

/// Reads a file that is not too large and is UTF-8.
fn read_file(path: &Path) -> Result<SourceFile, Diagnostics> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    let source = |text: &str| SourceFile {
        path: path.to_owned(),
        text: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
    };
    if let Err(error) = read {
        let file = Arc::new(source(""));
        let message = format!("the file cannot be read: {}", error.kind());
        return Err(one(Diagnostic::error(&file, "", message).remedy("check the path and its permissions")));
    }
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large(&Arc::new(source(""))));
    }
    match str::from_utf8(&bytes) {
        Ok(text) => Ok(source(text)),
        Err(error) => {
            let valid = str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let file = Arc::new(source(valid));
            let end = file.text.len();
            let span = Places::new(&file.text).span(end, end);
            let diagnostic = Diagnostic::error(&file, "", "the file is not UTF-8 from here on").at(span);
            Err(one(diagnostic.remedy("save the file as UTF-8")))
        }
    }
}

fn too_large(file: &Arc<SourceFile>) -> Diagnostics {
    let message = format!("the file is larger than {} MiB", FILE_BYTES_MAX >> 20);
    one(Diagnostic::error(file, "", message).remedy("is it the right file?"))
}

fn one(diagnostic: Diagnostic) -> Diagnostics {
    let mut all = Diagnostics::default();
    all.push(diagnostic);
    all
}

/// The tables of the job must be those of the policy: a table without a policy would have no decision, and a policy without
/// its table is a misspelt one.
fn compare_tables(job: &Job, policy: &Policy) -> Diagnostics {
    let mut found = Diagnostics::default();
    let in_job: BTreeSet<&TableName> = job.tables.iter().map(|table| &table.value).collect();
    let shown = |names: Vec<&TableName>| names.into_iter().map(ToString::to_string).collect::<Vec<_>>();
    let in_policy_shown = shown(policy.tables.keys().collect());
    let in_job_shown = shown(in_job.iter().copied().collect());
    for (position, table) in job.tables.iter().enumerate() {
        if !policy.tables.contains_key(&table.value) {
            let name = table.value.to_string();
            let message = format!("{} is not in the policy {}", code(&name), policy.file.path.display());
            let remedy = match nearest(&name, in_policy_shown.iter().map(String::as_str)) {
                Some(near) => format!("add it there, or did you mean {}?", code(near)),
                None => "add it there, or leave it out here".to_owned(),
            };
            found.push(
                Diagnostic::error(&job.file, format!("tables[{position}]"), message).at(table.span).remedy(remedy),
            );
        }
    }
    for (table, decided) in &policy.tables {
        if !in_job.contains(table) {
            let name = table.to_string();
            let message = format!("{} is not among the tables of the job {}", code(&name), job.file.path.display());
            let remedy = match nearest(&name, in_job_shown.iter().map(String::as_str)) {
                Some(near) => format!("add it there, or did you mean {}?", code(near)),
                None => "add it there, or leave it out here".to_owned(),
            };
            let path = format!("tables.{name:?}");
            found.push(Diagnostic::error(&policy.file, path, message).at(decided.table.span).remedy(remedy));
        }
    }
    found
}
