//! MASKING HAPPENS HERE.
//!
//! Rows come in as [`RawBatch`] and leave as [`VeiledBatch`]; nothing else in the program can make one, and the applier takes
//! nothing else. Snapshot and stream use the same door.
//!
//! ```text
//! policy + table + guests ──▶ plan ──▶ fingerprint
//!                              │
//! RawBatch ──▶ input ──▶ instance (guest, fuel, memory, deadline) ──▶ check ──▶ VeiledBatch
//!          granted columns      │                                  trusted nothing
//!          only, unescaped      └── on any error the store is discarded and the job stops
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `engine`, `inspect`, `sealed`, `guest` | the sandbox, and what is let into it |
//! | `abi`, `instance` | the WIT in Rust; one running guest |
//! | `plan`, `plan_binding`, `binding`, `fingerprint` | what happens to each column, decided before the first row |
//! | `input`, `check` | the two sides of the guest's door |
//! | `transform`, `worker`, `audit` | batches through the door, in order, and now and then twice |
//!
//! A column is decided or the job does not start. A guest that traps, runs out of something, or returns what it should not stops
//! the job. There is no way to let a row pass on error.
//!
//! A veiled batch can be made nowhere else:
//!
//! ```compile_fail,E0451
//! fn forge(raw: pgveil::row::RawBatch) -> pgveil::veil::VeiledBatch {
//!     pgveil::veil::VeiledBatch { raw, columns: Vec::new(), keep: None }
//! }
//! ```
//!
//! and its values cannot be printed:
//!
//! ```compile_fail,E0277
//! fn show(batch: &pgveil::veil::VeiledBatch) { println!("{batch:?}"); }
//! ```
//! ```compile_fail,E0277
//! fn show(cell: pgveil::veil::VeiledCell<'_>) { println!("{cell:?}"); }
//! ```

mod abi;
mod audit;
mod binding;
mod check;
mod engine;
mod fingerprint;
mod guest;
mod input;
mod inspect;
mod instance;
mod plan;
mod plan_binding;
mod sealed;
mod transform;
mod worker;

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

pub use self::abi::{AcceptedType, Arity, Example, FunctionInfo, FunctionKind, Guarantees, INTERFACE_VERSION, KeyUse};
pub use self::engine::{GuestLimits, Sandbox};
pub use self::fingerprint::Fingerprint;
pub use self::guest::Guest;
pub use self::inspect::Refusal;
pub use self::plan::{Veil, VeilParts};
pub use self::transform::WorkerInstances;
pub use self::worker::{Pending, VeilPool};
use crate::error::Error;
use crate::relation::Table;
use crate::row::{CellRef, Encoding, Image, RawBatch};
use crate::window::Operation;

/// Rows of one table that have been through their masks and filters. No part of it can be had but by [`cell`](Self::cell).
pub struct VeiledBatch {
    raw: RawBatch,
    columns: Vec<Shown>,
    keep: Option<Vec<u8>>,
}

/// What a column of a veiled batch shows.
enum Shown {
    /// The policy passes it: as it arrived.
    Raw,
    /// The policy makes it NULL.
    Null,
    /// A mask wrote it.
    Masked(abi::ColumnOut),
    /// An old key does not carry it.
    Absent,
}

/// One cell of a veiled batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum VeiledCell<'a> {
    /// SQL NULL.
    Null,
    /// An out-of-line value that the update left as it was: the target keeps what it holds.
    Unchanged,
    /// This image does not carry the column.
    Absent,
    /// The text output of the type.
    Plain(&'a [u8]),
    /// The same, escaped as a field of COPY text.
    CopyText(&'a [u8]),
}

impl VeiledBatch {
    /// The table whose rows these are.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        self.raw.table()
    }

    /// Whole rows, or old keys.
    #[must_use]
    pub fn image(&self) -> Image {
        self.raw.image()
    }

    /// The number of rows, kept or not.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.raw.rows()
    }

    /// Whether the filters keep a row. `None` when the table has no filter, or when these are old keys, of which a filter cannot
    /// judge.
    #[must_use]
    pub fn keep(&self, row: usize) -> Option<bool> {
        self.keep.as_ref().map(|keep| keep[row] != 0)
    }

    /// One cell: what the policy lets be seen. Panics when the row or column does not exist, which is a fault of the caller.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> VeiledCell<'_> {
        match &self.columns[column] {
            Shown::Null => VeiledCell::Null,
            Shown::Absent => VeiledCell::Absent,
            Shown::Masked(out) => out.cell(row),
            Shown::Raw => match (self.raw.cell(row, column), self.raw.encoding()) {
                (CellRef::Null, _) => VeiledCell::Null,
                (CellRef::Unchanged, _) => VeiledCell::Unchanged,
                (CellRef::Absent, _) => VeiledCell::Absent,
                (CellRef::Value(bytes), Encoding::Plain) => VeiledCell::Plain(bytes),
                (CellRef::Value(bytes), Encoding::CopyText) => VeiledCell::CopyText(bytes),
            },
        }
    }

    /// The bytes that the batch takes, for the memory budget.
    #[must_use]
    pub fn size(&self) -> usize {
        let masked = self.columns.iter().map(|column| match column {
            Shown::Masked(out) => out.states.len() + out.ends.len() * size_of::<u32>() + out.bytes.len(),
            Shown::Raw | Shown::Null | Shown::Absent => 0,
        });
        self.raw.size() + masked.sum::<usize>()
    }
}

impl abi::ColumnOut {
    /// A cell of a column that [`check`] has passed.
    fn cell(&self, row: usize) -> VeiledCell<'_> {
        match self.states[row] {
            abi::STATE_NULL => VeiledCell::Null,
            abi::STATE_UNCHANGED => VeiledCell::Unchanged,
            _ => {
                let start = row.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
                VeiledCell::Plain(&self.bytes[start..self.ends[row] as usize])
            }
        }
    }
}

/// A window whose rows have been through their masks and filters.
pub struct VeiledWindow {
    /// What happened, in order.
    pub operations: Vec<Operation>,
    /// The rows, at the places that the operations name.
    pub batches: Vec<VeiledBatch>,
    /// Why the stream ends behind the last operation.
    pub fault: Option<Error>,
    /// The window's share of the memory budget.
    pub budget: Option<OwnedSemaphorePermit>,
}
