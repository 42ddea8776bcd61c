//! Receiving: bytes from the socket become frames that share the memory they were read into.

use bytes::{Bytes, BytesMut};
use pgveil_wire::backend::{Frame, Tag};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::endpoint::Side;
use crate::error::{Error, Kind, Result};
use crate::limits::MESSAGE_BYTES_MAX;

/// What one read asks for: a few hundred rows, and few enough bytes to stay in the cache until they are decoded.
const READ_BYTES: usize = 128 * 1024;

/// Less room than this is not worth a system call.
const ROOM_BYTES_MIN: usize = 16 * 1024;

/// Until a server has proved that it is one, its messages must be this short, in bytes. The longest of them is an error
/// with its text.
const STARTUP_BYTES_MAX: usize = 64 * 1024;

/// The receiving end of a connection, apart from the socket.
pub(super) struct Incoming {
    side: Side,
    buffer: BytesMut,
    message_bytes_max: usize,
}

impl Incoming {
    /// For a connection on which nothing was received yet: short messages only, until [`trust`](Incoming::trust).
    pub(super) fn new(side: Side) -> Incoming {
        Incoming { side, buffer: BytesMut::with_capacity(READ_BYTES), message_bytes_max: STARTUP_BYTES_MAX }
    }

    /// The server let us in: from now on messages may be as long as rows are.
    pub(super) fn trust(&mut self) {
        self.message_bytes_max = usize::try_from(MESSAGE_BYTES_MAX).unwrap_or(usize::MAX);
    }

    /// The next message. Cancel-safe: what was read stays in the buffer.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`], or [`Kind::Protocol`] after which the connection is of no use.
    pub(super) async fn frame(&mut self, from: &mut (impl AsyncRead + Unpin)) -> Result<Frame> {
        loop {
            if let Some(frame) = self.buffered()? {
                return Ok(frame);
            }
            self.make_room()?;
            if from.read_buf(&mut self.buffer).await.map_err(|error| lost(self.side, error))? == 0 {
                return Err(Error::new(
                    Kind::ConnectionLost,
                    format!("{}: the server closed the connection", self.side),
                ));
            }
        }
    }

    /// The next message, if it is here already.
    pub(super) fn buffered(&mut self) -> Result<Option<Frame>> {
        let frame = Frame::split(&mut self.buffer, self.message_bytes_max).map_err(|error| self.broken(error))?;
        if frame.as_ref().is_some_and(|frame| frame.body.len() > 4 * READ_BYTES) {
            // The giant takes its memory along; what follows it starts in a buffer of ordinary size again.
            let mut buffer = BytesMut::with_capacity(READ_BYTES.max(self.buffer.len()));
            buffer.extend_from_slice(&self.buffer);
            self.buffer = buffer;
        }
        Ok(frame)
    }

    /// The body of the next message if it is CopyData and is here already; any other message stays.
    pub(super) fn buffered_copy_data(&mut self) -> Result<Option<Bytes>> {
        if self.buffer.first() != Some(&Tag::CopyData.byte()) {
            return Ok(None);
        }
        Ok(self.buffered()?.map(|frame| frame.body))
    }

    /// Room for the message's missing bytes, but never much more than what has come of it: a length is only a promise.
    fn make_room(&mut self) -> Result<()> {
        let missing = Frame::missing(&self.buffer, self.message_bytes_max).map_err(|error| self.broken(error))?;
        let room = self.buffer.capacity() - self.buffer.len();
        if room < missing.max(ROOM_BYTES_MIN) {
            self.buffer.reserve(missing.min(self.buffer.len()).max(READ_BYTES));
        }
        Ok(())
    }

    fn broken(&self, error: pgveil_wire::WireError) -> Error {
        Error::from(error).within(self.side)
    }
}

/// The socket's error: the network's, or TLS's.
pub(super) fn lost(side: Side, error: std::io::Error) -> Error {
    // TLS 1.3 refuses a client's certificate after the handshake, so the refusal arrives with the first bytes read.
    let tls = error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>());
    let kind = if tls { Kind::Tls } else { Kind::ConnectionLost };
    Error::new(kind, side.to_string()).because(error)
}
