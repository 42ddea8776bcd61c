//! The job's tables as the stream meets them, compared with each Relation message.
//!
//! A changed relation stops the stream before any of its rows is taken: a column that nobody decided on could hold
//! anything. The difference is told by names and types, never by values.

use std::collections::HashMap;
use std::sync::Arc;

use pgveil_wire::pgoutput::Relation;

use crate::error::{Error, Kind, Result};
use crate::relation::Table;

/// The tables by the source's oid.
#[derive(Clone, Default)]
pub struct StreamTables {
    tables: HashMap<u32, Entry>,
}

#[derive(Clone)]
struct Entry {
    table: Arc<Table>,
    /// Whether this connection has sent the table's Relation message: rows before it are against the protocol.
    announced: bool,
}

impl StreamTables {
    /// The job's tables, none announced yet: state is rebuilt from the start of each stream.
    pub fn new(tables: impl IntoIterator<Item = Arc<Table>>) -> StreamTables {
        StreamTables { tables: tables.into_iter().map(|table| (table.relation_id, Entry { table, announced: false })).collect() }
    }

    /// Compares a Relation message with what the job knows of the table.
    pub(super) fn relation(&mut self, relation: &Relation) -> Result<()> {
        let written = format!("table {}.{}", relation.schema(), relation.name);
        let Some(entry) = self.tables.get_mut(&relation.id) else {
            return match self.tables.values().find(|entry| entry.table.name.schema == relation.schema() && entry.table.name.name == relation.name) {
                Some(_) => Err(Error::new(Kind::RelationChanged, format!("{written}: it was dropped and made again"))),
                None => Err(Error::new(Kind::UnknownRelation, written)),
            };
        };
        let differences = differences(&entry.table, relation);
        if differences.is_empty() {
            entry.announced = true;
            return Ok(());
        }
        Err(Error::new(Kind::RelationChanged, format!("table {}: {}", entry.table.name, differences.join("; "))))
    }

    /// The table that a change belongs to.
    pub(super) fn current(&self, relation_id: u32) -> Result<&Arc<Table>> {
        match self.tables.get(&relation_id) {
            Some(Entry { table, announced: true }) => Ok(table),
            Some(Entry { table, announced: false }) => Err(Error::new(Kind::Protocol, format!("table {}: a change before its Relation message", table.name))),
            None => Err(Error::new(Kind::UnknownRelation, format!("relation with oid {relation_id}"))),
        }
    }
}

/// Everything in which a Relation message differs from the table, in words for the operator.
fn differences(table: &Table, relation: &Relation) -> Vec<String> {
    let mut found = Vec::new();
    if table.name.schema != relation.schema() || table.name.name != relation.name {
        found.push(format!("it is now named {}.{}", relation.schema(), relation.name));
    }
    if table.replica_identity != relation.replica_identity {
        found.push(format!("its replica identity is now {:?}, it was {:?}", relation.replica_identity, table.replica_identity));
    }
    for column in &relation.columns {
        let Some(known) = table.columns.iter().find(|known| known.name == column.name) else {
            found.push(format!("column {} is new (type oid {})", column.name, column.type_oid));
            continue;
        };
        if known.type_oid != column.type_oid {
            found.push(format!("column {} has another type (oid {}, it was {})", column.name, column.type_oid, known.type_name));
        } else if known.type_modifier != column.type_modifier {
            found.push(format!("column {} has another length or precision (modifier {}, it was {})", column.name, column.type_modifier, known.type_modifier));
        }
        if known.identity != column.is_key {
            found.push(format!("column {} {} the replica identity", column.name, if column.is_key { "joined" } else { "left" }));
        }
    }
    for known in &table.columns {
        if !relation.columns.iter().any(|column| column.name == known.name) {
            found.push(format!("column {} is gone", known.name));
        }
    }
    if found.is_empty() && !table.columns.iter().map(|column| &column.name).eq(relation.columns.iter().map(|column| &column.name)) {
        found.push("its columns come in another order".to_owned());
    }
    found
}
