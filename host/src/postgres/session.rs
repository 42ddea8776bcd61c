//! An ordinary session: one command at a time, by the simple or the extended protocol.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

use bytes::BytesMut;
use pgveil_wire::backend::{
    CommandTag, ErrorFields, Frame, ParameterStatus, RowDescription, Severity, Tag, TransactionStatus,
};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;

use super::cancel::Cancel;
use super::connect;
use super::endpoint::{Endpoint, Host, Side};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::row::{Columns, Row};
use super::startup::{Greeting, Purpose, unexpected};
use super::tls::TlsState;
use super::transport::Transport;
use crate::error::{Error, Kind, Result};
use crate::limits::MESSAGE_BYTES_MAX;

/// A connection to a server that takes one command at a time.
///
/// A call that is dropped before it ends, or that fails for the network or the protocol, leaves the session unusable. An
/// error of the server ([`Error::from_server`]) does not, unless the server ends the session itself.
pub struct Session {
    pub(super) side: Side,
    pub(super) transport: Transport,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Whether the server waits for a command. False in the middle of one, and for good after a failure.
    pub(super) ready: bool,
    transaction: TransactionStatus,
    tls: TlsState,
    parameters: HashMap<String, String>,
    server_version: u32,
    process_id: i32,
    cancel: Cancel,
}

/// What connecting has put together.
pub(super) struct SessionParts<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) host: &'a Host,
    pub(super) transport: Transport,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    pub(super) tls: TlsState,
    pub(super) greeting: Greeting,
}

/// What a command has given, once the server is ready again.
#[derive(Default)]
struct Outcome {
    rows: Vec<Row>,
    affected: u64,
}

// === connecting ===

impl Session {
    /// Connects for SQL. `purpose` is the second word of `application_name`, after `pgveil`.
    ///
    /// Every session begins with `DateStyle=ISO`, `IntervalStyle=postgres`, `TimeZone=UTC`, `extra_float_digits=3`,
    /// `bytea_output=hex`, `client_encoding=UTF8`, `lc_monetary=C` and an empty `search_path`, which decide how values are
    /// written; and with `standard_conforming_strings=on`, no statement timeout and no idle timeout in transactions.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`], [`Kind::Tls`], [`Kind::Authentication`], and what the server refuses.
    pub async fn connect(endpoint: &Endpoint, purpose: &str) -> Result<Session> {
        Box::pin(connect::connect(endpoint, Purpose { name: purpose, replication: false })).await
    }

    /// Connects to a walsender: replication commands, and SQL by [`batch`](Session::batch) only. The same settings.
    ///
    /// # Errors
    /// As [`connect`](Session::connect).
    pub async fn connect_replication(endpoint: &Endpoint, purpose: &str) -> Result<Session> {
        Box::pin(connect::connect(endpoint, Purpose { name: purpose, replication: true })).await
    }

    pub(super) fn assemble(parts: SessionParts<'_>) -> Result<Session> {
        let SessionParts { endpoint, host, transport, incoming, outgoing, tls, greeting } = parts;
        let side = endpoint.side();
        let server_version = greeting
            .parameters
            .get("server_version")
            .and_then(|text| version_number(text))
            .ok_or_else(|| Error::new(Kind::Protocol, format!("{side}: server_version")))?;
        let cancel = Cancel::new(endpoint, host, tls, greeting.process_id, greeting.secret_key);
        Ok(Session {
            side,
            transport,
            incoming,
            outgoing,
            ready: true,
            transaction: greeting.transaction,
            tls,
            parameters: greeting.parameters,
            server_version,
            process_id: greeting.process_id,
            cancel,
        })
    }

    /// Takes leave of the server and closes the connection. Dropping the session closes it as well, without a word.
    pub async fn close(mut self) {
        // An error here changes nothing: the connection is gone either way.
        if self.command(|outgoing| outgoing.message(terminate)).await.is_ok() {
            let _ = self.transport.shutdown().await;
        }
    }
}

// === commands ===

impl Session {
    /// Runs statements by the simple protocol, several if need be. Gives the rows of the last one that has rows.
    ///
    /// # Errors
    /// What the server refuses; the statements before the refused one were done, unless one transaction held them all.
    pub async fn batch(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.command(|outgoing| outgoing.query(sql)).await?;
        Ok(self.outcome().await?.rows)
    }

    /// Runs one statement with parameters in text form, whose types the server infers. Gives its rows.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn query(&mut self, sql: &str, parameters: &[Option<&str>]) -> Result<Vec<Row>> {
        Ok(self.extended(sql, parameters).await?.rows)
    }

    /// As [`query`](Session::query); gives how many rows it touched.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn execute(&mut self, sql: &str, parameters: &[Option<&str>]) -> Result<u64> {
        Ok(self.extended(sql, parameters).await?.affected)
    }

    async fn extended(&mut self, sql: &str, parameters: &[Option<&str>]) -> Result<Outcome> {
        let value = |value: &Option<&str>, buffer: &mut BytesMut| {
            Ok(value.map_or(IsNull::Yes, |text| {
                buffer.extend_from_slice(text.as_bytes());
                IsNull::No
            }))
        };
        let messages = |buffer: &mut BytesMut| {
            frontend::parse("", sql, [], buffer)?;
            frontend::bind("", "", [], parameters, value, [], buffer).map_err(|_| ErrorKind::InvalidInput)?;
            frontend::describe(b'P', "", buffer)?;
            frontend::execute("", 0, buffer)?;
            frontend::sync(buffer);
            std::io::Result::Ok(())
        };
        self.command(|outgoing| outgoing.message(messages)).await?;
        self.outcome().await
    }

    /// Reads answers until the server is ready. An error among them is given then, not before.
    async fn outcome(&mut self) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut columns = None;
        let mut bytes_left = MESSAGE_BYTES_MAX;
        loop {
            let frame = self.answer().await?;
            match frame.tag {
                Tag::RowDescription => {
                    let description = RowDescription::parse(&frame.body).map_err(|error| self.broken(error))?;
                    columns = Some(Arc::new(Columns::new(self.side, description)));
                    outcome.rows.clear();
                }
                Tag::DataRow => {
                    // Queries of ours have short results; a server that sends rows for ever must not fill the memory.
                    bytes_left = bytes_left
                        .checked_sub(frame.body.len() as u64 + 64)
                        .ok_or_else(|| Error::new(Kind::Protocol, format!("{}: result above 1 GiB", self.side)))?;
                    let columns = columns.as_ref().ok_or_else(|| unexpected(self.side, &frame))?;
                    outcome.rows.push(Row::read(columns, &frame.body)?);
                }
                Tag::CommandComplete => outcome.affected = self.rows_of(&frame)?.unwrap_or(0),
                Tag::ReadyForQuery => return self.end(&frame).map(|()| outcome),
                Tag::ErrorResponse => return Err(self.fail(&frame).await),
                Tag::ParseComplete | Tag::BindComplete | Tag::NoData | Tag::EmptyQueryResponse => {}
                _ => return Err(unexpected(self.side, &frame)),
            }
        }
    }
}

// === the state of the conversation, shared with COPY ===

impl Session {
    /// Sends a command. A command that cannot be written leaves the session as it is.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`], also if an earlier command never came to its end.
    pub(super) async fn command(&mut self, write: impl FnOnce(&mut Outgoing) -> Result<()>) -> Result<()> {
        self.check_ready()?;
        write(&mut self.outgoing)?;
        self.ready = false;
        self.outgoing.flush(&mut self.transport).await
    }

    /// Whether the server waits for a command.
    pub(super) fn check_ready(&self) -> Result<()> {
        if self.ready {
            return Ok(());
        }
        let place = format!("{}: the session was left in the middle of a command", self.side);
        Err(Error::new(Kind::ConnectionLost, place))
    }

    /// Takes note that the server is ready again.
    pub(super) fn end(&mut self, ready: &Frame) -> Result<()> {
        self.transaction = TransactionStatus::parse(&ready.body).map_err(|error| self.broken(error))?;
        self.ready = true;
        Ok(())
    }

    /// The next message that answers a command; what may come at any time is dealt with.
    pub(super) async fn answer(&mut self) -> Result<Frame> {
        loop {
            let frame = self.incoming.frame(&mut self.transport).await?;
            match frame.tag {
                Tag::ParameterStatus => {
                    let status = ParameterStatus::parse(&frame.body).map_err(|error| self.broken(error))?;
                    self.parameters.insert(status.name, status.value);
                }
                Tag::NoticeResponse | Tag::NotificationResponse => {}
                _ => return Ok(frame),
            }
        }
    }

    /// The error of an ErrorResponse, once the server is ready for the next command.
    pub(super) async fn fail(&mut self, response: &Frame) -> Error {
        let fields = match ErrorFields::parse(&response.body) {
            Ok(fields) => fields,
            Err(error) => return self.broken(error),
        };
        // After FATAL the server hangs up.
        if !matches!(fields.severity, Severity::Fatal | Severity::Panic) {
            while let Ok(frame) = self.answer().await {
                if frame.tag == Tag::ReadyForQuery {
                    // A status that cannot be read leaves the session unusable, which the next call will say.
                    let _ = self.end(&frame);
                    break;
                }
            }
        }
        Error::from_server(self.side, &fields)
    }

    /// The row count of a CommandComplete.
    pub(super) fn rows_of(&self, complete: &Frame) -> Result<Option<u64>> {
        Ok(CommandTag::parse(&complete.body).map_err(|error| self.broken(error))?.rows)
    }

    pub(super) fn broken(&self, error: pgveil_wire::WireError) -> Error {
        Error::from(error).within(self.side)
    }
}

// === what is known of the session ===

impl Session {
    /// Which of the job's servers it leads to.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// A handle that cancels this session's running command from elsewhere.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Whether the session is encrypted, and the certificate was checked.
    #[must_use]
    pub fn tls(&self) -> TlsState {
        self.tls
    }

    /// A setting that the server reports by itself (ParameterStatus), as it stands now: `server_encoding`, `in_hot_standby`…
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The server process's number, as in `pg_stat_activity.pid`.
    #[must_use]
    pub fn backend_pid(&self) -> u32 {
        self.process_id.cast_unsigned()
    }

    /// The server's version as `server_version_num` writes it: 150018 is 15.18.
    #[must_use]
    pub fn server_version(&self) -> u32 {
        self.server_version
    }

    /// Where the session's transaction stands.
    #[must_use]
    pub fn transaction(&self) -> TransactionStatus {
        self.transaction
    }

    /// Whether the session takes another command.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.ready
    }
}

pub(super) fn terminate(buffer: &mut BytesMut) -> std::io::Result<()> {
    frontend::terminate(buffer);
    Ok(())
}

/// `15.18 (Debian …)` → 150018; `18beta1`, `19devel` → 180000, 190000; `9.6.24` → 90624.
fn version_number(text: &str) -> Option<u32> {
    let digits = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
    let mut parts = text.split('.').map(|part| part.get(..digits(part)).and_then(|digits| digits.parse::<u32>().ok()));
    let major = parts.next()??;
    let minor = parts.next().flatten().unwrap_or(0);
    if major >= 10 {
        return major.checked_mul(10_000)?.checked_add(minor);
    }
    let patch = parts.next().flatten().unwrap_or(0);
    Some(major * 10_000 + minor.checked_mul(100)?.checked_add(patch)?)
}

#[cfg(test)]
mod tests {
    use super::version_number;

    #[test]
    fn versions_read_as_server_version_num_writes_them() {
        let cases = [
            ("15.18 (Debian 15.18-0+deb12u1)", Some(150_018)),
            ("18.1", Some(180_001)),
            ("18beta1", Some(180_000)),
            ("19devel", Some(190_000)),
            ("9.6.24", Some(90_624)),
            ("", None),
            ("x", None),
            ("4294967295.1", None),
        ];
        for (text, number) in cases {
            assert_eq!(version_number(text), number, "{text}");
        }
    }
}
