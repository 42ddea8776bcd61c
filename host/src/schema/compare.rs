//! A table of the target against the source's: can rows go in?

use std::collections::BTreeSet;

use crate::apply::schema::{TargetCatalog, TargetColumn, TargetTable, occupied, read_tables};
use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;
use crate::relation::{Column, ReplicaIdentity};
use crate::source::schema::{SourceCatalog, SourceTable};

/// One way in which the target's table is not the source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The column it is about, if about one.
    pub column: Option<String>,
    /// What differs, as a clause.
    pub what: String,
    /// Whether rows may fail to go in, or go in wrongly. Otherwise it is only worth knowing.
    pub refuses: bool,
}

impl Difference {
    fn new(column: Option<&str>, refuses: bool, what: impl Into<String>) -> Difference {
        Difference { column: column.map(str::to_owned), what: what.into(), refuses }
    }
}

/// Compares one table. `filtered`: the policy drops rows, so that apply needs `ON CONFLICT` on the identity.
///
/// Columns are matched by name. Another order is no fault, for every statement names its columns.
#[must_use]
pub fn compare(source: &SourceTable, target: &TargetTable, filtered: bool) -> Vec<Difference> {
    if !target.ordinary {
        return vec![Difference::new(None, true, "it is not an ordinary table")];
    }
    let mut found = Vec::new();
    for column in &source.table.columns {
        match target.column(&column.name) {
            None => found.push(Difference::new(Some(&column.name), true, "the target lacks it")),
            Some(other) => found.extend(compare_column(column, other)),
        }
    }
    for column in &source.generated {
        match target.column(&column.name) {
            Some(other) if !other.generated => {
                let refuses = other.not_null && !other.has_default;
                let what = "computed at the source, ordinary on the target: it stays empty there";
                found.push(Difference::new(Some(&column.name), refuses, what));
            }
            Some(_) => {}
            None => {
                found.push(Difference::new(Some(&column.name), false, "computed at the source; the target lacks it"));
            }
        }
    }
    let known = |name: &str| {
        source.table.column(name).is_some() || source.generated.iter().any(|generated| generated.name == name)
    };
    for extra in target.columns.iter().filter(|column| !known(&column.name) && !column.generated) {
        let refuses = extra.not_null && !extra.has_default;
        let what = if refuses { "only on the target, not nullable and without default" } else { "only on the target" };
        found.push(Difference::new(Some(&extra.name), refuses, what));
    }
    found.extend(missing_key(source, target, filtered));
    found
}

/// Rows are looked up by the identity: without an index over it by reading the whole table, and never by `ON CONFLICT`.
fn missing_key(source: &SourceTable, target: &TargetTable, filtered: bool) -> Option<Difference> {
    let identity: BTreeSet<&str> =
        source.table.identity_columns().map(|position| source.table.columns[position].name.as_str()).collect();
    // Under FULL the identity is every column, and any unique index over a part of them serves.
    let full = source.table.replica_identity == ReplicaIdentity::Full;
    let indexed = if full { !target.unique_keys.is_empty() } else { target.has_unique_key(&identity) };
    if identity.is_empty() || indexed {
        return None;
    }
    let refuses = filtered && !full;
    let what = if refuses {
        "no unique index over the replica identity's columns, which a filtered table needs"
    } else {
        "no unique index to find rows by: every update and delete reads the whole table"
    };
    Some(Difference::new(None, refuses, what))
}

fn compare_column(source: &Column, target: &TargetColumn) -> Vec<Difference> {
    let name = Some(source.name.as_str());
    let mut found = Vec::new();
    if source.type_name != target.type_name {
        let what = format!("its type is {} at the source, {} on the target", source.type_name, target.type_name);
        found.push(Difference::new(name, true, what));
    } else if source.type_modifier != target.type_modifier {
        let what = format!("the length or precision of its type {} differs", source.type_name);
        found.push(Difference::new(name, true, what));
    }
    if target.generated {
        found.push(Difference::new(name, true, "the target computes it"));
    }
    if target.not_null && !source.not_null {
        found.push(Difference::new(name, true, "nullable at the source, not on the target"));
    }
    found
}

/// For `schema.mode: existing`: every table is there, empty, and takes the source's rows.
///
/// # Errors
/// [`Kind::Preflight`], naming the first fault; `check` lists all of them.
pub async fn verify_existing(
    target: &mut Session,
    catalog: &SourceCatalog,
    filtered: &BTreeSet<TableName>,
) -> Result<TargetCatalog> {
    let names: Vec<TableName> = catalog.tables.iter().map(|found| found.table.name.clone()).collect();
    let there = read_tables(target, &names).await?;
    for source in &catalog.tables {
        let name = &source.table.name;
        let fault = |what: &str| Error::new(Kind::Preflight, format!("target: table {name}: {what}"));
        let target = there.get(name).ok_or_else(|| fault("it is not there, and schema.mode is existing"))?;
        if let Some(first) = compare(source, target, filtered.contains(name)).into_iter().find(|found| found.refuses) {
            let column = first.column.map(|column| format!("column {column}: ")).unwrap_or_default();
            return Err(fault(&format!("{column}{}", first.what)));
        }
    }
    let full = occupied(target, &there.keys().collect::<Vec<_>>()).await?;
    match full.first() {
        None => Ok(there),
        Some(first) => Err(Error::new(Kind::Preflight, format!("target: table {first}: has rows already"))),
    }
}
