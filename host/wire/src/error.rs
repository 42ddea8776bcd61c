//! The one error of this crate: where in the bytes, and what was wrong there.

use thiserror::Error;

/// Result of every parser in this crate.
pub type Result<T, E = WireError> = std::result::Result<T, E>;

/// Bytes that do not follow the protocol.
///
/// It says where and what, and never holds the bytes themselves: they may be row data.
/// None of these can be retried with the same bytes; a caller closes the connection and stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{kind} at byte {offset}")]
pub struct WireError {
    /// Distance in bytes from the start of what was handed to the parser. Never greater than its length.
    pub offset: usize,
    /// What was wrong there.
    pub kind: WireErrorKind,
}

impl WireError {
    /// An error of `kind` at `offset` bytes from the start of the input.
    #[must_use]
    pub const fn new(offset: usize, kind: WireErrorKind) -> Self {
        Self { offset, kind }
    }
}

/// What was wrong with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The message ends before the field that starts here.
    #[error("message is cut short")]
    Truncated,
    /// The message goes on after its last field.
    #[error("message has bytes after its last field")]
    TrailingBytes,
    /// A type byte that the protocol does not list in this place.
    #[error("unknown message or field tag 0x{0:02X}")]
    UnknownTag(u8),
    /// A message that PostgreSQL only sends for an option that was not set: streaming or two-phase transactions.
    #[error("message tag 0x{0:02X} belongs to a protocol option that was not asked for")]
    NotAskedFor(u8),
    /// A message other than the one that its parser was called for.
    #[error("message tag 0x{found:02X} where 0x{expected:02X} is due")]
    UnexpectedMessage {
        /// Tag of the message that the parser reads.
        expected: u8,
        /// Tag of the message that it was given.
        found: u8,
    },
    /// A length or count that is negative, or smaller than the protocol allows.
    #[error("impossible length or count")]
    BadLength,
    /// A message longer than the caller accepts.
    #[error("message of {length} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Bytes of the message body as announced by the sender.
        length: usize,
        /// Bytes of a message body that the caller accepts.
        limit: usize,
    },
    /// A name that is not UTF-8. Values are not looked at.
    #[error("name is not valid UTF-8")]
    InvalidUtf8,
    /// A string without its closing zero byte.
    #[error("string has no terminator")]
    NoTerminator,
    /// A row with more or fewer columns than its table or description has.
    #[error("{found} columns where {expected} are due")]
    UnexpectedColumnCount {
        /// Columns that the caller expects.
        expected: usize,
        /// Columns in the message; counting stops one beyond the expected ones.
        found: usize,
    },
    /// A value in binary format. Text is what was asked for.
    #[error("value in binary format where text was asked for")]
    BinaryValue,
    /// A flag or option bit that the protocol does not define.
    #[error("unknown flag bits 0x{0:02X}")]
    UnknownFlags(u8),
    /// A numeric code (authentication method, format) that the protocol does not define.
    #[error("unknown code {0}")]
    UnknownCode(i32),
    /// Digits were due, something else was there.
    #[error("malformed number")]
    BadNumber,
    /// A five-character SQLSTATE was due, something else was there.
    #[error("malformed SQLSTATE")]
    BadSqlState,
    /// COPY text: a line end inside a row.
    #[error("line end inside a row")]
    EmbeddedLineEnd,
    /// COPY text: the end marker `\.` where a row was due.
    #[error("end-of-data marker where a row is due")]
    EndMarker,
    /// COPY text: bytes after the end marker `\.`.
    #[error("data after the end-of-data marker")]
    DataAfterEnd,
    /// COPY text: a backslash with nothing after it.
    #[error("backslash at the end of a value")]
    DanglingEscape,
}
