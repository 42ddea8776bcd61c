//! Messages that a server sends, protocol 3.0: framing, and the bodies that a client has to understand.
//!
//! Section "Message Formats". A [`Frame`] is one message, tag and body; the body shares the memory it was read into. Body
//! parsers are called by the tag and give errors whose offset counts from the start of the body.

mod authentication;
mod command;
mod error_fields;
mod frame;
mod row;
mod session;

pub use authentication::{Authentication, SaslMechanisms};
pub use command::{CommandTag, CopyResponse, Format};
pub use error_fields::{ErrorFields, Severity, SqlState};
pub use frame::{Frame, Tag};
pub use row::{DataRow, FieldDescription, RowDescription};
pub use session::{BackendKeyData, ParameterStatus, TransactionStatus};
