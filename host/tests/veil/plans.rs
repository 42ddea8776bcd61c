//! A job that is not wholly decided does not start, and a fingerprint says what decides it.

use std::sync::Arc;

use pgveil::relation::{ReplicaIdentity, Table};
use pgveil::veil::{Fingerprint, Veil, VeilParts};

use crate::support::{GUESTS, compile, keys, policy, table, veil};

fn people() -> Arc<Table> {
    table(ReplicaIdentity::Default, "id text key, email text unique, note text, age int4 not, born date")
}

/// All decided, nothing masked.
const DECIDED: &str = "id: pass\n  email: pass\n  note: pass\n  age: pass\n  born: pass";

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let decided = |change: (&str, &str)| format!("columns:\n  {}", DECIDED.replace(change.0, change.1));
    for (policy, message) in [
        ("columns:\n  id: pass".to_owned(), "column `email` is not decided"),
        (decided(("note: pass", "Note: pass")), "has no column `Note`"),
        (decided(("note: pass", "Note: pass")), "did you mean `note`?"),
        (decided(("age: pass", "age: \"null\"")), "column `age` is NOT NULL"),
        ("columns: { id: pass }\nrest: \"null\"".to_owned(), "column `age` is NOT NULL"),
        (decided(("note: pass", "note: { mask: hello/hash }")), "has no function `hash`; did you mean `hush`?"),
        (decided(("note: pass", "note: { mask: hello/hush, columns: [notes] }")), "has no column `notes`"),
        (decided(("note: pass", "note: { mask: hello/hush, columns: [note, email] }")), "does not take 2 columns"),
        (decided(("note: pass", "note: { mask: hello/hush, key: k }")), "has no use for a key"),
        (decided(("note: pass", "note: { mask: standard/email }")), "`standard/email` needs a key"),
        (decided(("age: pass", "age: { mask: standard/email, key: k }")), "does not accept column `age` of type int4"),
        (decided(("note: pass", "note: { mask: standard/sample, percent: 5, key: k }")), "is a filter, not a mask"),
        (
            decided(("email: pass", "email: { mask: hello/hush }")),
            "writes unique column `email` but is not declared injective",
        ),
        (
            decided(("id: pass", "id: { mask: hello/hush }")),
            "writes identity column `id` but is not declared injective",
        ),
        (decided(("id: pass", "id: { mask: standard/hash, columns: [note], key: k }")), "which old keys do not hold"),
        (format!("keep: {{ filter: hello/hush, columns: [id] }}\ncolumns:\n  {DECIDED}"), "is a mask, not a filter"),
        (
            format!("keep: {{ filter: standard/sample, columns: [id], key: k, percent: 500 }}\ncolumns:\n  {DECIDED}"),
            "cannot be bound",
        ),
    ] {
        let Err(errors) = compile(&people(), &policy, 0.0) else { panic!("it was taken: {policy}") };
        let text = errors.to_string();
        assert!(text.contains(message), "expected {message:?} for\n{policy}\nin\n{text}");
        assert!(text.contains("policy.yaml:"), "no place in {text}");
    }
}

#[test]
fn all_errors_are_told_at_once() {
    let Err(errors) = compile(&people(), "columns:\n  nope: pass\n  age: \"null\"\n  id: { mask: hello/hush }", 0.0)
    else {
        panic!("it was taken")
    };
    let text = errors.to_string();
    for message in ["has no column `nope`", "`age` is NOT NULL", "not declared injective"] {
        assert!(text.contains(message), "{message:?} is missing in {text}");
    }
}

#[test]
fn under_full_a_mask_need_not_be_injective() {
    let full = table(ReplicaIdentity::Full, "id text, note text");
    assert!(compile(&full, "columns: { id: { mask: hello/hush }, note: \"null\" }", 0.0).is_ok());
}

#[test]
fn a_table_without_a_policy_and_a_policy_without_a_table_are_errors() {
    let other = Arc::new(Table { name: pgveil::config::TableName::new("public", "u"), ..(*people()).clone() });
    let Err(errors) = compile(&other, &format!("columns:\n  {DECIDED}"), 0.0) else { panic!("it was taken") };
    let text = errors.to_string();
    assert!(text.contains("public.u is a table of the job, but the policy does not name it"), "{text}");
    assert!(text.contains("the job has no table public.t"), "{text}");
}

fn fingerprint(table: &Arc<Table>, text: &str, key: &str) -> Fingerprint {
    let tables = [Arc::clone(table)];
    let (policy, keys) = (policy(text), keys(key));
    let parts = VeilParts { policy: &policy, tables: &tables, guests: &GUESTS, keys: &keys, audit_percent: 1.0 };
    Veil::compile(&parts).unwrap_or_else(|errors| panic!("{errors}")).fingerprint()
}

const MASKED: &str = "keep: { filter: standard/sample, columns: [id], percent: 10, key: k }\ncolumns:\n  id: pass\n  email: pass\n  note: { mask: standard/email, key: k, domain: a }\n  age: pass\n  born: \"null\"";

#[test]
fn the_fingerprint_does_not_depend_on_how_the_file_is_written() {
    let other = "# a comment\nrest: deny\ncolumns: { born: \"null\", age: pass, id: pass, email: pass, note: { domain: 'a', key: k, mask: standard/email, columns: [note] } }\nkeep:\n  - percent: 10\n    key: k\n    columns: [ id ]\n    filter: standard/sample";
    assert_eq!(fingerprint(&people(), MASKED, "ab"), fingerprint(&people(), other, "ab"));
}

#[test]
fn whatever_decides_an_output_is_in_the_fingerprint() {
    let first = fingerprint(&people(), MASKED, "ab");
    for (from, to) in [
        ("percent: 10", "percent: 11"),
        ("columns: [id]", "columns: [email]"),
        ("domain: a", "domain: b"),
        ("standard/email", "standard/hash"),
        ("key: k, domain", "key: other, domain"),
        ("born: \"null\"", "born: pass"),
        ("note: { mask: standard/email, key: k, domain: a }", "note: { mask: hostile/identity }"),
        ("columns:\n  id", "rest: pass\ncolumns:\n  id"),
    ] {
        let changed = MASKED.replace(from, to);
        assert_ne!(changed, MASKED, "{from}");
        assert_ne!(fingerprint(&people(), &changed, "ab"), first, "{from} -> {to}");
    }
    assert_ne!(fingerprint(&people(), MASKED, "cd"), first, "another key");
    let longer =
        table(ReplicaIdentity::Default, "id text key, email text unique, note varchar(99), age int4 not, born date");
    assert_ne!(fingerprint(&longer, MASKED, "ab"), first, "another type");
}

#[test]
fn filtered_tables_are_known() {
    assert_eq!(veil(&people(), MASKED).filtered().collect::<Vec<_>>(), [7]);
    assert_eq!(veil(&people(), &format!("columns:\n  {DECIDED}")).filtered().count(), 0);
}
