//! The target's catalogue: the job's tables as they stand there.
//!
//! Types are compared by name, never by OID: OIDs differ from cluster to cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::config::{TableName, quote_literal};
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;

/// The job's tables on the target, by name; those that do not exist are not in it.
pub type TargetCatalog = BTreeMap<TableName, TargetTable>;

/// One table of the target.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "one for each fact of the catalogue")]
pub struct TargetTable {
    schema: String,
    name: String,
    /// A plain table: not partitioned, a partition, foreign, or a view.
    pub ordinary: bool,
    /// `UNLOGGED` or temporary: a crash of the target empties it while the checkpoint stays.
    pub unlogged: bool,
    /// Has rewrite rules, which change what a statement does.
    pub rules: bool,
    /// Whether row-level security applies to our role: COPY is then refused.
    pub row_security: bool,
    /// The rights of those that apply needs (`SELECT`, `INSERT` …) which our role lacks.
    pub missing_rights: Vec<String>,
    /// Triggers that fire even under `session_replication_role = replica`.
    pub firing_triggers: Vec<String>,
    /// Every column, in order.
    #[serde(default, deserialize_with = "list")]
    pub columns: Vec<TargetColumn>,
    /// The columns of each unique index that `ON CONFLICT` can use, in the index's order.
    #[serde(default, deserialize_with = "list")]
    pub unique_keys: Vec<Vec<String>>,
}

/// One column of a table of the target.
#[derive(Clone, Debug, Deserialize)]
pub struct TargetColumn {
    /// The exact name.
    pub name: String,
    /// As [`crate::relation::Column::type_name`].
    pub type_name: String,
    /// `pg_attribute.atttypmod`.
    pub type_modifier: i32,
    /// Whether the column itself refuses NULL.
    pub not_null: bool,
    /// Computed by the target.
    pub generated: bool,
    /// `GENERATED ALWAYS AS IDENTITY`: an insert must say `OVERRIDING SYSTEM VALUE`.
    pub always_identity: bool,
    /// Filled in when an insert leaves it out.
    pub has_default: bool,
}

impl TargetTable {
    /// A column by its exact name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&TargetColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether a unique index covers exactly these columns, in any order, so that `ON CONFLICT` on them works.
    #[must_use]
    pub fn has_unique_key(&self, columns: &BTreeSet<&str>) -> bool {
        self.unique_keys.iter().any(|key| key.iter().map(String::as_str).collect::<BTreeSet<_>>() == *columns)
    }
}

/// Reads the named tables in one statement. Nothing is locked for longer than that.
///
/// # Errors
/// [`Kind::Protocol`] when the catalogue answers in a shape that is not PostgreSQL's; whatever the session meets.
pub async fn read_tables(session: &mut Session, names: &[TableName]) -> Result<TargetCatalog> {
    let pairs: Vec<_> = names.iter().map(|name| [&name.schema, &name.name]).collect();
    let wanted = serde_json::to_string(&pairs).map_err(|_| Error::new(Kind::Internal, "target: names as JSON"))?;
    // Compiling the statement takes a second where running it takes milliseconds.
    session.batch("SET jit = off").await?;
    let rows = session.query(include_str!("schema/tables.sql"), &[Some(&wanted)]).await?;
    rows.iter()
        .map(|row| {
            let table: TargetTable = serde_json::from_str(row.text("table")?).map_err(|error| {
                Error::new(Kind::Protocol, format!("target: the catalogue's answer, character {}", error.column()))
            })?;
            Ok((TableName::new(table.schema.as_str(), table.name.as_str()), table))
        })
        .collect()
}

/// Which of these tables hold at least one row. All must exist.
///
/// # Errors
/// [`Kind::Permission`] when one may not be read; whatever the session meets.
pub async fn occupied(session: &mut Session, names: &[&TableName]) -> Result<Vec<TableName>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let branches: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(position, name)| {
            let table = name.quoted();
            format!(
                "SELECT {} AS position WHERE EXISTS (SELECT FROM ONLY {table})",
                quote_literal(&position.to_string())
            )
        })
        .collect();
    let rows = session.batch(&branches.join("\nUNION ALL ")).await?;
    let beyond = || Error::new(Kind::Protocol, "target: tables with rows: one too many");
    rows.iter()
        .map(|row| names.get(row.parse::<usize>("position")?).map(|name| (*name).clone()).ok_or_else(beyond))
        .collect()
}

/// `json_agg` over nothing is NULL, which is an empty list here.
fn list<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(input: D) -> std::result::Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(input).map(Option::unwrap_or_default)
}
