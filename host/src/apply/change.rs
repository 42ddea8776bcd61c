//! Reads the rows of a veiled window on behalf of the statements.

use pgveil_wire::copy_text;

use crate::error::{Error, Kind, Result};
use crate::veil::{VeiledBatch, VeiledCell};
use crate::window::RowRef;

use super::statement::UpdateShape;
use super::table::TargetTable;

/// The batches of one window.
pub(super) struct Rows<'a> {
    pub(super) batches: &'a [VeiledBatch],
}

/// Which columns came with an update, and whether an old image did.
pub(super) fn update_shape(rows: &Rows<'_>, old: Option<RowRef>, new: RowRef) -> Result<UpdateShape> {
    let batch = rows.batch(new)?;
    let row = new.row as usize;
    let set = (0..batch.table().columns.len())
        .map(|column| !matches!(batch.cell(row, column), VeiledCell::Unchanged | VeiledCell::Absent))
        .collect();
    Ok(UpdateShape { set, old: old.is_some() })
}

impl<'a> Rows<'a> {
    /// The batch of a row; a reference outside the window is a fault of ours and must not become a lost row.
    pub(super) fn batch(&self, row: RowRef) -> Result<&'a VeiledBatch> {
        self.batches
            .get(row.batch as usize)
            .filter(|batch| (row.row as usize) < batch.rows())
            .ok_or_else(|| Error::new(Kind::Internal, "a change refers to a row outside its window"))
    }

    /// Whether the filter keeps the row; `None` when it could not be asked.
    pub(super) fn keep(&self, row: RowRef) -> Result<Option<bool>> {
        Ok(self.batch(row)?.keep(row.row as usize))
    }

    /// The value of a cell, as plain text, in `scratch` when it has to be unescaped first.
    pub(super) fn value<'s>(&self, row: RowRef, column: usize, scratch: &'s mut Vec<u8>) -> Result<Option<&'s [u8]>>
    where
        'a: 's,
    {
        let batch = self.batch(row)?;
        match batch.cell(row.row as usize, column) {
            VeiledCell::Null => Ok(None),
            VeiledCell::Plain(bytes) => Ok(Some(bytes)),
            VeiledCell::CopyText(bytes) => {
                scratch.clear();
                copy_text::unescape_into(bytes, scratch)
                    .map_err(|error| Error::new(Kind::SourceData, place(batch, column)).because(error))?;
                Ok(Some(scratch))
            }
            VeiledCell::Unchanged => Err(Error::new(Kind::UnchangedNeeded, place(batch, column))),
            VeiledCell::Absent => {
                Err(Error::new(Kind::SourceData, format!("{}: the old row does not carry it", place(batch, column))))
            }
        }
    }

    /// The key of a row, encoded so that equal keys have equal bytes and others do not.
    pub(super) fn key(&self, table: &TargetTable, row: RowRef, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let mut scratch = Vec::new();
        for column in &table.key {
            match self.value(row, *column, &mut scratch)? {
                Some(value) => {
                    out.extend_from_slice(&(value.len() as u64).to_le_bytes());
                    out.extend_from_slice(value);
                }
                None => out.extend_from_slice(&u64::MAX.to_le_bytes()),
            }
        }
        Ok(())
    }
}

fn place(batch: &VeiledBatch, column: usize) -> String {
    format!("table {}: column {}", batch.table().name, batch.table().columns[column].name)
}
