//! The tree's own rules: sizes, directions of imports, documents that must not go stale.

use std::fs;
use std::path::{Path, PathBuf};

use pgveil_tests::Result;
use pgveil_tests::version::repository;

/// A source file longer than this holds a second concern.
const FILE_LINES_MAX: usize = 600;

/// The Rust files under a folder of the repository, without build output.
fn rust_files(folder: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![repository().join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("corpus") {
                open.extend(fs::read_dir(&path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    assert!(!found.is_empty(), "no Rust files under {folder}");
    Ok(found)
}

fn shown(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

#[test]
fn no_source_file_is_too_long() -> Result<()> {
    let mut long = Vec::new();
    for path in ["host", "guests"].into_iter().map(rust_files).collect::<Result<Vec<_>>>()?.concat() {
        let lines = fs::read_to_string(&path)?.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
        if lines > FILE_LINES_MAX {
            long.push(format!("{}: {lines} lines", shown(&path)));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
    Ok(())
}

#[test]
fn every_source_file_says_what_it_is_for() -> Result<()> {
    let files = ["host", "guests", "tests"].into_iter().map(rust_files).collect::<Result<Vec<_>>>()?.concat();
    let silent: Vec<_> = files
        .into_iter()
        .filter(|path| !fs::read_to_string(path).is_ok_and(|text| text.contains("//! ")))
        .map(|path| shown(&path))
        .collect();
    assert!(silent.is_empty(), "no module documentation: {silent:#?}");
    Ok(())
}

/// What a part of the host may not name. Directions are invariants by absence, see ARCHITECTURE.md.
const FORBIDDEN: [(&str, &[&str]); 9] = [
    ("host/wire/src", &["tokio", "wasmtime", "pgveil::"]),
    ("host/src/source", &["crate::apply", "crate::veil", "crate::pipeline", "crate::cli", "wasmtime"]),
    ("host/src/apply", &["crate::source", "crate::pipeline", "crate::cli", "wasmtime", "RawBatch", "RawWindow"]),
    ("host/src/veil", &["crate::source", "crate::apply", "crate::pipeline", "crate::postgres", "crate::cli"]),
    ("host/src/checkpoint", &["crate::source", "crate::apply", "crate::veil", "crate::pipeline", "wasmtime"]),
    (
        "host/src/postgres",
        &["crate::source", "crate::apply", "crate::veil", "crate::pipeline", "crate::checkpoint", "wasmtime"],
    ),
    (
        "host/src/config",
        &["crate::source", "crate::apply", "crate::veil", "crate::pipeline", "crate::postgres", "wasmtime"],
    ),
    ("host/src/pipeline", &["crate::cli", "wasmtime"]),
    ("host/src/observe", &["crate::veil", "crate::apply", "crate::pipeline", "wasmtime"]),
];

#[test]
fn imports_run_one_way() -> Result<()> {
    let mut wrong = Vec::new();
    for (folder, forbidden) in FORBIDDEN {
        for path in rust_files(folder)? {
            for (number, line) in fs::read_to_string(&path)?.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                wrong.extend(
                    forbidden
                        .iter()
                        .filter(|name| code.contains(**name))
                        .map(|name| format!("{}:{}: {name}", shown(&path), number + 1)),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[test]
fn only_the_checkpoint_makes_a_durable_position() -> Result<()> {
    for path in rust_files("host/src")? {
        let text = fs::read_to_string(&path)?;
        let made = text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("DurableLsn("));
        assert!(!made || path.ends_with("host/src/checkpoint.rs"), "{} makes a DurableLsn", shown(&path));
    }
    Ok(())
}

/// The contract with guests cannot change without its document.
#[test]
fn the_guest_interface_is_the_one_that_is_documented() -> Result<()> {
    let mut digest = blake3::Hasher::new();
    for file in ["types.wit", "policy.wit", "world.wit"] {
        digest.update(&fs::read(repository().join("wit").join(file))?);
    }
    let digest = digest.finalize().to_hex();
    let document = fs::read_to_string(repository().join("docs/policy-abi.md"))?;
    assert!(
        document.contains(digest.as_str()),
        "wit/ changed: read docs/policy-abi.md again, then put this digest there: {digest}"
    );
    Ok(())
}
