//! Tables as the job knows them: names, columns and replica identity, never values.
//!
//! Read from the source's catalogue at start (`source/schema.rs`) and compared with each Relation message of the
//! stream. Column order is the order of `pg_attribute.attnum`, generated and dropped columns left out, which is the
//! order of `pgoutput` tuples.

use crate::config::TableName;

/// What identifies a row in `UPDATE` and `DELETE` (`pg_class.relreplident`).
pub use pgveil_wire::pgoutput::ReplicaIdentity;

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The exact name, unquoted.
    pub name: String,
    /// `pg_attribute.atttypid` on the source.
    pub type_oid: u32,
    /// `pg_attribute.atttypmod`: the length of a `varchar(n)`, precision and scale of a `numeric(p,s)`; −1 is none.
    pub type_modifier: i32,
    /// The type as SQL writes it, schema-qualified under an empty `search_path` (`format_type`).
    pub type_name: String,
    /// The type below all domains, likewise written; equal to `type_name` for a type that is no domain.
    pub base_type_name: String,
    /// `pg_type.typname` of the declared type, as guests are told it: `varchar`, `_text`, a domain's own name.
    pub catalog_type: String,
    /// `pg_type.typname` of the type below all domains.
    pub base_catalog_type: String,
    /// `pg_type.typcategory` of the type below all domains: `S` strings, `N` numbers, `D` dates and times …
    pub category: char,
    /// Whether NULL is refused (`attnotnull`, or a domain's).
    pub not_null: bool,
    /// Whether the column belongs to the replica identity (under FULL: every column).
    pub identity: bool,
    /// Whether a unique index or exclusion constraint covers the column on the source.
    pub unique: bool,
}

/// One table of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Schema and name.
    pub name: TableName,
    /// `pg_class.oid` on the source: a table dropped and made again has another.
    pub relation_id: u32,
    /// How old rows are identified.
    pub replica_identity: ReplicaIdentity,
    /// The published columns in tuple order.
    pub columns: Vec<Column>,
}

impl Table {
    /// The position of a column by its exact name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The positions of the replica identity's columns, in tuple order.
    pub fn identity_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().enumerate().filter(|(_, column)| column.identity).map(|(position, _)| position)
    }
}
