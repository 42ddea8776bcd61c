//! Rows on their way: what a source sent, kept as bytes with offsets.
//!
//! A [`RawBatch`] holds rows of one table exactly as they arrived; nothing in it has been masked yet. Only
//! `veil/` can turn it into a `VeiledBatch`, and `apply/` takes nothing else.
//!
//! Values have no `Debug`, `Display` or `Serialize`, so that no log line, error or panic can show one:
//!
//! ```compile_fail
//! fn show(batch: &pgveil::row::RawBatch) { println!("{batch:?}"); }
//! ```
//! ```compile_fail
//! fn show(value: pgveil::row::CellRef<'_>) { println!("{value:?}"); }
//! ```

use std::sync::Arc;

use bytes::Bytes;

use crate::relation::Table;

/// How the bytes of a batch are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The text output of the type, as a `pgoutput` tuple carries it.
    Plain,
    /// A field of COPY text format: backslash escapes stand for tab, line break and backslash.
    CopyText,
}

/// Which image of a row the tuples of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// A whole row: a snapshot row, a new tuple, or the old tuple under `REPLICA IDENTITY FULL`.
    Row,
    /// An old key (`K` tuple): only replica identity columns are there, all others are [`CellRef::Absent`].
    Key,
}

/// Where one value lies in the bytes of its batch, eight bytes a cell.
#[derive(Clone, Copy)]
pub struct Cell {
    start: u32,
    /// The length, or one of the three marks below. A value is shorter than 1 GiB, so the marks are free.
    length: u32,
}

const NULL: u32 = u32::MAX;
const UNCHANGED: u32 = u32::MAX - 1;
const ABSENT: u32 = u32::MAX - 2;

impl Cell {
    /// SQL NULL.
    pub const NULL: Cell = Cell { start: 0, length: NULL };
    /// An out-of-line value that the update did not touch: `pgoutput` sends its mark, not the value.
    pub const UNCHANGED: Cell = Cell { start: 0, length: UNCHANGED };
    /// A column that this image does not carry (a column outside the key in a `K` tuple).
    pub const ABSENT: Cell = Cell { start: 0, length: ABSENT };

    /// A value of `length` bytes that begins at `start`.
    ///
    /// `None` when the length is not one that PostgreSQL can send (1 GiB and more).
    #[must_use]
    pub fn value(start: u32, length: u32) -> Option<Cell> {
        (length < ABSENT).then_some(Cell { start, length })
    }

    fn read(self, bytes: &[u8]) -> CellRef<'_> {
        match self.length {
            NULL => CellRef::Null,
            UNCHANGED => CellRef::Unchanged,
            ABSENT => CellRef::Absent,
            length => {
                let start = self.start as usize;
                CellRef::Value(&bytes[start..start + length as usize])
            }
        }
    }
}

/// One cell as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CellRef<'a> {
    /// SQL NULL.
    Null,
    /// An out-of-line value that the update left as it was.
    Unchanged,
    /// This image does not carry the column.
    Absent,
    /// The bytes, in the batch's [`Encoding`].
    Value(&'a [u8]),
}

/// Rows of one table as they arrived from the source: not masked, so nothing may write them anywhere.
pub struct RawBatch {
    table: Arc<Table>,
    image: Image,
    encoding: Encoding,
    bytes: Bytes,
    /// Row-major, one for every column of the table.
    cells: Vec<Cell>,
}

impl RawBatch {
    /// Takes over bytes and cells.
    ///
    /// `None` when the cells are not whole rows or point outside the bytes: the caller's input was malformed.
    #[must_use]
    pub fn new(
        table: Arc<Table>,
        image: Image,
        encoding: Encoding,
        bytes: Bytes,
        cells: Vec<Cell>,
    ) -> Option<RawBatch> {
        let width = table.columns.len();
        let whole = if width == 0 { cells.is_empty() } else { cells.len().is_multiple_of(width) };
        let inside = cells.iter().all(|cell| {
            cell.length >= ABSENT || (cell.start as usize).saturating_add(cell.length as usize) <= bytes.len()
        });
        (whole && inside).then_some(RawBatch { table, image, encoding, bytes, cells })
    }

    /// The table whose rows these are.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whole rows, or old keys.
    #[must_use]
    pub fn image(&self) -> Image {
        self.image
    }

    /// How the values are written.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.cells.len().checked_div(self.table.columns.len()).unwrap_or(0)
    }

    /// One cell. Panics when the row or column does not exist, which is a fault of the caller, not of input.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> CellRef<'_> {
        self.cells[row * self.table.columns.len() + column].read(&self.bytes)
    }

    /// The bytes of the values as they arrived, for people.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that the rows take, for the memory budget.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() + self.cells.len() * size_of::<Cell>()
    }
}
