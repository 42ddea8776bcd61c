//! COPY: rows out of a session, rows into it ("COPY Operations" in the manual's protocol chapter). Text format only.

use bytes::Bytes;
use pgveil_wire::backend::{CopyResponse, Format, Frame, Tag};
use postgres_protocol::message::frontend;

use super::session::Session;
use super::startup::unexpected;
use crate::error::{Error, Kind, Result};

/// What [`CopyIn`] collects before it writes to the socket.
const COPY_WRITE_BYTES: usize = 128 * 1024;

impl Session {
    /// Begins `COPY … TO STDOUT` in text format.
    ///
    /// # Errors
    /// What the server refuses; [`Kind::Internal`] if the statement is no such COPY, which leaves the session unusable.
    pub async fn copy_out(&mut self, sql: &str) -> Result<CopyOut<'_>> {
        self.begin_copy(sql, Tag::CopyOutResponse).await?;
        Ok(CopyOut { session: self, ended: false, rows: 0 })
    }

    /// Begins `COPY … FROM STDIN` in text format.
    ///
    /// # Errors
    /// As [`copy_out`](Session::copy_out).
    pub async fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>> {
        self.begin_copy(sql, Tag::CopyInResponse).await?;
        Ok(CopyIn { session: self })
    }

    async fn begin_copy(&mut self, sql: &str, due: Tag) -> Result<()> {
        self.command(|outgoing| outgoing.query(sql)).await?;
        let frame = self.answer().await?;
        match frame.tag {
            Tag::ErrorResponse => Err(self.fail(&frame).await),
            tag if tag == due => {
                let response = CopyResponse::parse(&frame.body).map_err(|error| self.broken(error))?;
                if response.format == Format::Text { Ok(()) } else { Err(self.no_text_copy()) }
            }
            _ => Err(self.no_text_copy()),
        }
    }

    fn no_text_copy(&self) -> Error {
        Error::new(Kind::Internal, format!("{}: the statement is no COPY in text format", self.side))
    }

    /// CommandComplete and ReadyForQuery at the end of a COPY. Gives the rows.
    async fn end_copy(&mut self) -> Result<u64> {
        let mut rows = 0;
        loop {
            let frame = self.answer().await?;
            match frame.tag {
                Tag::CommandComplete => rows = self.rows_of(&frame)?.unwrap_or(0),
                Tag::ReadyForQuery => return self.end(&frame).map(|()| rows),
                Tag::ErrorResponse => return Err(self.fail(&frame).await),
                _ => return Err(unexpected(self.side, &frame)),
            }
        }
    }
}

/// Rows on their way out. Dropped before its end, it leaves the session unusable.
pub struct CopyOut<'a> {
    session: &'a mut Session,
    ended: bool,
    rows: u64,
}

impl CopyOut<'_> {
    /// The next piece, which is one row with its line end; `None` after the last. It shares the memory it was read into.
    /// Cancel-safe up to the last row.
    ///
    /// # Errors
    /// What the server refuses half way; [`Kind::ConnectionLost`]; [`Kind::Protocol`].
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.ended {
            return Ok(None);
        }
        let frame = self.session.answer().await?;
        match frame.tag {
            Tag::CopyData => Ok(Some(frame.body)),
            _ => self.end(&frame).await.map(|()| None),
        }
    }

    /// Waits for a row, then appends it and those that are here already to `rows`, until they hold `bytes_max` bytes or
    /// more. `false` after the last row, with nothing appended.
    ///
    /// # Errors
    /// As [`next`](CopyOut::next).
    pub async fn next_chunk(&mut self, rows: &mut Vec<Bytes>, bytes_max: usize) -> Result<bool> {
        let Some(first) = self.next().await? else { return Ok(false) };
        let mut bytes = first.len();
        rows.push(first);
        while bytes < bytes_max
            && let Some(row) = self.session.incoming.buffered_copy_data()?
        {
            bytes += row.len();
            rows.push(row);
        }
        Ok(true)
    }

    /// How many rows the server says it has sent; zero before the end.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    async fn end(&mut self, frame: &Frame) -> Result<()> {
        self.ended = true;
        match frame.tag {
            Tag::CopyDone => self.rows = self.session.end_copy().await?,
            Tag::ErrorResponse => return Err(self.session.fail(frame).await),
            _ => return Err(unexpected(self.session.side, frame)),
        }
        Ok(())
    }
}

/// Rows on their way in. Dropped without [`finish`](CopyIn::finish) or [`abort`](CopyIn::abort), it leaves the session
/// unusable, and the server does away with the rows when the connection closes.
pub struct CopyIn<'a> {
    session: &'a mut Session,
}

impl CopyIn<'_> {
    /// Sends bytes of the text format: rows, several or parts of one. They are collected and written some at a time.
    /// Not cancel-safe: nobody knows how much of `bytes` a dropped call has taken.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`]. What the server thinks of the rows is told by [`finish`](CopyIn::finish).
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let outgoing = &mut self.session.outgoing;
        for piece in bytes.chunks(COPY_WRITE_BYTES) {
            if !outgoing.in_copy_data() {
                outgoing.start_copy_data()?;
            }
            outgoing.copy_data().extend_from_slice(piece);
            if outgoing.pending_bytes() >= COPY_WRITE_BYTES {
                outgoing.flush(&mut self.session.transport).await?;
            }
        }
        Ok(())
    }

    /// Ends the COPY. Gives how many rows went in.
    ///
    /// # Errors
    /// What the server refuses, for any of the rows: none is in then.
    pub async fn finish(self) -> Result<u64> {
        self.session.outgoing.message(|buffer| {
            frontend::copy_done(buffer);
            std::io::Result::Ok(())
        })?;
        self.session.outgoing.flush(&mut self.session.transport).await?;
        self.session.end_copy().await
    }

    /// Gives the COPY up: no row is in, and the session can be used again.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`], [`Kind::Protocol`].
    pub async fn abort(self) -> Result<()> {
        self.session.outgoing.message(|buffer| frontend::copy_fail("", buffer))?;
        self.session.outgoing.flush(&mut self.session.transport).await?;
        match self.session.end_copy().await {
            // The server's answer to being told so (57014), or an earlier error of a row.
            Err(_) if self.session.ready => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(Error::new(Kind::Protocol, format!("{}: a COPY given up was done", self.session.side))),
        }
    }
}
