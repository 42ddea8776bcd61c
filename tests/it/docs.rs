//! The documents: what they say can be run is run, what they show is read by the real readers, and tables that repeat the code are
//! the code's. `BLESS=1` rewrites those tables.
//!
//! A fenced block's first words say what is done with it:
//!
//! | words | meaning |
//! | --- | --- |
//! | `sh run`, `sh run exit=5` | run, in the order of the page, in one folder; with this exit code |
//! | `sql source`, `sql target`, `… expect=3` | run on that database; with this one value as its answer |
//! | `yaml job`, `yaml policy`, `… file=NAME` | read by pgveil; kept under that name for the commands after it |
//! | `rust of=PATH` | lies word for word in that file |
//!
//! All other blocks are for the eye.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgveil::config::{SourceFile, parse_job, parse_policy};
use pgveil::error::{HaltState, Kind, Reaction};
use pgveil_tests::database::rows;
use pgveil_tests::version::repository;
use pgveil_tests::{Cluster, Major, Result, runner};

use crate::support::native::{KEY, KEY_VARIABLE};

/// Every document that people read.
fn documents() -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .map(|name| repository().join(name))
        .collect();
    for folder in ["docs", "docs/adr"] {
        let entries = fs::read_dir(repository().join(folder))?.collect::<std::io::Result<Vec<_>>>()?;
        found.extend(
            entries
                .into_iter()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    found.sort();
    Ok(found)
}

fn shown(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

/// A fenced block.
struct Block {
    /// Where it begins, for a failed test.
    place: String,
    /// The words behind the fence.
    words: Vec<String>,
    text: String,
}

impl Block {
    fn is(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(wanted, word)| wanted == word)
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
}

fn blocks(path: &Path) -> Result<Vec<Block>> {
    let (mut found, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (number, line) in fs::read_to_string(path)?.lines().enumerate() {
        match (line.strip_prefix("```"), open.as_mut()) {
            (Some(words), None) => {
                let words = words.split_whitespace().map(str::to_owned).collect();
                open = Some(Block { place: format!("{}:{}", shown(path), number + 1), words, text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a block does not end", shown(path));
    Ok(found)
}

#[test]
fn examples_of_files_are_read() -> Result<()> {
    let mut read = 0;
    for block in documents()?.iter().map(|path| blocks(path)).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
        let file = || SourceFile { path: block.place.clone().into(), text: block.text.clone() };
        let errors = match &block {
            block if block.is(&["yaml", "job"]) => parse_job(file()).err(),
            block if block.is(&["yaml", "policy"]) => parse_policy(file()).err(),
            _ => continue,
        };
        assert!(errors.is_none(), "{}:\n{}", block.place, errors.map(|errors| errors.to_string()).unwrap_or_default());
        read += 1;
    }
    assert!(read >= 4, "only {read} examples");
    Ok(())
}

#[test]
fn examples_of_code_are_the_code() -> Result<()> {
    for block in documents()?.iter().map(|path| blocks(path)).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
        if let Some(path) = block.option("of") {
            let code = fs::read_to_string(repository().join(path))?;
            assert!(code.contains(&block.text), "{}: {path} has other words", block.place);
        }
    }
    Ok(())
}

/// The databases of the pages' examples.
const SOURCE: &str = "shop";
const TARGET: &str = "shop_masked";

/// A cluster with both, and a folder that the page's commands are run in.
struct Walk {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Walk {
    fn new(major: Major) -> Result<Walk> {
        let cluster = Cluster::of(major).start()?;
        for database in [SOURCE, TARGET] {
            cluster.server().connect("postgres")?.batch_execute(&format!("create database {database}"))?;
        }
        Ok(Walk { cluster, folder: tempfile::tempdir()? })
    }

    fn step(&self, block: &Block) -> Result<()> {
        if let Some(name) = block.option("file") {
            fs::write(self.folder.path().join(name), &block.text)?;
        }
        match block.words.first().map(String::as_str) {
            Some("sql") => self.sql(block),
            Some("sh") if block.is(&["sh", "run"]) => self.command(block),
            _ => Ok(()),
        }
    }

    fn sql(&self, block: &Block) -> Result<()> {
        let mut session = self.cluster.server().connect(if block.is(&["sql", "source"]) { SOURCE } else { TARGET })?;
        match block.option("expect") {
            Some(expected) => {
                assert_eq!(rows(&mut session, &block.text)?, [[Some(expected.to_owned())]], "{}", block.place);
            }
            // `ALTER SYSTEM` stands alone, or it is refused: one statement at a time.
            None => {
                for statement in block.text.split_inclusive(";\n") {
                    session.batch_execute(statement).map_err(|error| format!("{}: {error}", block.place))?;
                }
            }
        }
        Ok(())
    }

    fn command(&self, block: &Block) -> Result<()> {
        let binary = runner::binary()?;
        let folders = [binary.parent().unwrap_or(Path::new("/")).to_path_buf(), Major::V18.programs()?.to_path_buf()];
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&inherited)))?;
        let as_role = |role: &str, database: &str| {
            format!("postgresql://{role}@127.0.0.1:{}/{database}", self.cluster.server().port)
        };
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &block.text]).current_dir(self.folder.path()).env("PATH", path);
        shell
            .env("PGVEIL_SOURCE_URL", as_role("pgveil_source", SOURCE))
            .env("PGVEIL_TARGET_URL", as_role("pgveil_target", TARGET));
        shell.env(KEY_VARIABLE, KEY);
        let output = shell.output()?;
        let expected: i32 = block.option("exit").unwrap_or("0").parse()?;
        let said =
            [&output.stdout[..], &output.stderr[..]].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
        assert_eq!(output.status.code(), Some(expected), "{}:\n{}{said}", block.place, block.text);
        Ok(())
    }
}

/// Every page from its beginning, on servers of its own.
fn walk(page: &str, major: Major) -> Result<()> {
    let walk = Walk::new(major)?;
    for guest in pgveil_artifacts::HONEST {
        fs::copy(guest.path, walk.folder.path().join(format!("{}.wasm", guest.name)))?;
    }
    let blocks = blocks(&repository().join(page))?;
    assert!(blocks.iter().any(|block| block.is(&["sh", "run"])), "{page} has nothing to run");
    blocks.iter().try_for_each(|block| walk.step(block))
}

#[test]
fn the_readme_runs() -> Result<()> {
    walk("README.md", Major::V18)
}

pgveil_tests::on_every_version! {
    fn operations_run(major) {
        walk("docs/operations.md", major)?;
    }
}

#[test]
fn policies_run() -> Result<()> {
    walk("docs/policies.md", Major::V18)
}

#[test]
fn links_lead_somewhere() -> Result<()> {
    let mut broken = Vec::new();
    for path in documents()? {
        let text = fs::read_to_string(&path)?;
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let to = if file.is_empty() { path.clone() } else { path.parent().unwrap_or(Path::new("/")).join(file) };
            let there = fs::read_to_string(&to)
                .is_ok_and(|text| anchor.is_empty() || anchors(&text).iter().any(|known| known == anchor));
            if !(there || to.is_dir() && anchor.is_empty()) {
                broken.push(format!("{}: {link}", shown(&path)));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    Ok(())
}

/// What the headings of a page are called in links.
fn anchors(text: &str) -> Vec<String> {
    let headings = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase());
    headings
        .map(|heading| {
            heading
                .chars()
                .filter(|each| each.is_alphanumeric() || matches!(each, '-' | '_' | ' '))
                .map(|each| if each == ' ' { '-' } else { each })
                .collect()
        })
        .collect()
}

/// Compares the part of a page between its marks with what the code says.
fn generated(page: &str, name: &str, expected: &str) -> Result<()> {
    let path = repository().join(page);
    let text = fs::read_to_string(&path)?;
    let (begin, end) = (format!("<!-- made from the code: {name} -->\n"), "<!-- end -->");
    let (before, rest) = text.split_once(&begin).ok_or_else(|| format!("{page} has no part {name}"))?;
    let (found, after) = rest.split_once(end).ok_or_else(|| format!("{page}: part {name} does not end"))?;
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, [before, &begin, expected, end, after].concat())?;
    } else {
        assert_eq!(found, expected, "{page}, part {name}: BLESS=1 writes it anew");
    }
    Ok(())
}

/// One test for all parts, for they are written into the same files.
#[test]
fn tables_made_from_the_code_are_up_to_date() -> Result<()> {
    generated("docs/operations.md", "errors", &errors())?;
    for section in ["limits", "safety"] {
        generated("docs/operations.md", section, &settings(section)?)?;
    }
    generated("docs/policies.md", "functions", &functions()?)
}

fn errors() -> String {
    let row = |kind: &Kind| {
        let does = match (kind.reaction(), kind.halt_state()) {
            (Reaction::Retry, _) => "retry",
            (Reaction::Halt, HaltState::Error) => "halt",
            (Reaction::Halt, HaltState::ResyncRequired) => "halt, RESYNC_REQUIRED",
        };
        format!(
            "| `{}` | {} | {does} | {} | {} |\n",
            kind.name(),
            kind.exit_code(),
            kind.text(),
            kind.remedy().replace('|', "\\|")
        )
    };
    "| kind | exit | then | what happened | remedy |\n| --- | --- | --- | --- | --- |\n".to_owned()
        + &Kind::ALL.iter().map(row).collect::<String>()
}

/// The settings of a section of the job file, from the schema that editors use.
fn settings(section: &str) -> Result<String> {
    let schema = serde_json::to_value(pgveil::config::job_schema())?;
    let definition = if section == "limits" { "Limits" } else { "Safety" };
    let fields = schema["$defs"][definition]["properties"].as_object().ok_or("the schema has another shape")?;
    let row = |(name, field): (&String, &serde_json::Value)| {
        let default = field["default"].as_str().map_or_else(|| field["default"].to_string(), str::to_owned);
        format!("| `{name}` | `{default}` | {} |\n", field["description"].as_str().unwrap_or_default())
    };
    Ok("| field | default | meaning |\n| --- | --- | --- |\n".to_owned() + &fields.iter().map(row).collect::<String>())
}

/// The library, as it describes itself.
fn functions() -> Result<String> {
    let limits = pgveil::veil::GuestLimits::from(&pgveil::config::Limits::default());
    let sandbox = pgveil::veil::Sandbox::new(limits)?;
    let guest = pgveil::veil::Guest::load(&sandbox, "standard", pgveil_artifacts::STANDARD.component, None)?;
    guest.functions().iter().map(function).collect()
}

fn function(function: &pgveil::veil::FunctionInfo) -> Result<String> {
    use pgveil::veil::{AcceptedType, FunctionKind, Guarantees, KeyUse};
    let accepts: Vec<String> = function
        .accepts
        .iter()
        .map(|accepted| match accepted {
            AcceptedType::Any => "any type".to_owned(),
            AcceptedType::Named(name) => format!("`{name}`"),
            AcceptedType::Category('S') => "strings".to_owned(),
            AcceptedType::Category(category) => format!("category `{category}`"),
        })
        .collect();
    let key = match function.key {
        KeyUse::None => "none",
        KeyUse::Optional => "optional",
        KeyUse::Required => "required",
    };
    let names = [
        (Guarantees::DETERMINISTIC, "deterministic"),
        (Guarantees::INJECTIVE, "injective"),
        (Guarantees::NULL_PRESERVING, "null-preserving"),
        (Guarantees::TYPE_PRESERVING, "type-preserving"),
    ];
    let promised: Vec<&str> =
        names.into_iter().filter(|(flag, _)| function.guarantees.contains(*flag)).map(|(_, name)| name).collect();
    let promised = if promised.is_empty() { "none".to_owned() } else { promised.join(", ") };
    let kind = if function.kind == FunctionKind::Filter { "filter" } else { "mask" };
    let cells = |cells: &[Option<String>]| {
        cells
            .iter()
            .map(|cell| cell.as_ref().map_or("NULL".to_owned(), |text| format!("`{text}`")))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let example = &function.example;
    let result = format!(
        "Example: arguments `{}`, {} gives {}.",
        example.arguments,
        cells(&example.inputs),
        cells(&example.outputs).replace("``", "an empty string")
    );
    Ok(format!(
        "#### {}\n\n{}\n\n{kind} · accepts {} · key {key} · guarantees always: {promised}\n\n{}{result}\n\n",
        function.name,
        function.doc,
        accepts.join(", "),
        arguments(&function.argument_schema)?
    ))
}

/// A function's arguments, with what each may be.
fn arguments(schema: &str) -> Result<String> {
    let schema: serde_json::Value = serde_json::from_str(schema)?;
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else {
        return Ok(String::new());
    };
    let row = |(name, property): (&String, &serde_json::Value)| {
        let required =
            schema["required"].as_array().is_some_and(|required| required.iter().any(|other| other == name.as_str()));
        let default = match property.get("default") {
            Some(serde_json::Value::Null) | None if required => "required".to_owned(),
            Some(serde_json::Value::Null) | None => String::new(),
            Some(default) => format!("`{default}`"),
        };
        let text = property["description"].as_str().unwrap_or_default();
        let words = words(property, &schema).iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let words = if words.is_empty() { words } else { format!(" One of {words}.") };
        format!("| `{name}` | {default} | {}{words} |\n", text.replace('\n', " ").replace('|', "\\|"))
    };
    Ok("| argument | default | meaning |\n| --- | --- | --- |\n".to_owned()
        + &properties.iter().map(row).collect::<String>()
        + "\n")
}

/// The words that an argument may be, where it is one of several.
fn words(property: &serde_json::Value, schema: &serde_json::Value) -> Vec<String> {
    if let Some(name) = property["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
        return words(&schema["$defs"][name], schema);
    }
    let list = |name: &str| property[name].as_array().cloned().unwrap_or_default();
    let own = list("enum")
        .into_iter()
        .chain(property.get("const").cloned())
        .filter_map(|word| word.as_str().map(str::to_owned));
    own.chain(["oneOf", "anyOf", "allOf"].iter().flat_map(|name| list(name)).flat_map(|part| words(&part, schema)))
        .collect()
}
