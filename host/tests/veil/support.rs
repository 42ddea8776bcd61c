//! Tables, policies and batches in a few words.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use pgveil::config::{Diagnostics, KeyMaterial, Policy, SourceFile, TableName, parse_policy};
use pgveil::error::Error;
use pgveil::relation::{Column, ReplicaIdentity, Table};
use pgveil::row::{Cell, Encoding, Image, RawBatch};
use pgveil::veil::{Guest, GuestLimits, Sandbox, Veil, VeilParts, VeiledBatch, VeiledCell};

/// Enough fuel for what tests do on purpose, little enough that a loop ends within a second.
pub(crate) fn limits() -> GuestLimits {
    GuestLimits { fuel_base: 300_000_000, fuel_per_row: 100_000, ..GuestLimits::default() }
}

/// Every guest of the repository that loads, compiled once for all tests of the process.
pub(crate) static GUESTS: LazyLock<BTreeMap<String, Arc<Guest>>> = LazyLock::new(|| {
    let sandbox = Sandbox::new(limits()).expect("the engine starts");
    let load = |guest: &pgveil_artifacts::Guest| {
        let loaded = Guest::load(&sandbox, guest.name, guest.component, None);
        (guest.name.to_owned(), loaded.unwrap_or_else(|error| panic!("{}", chain(&error))))
    };
    pgveil_artifacts::HONEST.iter().chain([&pgveil_artifacts::HOSTILE]).map(load).collect()
});

/// One cell of a raw row.
#[derive(Clone, Copy)]
pub(crate) enum C<'a> {
    /// A value.
    V(&'a str),
    /// NULL.
    N,
    /// Unchanged.
    U,
    /// Not in this image.
    A,
}

/// A table `public.t` of relation 7, written as `id int4 key, "full name" varchar(10) not null, note text unique`.
pub(crate) fn table(identity: ReplicaIdentity, columns: &str) -> Arc<Table> {
    let columns = columns.split(", ").map(|text| column(text, identity)).collect();
    Arc::new(Table { name: TableName::new("public", "t"), relation_id: 7, replica_identity: identity, columns })
}

fn column(text: &str, identity: ReplicaIdentity) -> Column {
    let (name, rest) = text.split_once(' ').expect("a name and a type");
    let mut words = rest.split(' ');
    let written = words.next().expect("a type");
    let flags: Vec<&str> = words.collect();
    let (base, length) = written.split_once('(').map_or((written, None), |(base, length)| (base, Some(length)));
    let length = length.map_or(-1, |length| length.trim_end_matches(')').parse::<i32>().expect("a length") + 4);
    let category = match base {
        "text" | "varchar" | "bpchar" | "citext" => 'S',
        "int4" | "numeric" => 'N',
        "date" => 'D',
        _ => 'U',
    };
    let key = flags.contains(&"key");
    Column {
        name: name.replace('_', " "),
        type_oid: 25,
        type_modifier: length,
        type_name: written.to_owned(),
        base_type_name: written.to_owned(),
        catalog_type: base.to_owned(),
        base_catalog_type: base.to_owned(),
        category,
        not_null: key || flags.contains(&"not"),
        identity: key || identity == ReplicaIdentity::Full,
        unique: key || flags.contains(&"unique"),
    }
}

/// A policy for `public.t`, given what stands under the table.
pub(crate) fn policy(table: &str) -> Policy {
    let indented: String = table.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "version: 1\nguests:\n  standard: {{ builtin: standard }}\n  hello: {{ builtin: hello }}\n  hostile: {{ builtin: hostile }}\n  \
         full-name: {{ builtin: full-name }}\nkeys:\n  k: {{ env: K }}\n  other: {{ env: OTHER }}\ntables:\n  public.t:\n{indented}"
    );
    let file = SourceFile { path: "policy.yaml".into(), text };
    parse_policy(file).unwrap_or_else(|errors| panic!("{errors}")).value
}

/// Key material by a repeated byte.
pub(crate) fn keys(byte: &str) -> BTreeMap<String, KeyMaterial> {
    ["k", "other"].map(|name| (name.to_owned(), KeyMaterial::decode("K", &byte.repeat(32)).expect("a key"))).into()
}

/// Compiles a policy for one table.
pub(crate) fn compile(table: &Arc<Table>, text: &str, audit_percent: f64) -> Result<Veil, Diagnostics> {
    let parts = VeilParts {
        policy: &policy(text),
        tables: &[Arc::clone(table)],
        guests: &GUESTS,
        keys: &keys("ab"),
        audit_percent,
    };
    Veil::compile(&parts)
}

/// The same, which must succeed.
pub(crate) fn veil(table: &Arc<Table>, text: &str) -> Veil {
    compile(table, text, 0.0).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A batch of the rows given.
pub(crate) fn batch(table: &Arc<Table>, image: Image, encoding: Encoding, rows: &[Vec<C<'_>>]) -> RawBatch {
    let mut bytes = Vec::new();
    let mut cells = Vec::new();
    for cell in rows.iter().flatten() {
        cells.push(match cell {
            C::V(value) => {
                let start = u32::try_from(bytes.len()).expect("a small batch");
                bytes.extend_from_slice(value.as_bytes());
                Cell::value(start, u32::try_from(value.len()).expect("a small value")).expect("a value")
            }
            C::N => Cell::NULL,
            C::U => Cell::UNCHANGED,
            C::A => Cell::ABSENT,
        });
    }
    RawBatch::new(Arc::clone(table), image, encoding, Bytes::from(bytes), cells).expect("whole rows")
}

/// Whole rows in plain text.
pub(crate) fn rows(table: &Arc<Table>, rows: &[Vec<C<'_>>]) -> RawBatch {
    batch(table, Image::Row, Encoding::Plain, rows)
}

/// Every cell of a veiled batch, row by row.
pub(crate) fn show(batch: &VeiledBatch) -> Vec<Vec<String>> {
    let cell = |row, column| match batch.cell(row, column) {
        VeiledCell::Null => "NULL".to_owned(),
        VeiledCell::Unchanged => "unchanged".to_owned(),
        VeiledCell::Absent => "absent".to_owned(),
        VeiledCell::Plain(value) => format!("{:?}", String::from_utf8_lossy(value)),
        VeiledCell::CopyText(value) => format!("copy {:?}", String::from_utf8_lossy(value)),
    };
    (0..batch.rows()).map(|row| (0..batch.table().columns.len()).map(|column| cell(row, column)).collect()).collect()
}

/// An error with all its causes, as a log would print it.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    format!("{text} | {error:?}")
}
