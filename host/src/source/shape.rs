//! A table's shape as the job's record keeps it: what was copied and by which decisions, to be compared with what the source
//! has and the policy says later.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::relation::{Column, ReplicaIdentity, Table};

/// The former shapes that are kept: rows in them may still come, as long as the stream has not passed the change.
const FORMER_MAX: usize = 4;

/// Digests of what the policy decided, by which it is seen whether a decision still stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// For each column.
    pub columns: BTreeMap<String, String>,
    /// For the table's filters, all together.
    pub filters: String,
}

/// What the record holds of a table.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its shape.
    pub table: Arc<Table>,
    /// What was decided for it.
    pub decisions: Decisions,
    /// Shapes that it had before, the latest first.
    pub former: Vec<Arc<Table>>,
}

/// The recorded form. Fields may be added, never taken away or given another meaning.
#[derive(Serialize, Deserialize)]
struct Shape {
    replica_identity: char,
    columns: Vec<ColumnShape>,
    #[serde(default)]
    filters: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<Shape>,
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
    #[serde(default)]
    decision: String,
}

/// Writes a table's shape as JSON, without its name and oid.
///
/// # Errors
/// [`Kind::Internal`]; there is no text that JSON cannot hold.
pub fn write(table: &Table, decisions: &Decisions, former: &[Arc<Table>]) -> Result<String> {
    let mut shape = shape_of(table, decisions);
    shape.former = former.iter().take(FORMER_MAX).map(|former| shape_of(former, &Decisions::default())).collect();
    serde_json::to_string(&shape)
        .map_err(|_| Error::new(Kind::Internal, format!("table {}: its shape as JSON", table.name)))
}

/// Reads a table back from its record.
///
/// # Errors
/// [`Kind::NotReady`] when the record is not one that [`write`] made.
pub fn read(name: &TableName, relation_id: u32, text: &str) -> Result<Recorded> {
    let broken =
        || Error::new(Kind::NotReady, format!("target: pgveil.job_table: table {name}: its shape cannot be read"));
    let shape: Shape = serde_json::from_str(text).map_err(|_| broken())?;
    let decided = shape.columns.iter().map(|column| (column.name.clone(), column.decision.clone()));
    let decisions = Decisions { columns: decided.collect(), filters: shape.filters.clone() };
    let (former, latest) = {
        let mut shape = shape;
        (std::mem::take(&mut shape.former), shape)
    };
    let table = |shape: Shape| {
        let replica_identity = identity(shape.replica_identity).ok_or_else(broken)?;
        let columns = shape.columns.into_iter().map(Column::from).collect();
        Ok(Arc::new(Table { name: name.clone(), relation_id, replica_identity, columns }))
    };
    Ok(Recorded { table: table(latest)?, decisions, former: former.into_iter().map(table).collect::<Result<_>>()? })
}

/// Whether the stream describes both alike. What only the catalogue knows (nullability, unique indexes) is left out.
#[must_use]
pub fn same_in_stream(one: &Table, other: &Table) -> bool {
    let column = |column: &Column| (column.name.clone(), column.type_oid, column.type_modifier, column.identity);
    one.relation_id == other.relation_id
        && one.name == other.name
        && one.replica_identity == other.replica_identity
        && one.columns.iter().map(column).eq(other.columns.iter().map(column))
}

fn shape_of(table: &Table, decisions: &Decisions) -> Shape {
    let column = |column: &Column| {
        ColumnShape::new(column.clone(), decisions.columns.get(&column.name).cloned().unwrap_or_default())
    };
    Shape {
        replica_identity: letter(table.replica_identity),
        columns: table.columns.iter().map(column).collect(),
        filters: decisions.filters.clone(),
        former: Vec::new(),
    }
}

/// As `pg_class.relreplident` writes it.
#[must_use]
pub fn letter(identity: ReplicaIdentity) -> char {
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

impl ColumnShape {
    fn new(column: Column, decision: String) -> ColumnShape {
        let Column {
            name,
            type_oid,
            type_modifier,
            type_name,
            base_type_name,
            catalog_type,
            base_catalog_type,
            category,
            not_null,
            identity,
            unique,
        } = column;
        ColumnShape {
            name,
            type_oid,
            type_modifier,
            type_name,
            base_type_name,
            catalog_type,
            base_catalog_type,
            category,
            not_null,
            identity,
            unique,
            decision,
        }
    }
}

impl From<ColumnShape> for Column {
    fn from(column: ColumnShape) -> Column {
        let ColumnShape {
            name,
            type_oid,
            type_modifier,
            type_name,
            base_type_name,
            catalog_type,
            base_catalog_type,
            category,
            not_null,
            identity,
            unique,
            ..
        } = column;
        Column {
            name,
            type_oid,
            type_modifier,
            type_name,
            base_type_name,
            catalog_type,
            base_catalog_type,
            category,
            not_null,
            identity,
            unique,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(replica_identity: ReplicaIdentity, length: i32) -> Table {
        let column = Column {
            name: "c\" x\n".to_owned(),
            type_oid: 1043,
            type_modifier: length,
            type_name: "character varying".to_owned(),
            base_type_name: "character varying".to_owned(),
            catalog_type: "varchar".to_owned(),
            base_catalog_type: "varchar".to_owned(),
            category: 'S',
            not_null: true,
            identity: true,
            unique: false,
        };
        Table { name: TableName::new("a", "b"), relation_id: 7, replica_identity, columns: vec![column] }
    }

    #[test]
    fn a_shape_is_read_back_as_it_was() {
        for replica_identity in
            [ReplicaIdentity::Default, ReplicaIdentity::Index, ReplicaIdentity::Full, ReplicaIdentity::Nothing]
        {
            let (now, before) = (table(replica_identity, 14), Arc::new(table(replica_identity, 9)));
            let decisions =
                Decisions { columns: [("c\" x\n".to_owned(), "d1".to_owned())].into(), filters: "f1".to_owned() };
            let written = write(&now, &decisions, &[Arc::clone(&before)]).unwrap_or_default();
            let found = read(&now.name, 7, &written).ok();
            assert_eq!(found.as_ref().map(|found| (&*found.table, &found.decisions)), Some((&now, &decisions)));
            assert_eq!(found.map(|found| found.former), Some(vec![before]));
        }
        assert!(read(&TableName::new("a", "b"), 7, "{}").is_err());
    }

    #[test]
    fn only_what_the_stream_tells_makes_another_shape() {
        let one = table(ReplicaIdentity::Default, 14);
        let mut other = one.clone();
        other.columns[0].unique = true;
        other.columns[0].not_null = false;
        assert!(same_in_stream(&one, &other));
        assert!(!same_in_stream(&one, &table(ReplicaIdentity::Default, 15)));
        assert!(!same_in_stream(&one, &table(ReplicaIdentity::Full, 14)));
    }
}
