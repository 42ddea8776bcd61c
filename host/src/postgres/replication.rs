//! The replication stream: COPY in both directions ("Streaming Replication Protocol" in the manual).

use bytes::Bytes;
use pgveil_wire::backend::{ErrorFields, Tag};
use postgres_protocol::message::frontend;

use super::endpoint::Side;
use super::session::{Session, terminate};
use super::startup::unexpected;
use crate::error::{Error, Kind, Result};

/// A walsender that streams, and takes status updates while it does.
pub struct Replication {
    session: Session,
}

impl Session {
    /// Sends `START_REPLICATION …` and turns the session into a stream.
    ///
    /// # Errors
    /// [`Kind::SlotMissing`], [`Kind::SlotActive`], [`Kind::SlotLost`], or what else the server refuses.
    pub async fn copy_both(mut self, command: &str) -> Result<Replication> {
        self.command(|outgoing| outgoing.query(command)).await?;
        let frame = self.answer().await?;
        match frame.tag {
            Tag::CopyBothResponse => Ok(Replication { session: self }),
            Tag::ErrorResponse => Err(walsender_error(self.side, &frame.body)),
            _ => Err(unexpected(self.side, &frame)),
        }
    }
}

impl Replication {
    /// The body of the next CopyData message, sharing the memory it was read into. Cancel-safe.
    ///
    /// # Errors
    /// [`Kind::ServerRestarting`] when the server ends the stream, as it does when it shuts down; [`Kind::SlotLost`] when
    /// WAL is gone; what else the server refuses; [`Kind::ConnectionLost`]; [`Kind::Protocol`].
    pub async fn next(&mut self) -> Result<Bytes> {
        let side = self.session.side;
        let frame = self.session.answer().await?;
        match frame.tag {
            Tag::CopyData => Ok(frame.body),
            Tag::CopyDone => Err(Error::new(Kind::ServerRestarting, format!("{side}: the server ended the stream"))),
            Tag::ErrorResponse => Err(walsender_error(side, &frame.body)),
            _ => Err(unexpected(side, &frame)),
        }
    }

    /// The body of the next CopyData message if it is here already: what a reader takes before it waits again.
    ///
    /// # Errors
    /// [`Kind::Protocol`].
    pub fn next_buffered(&mut self) -> Result<Option<Bytes>> {
        self.session.incoming.buffered_copy_data()
    }

    /// Sends a status update: the body of a CopyData message. Dropped half way, the rest goes out with the next one.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`].
    pub async fn send_status(&mut self, status: &[u8]) -> Result<()> {
        self.session.outgoing.start_copy_data()?;
        self.session.outgoing.copy_data().extend_from_slice(status);
        self.session.outgoing.flush(&mut self.session.transport).await
    }

    /// Ends the stream in good order: what the server has sent by then is thrown away, unacknowledged, and the slot is
    /// free when this returns.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`], or what the server refuses.
    pub async fn end(mut self) -> Result<()> {
        self.session.outgoing.message(|buffer| {
            frontend::copy_done(buffer);
            std::io::Result::Ok(())
        })?;
        self.session.outgoing.flush(&mut self.session.transport).await?;
        loop {
            let frame = self.session.answer().await?;
            match frame.tag {
                Tag::ReadyForQuery => break,
                Tag::CopyData | Tag::CopyDone | Tag::CommandComplete => {}
                Tag::ErrorResponse => return Err(walsender_error(self.session.side, &frame.body)),
                _ => return Err(unexpected(self.session.side, &frame)),
            }
        }
        self.session.outgoing.message(terminate)?;
        self.session.outgoing.flush(&mut self.session.transport).await
    }
}

fn walsender_error(side: Side, body: &Bytes) -> Error {
    match ErrorFields::parse(body) {
        Ok(fields) => Error::from_walsender(side, &fields),
        Err(error) => Error::from(error).within(side),
    }
}
