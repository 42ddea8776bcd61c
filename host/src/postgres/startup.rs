//! From an open socket to a session that waits for its first command ("Start-up" in the manual).

use std::collections::HashMap;

use bytes::Bytes;
use pgveil_wire::backend::{
    Authentication, BackendKeyData, ErrorFields, Frame, ParameterStatus, Tag, TransactionStatus,
};
use pgveil_wire::{WireError, WireErrorKind};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::auth::Authenticator;
use super::endpoint::{Host, Settings, Side};
use super::incoming::{Incoming, lost};
use super::outgoing::Outgoing;
use super::tls::{Encryption, Negotiation, TlsMode, TlsState};
use super::transport::Transport;
use crate::error::{Error, Kind, Result};

/// The settings that every session begins with, whatever the role, the database or the URL say.
///
/// The first eight are all that a value's text output depends on. The rest keeps statements of ours from meaning something
/// else (quoting), from being cut off (timeouts), and the wire from carrying notices that nobody reads.
///
/// Catalogue queries look expensive to the planner and take milliseconds; compiling them just in time takes seconds.
const PINNED: [(&str, &str); 13] = [
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "3"),
    ("bytea_output", "hex"),
    ("lc_monetary", "C"),
    ("search_path", ""),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("client_min_messages", "error"),
    ("jit", "off"),
];

/// Pinned settings that servers report, with what they report then. A pooler in between may have kept its own.
const REPORTED: [(&str, &str); 5] = [
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("standard_conforming_strings", "on"),
];

/// What a session is opened for.
#[derive(Clone, Copy)]
pub(super) struct Purpose<'a> {
    /// The last word of `application_name`.
    pub(super) name: &'a str,
    /// Whether it takes replication commands.
    pub(super) replication: bool,
}

/// What the server told us before its first ReadyForQuery.
pub(super) struct Greeting {
    pub(super) parameters: HashMap<String, String>,
    pub(super) process_id: i32,
    pub(super) secret_key: Bytes,
    pub(super) transaction: TransactionStatus,
}

/// Why one way to open a session failed.
pub(super) struct Failure {
    pub(super) error: Error,
    /// Whether the same host may still let us in with TLS instead of without, or without instead of with.
    pub(super) other_way: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { other_way: error.kind() == Kind::Tls, error }
    }
}

impl Failure {
    /// What the server refuses. 28000 is what it says where pg_hba.conf has no line for this kind of connection; a wrong
    /// password is 28P01, and is never tried twice.
    fn refused(side: Side, frame: &Frame) -> Failure {
        match ErrorFields::parse(&frame.body) {
            Ok(fields) => {
                Failure { error: Error::from_server(side, &fields), other_way: fields.sqlstate.as_str() == "28000" }
            }
            Err(error) => Error::from(error).within(side).into(),
        }
    }
}

/// Opens the socket and TLS around it.
///
/// # Errors
/// [`Kind::ConnectionLost`] for the network, [`Kind::Tls`] where TLS cannot be had as asked.
pub(super) async fn open(settings: &Settings, host: &Host, encryption: Encryption) -> Result<(Transport, TlsState)> {
    let side = settings.side;
    let mut transport = Transport::open(host, settings.keepalive).await.map_err(|error| lost(side, error))?;
    let Transport::Tcp(stream) = &mut transport else { return Ok((transport, TlsState::None)) };
    if encryption == Encryption::Plain {
        return Ok((transport, TlsState::None));
    }
    if settings.tls.negotiation == Negotiation::Postgres {
        let mut request = bytes::BytesMut::new();
        frontend::ssl_request(&mut request);
        stream.write_all(&request).await.map_err(|error| lost(side, error))?;
        // One byte and not one more: what came in clear must never be taken for something that came by TLS.
        match stream.read_u8().await.map_err(|error| lost(side, error))? {
            b'S' => {}
            b'N' if settings.tls.mode == TlsMode::Prefer => return Ok((transport, TlsState::None)),
            b'N' => return Err(Error::new(Kind::Tls, format!("{side}: the server offers no TLS"))),
            // An error in clear: nobody knows who wrote it, so it is not read.
            b'E' => return Err(Error::new(Kind::Tls, format!("{side}: the server refuses to speak of TLS"))),
            tag => return Err(Error::from(WireError::new(0, WireErrorKind::UnknownTag(tag))).within(side)),
        }
    }
    let Transport::Tcp(stream) = transport else { return Err(Error::new(Kind::Internal, "TLS on a Unix socket")) };
    let stream = settings.tls.wrap(side, host, stream).await?;
    let state = settings.tls.state(&stream);
    Ok((Transport::Tls(Box::new(stream)), state))
}

/// Sends the startup message, proves who we are, and waits until the server is ready.
///
/// # Errors
/// What the server refuses, by its SQLSTATE; [`Kind::Authentication`]; [`Kind::Protocol`].
pub(super) async fn greet(
    settings: &Settings,
    purpose: Purpose<'_>,
    private: bool,
    transport: &mut Transport,
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
) -> std::result::Result<Greeting, Failure> {
    let side = settings.side;
    send_startup(settings, purpose, outgoing)?;
    let mut authenticator = Authenticator::new(settings, private);
    loop {
        outgoing.flush(transport).await?;
        let frame = incoming.frame(transport).await?;
        match frame.tag {
            Tag::Authentication => {
                let request = Authentication::parse(&frame.body).map_err(|error| Error::from(error).within(side))?;
                if authenticator.answer(request, outgoing).await? {
                    break;
                }
            }
            Tag::ErrorResponse => return Err(Failure::refused(side, &frame)),
            Tag::NegotiateProtocolVersion => check_version(side, &frame.body)?,
            Tag::NoticeResponse => {}
            _ => return Err(unexpected(side, &frame).into()),
        }
    }
    incoming.trust();
    let greeting = settle(side, transport, incoming).await?;
    check_pinned(side, &greeting.parameters)?;
    Ok(greeting)
}

/// The startup message. Parameters that are no words of the protocol are settings, stronger than those of role and database.
fn send_startup(settings: &Settings, purpose: Purpose<'_>, outgoing: &mut Outgoing) -> Result<()> {
    let application = format!("{} {}", settings.application_name.as_deref().unwrap_or("pgveil"), purpose.name);
    let parameters =
        [("user", settings.user.as_str()), ("database", &settings.database), ("application_name", &application)]
            .into_iter()
            .chain(settings.options.as_deref().map(|options| ("options", options)))
            .chain(purpose.replication.then_some(("replication", "database")))
            .chain(PINNED);
    outgoing.message(|buffer| frontend::startup_message(parameters, buffer))
}

/// From "let in" to "ready".
async fn settle(
    side: Side,
    transport: &mut Transport,
    incoming: &mut Incoming,
) -> std::result::Result<Greeting, Failure> {
    let mut parameters = HashMap::new();
    let mut key = None;
    loop {
        let frame = incoming.frame(transport).await?;
        let broken = |error: WireError| Error::from(error).within(side);
        match frame.tag {
            Tag::ParameterStatus => {
                let ParameterStatus { name, value } = ParameterStatus::parse(&frame.body).map_err(broken)?;
                parameters.insert(name, value);
            }
            Tag::BackendKeyData => key = Some(BackendKeyData::parse(&frame.body).map_err(broken)?),
            Tag::ReadyForQuery => {
                let transaction = TransactionStatus::parse(&frame.body).map_err(broken)?;
                let (process_id, secret_key) =
                    key.map_or_else(Default::default, |key| (key.process_id, key.secret_key));
                return Ok(Greeting { parameters, process_id, secret_key, transaction });
            }
            Tag::ErrorResponse => return Err(Failure::refused(side, &frame)),
            Tag::NoticeResponse => {}
            _ => return Err(unexpected(side, &frame).into()),
        }
    }
}

/// We ask for 3.0 and no option, so the only answer that makes sense is "3.0, nothing unknown". Some poolers send it.
fn check_version(side: Side, body: &Bytes) -> Result<()> {
    const NO_OPTIONS: [u8; 4] = [0; 4];
    // Servers before 17.3 repeat the minor version alone.
    const VERSIONS: [[u8; 4]; 2] = [[0, 3, 0, 0], [0; 4]];
    match body.split_at_checked(4) {
        Some((version, options)) if options == NO_OPTIONS && VERSIONS.iter().any(|known| known == version) => Ok(()),
        _ => Err(Error::new(Kind::Protocol, format!("{side}: the server does not speak protocol 3.0"))),
    }
}

fn check_pinned(side: Side, parameters: &HashMap<String, String>) -> Result<()> {
    for (name, value) in REPORTED {
        // `ISO, MDY`: the order of days and months concerns input only, and none of ours is ambiguous.
        if parameters.get(name).is_some_and(|reported| reported.split(',').next() != Some(value)) {
            return Err(Error::new(Kind::Preflight, format!("{side}: the server does not set {name} to {value}")));
        }
    }
    Ok(())
}

/// A message that is not due.
pub(super) fn unexpected(side: Side, frame: &Frame) -> Error {
    Error::new(Kind::Protocol, format!("{side}: message {:?} where it is not due", frame.tag))
}
