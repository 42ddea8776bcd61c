//! The source's catalogue: the publication, its tables, and all that `check` and the schema step must know of them.
//!
//! Two statements, whatever the number of tables; nothing is created and no table is read. What the catalogue holds of
//! row data (literals in defaults, filters, predicates) is looked at by the server and never sent here.

use std::sync::Arc;

use serde::Deserialize;

use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;
use crate::relation::{Column, ReplicaIdentity, Table};

mod facts;

pub use facts::{
    CheckConstraint, ColumnDefault, ForeignKey, GeneratedColumn, GeneratedKind, IdentityIndex, Publication,
    RelationKind, UniqueIndex,
};

/// What the source's catalogue says about a publication.
#[derive(Clone, Debug)]
pub struct SourceCatalog {
    /// The publication itself.
    pub publication: Publication,
    /// Its tables, ordered by schema and name (byte order).
    pub tables: Vec<SourceTable>,
}

/// One published table.
#[derive(Clone, Debug)]
pub struct SourceTable {
    /// Name, identity and the columns that rows carry.
    pub table: Arc<Table>,
    /// Ordinary, partitioned, foreign …
    pub kind: RelationKind,
    /// Whether it is a partition of another table.
    pub is_partition: bool,
    /// The tables it inherits from (for a partition: the partitioned table).
    pub parents: Vec<TableName>,
    /// The tables that inherit from it: `COPY` and every statement must say `ONLY` or leave them out.
    pub children: Vec<TableName>,
    /// Whether the publication sends only rows that match a condition.
    pub row_filter: bool,
    /// Whether the publication names the columns that it sends.
    pub column_list: bool,
    /// Whether row-level security applies to our role (neither owner nor `BYPASSRLS`): it would not see every row.
    pub row_security: bool,
    /// The index behind replica identity DEFAULT or INDEX, usable or not; `None` when there is none.
    pub identity_index: Option<IdentityIndex>,
    /// Columns that the target computes by itself; never sent, so never in [`Table::columns`].
    pub generated: Vec<GeneratedColumn>,
    /// Unique indexes and exclusion constraints.
    pub unique_indexes: Vec<UniqueIndex>,
    /// `CHECK` constraints.
    pub checks: Vec<CheckConstraint>,
    /// The table's own foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Triggers that users made.
    pub triggers: Vec<String>,
    /// One for each of [`Table::columns`].
    pub column_facts: Vec<ColumnFacts>,
    /// The planner's estimate (`reltuples`); 0 when the table was never analysed.
    pub estimated_rows: u64,
    /// The size of the main fork in blocks, for chunks by `ctid`.
    pub blocks: u64,
    /// Whether our role may read the whole table.
    pub readable: bool,
}

/// What is known of a column beside its [`Column`].
#[derive(Clone, Debug)]
pub struct ColumnFacts {
    /// `GENERATED ALWAYS AS IDENTITY`: an insert must say `OVERRIDING SYSTEM VALUE`.
    pub always_identity: bool,
    /// Any `IDENTITY`.
    pub auto_identity: bool,
    /// Whether values may be stored out of line, so that an update may send "unchanged" for them.
    pub toastable: bool,
    /// What kind of default it has.
    pub default: ColumnDefault,
    /// Whether our role may read the column.
    pub readable: bool,
}

impl SourceTable {
    /// Whether updates and deletes can be published: PostgreSQL refuses them without an identity.
    #[must_use]
    pub fn has_identity(&self) -> bool {
        match self.table.replica_identity {
            ReplicaIdentity::Full => true,
            ReplicaIdentity::Nothing => false,
            ReplicaIdentity::Default | ReplicaIdentity::Index => {
                self.identity_index.as_ref().is_some_and(|index| index.usable)
            }
        }
    }
}

impl SourceCatalog {
    /// A table by its exact name.
    #[must_use]
    pub fn table(&self, name: &TableName) -> Option<&SourceTable> {
        self.tables.iter().find(|table| table.table.name == *name)
    }
}

/// Reads a publication and its tables.
///
/// # Errors
/// [`Kind::Preflight`] when there is no publication of that exact name; [`Kind::Protocol`] when the catalogue answers in a
/// shape that is not PostgreSQL's; whatever the session meets.
pub async fn read_tables(session: &mut Session, publication: &str) -> Result<SourceCatalog> {
    let place = || format!("source: publication {publication}");
    // Compiling these statements takes a second where running them takes milliseconds.
    session.batch("SET jit = off").await?;
    let rows = session.query(include_str!("schema/publication.sql"), &[Some(publication)]).await?;
    let Some(row) = rows.first() else {
        return Err(Error::new(Kind::Preflight, format!("{}: there is none of this name", place())));
    };
    let found: Publication = decode(row.text("publication")?).map_err(|error| error.within(place()))?;
    let rows = session.query(include_str!("schema/tables.sql"), &[Some(publication)]).await?;
    let tables = rows
        .iter()
        .map(|row| decode::<TableRow>(row.text("table")?)?.into_table())
        .collect::<Result<Vec<_>>>()
        .map_err(|error| error.within(place()))?;
    Ok(SourceCatalog { publication: found, tables })
}

/// Reads one JSON answer. Only the place of a fault is kept: serde's message may quote what it read.
fn decode<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(Kind::Protocol, format!("the catalogue's answer, character {}", error.column())))
}

/// One row of `tables.sql`.
#[derive(Deserialize)]
struct TableRow {
    schema: String,
    name: String,
    relation_id: u32,
    kind: RelationKind,
    is_partition: bool,
    row_filter: bool,
    column_list: bool,
    row_security: bool,
    replica_identity: char,
    readable: bool,
    estimated_rows: u64,
    blocks: u64,
    identity_index: Option<IdentityIndex>,
    parents: Option<Vec<(String, String)>>,
    children: Option<Vec<(String, String)>>,
    triggers: Option<Vec<String>>,
    columns: Option<Vec<ColumnRow>>,
    unique_indexes: Option<Vec<UniqueIndex>>,
    checks: Option<Vec<CheckConstraint>>,
    foreign_keys: Option<Vec<ForeignKey>>,
}

/// One element of its `columns`.
#[derive(Deserialize)]
struct ColumnRow {
    name: String,
    type_oid: u32,
    type_modifier: i32,
    type_name: String,
    base_type_name: String,
    catalog_type: String,
    base_catalog_type: String,
    category: char,
    not_null: bool,
    identity: bool,
    unique: bool,
    generated: String,
    always_identity: bool,
    auto_identity: bool,
    inputs: Option<Vec<String>>,
    toastable: bool,
    readable: bool,
    default: ColumnDefault,
}

// === impl TableRow ===

impl TableRow {
    fn into_table(self) -> Result<SourceTable> {
        let name = TableName::new(self.schema, self.name);
        let replica_identity = match self.replica_identity {
            'd' => ReplicaIdentity::Default,
            'i' => ReplicaIdentity::Index,
            'f' => ReplicaIdentity::Full,
            'n' => ReplicaIdentity::Nothing,
            _ => return Err(Error::new(Kind::Protocol, format!("table {name}: replica identity of an unknown kind"))),
        };
        let (mut columns, mut column_facts, mut generated) = (Vec::new(), Vec::new(), Vec::new());
        for column in self.columns.unwrap_or_default() {
            match GeneratedKind::from_catalog(&column.generated) {
                Some(kind) => generated.push(column.into_generated(kind)),
                None => {
                    column_facts.push(column.facts());
                    columns.push(column.into_column());
                }
            }
        }
        Ok(SourceTable {
            table: Arc::new(Table { name, relation_id: self.relation_id, replica_identity, columns }),
            kind: self.kind,
            is_partition: self.is_partition,
            parents: names(self.parents),
            children: names(self.children),
            row_filter: self.row_filter,
            column_list: self.column_list,
            row_security: self.row_security,
            identity_index: self.identity_index,
            generated,
            unique_indexes: self.unique_indexes.unwrap_or_default(),
            checks: self.checks.unwrap_or_default(),
            foreign_keys: self.foreign_keys.unwrap_or_default(),
            triggers: self.triggers.unwrap_or_default(),
            column_facts,
            estimated_rows: self.estimated_rows,
            blocks: self.blocks,
            readable: self.readable,
        })
    }
}

impl ColumnRow {
    fn facts(&self) -> ColumnFacts {
        ColumnFacts {
            always_identity: self.always_identity,
            auto_identity: self.auto_identity,
            toastable: self.toastable,
            default: self.default,
            readable: self.readable,
        }
    }

    fn into_column(self) -> Column {
        Column {
            name: self.name,
            type_oid: self.type_oid,
            type_modifier: self.type_modifier,
            type_name: self.type_name,
            base_type_name: self.base_type_name,
            catalog_type: self.catalog_type,
            base_catalog_type: self.base_catalog_type,
            category: self.category,
            not_null: self.not_null,
            identity: self.identity,
            unique: self.unique,
        }
    }

    fn into_generated(self, kind: GeneratedKind) -> GeneratedColumn {
        GeneratedColumn {
            name: self.name,
            kind,
            type_name: self.type_name,
            inputs: self.inputs.unwrap_or_default(),
            identity: self.identity,
            unique: self.unique,
        }
    }
}

fn names(pairs: Option<Vec<(String, String)>>) -> Vec<TableName> {
    pairs.unwrap_or_default().into_iter().map(|(schema, name)| TableName::new(schema, name)).collect()
}
