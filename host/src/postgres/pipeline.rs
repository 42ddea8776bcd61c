//! A session cut in two, so that statements go out before the answers to earlier ones are back ("Pipelining" in the
//! manual's protocol chapter).
//!
//! The two halves belong to two tasks. If the reading one stops, the server stops reading too once its answers fill the
//! socket, and the writing one waits in [`PipelineWriter::flush`].

use bytes::{Bytes, BytesMut};
use pgveil_wire::backend::{CommandTag, DataRow, ErrorFields, Tag, TransactionStatus};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};

use super::endpoint::Side;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::session::{Session, terminate};
use super::startup::unexpected;
use super::transport::Transport;
use crate::error::{Error, Result};

/// The half that sends. Messages are collected until [`flush`](PipelineWriter::flush).
///
/// Every method but `flush` fails only with [`Kind::Internal`](crate::error::Kind::Internal), for what the protocol cannot
/// carry: a zero byte in a name or statement, or 2 GiB in one message.
pub struct PipelineWriter {
    outgoing: Outgoing,
    socket: WriteHalf<Transport>,
}

/// The half that receives.
pub struct PipelineReader {
    side: Side,
    incoming: Incoming,
    socket: ReadHalf<Transport>,
    /// Set if the session was in the middle of a command when it was cut.
    unusable: Option<Error>,
}

/// An answer to a message of the pipeline, in the order of the messages. No `Debug`: a row may hold values.
pub enum Reply {
    /// A statement is prepared.
    ParseComplete,
    /// A portal is bound.
    BindComplete,
    /// A statement is closed.
    CloseComplete,
    /// A statement or COPY has ended, and has touched this many rows.
    Command {
        /// Rows inserted, updated, deleted or copied; zero for commands that do not count.
        rows: u64,
    },
    /// A row's first column, `None` for NULL.
    Row(Option<Bytes>),
    /// The server takes COPY data.
    CopyInReady,
    /// The answer to a Sync, and where the transaction stands.
    Ready(TransactionStatus),
    /// The server refuses a message and skips what follows, up to the next Sync.
    Error(ErrorFields),
}

impl Session {
    /// Cuts the session in two. Take [`cancel`](Session::cancel) before, if it is needed.
    #[must_use]
    pub fn into_pipeline(self) -> (PipelineWriter, PipelineReader) {
        let unusable = self.check_ready().err();
        let (read, write) = tokio::io::split(self.transport);
        (
            PipelineWriter { outgoing: self.outgoing, socket: write },
            PipelineReader { side: self.side, incoming: self.incoming, socket: read, unusable },
        )
    }
}

impl PipelineWriter {
    /// Prepares a statement; the server infers the types of its parameters. The empty name is the unnamed statement.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn parse(&mut self, name: &str, sql: &str) -> Result<()> {
        self.outgoing.message(|buffer| frontend::parse(name, sql, [], buffer))
    }

    /// Binds a statement's parameters in text form, `None` for NULL, to the unnamed portal. Written straight into the
    /// buffer.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn bind<'v>(&mut self, statement: &str, parameters: impl IntoIterator<Item = Option<&'v [u8]>>) -> Result<()> {
        let write = |value: Option<&[u8]>, buffer: &mut BytesMut| {
            Ok(value.map_or(IsNull::Yes, |bytes| {
                buffer.extend_from_slice(bytes);
                IsNull::No
            }))
        };
        self.outgoing.message(|buffer| frontend::bind("", statement, [], parameters, write, [], buffer))
    }

    /// The same with a writer of one's own: `write` appends the text of each parameter to the buffer, or says that it is
    /// NULL. Its error leaves the message unsent.
    ///
    /// # Errors
    /// What `write` returns, and see [`PipelineWriter`].
    pub fn bind_with<T>(
        &mut self,
        statement: &str,
        parameters: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut BytesMut) -> Result<IsNull>,
    ) -> Result<()> {
        let mut failed = None;
        let write = |parameter: T, buffer: &mut BytesMut| {
            write(parameter, buffer).map_err(|error| {
                failed = Some(error);
                "the parameter could not be written".into()
            })
        };
        let sent = self.outgoing.message(|buffer| frontend::bind("", statement, [], parameters, write, [], buffer));
        failed.map_or(sent, Err)
    }

    /// Asks the server to send the answers that it has, in the middle of a transaction.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn flush_request(&mut self) -> Result<()> {
        self.outgoing.message(|buffer| {
            frontend::flush(buffer);
            std::io::Result::Ok(())
        })
    }

    /// Runs what was bound last.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn execute(&mut self) -> Result<()> {
        self.outgoing.message(|buffer| frontend::execute("", 0, buffer))
    }

    /// Runs statements without parameters by the simple protocol. The server answers with `Ready` by itself.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn query(&mut self, sql: &str) -> Result<()> {
        self.outgoing.query(sql)
    }

    /// Begins a CopyData message; [`put`](PipelineWriter::put) or [`copy_buffer`](PipelineWriter::copy_buffer) fill it,
    /// [`end_copy_data`](PipelineWriter::end_copy_data) or any other message ends it.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn start_copy_data(&mut self) -> Result<()> {
        self.outgoing.start_copy_data()
    }

    /// Adds bytes to the CopyData message that was begun. The server takes less than 1 GiB in one message.
    pub fn put(&mut self, bytes: &[u8]) {
        debug_assert!(self.outgoing.in_copy_data(), "put needs start_copy_data");
        self.outgoing.copy_data().extend_from_slice(bytes);
    }

    /// The buffer that the CopyData message is being written into, to append to and nothing else.
    pub fn copy_buffer(&mut self) -> &mut BytesMut {
        debug_assert!(self.outgoing.in_copy_data(), "copy_buffer needs start_copy_data");
        self.outgoing.copy_data()
    }

    /// Ends the CopyData message.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn end_copy_data(&mut self) -> Result<()> {
        self.outgoing.end_copy_data()
    }

    /// Ends a COPY.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn copy_done(&mut self) -> Result<()> {
        self.outgoing.message(|buffer| {
            frontend::copy_done(buffer);
            std::io::Result::Ok(())
        })
    }

    /// Closes a prepared statement. Closing one that does not exist is no error.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn close_statement(&mut self, name: &str) -> Result<()> {
        self.outgoing.message(|buffer| frontend::close(b'S', name, buffer))
    }

    /// Asks for [`Reply::Ready`]: where the server goes on after an error. Outside of `BEGIN … COMMIT` it commits.
    ///
    /// # Errors
    /// See [`PipelineWriter`].
    pub fn sync(&mut self) -> Result<()> {
        self.outgoing.message(|buffer| {
            frontend::sync(buffer);
            std::io::Result::Ok(())
        })
    }

    /// Bytes that wait for [`flush`](PipelineWriter::flush).
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.outgoing.pending_bytes()
    }

    /// Writes what is pending. A CopyData message that is open ends. Dropped half way, the rest goes out with the next
    /// call.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`](crate::error::Kind::ConnectionLost).
    pub async fn flush(&mut self) -> Result<()> {
        self.outgoing.flush(&mut self.socket).await
    }

    /// Takes leave of the server.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`](crate::error::Kind::ConnectionLost), which changes nothing: the connection is gone.
    pub async fn close(mut self) -> Result<()> {
        self.outgoing.message(terminate)?;
        self.outgoing.flush(&mut self.socket).await?;
        // The server may have hung up first.
        let _ = self.socket.shutdown().await;
        Ok(())
    }
}

impl PipelineReader {
    /// The next answer. Cancel-safe.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`](crate::error::Kind::ConnectionLost),
    /// [`Kind::Protocol`](crate::error::Kind::Protocol). What the server refuses is a [`Reply::Error`], for the caller
    /// knows which message it answers.
    pub async fn next(&mut self) -> Result<Reply> {
        if let Some(error) = self.unusable.take() {
            return Err(error);
        }
        let broken = |error| Error::from(error).within(self.side);
        loop {
            let frame = self.incoming.frame(&mut self.socket).await?;
            return Ok(match frame.tag {
                Tag::ParseComplete => Reply::ParseComplete,
                Tag::BindComplete => Reply::BindComplete,
                Tag::CloseComplete => Reply::CloseComplete,
                Tag::CommandComplete => {
                    Reply::Command { rows: CommandTag::parse(&frame.body).map_err(broken)?.rows.unwrap_or(0) }
                }
                Tag::EmptyQueryResponse => Reply::Command { rows: 0 },
                Tag::DataRow => Reply::Row(first_column(&frame.body).map_err(broken)?),
                Tag::CopyInResponse => Reply::CopyInReady,
                Tag::ReadyForQuery => Reply::Ready(TransactionStatus::parse(&frame.body).map_err(broken)?),
                Tag::ErrorResponse => Reply::Error(ErrorFields::parse(&frame.body).map_err(broken)?),
                Tag::RowDescription
                | Tag::NoData
                | Tag::ParameterDescription
                | Tag::ParameterStatus
                | Tag::NoticeResponse
                | Tag::NotificationResponse => continue,
                _ => return Err(unexpected(self.side, &frame)),
            });
        }
    }
}

/// The first value of a DataRow, whatever their number.
fn first_column(body: &Bytes) -> pgveil_wire::error::Result<Option<Bytes>> {
    let columns = body.first_chunk::<2>().copied().map_or(0, u16::from_be_bytes);
    Ok(DataRow::parse(body, columns.into())?.iter().next().flatten())
}
