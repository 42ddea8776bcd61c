//! Where a server is and how to reach it: a connection URL, checked.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::parameters;
use super::tls::TlsSettings;
use super::url;
use crate::error::{Error, Kind, Result};

/// Which of the job's two servers. The first word of every error place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The server that rows come from.
    Source,
    /// The server that rows go to.
    Target,
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Side::Source => "source",
            Side::Target => "target",
        })
    }
}

/// A server to connect to, parsed from a secret URL. Cheap to clone.
///
/// Its `Debug` shows host, port, database and user; there is no way to get at the password or the whole URL.
#[derive(Clone)]
pub struct Endpoint(Arc<Settings>);

/// What [`super::parameters`] made of the URL.
pub(super) struct Settings {
    pub(super) side: Side,
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) tls: TlsSettings,
    pub(super) connect_timeout: Duration,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) application_name: Option<String>,
    /// Command-line options for the server process (`-c name=value …`).
    pub(super) options: Option<String>,
    pub(super) target_session: TargetSession,
}

/// A password. Neither `Debug` nor `Display`.
pub(super) struct Secret(pub(super) String);

/// One of the hosts, tried in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) place: Place,
    pub(super) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A name or address, and the address that `hostaddr` gives in place of a look-up.
    Network { name: String, address: Option<IpAddr> },
    /// The directory that holds `.s.PGSQL.<port>`.
    Socket(PathBuf),
}

impl Host {
    /// Whether bytes to this host stay on this machine.
    pub(super) fn is_local(&self) -> bool {
        match &self.place {
            Place::Socket(_) => true,
            Place::Network { address: Some(address), .. } => address.to_canonical().is_loopback(),
            Place::Network { name, address: None } => {
                name.eq_ignore_ascii_case("localhost")
                    || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
            }
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Socket(directory) => write!(formatter, "socket {}/.s.PGSQL.{}", directory.display(), self.port),
            Place::Network { name, .. } if name.contains(':') => write!(formatter, "host [{name}]:{}", self.port),
            Place::Network { name, .. } => write!(formatter, "host {name}:{}", self.port),
        }
    }
}

/// TCP keepalives: how a connection whose other end vanished is noticed while nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keepalive {
    pub(super) idle: Duration,
    pub(super) interval: Duration,
    pub(super) count: u32,
    /// How long sent bytes may stay unacknowledged.
    pub(super) user_timeout: Option<Duration>,
}

/// `target_session_attrs`: which of several hosts is the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetSession {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl Endpoint {
    /// Checks a connection URL and everything in it that can be checked without the network.
    ///
    /// The URL means what it means to libpq ("Connection URIs" in the manual), with these differences: nothing is read
    /// from the environment, password files, service files or the home directory, so user and host must be there; and a
    /// parameter that this client would have to ignore is refused by name.
    ///
    /// `require_tls` demands a verified server certificate for hosts that are not on this machine.
    ///
    /// # Errors
    /// [`Kind::Url`], naming the part or parameter, never quoting the URL.
    pub fn parse(side: Side, url: &str, require_tls: bool) -> Result<Endpoint> {
        let settings = url::split(url)
            .and_then(|parts| parameters::settings(side, parts))
            .and_then(|settings| parameters::check_verified(settings, require_tls))
            .map_err(|error| Error::new(Kind::Url, format!("{side} URL: {error}")))?;
        Ok(Endpoint(Arc::new(settings)))
    }

    /// Which of the job's servers this is.
    #[must_use]
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// The first host: a name, an address, or the directory of a Unix socket. `pg_dump` takes it as it is.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.0.hosts.first().map(|host| &host.place) {
            Some(Place::Network { name, .. }) => name,
            Some(Place::Socket(directory)) => directory.to_str().unwrap_or_default(),
            None => "",
        }
    }

    /// The first host's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.hosts.first().map_or(0, |host| host.port)
    }

    /// The database; the user's name if the URL has none.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.0.database
    }

    /// The role.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.0.user
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("side", &self.side())
            .field("hosts", &self.0.hosts)
            .field("database", &self.database())
            .field("user", &self.user())
            .finish_non_exhaustive()
    }
}

/// A path from the URL, as it is written.
pub(super) fn path(text: &str) -> PathBuf {
    Path::new(text).to_owned()
}

#[cfg(test)]
mod tests;
