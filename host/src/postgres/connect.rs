//! Connecting: hosts in order, for each with or without TLS as `sslmode` says, all within the timeout.

use tokio::time::timeout;

use super::endpoint::{Endpoint, Host, Place, Side, TargetSession};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::session::{Session, SessionParts};
use super::startup::{Failure, Purpose, greet, open};
use super::tls::{Encryption, TlsState};
use crate::error::{Error, Kind, Result};

/// Tries the hosts in order until one lets us in and is of the kind that `target_session_attrs` asks for.
///
/// # Errors
/// Of several hosts, the first error that may pass by itself, else the last one. A wrong password ends the search: trying
/// it on the other hosts would only lock the role.
pub(super) async fn connect(endpoint: &Endpoint, purpose: Purpose<'_>) -> Result<Session> {
    let settings = endpoint.settings();
    // `prefer-standby` takes any server once no standby was found.
    let rounds: &[TargetSession] = match settings.target_session {
        TargetSession::PreferStandby => &[TargetSession::Standby, TargetSession::Any],
        TargetSession::Any => &[TargetSession::Any],
        TargetSession::ReadWrite => &[TargetSession::ReadWrite],
        TargetSession::ReadOnly => &[TargetSession::ReadOnly],
        TargetSession::Primary => &[TargetSession::Primary],
        TargetSession::Standby => &[TargetSession::Standby],
    };
    let mut failure: Option<Error> = None;
    for &wanted in rounds {
        for host in &settings.hosts {
            let attempt = async {
                let session = connect_host(endpoint, host, purpose).await?;
                accept(session, wanted).await
            };
            let outcome = timeout(settings.connect_timeout, attempt).await.unwrap_or_else(|_| {
                let seconds = settings.connect_timeout.as_secs();
                Err(Error::new(Kind::ConnectionLost, format!("{}: no session within {seconds} s", settings.side)))
            });
            let error = match outcome.map_err(|error| at(host, error, settings.side)) {
                Ok(session) => return Ok(session),
                Err(error) if error.kind() == Kind::Authentication => return Err(error),
                Err(error) => error,
            };
            if failure.as_ref().is_none_or(|earlier| !earlier.is_transient()) {
                failure = Some(error);
            }
        }
    }
    Err(failure.unwrap_or_else(|| Error::new(Kind::Internal, format!("{}: no host", settings.side))))
}

/// Puts the host behind the side, which comes first already: `source: host db1:5432: SQLSTATE 28P01`.
fn at(host: &Host, error: Error, side: Side) -> Error {
    let place = match error.place().strip_prefix(&side.to_string()) {
        Some(rest) => format!("{side}: {host}{rest}"),
        None => format!("{side}: {host}: {}", error.place()),
    };
    error.placed(place)
}

/// Tries one host by each way that `sslmode` allows.
async fn connect_host(endpoint: &Endpoint, host: &Host, purpose: Purpose<'_>) -> Result<Session> {
    let attempts = match host.place {
        // libpq: sslmode is ignored for Unix sockets.
        Place::Socket(_) => &[Encryption::Plain],
        Place::Network { .. } => endpoint.settings().tls.mode.attempts(),
    };
    let mut first = None;
    for &encryption in attempts {
        match connect_once(endpoint, host, encryption, purpose).await {
            Ok(session) => return Ok(session),
            Err(Failure { error, other_way: true }) => first = first.or(Some(error)),
            // The first failure tells more: it is of the way that is preferred.
            Err(Failure { error, other_way: false }) => return Err(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or_else(|| Error::new(Kind::Internal, "no way to connect")))
}

async fn connect_once(
    endpoint: &Endpoint,
    host: &Host,
    encryption: Encryption,
    purpose: Purpose<'_>,
) -> std::result::Result<Session, Failure> {
    let settings = endpoint.settings();
    let (mut transport, tls) = open(settings, host, encryption).await?;
    let private = tls != TlsState::None || host.is_local();
    let mut incoming = Incoming::new(settings.side);
    let mut outgoing = Outgoing::new(settings.side);
    let greeting = greet(settings, purpose, private, &mut transport, &mut incoming, &mut outgoing).await?;
    Ok(Session::assemble(SessionParts { endpoint, host, transport, incoming, outgoing, tls, greeting })?)
}

/// Looks whether the server is of the wanted kind.
///
/// # Errors
/// [`Kind::ConnectionLost`], which is tried again: after a failover the wanted server is there soon.
async fn accept(mut session: Session, wanted: TargetSession) -> Result<Session> {
    if wanted == TargetSession::Any {
        return Ok(session);
    }
    let sql = "SELECT pg_catalog.pg_is_in_recovery() AS standby, \
               pg_catalog.current_setting('transaction_read_only') = 'on' AS read_only";
    let rows = session.batch(sql).await?;
    let side = session.side();
    let row = rows.first().ok_or_else(|| Error::new(Kind::Protocol, format!("{side}: no row")))?;
    let (standby, read_only) = (row.boolean("standby")?, row.boolean("read_only")?);
    let fits = match wanted {
        TargetSession::Any | TargetSession::PreferStandby => true,
        TargetSession::ReadWrite => !standby && !read_only,
        TargetSession::ReadOnly => standby || read_only,
        TargetSession::Primary => !standby,
        TargetSession::Standby => standby,
    };
    if fits {
        return Ok(session);
    }
    session.close().await;
    Err(Error::new(Kind::ConnectionLost, format!("{side}: not what target_session_attrs asks for")))
}
