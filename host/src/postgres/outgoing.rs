//! Sending: frontend messages are collected in one buffer and written together.

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::endpoint::Side;
use super::incoming::lost;
use crate::error::{Error, Kind, Result};

/// Room to start with: a window's statements without their data.
const WRITE_BYTES: usize = 64 * 1024;

/// The sending end of a connection, apart from the socket.
pub(super) struct Outgoing {
    side: Side,
    pending: BytesMut,
    /// Where the length field of the CopyData message that is being written stands.
    copy_data: Option<usize>,
}

impl Outgoing {
    pub(super) fn new(side: Side) -> Outgoing {
        Outgoing { side, pending: BytesMut::with_capacity(WRITE_BYTES), copy_data: None }
    }

    /// Bytes that wait for [`flush`](Outgoing::flush).
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Writes one message by one of postgres-protocol's functions.
    ///
    /// # Errors
    /// [`Kind::Internal`] where a name or statement holds a zero byte, which the protocol cannot carry. Nothing is
    /// written then.
    pub(super) fn message<E>(&mut self, write: impl FnOnce(&mut BytesMut) -> std::result::Result<(), E>) -> Result<()> {
        self.end_copy_data()?;
        let before = self.pending.len();
        write(&mut self.pending).map_err(|_| {
            self.pending.truncate(before);
            Error::new(Kind::Internal, format!("{}: a message that the protocol cannot carry", self.side))
        })
    }

    /// Begins a CopyData message. What [`put`](Outgoing::put) adds until its end is one piece of the COPY.
    pub(super) fn start_copy_data(&mut self) -> Result<()> {
        self.end_copy_data()?;
        self.pending.put_u8(b'd');
        self.copy_data = Some(self.pending.len());
        self.pending.put_i32(0);
        Ok(())
    }

    /// The buffer, to write the CopyData message's bytes into.
    pub(super) fn copy_data(&mut self) -> &mut BytesMut {
        &mut self.pending
    }

    /// Whether a CopyData message is open.
    pub(super) fn in_copy_data(&self) -> bool {
        self.copy_data.is_some()
    }

    /// Ends the CopyData message, if one is open, by writing its length.
    ///
    /// # Errors
    /// [`Kind::Internal`] for more than 2³¹ bytes, which are taken back.
    pub(super) fn end_copy_data(&mut self) -> Result<()> {
        let Some(at) = self.copy_data.take() else { return Ok(()) };
        let Ok(length) = i32::try_from(self.pending.len() - at) else {
            self.pending.truncate(at - 1);
            return Err(Error::new(Kind::Internal, format!("{}: COPY data above 2 GiB in one piece", self.side)));
        };
        if let Some(field) = self.pending.get_mut(at..at + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// Writes all that is pending. If the call is dropped, what is left goes out with the next one.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`].
    pub(super) async fn flush(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        self.end_copy_data()?;
        to.write_all_buf(&mut self.pending).await.map_err(|error| lost(self.side, error))?;
        to.flush().await.map_err(|error| lost(self.side, error))?;
        if self.pending.capacity() > 16 * WRITE_BYTES {
            self.pending = BytesMut::with_capacity(WRITE_BYTES);
        }
        Ok(())
    }

    /// The simple protocol's one message.
    pub(super) fn query(&mut self, sql: &str) -> Result<()> {
        self.message(|buffer| frontend::query(sql, buffer))
    }
}
