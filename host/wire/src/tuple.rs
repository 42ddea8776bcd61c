//! TupleData: one row inside a `pgoutput` message.
//!
//! Section "Logical Replication Message Formats", TupleData: a column count, then for each column a kind byte and, for a
//! value, its length and its bytes in the type's text output.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Result, WireError, WireErrorKind};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// SQL NULL. In a key tuple, also every column outside the replica identity.
    Null,
    /// A value stored out of line (TOAST) that the update did not change, and that PostgreSQL therefore did not send.
    Unchanged,
    /// A value in the type's text output.
    Text,
}

/// One cell as borrowed bytes.
///
/// No `Debug`: it holds row data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TupleCell<'a> {
    /// See [`CellKind::Null`].
    Null,
    /// See [`CellKind::Unchanged`].
    Unchanged,
    /// See [`CellKind::Text`]. Not checked for UTF-8.
    Text(&'a [u8]),
}

/// Where a cell lies within [`Tuple::bytes`]. Start and length are zero unless the kind is [`CellKind::Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSpan {
    /// What the cell holds.
    pub kind: CellKind,
    /// Bytes before the value.
    pub start: u32,
    /// Bytes of the value.
    pub len: u32,
}

/// A row that was checked once, when its message was parsed, and is read in place.
///
/// It shares the memory of the message. A consumer that keeps rows copies [`bytes`](Self::bytes) once and keeps the
/// [`spans`](Self::spans), so that the message's memory can go. No `Debug`: it holds row data.
#[derive(Clone)]
pub struct Tuple {
    bytes: Bytes,
    columns: usize,
}

impl Tuple {
    /// Reads bytes that are one tuple and nothing else.
    ///
    /// # Errors
    /// Truncated or with bytes left over, a negative count or length, a binary value, an unknown kind byte.
    pub fn parse(bytes: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let tuple = Self::read(&mut cursor)?;
        cursor.finish()?;
        Ok(tuple)
    }

    /// Reads one tuple from the cursor and checks every cell.
    ///
    /// # Errors
    /// Truncated, a negative count or length, a binary value, an unknown kind byte.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let columns = cursor.count_i16()?;
        let start = cursor.position();
        for _ in 0..columns {
            match cursor.u8()? {
                b'n' | b'u' => {}
                b't' => {
                    let length = cursor.count_i32()?;
                    cursor.skip(length)?;
                }
                b'b' => return Err(cursor.error_before(1, WireErrorKind::BinaryValue)),
                other => return Err(cursor.error_before(1, WireErrorKind::UnknownTag(other))),
            }
        }
        Ok(Self { bytes: cursor.since(start), columns })
    }

    /// Number of columns, the unchanged ones and NULLs included.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Refuses a row that has not as many columns as its relation.
    ///
    /// # Errors
    /// [`WireErrorKind::UnexpectedColumnCount`], at offset zero.
    pub const fn expect_columns(&self, expected: usize) -> Result<()> {
        if self.columns == expected {
            return Ok(());
        }
        Err(WireError::new(0, WireErrorKind::UnexpectedColumnCount { expected, found: self.columns }))
    }

    /// The cells' bytes, kind bytes and lengths between the values; what [`spans`](Self::spans) point into.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The cells in column order, as places within [`bytes`](Self::bytes).
    #[must_use]
    pub fn spans(&self) -> CellSpans<'_> {
        CellSpans { bytes: &self.bytes, position: 0, left: self.columns }
    }

    /// The cells in column order, as borrowed values.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = TupleCell<'_>> {
        self.spans().map(|span| match span.kind {
            CellKind::Null => TupleCell::Null,
            CellKind::Unchanged => TupleCell::Unchanged,
            CellKind::Text => {
                let start = span.start as usize;
                TupleCell::Text(self.bytes.get(start..start + span.len as usize).unwrap_or_default())
            }
        })
    }
}

/// Iterator of [`Tuple::spans`].
#[derive(Clone)]
pub struct CellSpans<'a> {
    bytes: &'a [u8],
    position: usize,
    left: usize,
}

impl CellSpans<'_> {
    /// The next span, or `None` beyond the bytes, which cannot happen in a tuple that was read without error.
    fn advance(&mut self) -> Option<CellSpan> {
        let rest = self.bytes.get(self.position..)?;
        let (kind, rest) = rest.split_first()?;
        let kind = match kind {
            b't' => CellKind::Text,
            b'u' => CellKind::Unchanged,
            _ => CellKind::Null,
        };
        if kind != CellKind::Text {
            self.position += 1;
            return Some(CellSpan { kind, start: 0, len: 0 });
        }
        let len = u32::from_be_bytes(*rest.first_chunk::<4>()?);
        // A length field is 31 bits and a message far below 4 GiB, so the start fits; a cell that did not would end the iterator.
        let start = u32::try_from(self.position + 5).ok()?;
        self.position = self.position.checked_add(5)?.checked_add(len as usize)?;
        Some(CellSpan { kind, start, len })
    }
}

impl Iterator for CellSpans<'_> {
    type Item = CellSpan;

    fn next(&mut self) -> Option<CellSpan> {
        self.left = self.left.checked_sub(1)?;
        self.advance()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for CellSpans<'_> {}
