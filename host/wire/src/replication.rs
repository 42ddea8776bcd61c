//! What travels inside CopyData once `START_REPLICATION` has switched the connection to CopyBoth.
//!
//! Section "Streaming Replication Protocol".

use bytes::{BufMut, Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::error::{Result, WireErrorKind};
use crate::lsn::Lsn;
use crate::timestamp::Timestamp;

/// A message from the walsender. No `Debug`: the payload holds row data.
pub enum ServerMessage {
    /// Tag `w`: a piece of the stream.
    XLogData(XLogData),
    /// Tag `k`: nothing new, or an answer is wanted.
    PrimaryKeepalive(PrimaryKeepalive),
}

/// XLogData. Of logical replication it carries exactly one message of the output plugin.
pub struct XLogData {
    /// Where the data starts in the log. Zero for messages that have no place of their own, such as Relation.
    pub wal_start: Lsn,
    /// For logical replication the same as `wal_start`; never a position to confirm.
    pub wal_end: Lsn,
    /// The server's clock when it sent this.
    pub server_time: Timestamp,
    /// The message of the output plugin, for [`pgoutput::Message::parse`](crate::pgoutput::Message::parse).
    pub payload: Bytes,
}

/// Primary keepalive message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimaryKeepalive {
    /// How far the server has read the log. With nothing in flight it may be confirmed: no row of ours lies before it.
    pub wal_end: Lsn,
    /// The server's clock when it sent this.
    pub server_time: Timestamp,
    /// The server ends the connection (`wal_sender_timeout`) unless it is answered soon.
    pub reply_requested: bool,
}

impl ServerMessage {
    /// Reads the body of one CopyData message of a walsender.
    ///
    /// # Errors
    /// An unknown tag, a short header, bytes after a keepalive, a reply flag that is neither 0 nor 1.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        match cursor.u8()? {
            b'w' => Ok(Self::XLogData(XLogData {
                wal_start: cursor.lsn()?,
                wal_end: cursor.lsn()?,
                server_time: cursor.timestamp()?,
                payload: cursor.into_rest(),
            })),
            b'k' => {
                let wal_end = cursor.lsn()?;
                let server_time = cursor.timestamp()?;
                let reply_requested = match cursor.u8()? {
                    0 => false,
                    1 => true,
                    other => return Err(cursor.error_before(1, WireErrorKind::UnknownFlags(other))),
                };
                cursor.finish()?;
                Ok(Self::PrimaryKeepalive(PrimaryKeepalive { wal_end, server_time, reply_requested }))
            }
            tag => Err(cursor.error_before(1, WireErrorKind::UnknownTag(tag))),
        }
    }
}

/// Standby status update: what the client has done with the log so far.
///
/// Each position is the first byte *after* what it speaks of. PostgreSQL moves the slot by `flushed` alone; a zero there
/// moves nothing, so that "not yet known" is [`Lsn::ZERO`] and never the received position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandbyStatusUpdate {
    /// Received.
    pub written: Lsn,
    /// Durable on the target. The slot forgets all before it.
    pub flushed: Lsn,
    /// Visible on the target.
    pub applied: Lsn,
    /// The client's clock.
    pub client_time: Timestamp,
    /// Ask the server for a keepalive in return.
    pub reply_requested: bool,
}

impl StandbyStatusUpdate {
    /// Bytes of the message inside CopyData.
    pub const LEN: usize = 1 + 3 * 8 + 8 + 1;

    /// Appends the message, tag `r`, as the body of a CopyData message.
    pub fn encode(&self, output: &mut BytesMut) {
        output.reserve(Self::LEN);
        output.put_u8(b'r');
        output.put_u64(self.written.0);
        output.put_u64(self.flushed.0);
        output.put_u64(self.applied.0);
        output.put_i64(self.client_time.0);
        output.put_u8(u8::from(self.reply_requested));
    }

    /// Appends the whole CopyData message, tag and length included, ready for the socket.
    pub fn encode_framed(&self, output: &mut BytesMut) {
        const LENGTH_FIELD: u32 = 4 + StandbyStatusUpdate::LEN as u32;
        output.reserve(1 + LENGTH_FIELD as usize);
        output.put_u8(b'd');
        output.put_u32(LENGTH_FIELD);
        self.encode(output);
    }
}
