//! Framing: a tag byte, a length that counts itself but not the tag, a body.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{Result, WireError, WireErrorKind};

/// Bytes before the body: the tag and the length field.
const HEADER_LEN: usize = 5;
/// Bytes of the length field, which counts itself.
const LENGTH_LEN: usize = 4;

/// One whole message. No `Debug`: the body may hold row data.
#[derive(Clone)]
pub struct Frame {
    /// Which message it is.
    pub tag: Tag,
    /// All after the length field.
    pub body: Bytes,
}

impl Frame {
    /// Takes the first message off `received`, or answers `None` while it is incomplete and leaves `received` as it is.
    ///
    /// `max_len` bounds the body, in bytes. It is checked as soon as the header is there, before anyone reserves memory for
    /// the body.
    ///
    /// # Errors
    /// An unknown tag, a length below four, a body longer than `max_len`.
    pub fn split(received: &mut BytesMut, max_len: usize) -> Result<Option<Self>> {
        let Some((tag, body_len)) = header(received, max_len)? else { return Ok(None) };
        if received.len() - HEADER_LEN < body_len {
            return Ok(None);
        }
        received.advance(HEADER_LEN);
        Ok(Some(Self { tag, body: received.split_to(body_len).freeze() }))
    }

    /// How many more bytes are needed before [`split`](Self::split) can answer: those of the header while that is
    /// incomplete, then those of the body; zero when a message is complete. What a reader reserves.
    ///
    /// # Errors
    /// Those of [`split`](Self::split).
    pub fn missing(received: &[u8], max_len: usize) -> Result<usize> {
        Ok(match header(received, max_len)? {
            Some((_, body_len)) => body_len.saturating_sub(received.len() - HEADER_LEN),
            None => HEADER_LEN - received.len(),
        })
    }

    /// The body, if the message is the one that is due.
    ///
    /// # Errors
    /// [`WireErrorKind::UnexpectedMessage`] otherwise.
    pub fn expect(&self, tag: Tag) -> Result<&Bytes> {
        if self.tag == tag {
            return Ok(&self.body);
        }
        Err(WireError::new(0, WireErrorKind::UnexpectedMessage { expected: tag.byte(), found: self.tag.byte() }))
    }
}

/// Tag and body length of the first message; `None` while its header is incomplete.
fn header(received: &[u8], max_len: usize) -> Result<Option<(Tag, usize)>> {
    // The tag is judged alone, so that a peer that does not speak this protocol is found out by its first byte.
    let Some(tag) = received.first() else { return Ok(None) };
    let tag = Tag::from_byte(*tag).ok_or(WireError::new(0, WireErrorKind::UnknownTag(*tag)))?;
    let Some([_, length @ ..]) = received.first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let body_len = usize::try_from(i32::from_be_bytes(*length))
        .ok()
        .and_then(|length| length.checked_sub(LENGTH_LEN))
        .ok_or(WireError::new(1, WireErrorKind::BadLength))?;
    if body_len > max_len {
        return Err(WireError::new(1, WireErrorKind::TooLong { length: body_len, limit: max_len }));
    }
    Ok(Some((tag, body_len)))
}

/// Declares [`Tag`] once, so that the byte and the variant cannot drift apart.
macro_rules! tags {
    ($($(#[$doc:meta])+ $name:ident = $byte:literal,)+) => {
        /// The messages that a server may send.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Tag {
            $($(#[$doc])+ $name = $byte,)+
        }

        impl Tag {
            /// Every tag, in the order of the manual.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The message that a tag byte stands for; `None` if no message has it.
            #[must_use]
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// The byte that stands for this message.
            #[must_use]
            pub const fn byte(self) -> u8 {
                self as u8
            }
        }
    };
}

tags! {
    /// Authentication request, or its success: [`Authentication`](super::Authentication).
    Authentication = b'R',
    /// How to cancel queries of this session: [`BackendKeyData`](super::BackendKeyData).
    BackendKeyData = b'K',
    /// A portal is bound. No body.
    BindComplete = b'2',
    /// A statement or portal is closed. No body.
    CloseComplete = b'3',
    /// A statement has ended: [`CommandTag`](super::CommandTag).
    CommandComplete = b'C',
    /// A piece of a COPY: its body is the data.
    CopyData = b'd',
    /// The server's side of a COPY has ended. No body.
    CopyDone = b'c',
    /// The server takes COPY data: [`CopyResponse`](super::CopyResponse).
    CopyInResponse = b'G',
    /// The server sends COPY data: [`CopyResponse`](super::CopyResponse).
    CopyOutResponse = b'H',
    /// Both sides send COPY data, which is how replication runs: [`CopyResponse`](super::CopyResponse).
    CopyBothResponse = b'W',
    /// A row: [`DataRow`](super::DataRow).
    DataRow = b'D',
    /// The query was empty. No body.
    EmptyQueryResponse = b'I',
    /// What went wrong: [`ErrorFields`](super::ErrorFields).
    ErrorResponse = b'E',
    /// Result of a function call by the protocol's old sub-protocol, which we never use.
    FunctionCallResponse = b'V',
    /// The server speaks an older minor version or knows fewer options than were asked for.
    NegotiateProtocolVersion = b'v',
    /// The statement gives no rows. No body.
    NoData = b'n',
    /// Something worth saying that is no error: [`ErrorFields`](super::ErrorFields).
    NoticeResponse = b'N',
    /// NOTIFY of another session. May hold what an application wrote.
    NotificationResponse = b'A',
    /// Types of a statement's parameters.
    ParameterDescription = b't',
    /// A setting that the server reports: [`ParameterStatus`](super::ParameterStatus).
    ParameterStatus = b'S',
    /// A statement is prepared. No body.
    ParseComplete = b'1',
    /// A portal has more rows than were asked for. No body.
    PortalSuspended = b's',
    /// The server waits for the next command: [`TransactionStatus`](super::TransactionStatus).
    ReadyForQuery = b'Z',
    /// Shape of the rows to come: [`RowDescription`](super::RowDescription).
    RowDescription = b'T',
}
