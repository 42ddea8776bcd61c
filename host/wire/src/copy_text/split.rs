//! Finds rows and fields.

use super::{END_MARKER, FIELD_SEPARATOR, NULL, ROW_END};
use crate::error::{Result, WireError, WireErrorKind};

/// Where a field lies in the bytes that were split; still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Bytes before it.
    pub start: u32,
    /// Bytes before what follows it.
    pub end: u32,
    /// The field is NULL, and its bytes are the marker `\N`.
    pub is_null: bool,
}

impl Field {
    /// The field's bytes, out of what was split; still escaped. Empty for other bytes than those.
    #[must_use]
    pub fn of(self, split: &[u8]) -> &[u8] {
        split.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Splits one row, with or without its newline, into exactly `columns` fields; `fields` is emptied first.
///
/// This is the form of a server's CopyData: one row each. A table without columns has empty rows.
///
/// # Errors
/// Another number of columns, a newline before the row's end, the end marker instead of a row, 4 GiB or more.
pub fn split_row(row: &[u8], columns: usize, fields: &mut Vec<Field>) -> Result<()> {
    let mut rows = RowSplitter::new(row, columns)?;
    match rows.next_line(fields)? {
        Line::Row if rows.consumed() == row.len() => Ok(()),
        Line::Row => Err(WireError::new(rows.consumed().saturating_sub(1), WireErrorKind::EmbeddedLineEnd)),
        Line::End => Err(WireError::new(0, WireErrorKind::EndMarker)),
        // No newline anywhere: the row is all there is.
        Line::Incomplete => rows.split_line(row, fields),
    }
}

/// Splits a chunk of COPY text that may end in the middle of a row.
///
/// ```
/// # use pgveil_wire::copy_text::RowSplitter;
/// # fn main() -> Result<(), pgveil_wire::WireError> {
/// let chunk = b"1\tone\n2\t\\N\n3\tth";
/// let mut fields = Vec::new();
/// let mut rows = RowSplitter::new(chunk, 2)?;
/// while rows.next_row(&mut fields)? {
///     assert_eq!(fields.len(), 2);
/// }
/// assert_eq!(&chunk[rows.consumed()..], b"3\tth"); // to be put before the next chunk
/// # Ok(())
/// # }
/// ```
pub struct RowSplitter<'a> {
    chunk: &'a [u8],
    columns: usize,
    consumed: usize,
    ended: bool,
}

/// What a line turned out to be.
enum Line {
    Row,
    End,
    Incomplete,
}

impl<'a> RowSplitter<'a> {
    /// A splitter for rows of `columns` fields.
    ///
    /// # Errors
    /// [`WireErrorKind::TooLong`] for a chunk of 4 GiB or more: offsets are 32 bits wide.
    pub fn new(chunk: &'a [u8], columns: usize) -> Result<Self> {
        const LIMIT: usize = u32::MAX as usize;
        if chunk.len() > LIMIT {
            return Err(WireError::new(0, WireErrorKind::TooLong { length: chunk.len(), limit: LIMIT }));
        }
        Ok(Self { chunk, columns, consumed: 0, ended: false })
    }

    /// Splits the next row; `fields` is emptied first, and its places count from the start of the chunk.
    /// `false` when no whole row is left, or after the end marker.
    ///
    /// # Errors
    /// Another number of columns, or bytes after the end marker.
    pub fn next_row(&mut self, fields: &mut Vec<Field>) -> Result<bool> {
        if !self.ended {
            match self.next_line(fields)? {
                Line::Row => return Ok(true),
                Line::Incomplete => return Ok(false),
                Line::End => self.ended = true,
            }
        }
        fields.clear();
        if self.consumed < self.chunk.len() {
            return Err(WireError::new(self.consumed, WireErrorKind::DataAfterEnd));
        }
        Ok(false)
    }

    /// Bytes of the chunk up to the end of the last whole row.
    #[must_use]
    pub const fn consumed(&self) -> usize {
        self.consumed
    }

    /// The end marker was met: no rows follow, in this chunk or another.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }

    fn next_line(&mut self, fields: &mut Vec<Field>) -> Result<Line> {
        fields.clear();
        let rest = self.chunk.get(self.consumed..).unwrap_or_default();
        let mut start = self.consumed;
        for separator in memchr::memchr2_iter(FIELD_SEPARATOR, ROW_END, rest) {
            let end = self.consumed + separator;
            let ends_row = rest.get(separator) == Some(&ROW_END);
            if ends_row && rest.get(..separator) == Some(END_MARKER) {
                self.consumed = end + 1;
                return Ok(Line::End);
            }
            self.push(start, end, fields)?;
            start = end + 1;
            if ends_row {
                self.close_row(end, fields)?;
                self.consumed = start;
                return Ok(Line::Row);
            }
        }
        Ok(Line::Incomplete)
    }

    /// Splits `row`, the whole chunk, which has no newline.
    fn split_line(&mut self, row: &[u8], fields: &mut Vec<Field>) -> Result<()> {
        if row == END_MARKER {
            return Err(WireError::new(0, WireErrorKind::EndMarker));
        }
        let last_start = fields.last().map_or(0, |field| field.end as usize + 1);
        self.push(last_start, row.len(), fields)?;
        self.close_row(row.len(), fields)
    }

    fn push(&self, start: usize, end: usize, fields: &mut Vec<Field>) -> Result<()> {
        // One field beyond the expected ones is enough to know: a hostile row cannot make the vector grow.
        if fields.len() >= self.columns.max(1) {
            let found = self.columns + 1;
            return Err(WireError::new(start, WireErrorKind::UnexpectedColumnCount { expected: self.columns, found }));
        }
        let is_null = self.chunk.get(start..end) == Some(NULL);
        // `new` has checked that the chunk is shorter than 4 GiB.
        let (start, end) = (start as u32, end as u32);
        fields.push(Field { start, end, is_null });
        Ok(())
    }

    /// Checks the number of fields at the row's end, which is at `end`.
    fn close_row(&self, end: usize, fields: &mut Vec<Field>) -> Result<()> {
        // An empty line is one empty field, or the row of a table without columns.
        if self.columns == 0 && matches!(fields.as_slice(), [only] if only.start == only.end) {
            fields.clear();
        }
        if fields.len() == self.columns {
            return Ok(());
        }
        let found = fields.len();
        Err(WireError::new(end, WireErrorKind::UnexpectedColumnCount { expected: self.columns, found }))
    }
}
