//! How a statement ends or turns into a COPY.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Result, WireError, WireErrorKind};

/// CommandComplete: which command has ended, and how many rows it touched. Borrows the message: nothing is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTag<'a> {
    /// The command: `INSERT`, `COPY`, `CREATE TABLE`.
    pub verb: &'a str,
    /// Rows it inserted, updated, deleted, merged, selected, moved, fetched or copied; `None` for other commands.
    pub rows: Option<u64>,
}

impl<'a> CommandTag<'a> {
    /// Reads the body of a CommandComplete message: words, then numbers, of which the last counts rows.
    ///
    /// # Errors
    /// Truncated, not UTF-8, or a count that is no number.
    pub fn parse(body: &'a Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let text = cursor.name()?;
        cursor.finish()?;
        let Some(digits_at) = text.find(|letter: char| letter.is_ascii_digit()) else {
            return Ok(Self { verb: text, rows: None });
        };
        let (verb, numbers) = text.split_at(digits_at);
        let bad_number = WireError::new(digits_at, WireErrorKind::BadNumber);
        // `INSERT` counts behind an object identifier that has been zero since PostgreSQL 12.
        let count = if verb == "INSERT " { numbers.strip_prefix("0 ").ok_or(bad_number)? } else { numbers };
        let rows = count.parse().map_err(|_| bad_number)?;
        Ok(Self { verb: verb.trim_end_matches(' '), rows: Some(rows) })
    }
}

/// CopyInResponse, CopyOutResponse, CopyBothResponse: the shape of the data to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyResponse {
    /// Format of the whole.
    pub format: Format,
    /// Format of each column. Empty for replication.
    pub columns: Vec<Format>,
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Code 0: the type's text output.
    Text,
    /// Code 1: the type's binary output.
    Binary,
}

impl Format {
    const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Text),
            1 => Some(Self::Binary),
            _ => None,
        }
    }

    /// Reads a 16-bit format code.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let code = i32::from(cursor.u16()?);
        Self::from_code(code).ok_or(cursor.error_before(2, WireErrorKind::UnknownCode(code)))
    }
}

impl CopyResponse {
    /// Reads the body of a CopyInResponse, CopyOutResponse or CopyBothResponse message.
    ///
    /// # Errors
    /// Truncated, a negative count, an unknown format code.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let code = i32::from(cursor.u8()?);
        let format = Format::from_code(code).ok_or(cursor.error_before(1, WireErrorKind::UnknownCode(code)))?;
        let columns = cursor.count_i16()?;
        let columns = (0..columns).map(|_| Format::read(&mut cursor)).collect::<Result<_>>()?;
        cursor.finish()?;
        Ok(Self { format, columns })
    }
}
