//! Reads the job file into [`Job`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::job::{Identity, Job, Limits, PolicyReference, Safety, SchemaMode, Source, Target, TargetSchema};
use super::name::{NAME_BYTES_MAX, TableName};
use super::read::{Cursor, Fields, Reader, code};
use super::redact::hide_secrets;
use super::span::{Span, Spanned};

pub(super) const JOB_KEYS: &[&str] = &["job", "source", "target", "tables", "policy", "schema", "limits", "safety"];
pub(super) const IDENTITY_KEYS: &[&str] = &["id"];
pub(super) const SOURCE_KEYS: &[&str] = &["url_env", "publication", "create_publication", "slot"];
pub(super) const TARGET_KEYS: &[&str] = &["url_env"];
pub(super) const SCHEMA_KEYS: &[&str] = &["mode", "pg_dump"];
const POLICY_KEYS: &[&str] = &["file", "locked"];

/// Longest job id: it becomes part of names in the target.
const ID_LENGTH_MAX: usize = 63;

/// Reads the whole file. `None` after an error was reported; the caller looks at the diagnostics either way.
pub(super) fn read(reader: &mut Reader, top: &Cursor<'_>) -> Option<Job> {
    let fields = reader.mapping(top, JOB_KEYS)?;
    // Every section is read before any `?`, so that all errors are found.
    let identity = section(reader, &fields, "job", "`job: { id: … }`", read_identity);
    let source = section(reader, &fields, "source", "`source: { url_env: …, publication: …, slot: … }`", read_source);
    let target = section(reader, &fields, "target", "`target: { url_env: … }`", read_target);
    let tables = section(reader, &fields, "tables", "`tables: [ schema.table, … ]`", read_tables);
    let policy = section(reader, &fields, "policy", "`policy: path/to/policy.yaml`", read_policy);
    let schema = fields.section("schema").map(|at| read_schema(reader, &at)).unwrap_or_default();
    let limits = fields.section("limits").map(|at| read_limits(reader, &at)).unwrap_or_default();
    let safety = fields.section("safety").map(|at| read_safety(reader, &at)).unwrap_or_default();
    Some(Job {
        file: Arc::clone(&reader.file),
        job: identity?,
        source: source?,
        target: target?,
        tables: tables?,
        policy: policy?,
        schema,
        limits,
        safety,
    })
}

/// Reads a section that must be there.
fn section<T>(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &str,
    what: &str,
    read: impl FnOnce(&mut Reader, &Cursor<'_>) -> Option<T>,
) -> Option<T> {
    let at = reader.required(fields, key, what)?;
    read(reader, &at)
}

fn read_identity(reader: &mut Reader, at: &Cursor<'_>) -> Option<Identity> {
    let fields = reader.mapping(at, IDENTITY_KEYS)?;
    let id = section(reader, &fields, "id", "a name for the job, such as `id: shop`", |reader, at| {
        let id = reader.text(at)?;
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        if id.bytes().all(allowed) && id.len() <= ID_LENGTH_MAX && !id.starts_with(['_', '-']) {
            return Some(id);
        }
        let rule = "lower-case letters, digits, `_` and `-`, beginning with a letter or digit";
        reader.error(at, format!("`id` must be at most {ID_LENGTH_MAX} {rule}, found {}", at.found()));
        None
    });
    Some(Identity { id: id? })
}

fn read_source(reader: &mut Reader, at: &Cursor<'_>) -> Option<Source> {
    let fields = reader.mapping(at, SOURCE_KEYS)?;
    let url_env =
        section(reader, &fields, "url_env", "the name of the environment variable with the URL", read_variable);
    let publication = section(reader, &fields, "publication", "the publication's name", read_name);
    let create_publication = reader.setting(fields.get("create_publication"), false, None);
    let slot = section(reader, &fields, "slot", "a name for the replication slot", read_slot);
    Some(Source { url_env: url_env?, publication: publication?, create_publication, slot: slot? })
}

fn read_target(reader: &mut Reader, at: &Cursor<'_>) -> Option<Target> {
    let fields = reader.mapping(at, TARGET_KEYS)?;
    let url_env =
        section(reader, &fields, "url_env", "the name of the environment variable with the URL", read_variable);
    Some(Target { url_env: url_env? })
}

/// The name of an environment variable. What is none is likely the secret itself: it is never repeated.
pub(super) fn read_variable(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<String>> {
    let Some(text) = at.scalar().filter(|text| !text.is_empty()) else {
        reader.expected(at, "the name of an environment variable");
        return None;
    };
    let first = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let plain = first && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain && hide_secrets(text) == text {
        return Some(Spanned::new(text.to_owned(), at.span));
    }
    let key = at.path.rsplit('.').next().unwrap_or_default();
    reader.error_with(
        at,
        format!("`{key}` must be the name of an environment variable: letters, digits and `_`"),
        "URLs and keys are never written in a file: put the secret in a variable, and the variable's name here",
    );
    None
}

/// The name of a database object, exact.
fn read_name(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<String>> {
    let name = reader.text(at)?;
    if name.len() <= NAME_BYTES_MAX && !name.contains('\0') {
        return Some(name);
    }
    reader.error(
        at,
        format!("a PostgreSQL name has at most {NAME_BYTES_MAX} bytes and no NUL; this one has {}", name.len()),
    );
    None
}

/// PostgreSQL's own rule, `ReplicationSlotValidateName`; a digit may come first.
fn read_slot(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<String>> {
    let name = reader.text(at)?;
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.bytes().all(allowed) && name.len() <= NAME_BYTES_MAX {
        return Some(name);
    }
    let rule = format!("lower-case letters, digits and `_`, at most {NAME_BYTES_MAX}");
    reader.error(at, format!("`slot` must be {rule}, found {}", at.found()));
    None
}

/// A table's name as SQL writes it.
pub(super) fn read_table_name(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<TableName>> {
    let text = reader.text(at)?;
    parse_table_name(reader, &text, &at.path)
}

/// As [`read_table_name`], for a text that is a key.
pub(super) fn parse_table_name(reader: &mut Reader, text: &Spanned<String>, path: &str) -> Option<Spanned<TableName>> {
    match text.parse() {
        Ok(name) => Some(Spanned::new(name, text.span)),
        Err(error) => {
            let message = format!("{} is not a table name: {error}", code(text));
            let diagnostic = Diagnostic::error(&reader.file, path, message).at(text.span);
            reader.diagnostics.push(
                diagnostic.remedy(r#"tables are written as in SQL: `public.users`; in YAML, put double quotes into single ones: '"Shop"."order"'"#),
            );
            None
        }
    }
}

fn read_tables(reader: &mut Reader, at: &Cursor<'_>) -> Option<Vec<Spanned<TableName>>> {
    let items = reader.items(at)?;
    if items.is_empty() {
        reader.error_with(at, "`tables` is empty", "name the tables of the publication");
        return None;
    }
    let mut seen: BTreeMap<TableName, Span> = BTreeMap::new();
    let mut tables = Vec::new();
    for item in items {
        let Some(table) = read_table_name(reader, &item) else { continue };
        match seen.insert(table.value.clone(), table.span) {
            None => tables.push(table),
            Some(first) => {
                let message = format!("{} is listed twice", code(&table.to_string()));
                let error = Diagnostic::error(&reader.file, item.path.as_str(), message).at(table.span);
                reader.diagnostics.push(error.related(first, "first here").remedy("remove one of them"));
            }
        }
    }
    Some(tables)
}

fn read_policy(reader: &mut Reader, at: &Cursor<'_>) -> Option<PolicyReference> {
    if at.scalar().is_some() {
        return Some(PolicyReference { file: read_path(reader, at)?, locked: false });
    }
    let fields = reader.mapping(at, POLICY_KEYS)?;
    let file = section(reader, &fields, "file", "the path of the policy file", read_path);
    let locked = reader.setting(fields.get("locked"), false, None);
    if let (true, Some(at)) = (locked, fields.get("locked")) {
        // Taken and not kept, it would be a false promise.
        reader.error(&at, "`locked` is not offered by this version: leave it out".to_owned());
    }
    Some(PolicyReference { file: file?, locked })
}

/// A path, relative to the directory of the file that names it.
pub(super) fn read_path(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<PathBuf>> {
    let text = reader.text(at)?;
    let directory = reader.file.path.parent().unwrap_or(Path::new("")).to_owned();
    Some(text.map(|text| directory.join(text)))
}

fn read_schema(reader: &mut Reader, at: &Cursor<'_>) -> TargetSchema {
    let Some(fields) = reader.mapping(at, SCHEMA_KEYS) else { return TargetSchema::default() };
    let modes = [("pg_dump", SchemaMode::PgDump), ("existing", SchemaMode::Existing)];
    let mode = fields.get("mode").and_then(|at| reader.word(&at, &modes)).unwrap_or_default();
    let program = fields.get("pg_dump");
    if let (SchemaMode::Existing, Some(at)) = (mode, &program) {
        reader.error_with(at, "`pg_dump` is not used with `mode: existing`", "remove it, or write `mode: pg_dump`");
    }
    // A bare program name is looked up in PATH, so only a path with a directory is resolved.
    let pg_dump = program.and_then(|at| {
        let text = reader.text(&at)?;
        if text.contains('/') { read_path(reader, &at) } else { Some(text.map(PathBuf::from)) }
    });
    TargetSchema { mode, pg_dump }
}

fn read_limits(reader: &mut Reader, at: &Cursor<'_>) -> Limits {
    let limits = Limits::read(reader, at);
    let Some(written) = limit_fields(at) else { return limits };
    let checks = [
        ("max_inflight", limits.max_inflight.bytes(), "memory_budget", limits.memory_budget.bytes()),
        ("max_row", limits.max_row.bytes(), "max_inflight", limits.max_inflight.bytes()),
        ("batch_bytes", limits.batch_bytes.bytes(), "max_inflight", limits.max_inflight.bytes()),
    ];
    for (smaller, small, larger, large) in checks {
        if small <= large {
            continue;
        }
        // One of the two was written, for the defaults fit each other.
        let key = if written.contains_key(smaller) { smaller } else { larger };
        let span = written.get(key).copied().unwrap_or(at.span);
        let message = format!(
            "`{smaller}` ({}) is larger than `{larger}` ({})",
            super::ByteSize::from_bytes(small),
            super::ByteSize::from_bytes(large)
        );
        let error = Diagnostic::error(&reader.file, format!("{}.{key}", at.path), message).at(span);
        reader.diagnostics.push(error.remedy(format!("lower `{smaller}` or raise `{larger}`")));
    }
    limits
}

/// Where each written limit stands.
fn limit_fields<'n>(at: &Cursor<'n>) -> Option<BTreeMap<&'n str, Span>> {
    match &at.node.kind {
        super::yaml::Kind::Mapping(entries) => {
            Some(entries.iter().map(|(key, node)| (key.value.as_str(), node.span)).collect())
        }
        _ => None,
    }
}

fn read_safety(reader: &mut Reader, at: &Cursor<'_>) -> Safety {
    let safety = Safety::read(reader, at);
    if safety.reconnect_first > safety.reconnect_longest {
        reader.error_with(
            at,
            "`reconnect_first` is longer than `reconnect_longest`",
            "lower `reconnect_first` or raise `reconnect_longest`",
        );
    }
    safety
}
