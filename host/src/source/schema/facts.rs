//! The parts of a published table beside its columns, as `tables.sql` sends them.

use serde::{Deserialize, Deserializer};

use crate::config::TableName;

/// The publication's own settings (`pg_publication`).
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the catalogue")]
pub struct Publication {
    /// `FOR ALL TABLES`: a table that is made later is published at once.
    pub all_tables: bool,
    /// `FOR TABLES IN SCHEMA`: likewise for one made in such a schema.
    pub whole_schemas: bool,
    /// Whether inserts are published.
    pub insert: bool,
    /// Whether updates are published.
    pub update: bool,
    /// Whether deletes are published.
    pub delete: bool,
    /// Whether TRUNCATE is published.
    pub truncate: bool,
    /// `publish_via_partition_root`.
    pub via_root: bool,
    /// Whether stored generated columns are sent (`publish_generated_columns`, PostgreSQL 18).
    #[serde(deserialize_with = "sends_generated")]
    pub generated_columns: bool,
}

/// What a relation is (`pg_class.relkind`). Only [`RelationKind::Ordinary`] can be replicated by pgveil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum RelationKind {
    /// A plain table.
    #[serde(rename = "r")]
    Ordinary,
    /// A partitioned table, which holds no rows itself.
    #[serde(rename = "p")]
    Partitioned,
    /// A foreign table.
    #[serde(rename = "f")]
    Foreign,
    /// Anything else that a later server might publish.
    #[serde(other)]
    Other,
}

/// The index that identifies old rows.
#[derive(Clone, Debug, Deserialize)]
pub struct IdentityIndex {
    /// Its name.
    pub name: String,
    /// Whether the server uses it as the identity.
    pub usable: bool,
    /// Not deferrable. A deferrable primary key is no identity.
    pub immediate: bool,
    /// Built to its end (`CREATE INDEX CONCURRENTLY` can leave one that is not).
    pub valid: bool,
}

/// How a generated column is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratedKind {
    /// Computed when the row is written.
    Stored,
    /// Computed when the row is read (PostgreSQL 18).
    Virtual,
}

/// A column that both servers compute by themselves: on the target from masked inputs.
#[derive(Clone, Debug)]
pub struct GeneratedColumn {
    /// The exact name.
    pub name: String,
    /// Stored or virtual.
    pub kind: GeneratedKind,
    /// Its type, as [`crate::relation::Column::type_name`].
    pub type_name: String,
    /// The columns that its expression reads.
    pub inputs: Vec<String>,
    /// Whether it belongs to the replica identity: the stream then lacks a part of the key.
    pub identity: bool,
    /// Whether a unique index covers it: its inputs must then stay distinct together.
    pub unique: bool,
}

/// A unique index or an exclusion constraint.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the catalogue")]
pub struct UniqueIndex {
    /// Its name.
    pub name: String,
    /// Built to its end.
    pub valid: bool,
    /// Not deferrable.
    pub immediate: bool,
    /// An exclusion constraint (also a key `WITHOUT OVERLAPS`).
    pub exclusion: bool,
    /// The primary key.
    pub primary: bool,
    /// Holds only rows that match a predicate.
    pub partial: bool,
    /// Two NULLs count as equal.
    pub nulls_not_distinct: bool,
    /// Has an expression among its keys.
    pub expressions: bool,
    /// The plain key columns, in the index's order; `INCLUDE` columns left out.
    pub columns: Vec<String>,
    /// Columns that only its expressions or its predicate read.
    pub inner_columns: Vec<String>,
}

/// A `CHECK` constraint: masked values must satisfy it too.
#[derive(Clone, Debug, Deserialize)]
pub struct CheckConstraint {
    /// Its name.
    pub name: String,
    /// The columns that it reads.
    pub columns: Vec<String>,
}

/// A foreign key of a published table.
#[derive(Clone, Debug, Deserialize)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: String,
    /// `pg_constraint.oid` on the source.
    pub constraint_id: u32,
    /// Whether the referenced table is published too. If not, the key is left out on the target.
    pub inside: bool,
    /// Whether it may be checked at the end of a transaction.
    pub deferrable: bool,
    /// The table it points at.
    #[serde(deserialize_with = "table_name")]
    pub referenced: TableName,
    /// Its columns, in the key's order.
    pub columns: Vec<String>,
    /// The columns they must match, in the same order.
    pub referenced_columns: Vec<String>,
}

/// What kind of default a column has. The expression itself stays at the source: a literal in it may be personal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnDefault {
    /// None.
    None,
    /// Computed without a literal: `now()`, the next value of a sequence.
    Computed,
    /// Holds a literal.
    Literal,
}

// === impl GeneratedKind ===

impl GeneratedKind {
    /// Reads `pg_attribute.attgenerated`; `None` is an ordinary column.
    ///
    /// A letter that is not known counts as virtual: such a column is never read and never written.
    pub(super) fn from_catalog(letter: &str) -> Option<GeneratedKind> {
        match letter {
            "" => None,
            "s" => Some(GeneratedKind::Stored),
            _ => Some(GeneratedKind::Virtual),
        }
    }
}

fn sends_generated<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    String::deserialize(input).map(|letter| letter != "n")
}

fn table_name<'de, D: Deserializer<'de>>(input: D) -> Result<TableName, D::Error> {
    <(String, String)>::deserialize(input).map(|(schema, name)| TableName::new(schema, name))
}
