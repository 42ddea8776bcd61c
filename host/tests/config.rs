//! Job and policy files as an operator meets them: each invalid file with the text that is printed about it, valid ones with
//! what was understood. `BLESS=1` rewrites the `.err` files; read the difference before it is committed.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;
use std::path::{Path, PathBuf};

use pgveil::config::{Decision, Diagnostics, SourceFile, load, load_job, load_policy, parse_job, parse_policy};
use proptest::prelude::*;

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

/// What is wrong with a file. Its name says what it is: `job-….yaml`, `pair-….yaml` (a job with its policy), else a policy.
fn complaints(path: &Path) -> Diagnostics {
    let name = path.file_name().unwrap().to_str().unwrap();
    let result = if name.starts_with("pair-") {
        load(path).map(|loaded| loaded.warnings)
    } else if name.starts_with("job-") {
        load_job(path).map(|loaded| loaded.warnings)
    } else {
        load_policy(path).map(|loaded| loaded.warnings)
    };
    result.unwrap_or_else(|errors| errors)
}

#[test]
fn invalid_files_say_what_is_wrong() {
    let folder = policies().join("invalid");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 20, "only {} files in {}", files.len(), folder.display());
    let mut different = Vec::new();
    for path in files {
        let found = complaints(&path);
        let told = found.to_string().replace(&format!("{}/", folder.display()), "") + "\n";
        let warns = path.file_stem().is_some_and(|stem| stem.to_str().unwrap().contains("warning"));
        assert_ne!(found.has_errors(), warns, "{}: {told}", path.display());
        let expected = path.with_extension("err");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &told).unwrap();
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(told.as_str()) {
            different.push(format!("{}:\n{told}", path.display()));
        }
    }
    assert!(different.is_empty(), "BLESS=1 rewrites what is expected:\n{}", different.join("\n"));
}

#[test]
fn secrets_in_a_file_are_never_repeated() {
    let secrets = ["hunter2", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"];
    for name in ["job-url-in-file", "key-in-file", "job-url-syntax"] {
        let found = complaints(&policies().join(format!("invalid/{name}.yaml")));
        assert!(found.has_errors());
        for secret in secrets {
            assert!(!found.to_string().contains(secret), "{found}");
            assert!(!found.to_json().to_string().contains(secret), "{name}");
        }
    }
}

const JOB: &str = r#"
job: { id: shop }
source: { url_env: PGVEIL_SOURCE_URL, publication: "Shop pub", slot: 1slot }
target: { url_env: PGVEIL_TARGET_URL }
tables:
  - public.users
  - '"Q_"" . S"."T "" ."'
policy: { file: ../policies/shop.yaml, locked: false }
schema: { mode: existing }
limits:
  memory_budget: 256MiB
  copy_workers: 4
  guest_deadline: 5min
safety: { require_tls: false, audit_percent: 0.5 }
"#;

const POLICY: &str = r#"
version: 1
guests:
  standard: { builtin: standard }
  acme: { path: ../guests/dist/acme.wasm, blake3: 9f2c0000000000000000000000000000000000000000000000000000000000ff }
keys:
  people: { env: PGVEIL_KEY_PEOPLE }
tables:
  public.users:
    keep: { filter: standard/sample, columns: [id], percent: 10, key: people }
    columns:
      id: pass
      Email: { mask: standard/email, key: people, domain: email }
      "full name": { mask: acme/full-name, columns: ["full name", locale], key: people }
      first: { mask: standard/person, outputs: [first, last], columns: [id] , key: people }
      note: "null"
      memo: null
    rest: pass
    acknowledge: [id]
  '"Q_"" . S"."T "" ."': { rest: null }
"#;

fn file(text: &str) -> SourceFile {
    SourceFile { path: PathBuf::from("jobs/shop.yaml"), text: text.to_owned() }
}

#[test]
fn a_job_is_understood() {
    let job = parse_job(file(JOB)).map_err(|errors| errors.to_string()).unwrap().value;
    assert_eq!(job.tables[1].span.line, 7);
    let tables: Vec<String> = job.tables.iter().map(|table| table.to_string()).collect();
    let shown = format!(
        "{} {} {} {}\n{tables:#?}\n{} locked={}\n{:?}\n{:#?}\n{:#?}",
        job.job.id.value,
        job.source.url_env.value,
        job.source.publication.value,
        job.source.slot.value,
        job.policy.file.display(),
        job.policy.locked,
        job.schema.mode,
        job.limits,
        job.safety,
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn a_policy_is_understood() {
    let policy = parse_policy(file(POLICY)).map_err(|errors| errors.to_string()).unwrap().value;
    let names =
        |columns: &[pgveil::config::Spanned<String>]| columns.iter().map(|each| each.value.clone()).collect::<Vec<_>>();
    let mut shown = Vec::new();
    for table in policy.tables.values() {
        shown.push(format!("{} rest={:?} at {}", table.table.value, table.rest.value, table.table.span.line));
        for filter in &table.keep {
            shown.push(format!(
                "  keep {} sees {:?} {:?}",
                filter.function.value,
                names(&filter.columns),
                filter.arguments
            ));
        }
        for column in table.columns.values() {
            let decision = match &column.decision {
                Decision::Pass => "pass".to_owned(),
                Decision::Null => "null".to_owned(),
                Decision::Mask(mask) => format!(
                    "{} sees {:?} writes {:?} key {:?} domain {:?}",
                    mask.function.value,
                    names(&mask.columns),
                    names(&mask.outputs),
                    mask.key.as_ref().map(|key| &key.value),
                    mask.domain.as_ref().map(|domain| &domain.value)
                ),
            };
            shown.push(format!("  {:?}: {decision}", column.column.value));
        }
        let mut decided: Vec<&str> = table.decided().collect();
        decided.sort_unstable();
        shown.push(format!("  decided {decided:?}"));
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn files_that_are_no_text_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        load_policy(&path).unwrap_err().to_string()
    };
    let not_utf8 = told("latin1.yaml", b"version: 1\ntables:\n  public.caf\xe9: {}\n");
    assert!(not_utf8.contains("not UTF-8") && not_utf8.contains(":3:"), "{not_utf8}");
    assert!(told("nul.yaml", b"version: 1\0").contains("NUL"));
    assert!(told("large.yaml", &vec![b'#'; 10 << 20]).contains("larger than 4 MiB"));
    assert!(told("empty.yaml", b"\xef\xbb\xbf").contains("empty"));
    assert!(load_policy(folder.path()).unwrap_err().to_string().contains("cannot be read"));
    assert!(load_policy(&folder.path().join("missing.yaml")).unwrap_err().to_string().contains("cannot be read"));
}

/// A file with very many errors is reported in part.
#[test]
fn many_errors_are_bounded() {
    let text = "version: 1\ntables: { ".to_owned() + &"a b: {},".repeat(200_000) + "}";
    let errors = parse_policy(file(&text)).unwrap_err();
    assert!(errors.iter().count() <= 1_000);
    assert!(errors.to_string().len() < 100_000);
}

/// A valid file with a few characters changed.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let change = (
        0..text.len(),
        0..6usize,
        prop_oneof![
            Just(""),
            Just("\n"),
            Just(": "),
            Just("{"),
            Just("["),
            Just("\""),
            Just("\u{e9}"),
            Just("- "),
            Just("null")
        ],
    );
    proptest::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut text = text.to_owned();
        for (at, length, new) in changes {
            let start = (0..=at.min(text.len())).rev().find(|start| text.is_char_boundary(*start)).unwrap_or(0);
            let end = (start + length..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
            text.replace_range(start..end, new);
        }
        text
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in prop_oneof![any::<String>(), damaged(JOB), damaged(POLICY)]) {
        let job = parse_job(file(&text)).map(|loaded| loaded.warnings).unwrap_or_else(|errors| errors);
        let policy = parse_policy(file(&text)).map(|loaded| loaded.warnings).unwrap_or_else(|errors| errors);
        for found in [job, policy] {
            let _ = (found.to_string(), found.render(true), found.to_json());
        }
    }
}
