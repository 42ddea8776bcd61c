//! A table's shape as the job's record keeps it: what was copied, to be compared with what the source has later.

use serde::{Deserialize, Serialize};

use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::relation::{Column, ReplicaIdentity, Table};

/// The recorded form. Fields may be added, never taken away or given another meaning.
#[derive(Serialize, Deserialize)]
struct Shape {
    replica_identity: char,
    columns: Vec<ColumnShape>,
}

#[derive(Serialize, Deserialize)]
struct ColumnShape {
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
}

/// Writes a table's shape as JSON, without its name and oid. Equal shapes are equal texts.
///
/// # Errors
/// [`Kind::Internal`]; there is no text that JSON cannot hold.
pub fn write(table: &Table) -> Result<String> {
    let columns = table.columns.iter().cloned().map(ColumnShape::from).collect();
    let shape = Shape { replica_identity: letter(table.replica_identity), columns };
    serde_json::to_string(&shape).map_err(|_| Error::new(Kind::Internal, format!("table {}: its shape as JSON", table.name)))
}

/// Reads a table back from its recorded shape.
///
/// # Errors
/// [`Kind::NotReady`] when the record is not one that [`write`] made.
pub fn read(name: TableName, relation_id: u32, shape: &str) -> Result<Table> {
    let broken = || Error::new(Kind::NotReady, format!("target: pgveil.job_table: table {name}: its shape cannot be read"));
    let shape: Shape = serde_json::from_str(shape).map_err(|_| broken())?;
    let replica_identity = identity(shape.replica_identity).ok_or_else(broken)?;
    Ok(Table { name, relation_id, replica_identity, columns: shape.columns.into_iter().map(Column::from).collect() })
}

/// As `pg_class.relreplident` writes it.
fn letter(identity: ReplicaIdentity) -> char {
    match identity {
        ReplicaIdentity::Default => 'd',
        ReplicaIdentity::Index => 'i',
        ReplicaIdentity::Full => 'f',
        ReplicaIdentity::Nothing => 'n',
    }
}

fn identity(letter: char) -> Option<ReplicaIdentity> {
    use ReplicaIdentity::{Default, Full, Index, Nothing};
    [Default, Index, Full, Nothing].into_iter().find(|identity| self::letter(*identity) == letter)
}

impl From<Column> for ColumnShape {
    fn from(column: Column) -> ColumnShape {
        let Column { name, type_oid, type_modifier, type_name, base_type_name, catalog_type, base_catalog_type, category, not_null, identity, unique } = column;
        ColumnShape { name, type_oid, type_modifier, type_name, base_type_name, catalog_type, base_catalog_type, category, not_null, identity, unique }
    }
}

impl From<ColumnShape> for Column {
    fn from(column: ColumnShape) -> Column {
        let ColumnShape { name, type_oid, type_modifier, type_name, base_type_name, catalog_type, base_catalog_type, category, not_null, identity, unique } = column;
        Column { name, type_oid, type_modifier, type_name, base_type_name, catalog_type, base_catalog_type, category, not_null, identity, unique }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_back_as_it_was() {
        let column = Column {
            name: "c\" x\n".to_owned(),
            type_oid: 1043,
            type_modifier: 14,
            type_name: "character varying(10)".to_owned(),
            base_type_name: "character varying(10)".to_owned(),
            catalog_type: "varchar".to_owned(),
            base_catalog_type: "varchar".to_owned(),
            category: 'S',
            not_null: true,
            identity: true,
            unique: false,
        };
        for replica_identity in [ReplicaIdentity::Default, ReplicaIdentity::Index, ReplicaIdentity::Full, ReplicaIdentity::Nothing] {
            let table = Table { name: TableName::new("a", "b"), relation_id: 7, replica_identity, columns: vec![column.clone()] };
            let written = write(&table).unwrap_or_default();
            assert_eq!(read(TableName::new("a", "b"), 7, &written).ok(), Some(table));
        }
        assert!(read(TableName::new("a", "b"), 7, "{}").is_err());
    }
}
