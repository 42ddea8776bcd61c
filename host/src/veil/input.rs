//! What crosses into a guest: only granted columns, unescaped, as one run of bytes a column.
//!
//! The vectors are reused from batch to batch, so that a batch costs no allocation once they have grown.

use pgveil_wire::copy_text::unescape_into;

use super::abi::{ColumnIn, STATE_NULL, STATE_UNCHANGED, STATE_VALUE};
use super::check;
use crate::error::{Error, Kind, Result};
use crate::relation::Column;
use crate::row::{CellRef, Encoding, RawBatch};

/// A row of an older image, where an unchanged value can be read.
pub(super) type OldRow<'a> = Option<(&'a RawBatch, usize)>;

/// A batch with what is needed to read it whole.
pub(super) struct Source<'a> {
    /// The rows.
    pub raw: &'a RawBatch,
    /// For each row, its old row under `REPLICA IDENTITY FULL`. Empty when there is none at all.
    pub old_rows: &'a [OldRow<'a>],
    /// The rows to send, in this order. `None`: all, as they lie.
    pub order: Option<&'a [usize]>,
}

impl Source<'_> {
    /// The rows that are sent.
    pub(super) fn rows(&self) -> usize {
        self.order.map_or_else(|| self.raw.rows(), <[usize]>::len)
    }

    /// The row of the batch that stands at a place of the order.
    pub(super) fn row_at(&self, place: usize) -> usize {
        self.order.map_or(place, |order| order[place])
    }
}

/// One column, ready to be lent to a guest.
#[derive(Default)]
pub(super) struct InputColumn {
    states: Vec<u8>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
    filled: bool,
    has_unchanged: bool,
}

impl InputColumn {
    pub(super) fn lend(&self) -> ColumnIn<'_> {
        ColumnIn { states: &self.states, ends: &self.ends, bytes: &self.bytes }
    }

    pub(super) fn states(&self) -> &[u8] {
        &self.states
    }

    fn clear(&mut self) {
        self.states.clear();
        self.ends.clear();
        self.bytes.clear();
        self.filled = false;
        self.has_unchanged = false;
    }

    fn fill(&mut self, source: &Source<'_>, position: usize, column: &Column, resolve: bool) -> Result<()> {
        self.clear();
        let rows = source.rows();
        self.states.reserve(rows);
        self.ends.reserve(rows);
        // Trailing blanks of char(n) mean nothing: without them equal keys are equal bytes.
        let blank_padded = column.base_catalog_type == "bpchar";
        for place in 0..rows {
            let row = source.row_at(place);
            let mut cell = source.raw.cell(row, position);
            let mut encoding = source.raw.encoding();
            if resolve && matches!(cell, CellRef::Unchanged) {
                let old = source.old_rows.get(row).copied().flatten();
                let (old, old_row) = old.ok_or_else(|| Error::new(Kind::UnchangedNeeded, ""))?;
                cell = old.cell(old_row, position);
                encoding = old.encoding();
            }
            let state = match cell {
                CellRef::Null => STATE_NULL,
                CellRef::Unchanged if resolve => return Err(Error::new(Kind::UnchangedNeeded, "")),
                CellRef::Unchanged => {
                    self.has_unchanged = true;
                    STATE_UNCHANGED
                }
                CellRef::Absent => return Err(Error::new(Kind::SourceData, "the value is not in the row's image")),
                CellRef::Value(value) => {
                    self.push(value, encoding, blank_padded)?;
                    STATE_VALUE
                }
            };
            self.states.push(state);
            self.ends.push(u32::try_from(self.bytes.len()).map_err(|_| too_large())?);
        }
        // Only a source that is not UTF-8 itself (SQL_ASCII) can send other bytes.
        if !check::is_text(&self.bytes, &self.ends) {
            return Err(Error::new(Kind::SourceData, "a value is not valid UTF-8"));
        }
        self.filled = true;
        Ok(())
    }

    fn push(&mut self, value: &[u8], encoding: Encoding, blank_padded: bool) -> Result<()> {
        let start = self.bytes.len();
        match encoding {
            Encoding::Plain => self.bytes.extend_from_slice(value),
            Encoding::CopyText => unescape_into(value, &mut self.bytes)
                .map_err(|error| Error::new(Kind::Protocol, "a field of COPY text").because(error))?,
        }
        if blank_padded {
            let kept = check::without_padding(&self.bytes[start..]).len();
            self.bytes.truncate(start + kept);
        }
        Ok(())
    }
}

/// The input columns of one batch, each filled when the first binding asks for it and shared by all that read it.
#[derive(Default)]
pub(super) struct Inputs {
    /// As the source sent them.
    plain: Vec<InputColumn>,
    /// With unchanged values taken from the old row, for the columns that have any.
    resolved: Vec<InputColumn>,
}

impl Inputs {
    /// Forgets the batch before; the vectors stay.
    pub(super) fn reset(&mut self, width: usize) {
        for columns in [&mut self.plain, &mut self.resolved] {
            columns.iter_mut().for_each(InputColumn::clear);
            if columns.len() < width {
                columns.resize_with(width, InputColumn::default);
            }
        }
    }

    /// Reads a column if that has not been done yet. A binding that cannot pass `unchanged` on asks for it resolved.
    ///
    /// # Errors
    /// [`Kind::UnchangedNeeded`] when a value is not there, [`Kind::SourceData`] when it is not UTF-8.
    pub(super) fn fill(&mut self, source: &Source<'_>, position: usize, resolve: bool) -> Result<()> {
        let column = &source.raw.table().columns[position];
        let place = |error: Error| error.within(format!("column {}", column.name));
        let plain = &mut self.plain[position];
        if !plain.filled {
            plain.fill(source, position, column, false).map_err(place)?;
        }
        if resolve && plain.has_unchanged && !self.resolved[position].filled {
            self.resolved[position].fill(source, position, column, true).map_err(place)?;
        }
        Ok(())
    }

    /// A column that was filled.
    pub(super) fn column(&self, position: usize, resolve: bool) -> &InputColumn {
        if resolve && self.plain[position].has_unchanged { &self.resolved[position] } else { &self.plain[position] }
    }
}

fn too_large() -> Error {
    Error::new(Kind::SourceData, "a batch holds more than 4 GiB")
}
