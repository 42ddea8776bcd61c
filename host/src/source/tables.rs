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
    /// The shapes that the job knows: as it was copied, and as the operator has since decided on. Never empty.
    shapes: Vec<Arc<Table>>,
    /// The shape of this connection's last Relation message: rows before it are against the protocol.
    announced: Option<usize>,
}

impl StreamTables {
    /// The job's tables, in every shape that may be announced; none is yet, for state is rebuilt from the start of each stream.
    pub fn new(tables: impl IntoIterator<Item = Arc<Table>>) -> StreamTables {
        let mut found: HashMap<u32, Entry> = HashMap::new();
        for table in tables {
            found
                .entry(table.relation_id)
                .or_insert_with(|| Entry { shapes: Vec::new(), announced: None })
                .shapes
                .push(table);
        }
        StreamTables { tables: found }
    }

    /// Compares a Relation message with what the job knows of the table.
    pub(super) fn relation(&mut self, relation: &Relation) -> Result<()> {
        let written = format!("table {}.{}", relation.schema(), relation.name);
        let Some(entry) = self.tables.get_mut(&relation.id) else {
            let mut known = self.tables.values().filter_map(|entry| entry.shapes.first());
            return match known.any(|table| table.name.schema == relation.schema() && table.name.name == relation.name) {
                true => Err(Error::new(Kind::RelationChanged, format!("{written}: it was dropped and made again"))),
                false => Err(Error::new(Kind::UnknownRelation, written)),
            };
        };
        entry.announced = entry.shapes.iter().position(|shape| differences(shape, relation).is_empty());
        match (entry.announced, entry.shapes.last()) {
            (None, Some(latest)) => Err(Error::new(
                Kind::RelationChanged,
                format!("table {}: {}", latest.name, differences(latest, relation).join("; ")),
            )),
            _ => Ok(()),
        }
    }

    /// The table that a change belongs to.
    pub(super) fn current(&self, relation_id: u32) -> Result<&Arc<Table>> {
        let unknown = || Error::new(Kind::UnknownRelation, format!("relation with oid {relation_id}"));
        let entry = self.tables.get(&relation_id).ok_or_else(unknown)?;
        entry.announced.and_then(|shape| entry.shapes.get(shape)).ok_or_else(|| {
            let name = entry.shapes.first().map(|table| table.name.to_string()).unwrap_or_default();
            Error::new(Kind::Protocol, format!("table {name}: a change before its Relation message"))
        })
    }
}

/// Everything in which a Relation message differs from the table, in words for the operator.
fn differences(table: &Table, relation: &Relation) -> Vec<String> {
    let mut found = Vec::new();
    if table.name.schema != relation.schema() || table.name.name != relation.name {
        found.push(format!("it is now named {}.{}", relation.schema(), relation.name));
    }
    if table.replica_identity != relation.replica_identity {
        found.push(format!(
            "its replica identity is now {:?}, it was {:?}",
            relation.replica_identity, table.replica_identity
        ));
    }
    for column in &relation.columns {
        let Some(known) = table.columns.iter().find(|known| known.name == column.name) else {
            found.push(format!("column {} is new (type oid {})", column.name, column.type_oid));
            continue;
        };
        if known.type_oid != column.type_oid {
            found.push(format!(
                "column {} has another type (oid {}, it was {})",
                column.name, column.type_oid, known.type_name
            ));
        } else if known.type_modifier != column.type_modifier {
            found.push(format!(
                "column {} has another length or precision (modifier {}, it was {})",
                column.name, column.type_modifier, known.type_modifier
            ));
        }
        if known.identity != column.is_key {
            found.push(format!(
                "column {} {} the replica identity",
                column.name,
                if column.is_key { "joined" } else { "left" }
            ));
        }
    }
    for known in &table.columns {
        if !relation.columns.iter().any(|column| column.name == known.name) {
            found.push(format!("column {} is gone", known.name));
        }
    }
    if found.is_empty()
        && !table.columns.iter().map(|column| &column.name).eq(relation.columns.iter().map(|column| &column.name))
    {
        found.push("its columns come in another order".to_owned());
    }
    found
}
