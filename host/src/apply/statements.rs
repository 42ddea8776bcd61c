//! The statements that are prepared on the apply session, by shape.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::Result;
use crate::limits;
use crate::postgres::PipelineWriter;

use super::copy::copy_statement;
use super::statement::{self, UpdateShape};
use super::table::TargetTable;

/// What a statement does; with the table's number, its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// Insert one row.
    Insert,
    /// Insert by COPY.
    Copy,
    /// Update one row that must be there.
    Update(UpdateShape),
    /// Update many rows that must be there.
    UpdateMany(UpdateShape),
    /// Delete one row that must be there.
    Delete,
    /// Delete many rows that must be there.
    DeleteMany,
    /// Delete a row of a filtered table.
    DeleteIfThere,
    /// Insert or update a row of a filtered table.
    Upsert,
}

impl Shape {
    fn sql(&self, table: &TargetTable) -> String {
        match self {
            Shape::Insert => statement::insert(table),
            Shape::Copy => copy_statement(&table.source),
            Shape::Update(shape) => statement::update(table, shape),
            Shape::UpdateMany(shape) => statement::update_many(table, shape),
            Shape::Delete => statement::delete(table),
            Shape::DeleteMany => statement::delete_many(table),
            Shape::DeleteIfThere => statement::delete_if_there(table),
            Shape::Upsert => statement::upsert(table),
        }
    }
}

/// Prepared statements by table and shape.
#[derive(Default)]
pub(super) struct Statements {
    names: HashMap<(usize, Shape), String>,
    prepared: u64,
}

impl Statements {
    /// The name of the statement, prepared first when it is new. The many shapes that unchanged values make are
    /// bounded: at the limit all are closed, which costs one preparation each for those still in use.
    pub(super) fn name(
        &mut self,
        writer: &mut PipelineWriter,
        number: usize,
        table: &TargetTable,
        shape: Shape,
    ) -> Result<&str> {
        if self.names.len() >= limits::STATEMENTS_MAX {
            for name in self.names.values() {
                writer.close_statement(name)?;
            }
            self.names.clear();
        }
        match self.names.entry((number, shape)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                self.prepared += 1;
                let name = format!("s{}", self.prepared);
                writer.parse(&name, &entry.key().1.sql(table))?;
                Ok(entry.insert(name))
            }
        }
    }
}
