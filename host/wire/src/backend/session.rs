//! State of the session: its cancel key, its settings, its transaction.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Result, WireErrorKind};

/// BackendKeyData: what a CancelRequest must present. No `Debug`: whoever knows the key can cancel.
pub struct BackendKeyData {
    /// Process number of the server's session, as in `pg_stat_activity.pid`.
    pub process_id: i32,
    /// The secret: four bytes in protocol 3.0, up to 256 in later ones.
    pub secret_key: Bytes,
}

impl BackendKeyData {
    /// Longest and shortest key that the manual allows.
    const KEY_LEN: std::ops::RangeInclusive<usize> = 4..=256;

    /// Reads the body of a BackendKeyData message.
    ///
    /// # Errors
    /// A key shorter than 4 or longer than 256 bytes.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let process_id = cursor.i32()?;
        if !Self::KEY_LEN.contains(&cursor.remaining()) {
            return Err(cursor.error(WireErrorKind::BadLength));
        }
        Ok(Self { process_id, secret_key: cursor.into_rest() })
    }
}

/// ParameterStatus: a setting that the server reports at start and on every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterStatus {
    /// The setting, such as `server_version` or `client_encoding`.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl ParameterStatus {
    /// Reads the body of a ParameterStatus message.
    ///
    /// # Errors
    /// Truncated, or a name or value that is not UTF-8.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let status = Self { name: cursor.name()?.to_owned(), value: cursor.name()?.to_owned() };
        cursor.finish()?;
        Ok(status)
    }
}

/// Body of ReadyForQuery: where the session's transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionStatus {
    /// `I`: none is open.
    Idle,
    /// `T`: one is open.
    InTransaction,
    /// `E`: one is open and failed; only its rollback is possible.
    Failed,
}

impl TransactionStatus {
    /// Reads the body of a ReadyForQuery message.
    ///
    /// # Errors
    /// A status that the manual does not list.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let status = match cursor.u8()? {
            b'I' => Self::Idle,
            b'T' => Self::InTransaction,
            b'E' => Self::Failed,
            other => return Err(cursor.error_before(1, WireErrorKind::UnknownTag(other))),
        };
        cursor.finish()?;
        Ok(status)
    }
}
