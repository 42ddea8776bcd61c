//! ErrorResponse and NoticeResponse, without a word of what they say.
//!
//! Section "Error and Notice Message Fields". Message, detail, hint, context and query text routinely quote row values
//! (`Key (email)=(…)`, `COPY users, line 3: "…"`). They are stepped over here and stored nowhere, so that no later code can print them.

use std::fmt;

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Result, WireError, WireErrorKind};

/// What may be told of a server's error or notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFields {
    /// How bad it is.
    pub severity: Severity,
    /// Which error it is.
    pub sqlstate: SqlState,
    /// Schema of the object concerned, if the server names one.
    pub schema: Option<String>,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
    /// Data type concerned.
    pub data_type: Option<String>,
    /// Constraint concerned.
    pub constraint: Option<String>,
    /// Function of the server's source code that reported it; tells apart uses of one SQLSTATE.
    pub routine: Option<String>,
}

impl ErrorFields {
    /// Reads the body of an ErrorResponse or NoticeResponse.
    ///
    /// A name that is not UTF-8 is left out rather than refused: before the session's encoding is agreed on, the server may
    /// use another, and the SQLSTATE must get through.
    ///
    /// # Errors
    /// A body without its end, or without a well-formed SQLSTATE.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let (mut severity, mut translated_severity, mut sqlstate) = (None, None, None);
        let (mut schema, mut table, mut column, mut data_type, mut constraint, mut routine) = Default::default();
        loop {
            let code = cursor.u8()?;
            if code == 0 {
                break;
            }
            let start = cursor.position();
            let value = cursor.terminated()?;
            match code {
                b'V' => severity = Severity::from_bytes(value),
                b'S' => translated_severity = Severity::from_bytes(value),
                b'C' => {
                    let malformed = WireError::new(start, WireErrorKind::BadSqlState);
                    sqlstate = Some(SqlState::from_bytes(value).ok_or(malformed)?);
                }
                b's' => schema = name(value),
                b't' => table = name(value),
                b'c' => column = name(value),
                b'd' => data_type = name(value),
                b'n' => constraint = name(value),
                b'R' => routine = name(value),
                // The manual: "Frontends should silently ignore fields of unrecognized type." All others may quote values.
                _ => {}
            }
        }
        // `V` is never translated but younger than `S`.
        let severity = severity.or(translated_severity).unwrap_or(Severity::Unrecognized);
        let sqlstate = sqlstate.ok_or(cursor.error(WireErrorKind::BadSqlState))?;
        cursor.finish()?;
        Ok(Self { severity, sqlstate, schema, table, column, data_type, constraint, routine })
    }
}

fn name(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// How bad an error or notice is, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For developers of the server.
    Debug,
    /// For the server's own log.
    Log,
    /// An answer that was asked for.
    Info,
    /// Something to know.
    Notice,
    /// Something to look at.
    Warning,
    /// A severity in a language other than English, from a server that sends no untranslated one. Treat as an error.
    Unrecognized,
    /// The statement failed.
    Error,
    /// The session has ended.
    Fatal,
    /// All sessions have ended.
    Panic,
}

impl Severity {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            b"DEBUG" => Self::Debug,
            b"LOG" => Self::Log,
            b"INFO" => Self::Info,
            b"NOTICE" => Self::Notice,
            b"WARNING" => Self::Warning,
            b"ERROR" => Self::Error,
            b"FATAL" => Self::Fatal,
            b"PANIC" => Self::Panic,
            _ => return None,
        })
    }
}

/// A five-character error code (appendix "PostgreSQL Error Codes"): digits and upper-case letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// The code that `bytes` are; `None` unless they are five digits or upper-case letters.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let code: [u8; 5] = bytes.try_into().ok()?;
        code.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).then_some(Self(code))
    }

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The first two characters, which name the class of the error.
    #[must_use]
    pub fn class(&self) -> &str {
        self.as_str().get(..2).unwrap_or_default()
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
