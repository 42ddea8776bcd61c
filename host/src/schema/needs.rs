//! What the job's tables need beside themselves: `pg_dump` of chosen tables leaves it out.

use serde::Deserialize;

use super::decode;
use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;
use crate::source::schema::SourceCatalog;

/// The closure of the tables' dependencies, from `pg_depend`.
#[derive(Deserialize)]
pub(super) struct Needs {
    extensions: Option<Vec<(String, String)>>,
    schemas: Option<Vec<String>>,
    types: Option<Vec<u32>>,
    sequences: Option<Vec<Sequence>>,
    others: Option<Vec<(String, String)>>,
}

/// A sequence: id, schema, name.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sequence(pub(super) u32, pub(super) String, pub(super) String);

impl Needs {
    /// Extensions with the schema that holds each, those that others require first.
    pub(super) fn extensions(&self) -> &[(String, String)] {
        self.extensions.as_deref().unwrap_or_default()
    }

    /// Schemas of tables, types, sequences and extensions.
    pub(super) fn schemas(&self) -> &[String] {
        self.schemas.as_deref().unwrap_or_default()
    }

    /// The ids of all types that belong to no extension.
    pub(super) fn types(&self) -> &[u32] {
        self.types.as_deref().unwrap_or_default()
    }

    /// Sequences that columns own or draw from.
    pub(super) fn sequences(&self) -> &[Sequence] {
        self.sequences.as_deref().unwrap_or_default()
    }

    /// Kind and identity of everything that is not copied and must be on the target: functions, collations …
    pub(super) fn others(&self) -> &[(String, String)] {
        self.others.as_deref().unwrap_or_default()
    }
}

/// Follows the dependencies of these tables on the source.
pub(super) async fn read(source: &mut Session, tables: &str) -> Result<Needs> {
    let rows = source.query(include_str!("needs.sql"), &[Some(tables)]).await?;
    decode(rows.first().map(|row| row.text("needs")).transpose()?.unwrap_or("{}"))
}

/// Something that hangs on a table of the job: `pg_dump` may write a statement for it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Object {
    pub(super) class: u32,
    pub(super) id: u32,
    pub(super) kind: ObjectKind,
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) name: String,
    /// For a foreign key: the table it points at.
    pub(super) other: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ObjectKind {
    Table,
    Default,
    Generated,
    Constraint,
    ForeignKey,
    Index,
    Trigger,
    Rule,
    Policy,
    RowSecurity,
    Statistics,
}

impl ObjectKind {
    /// As errors and reports call it.
    pub(super) fn noun(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::Default => "default of column",
            ObjectKind::Generated => "generated column",
            ObjectKind::Constraint => "constraint",
            ObjectKind::ForeignKey => "foreign key",
            ObjectKind::Index => "index",
            ObjectKind::Trigger => "trigger",
            ObjectKind::Rule => "rule",
            ObjectKind::Policy => "policy",
            ObjectKind::RowSecurity => "row-level security",
            ObjectKind::Statistics => "extended statistics",
        }
    }
}

/// Reads what hangs on these tables.
pub(super) async fn objects(source: &mut Session, tables: &str) -> Result<Vec<Object>> {
    let rows = source.query(include_str!("objects.sql"), &[Some(tables)]).await?;
    rows.iter().map(|row| decode(row.text("object")?)).collect()
}

impl Sequence {
    pub(super) fn qualified(&self) -> TableName {
        TableName::new(self.1.as_str(), self.2.as_str())
    }
}

/// Kind and name of everything that these tables need on the target, that is not copied, and that is not there: functions,
/// collations, operator classes; and extensions that the target's server does not have. For `check`.
///
/// # Errors
/// Whatever a session meets.
pub async fn unmet(
    source: &mut Session,
    target: &mut Session,
    catalog: &SourceCatalog,
) -> Result<Vec<(String, String)>> {
    let ids = catalog.tables.iter().map(|found| found.table.relation_id).collect::<Vec<_>>();
    let ids = serde_json::to_string(&ids).map_err(|_| Error::new(Kind::Internal, "relation ids as JSON"))?;
    let needs = read(source, &ids).await?;
    let mut missing = Vec::new();
    for (kind, identity) in needs.others() {
        // Only functions and collations can be looked up by the name that identifies them; of others a name is enough.
        let lookup = match kind.as_str() {
            "function" => "SELECT pg_catalog.to_regprocedure($1) IS NOT NULL AS there",
            "collation" => "SELECT pg_catalog.to_regcollation($1) IS NOT NULL AS there",
            "operator" => "SELECT pg_catalog.to_regoperator($1) IS NOT NULL AS there",
            "text search configuration"
            | "text search dictionary"
            | "language"
            | "access method"
            | "operator class"
            | "operator family" => "SELECT false AND $1 <> '' AS there",
            _ => continue,
        };
        let rows = target.query(lookup, &[Some(identity)]).await?;
        if rows.first().map(|row| row.text("there")).transpose()? != Some("t") {
            missing.push((kind.clone(), identity.clone()));
        }
    }
    for (name, _) in needs.extensions() {
        let rows =
            target.query("SELECT FROM pg_catalog.pg_available_extensions WHERE name::text = $1", &[Some(name)]).await?;
        if rows.is_empty() {
            missing.push(("extension".to_owned(), name.clone()));
        }
    }
    Ok(missing)
}
