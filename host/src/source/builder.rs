//! Collects decoded changes into a window: one batch for each table and image, operations and boundaries beside them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use pgveil_wire::tuple::{CellKind, Tuple};

use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::relation::Table;
use crate::row::{Cell, Encoding, Image, RawBatch};
use crate::window::{Operation, RawWindow, RowRef};

/// A window that grows.
#[derive(Default)]
pub(super) struct WindowBuilder {
    operations: Vec<Operation>,
    open: Vec<OpenBatch>,
    /// By the address of the table's description: after a change of shape the rows of both have batches of their own.
    by_table: HashMap<(usize, bool), u32>,
    bytes: usize,
    rows: usize,
    fault: Option<Error>,
}

struct OpenBatch {
    table: Arc<Table>,
    image: Image,
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    rows: u32,
}

impl WindowBuilder {
    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.fault.is_none()
    }

    /// Whether it must go on before more is read: it is large enough, or the stream ends in it.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= limits::WINDOW_BYTES as usize
            || self.rows >= limits::WINDOW_ROWS
            || self.operations.len() >= 4 * limits::WINDOW_ROWS
            || self.fault.is_some()
    }

    /// What it takes of the memory budget.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.operations.len() * size_of::<Operation>()
    }

    /// Appends a step.
    pub(super) fn operation(&mut self, operation: Operation) {
        // A position inside a stretch without transactions is overtaken by the next one.
        if let (Operation::Advance { .. }, Some(Operation::Advance { lsn: last })) =
            (&operation, self.operations.last_mut())
        {
            if let Operation::Advance { lsn } = operation {
                *last = lsn;
            }
            return;
        }
        self.operations.push(operation);
    }

    /// Ends the stream here: what came before may be applied, nothing comes after.
    pub(super) fn fail(&mut self, error: Error) {
        self.fault = Some(error);
    }

    /// Copies a row in, once, and remembers where its cells lie.
    pub(super) fn row(&mut self, table: &Arc<Table>, image: Image, tuple: &Tuple) -> Result<RowRef> {
        let place = || format!("table {}", table.name);
        tuple
            .expect_columns(table.columns.len())
            .map_err(|error| Error::new(Kind::SourceData, place()).because(error))?;
        let number = self.batch(table, image);
        let batch = &mut self.open[number as usize];
        let base = u32::try_from(batch.bytes.len()).map_err(|_| Error::new(Kind::SourceData, place()))?;
        batch.bytes.extend_from_slice(tuple.bytes());
        for (column, span) in table.columns.iter().zip(tuple.spans()) {
            batch.cells.push(match span.kind {
                CellKind::Text => base
                    .checked_add(span.start)
                    .and_then(|start| Cell::value(start, span.len))
                    .ok_or_else(|| Error::new(Kind::SourceData, place()))?,
                // A `K` tuple marks the columns outside the key as NULL; they are not NULL, they are not there.
                CellKind::Null if image == Image::Key && !column.identity => Cell::ABSENT,
                CellKind::Null => Cell::NULL,
                CellKind::Unchanged => Cell::UNCHANGED,
            });
        }
        let row = RowRef { batch: number, row: batch.rows };
        batch.rows += 1;
        self.rows += 1;
        self.bytes += tuple.bytes().len() + table.columns.len() * size_of::<Cell>();
        Ok(row)
    }

    fn batch(&mut self, table: &Arc<Table>, image: Image) -> u32 {
        let open = &mut self.open;
        *self.by_table.entry((Arc::as_ptr(table).addr(), image == Image::Key)).or_insert_with(|| {
            open.push(OpenBatch { table: table.clone(), image, bytes: Vec::new(), cells: Vec::new(), rows: 0 });
            (open.len() - 1) as u32
        })
    }

    /// Hands the window over and begins a new one.
    pub(super) fn take(&mut self) -> Result<RawWindow> {
        let whole = std::mem::take(self);
        let batches = whole
            .open
            .into_iter()
            .map(|batch| {
                let place = format!("table {}", batch.table.name);
                RawBatch::new(batch.table, batch.image, Encoding::Plain, Bytes::from(batch.bytes), batch.cells)
                    .ok_or_else(|| Error::new(Kind::SourceData, place))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(RawWindow { operations: whole.operations, batches, fault: whole.fault, budget: None })
    }
}
