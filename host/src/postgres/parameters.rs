//! What the parameters of a connection URL mean, as libpq means them ("Parameter Key Words" in the manual).

use std::net::IpAddr;
use std::time::Duration;

use super::endpoint::{Host, Keepalive, Place, Secret, Settings, Side, TargetSession, path};
use super::tls::{Negotiation, Roots, TlsMode, TlsSettings};
use super::url::{Parts, UrlError};
use crate::limits::CONNECT_TIMEOUT;

type Result<T> = std::result::Result<T, UrlError>;

const DEFAULT_PORT: u16 = 5432;

/// Found after this many silent seconds, a dead peer costs about a minute of standstill. The kernel's two hours would let
/// a slot collect WAL for two hours.
const KEEPALIVE: Keepalive = Keepalive {
    idle: Duration::from_secs(30),
    interval: Duration::from_secs(10),
    count: 3,
    user_timeout: Some(Duration::from_secs(120)),
};

/// Parameters of libpq that this client does not have. Refused rather than ignored: each promises something.
const UNSUPPORTED: [&str; 22] = [
    "gsslib",
    "gssdelegation",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "passfile",
    "replication",
    "require_auth",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "ssl_max_protocol_version",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
];

/// Gives every part its meaning.
pub(super) fn settings(side: Side, parts: Parts) -> Result<Settings> {
    let Parts { user, password, hosts, database, parameters } = parts;
    let (names, ports): (Vec<_>, Vec<_>) = hosts.into_iter().unzip();
    let mut draft = Draft { hosts: names, ports, user, password, database, ..Draft::default() };
    for (name, value) in parameters {
        draft.set(&name, value)?;
    }
    draft.finish(side)
}

/// The rule of `require_tls`: a server that is not on this machine proves who it is.
pub(super) fn check_verified(settings: Settings, require_tls: bool) -> Result<Settings> {
    let verified = settings.tls.verifies();
    if require_tls && !verified && settings.hosts.iter().any(|host| !host.is_local()) {
        return Err(UrlError::Unverified(settings.tls.mode.name()));
    }
    Ok(settings)
}

/// The parameters as far as they were read.
#[derive(Default)]
struct Draft {
    hosts: Vec<String>,
    ports: Vec<Option<String>>,
    addresses: Vec<String>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    mode: Option<TlsMode>,
    roots: Option<Roots>,
    certificate: Option<String>,
    key: Option<String>,
    negotiation: Negotiation,
    no_sni: bool,
    connect_timeout: Option<Duration>,
    no_keepalives: bool,
    keepalive: Option<Keepalive>,
    application_name: Option<String>,
    options: Option<String>,
    target_session: Option<TargetSession>,
}

impl Draft {
    fn set(&mut self, name: &str, value: String) -> Result<()> {
        let present = |value: String| Some(value).filter(|value| !value.is_empty());
        match name {
            "host" => self.hosts = list(&value),
            "hostaddr" => self.addresses = list(&value),
            "port" => self.ports = list(&value).into_iter().map(present).collect(),
            "user" => self.user = present(value),
            "password" => self.password = present(value),
            "dbname" => self.database = present(value),
            "application_name" | "fallback_application_name" => self.application_name = present(value),
            "options" => self.options = present(value),
            "connect_timeout" => self.connect_timeout = Some(timeout(&value)?),
            "target_session_attrs" => self.target_session = Some(target_session(&value)?),
            "client_encoding" => one_of("client_encoding", &value, &["UTF8", "utf8", "UTF-8", "auto"], "UTF8")?,
            "channel_binding" => one_of("channel_binding", &value, &["disable", "prefer"], "disable or prefer")?,
            "gssencmode" => one_of("gssencmode", &value, &["disable", "prefer"], "disable or prefer")?,
            name if name.starts_with("ssl") => self.set_tls(name, value)?,
            name if name.starts_with("keepalives") || name == "tcp_user_timeout" => self.set_keepalive(name, &value)?,
            name => return Err(unknown(name)),
        }
        Ok(())
    }

    fn set_tls(&mut self, name: &str, value: String) -> Result<()> {
        match name {
            "sslmode" => {
                let allowed = "disable, allow, prefer, require, verify-ca or verify-full";
                self.mode = Some(TlsMode::from_name(&value).ok_or(UrlError::Value { name: "sslmode", allowed })?);
            }
            "sslrootcert" if value.is_empty() => self.roots = None,
            "sslrootcert" if value == "system" => self.roots = Some(Roots::System),
            "sslrootcert" => self.roots = Some(Roots::File(path(&value))),
            "sslcert" => self.certificate = Some(value).filter(|value| !value.is_empty()),
            "sslkey" => self.key = Some(value).filter(|value| !value.is_empty()),
            "sslsni" => self.no_sni = !switch("sslsni", &value)?,
            "sslcompression" => one_of("sslcompression", &value, &["0"], "0")?,
            "sslnegotiation" => {
                self.negotiation = match value.as_str() {
                    "postgres" => Negotiation::Postgres,
                    "direct" => Negotiation::Direct,
                    _ => return Err(UrlError::Value { name: "sslnegotiation", allowed: "postgres or direct" }),
                }
            }
            "ssl_min_protocol_version" => {
                one_of("ssl_min_protocol_version", &value, &["TLSv1", "TLSv1.1", "TLSv1.2"], "at most TLSv1.2")?;
            }
            name => return Err(unknown(name)),
        }
        Ok(())
    }

    fn set_keepalive(&mut self, name: &str, value: &str) -> Result<()> {
        let keepalive = self.keepalive.get_or_insert(KEEPALIVE);
        // Zero means the system's default in libpq; ours is better for a job that must notice.
        match name {
            "keepalives" => self.no_keepalives = !switch("keepalives", value)?,
            "keepalives_idle" => keepalive.idle = seconds("keepalives_idle", value)?.unwrap_or(KEEPALIVE.idle),
            "keepalives_interval" => {
                keepalive.interval = seconds("keepalives_interval", value)?.unwrap_or(KEEPALIVE.interval);
            }
            "keepalives_count" => keepalive.count = number("keepalives_count", value)?.max(1),
            "tcp_user_timeout" => {
                let milliseconds = number("tcp_user_timeout", value)?;
                keepalive.user_timeout =
                    Some(Duration::from_millis(milliseconds.into())).filter(|timeout| !timeout.is_zero());
            }
            name => return Err(unknown(name)),
        }
        Ok(())
    }

    fn finish(self, side: Side) -> Result<Settings> {
        let hosts = self.hosts()?;
        let tls = self.tls()?;
        let user = self.user.ok_or(UrlError::NoUser)?;
        Ok(Settings {
            side,
            hosts,
            database: self.database.unwrap_or_else(|| user.clone()),
            user,
            password: self.password.map(Secret),
            tls,
            connect_timeout: self.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            keepalive: (!self.no_keepalives).then(|| self.keepalive.unwrap_or(KEEPALIVE)),
            application_name: self.application_name,
            options: self.options,
            target_session: self.target_session.unwrap_or(TargetSession::Any),
        })
    }

    /// Pairs hosts, ports and addresses: one port may serve all hosts.
    fn hosts(&self) -> Result<Vec<Host>> {
        let named = self.hosts.iter().any(|host| !host.is_empty());
        let count = if named { self.hosts.len() } else { self.addresses.len() };
        if count == 0 {
            return Err(UrlError::NoHost);
        }
        if !self.addresses.is_empty() && self.addresses.len() != count {
            return Err(UrlError::AddressCount(count, self.addresses.len()));
        }
        if self.ports.len() > 1 && self.ports.len() != count {
            return Err(UrlError::PortCount(count, self.ports.len()));
        }
        let ports = self.ports.iter().map(Option::as_deref).map(port).collect::<Result<Vec<_>>>()?;
        (0..count)
            .map(|position| {
                let shared = ports.first().copied().unwrap_or(DEFAULT_PORT);
                let port = ports.get(position).copied().unwrap_or(shared);
                let name = self.hosts.get(position).map(String::as_str).unwrap_or_default();
                let address = self.addresses.get(position).map(String::as_str).unwrap_or_default();
                place(name, address).map(|place| Host { place, port })
            })
            .collect()
    }

    fn tls(&self) -> Result<TlsSettings> {
        let system = matches!(self.roots, Some(Roots::System));
        let default = if system { TlsMode::VerifyFull } else { TlsMode::Prefer };
        let mode = self.mode.unwrap_or(default);
        if system && mode != TlsMode::VerifyFull {
            // Anybody can get a certificate from a public authority; only the name in it tells servers apart.
            return Err(UrlError::Value { name: "sslmode", allowed: "verify-full, where sslrootcert is system" });
        }
        if mode == TlsMode::VerifyCa && self.roots.is_none() {
            return Err(UrlError::Value { name: "sslrootcert", allowed: "a file, where sslmode is verify-ca" });
        }
        let direct = matches!(self.negotiation, Negotiation::Direct);
        if direct && matches!(mode, TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer) {
            return Err(UrlError::Value {
                name: "sslnegotiation",
                allowed: "postgres, where sslmode is below require",
            });
        }
        let client = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((path(certificate), path(key))),
            (None, None) => None,
            (Some(_), None) => {
                return Err(UrlError::Value { name: "sslkey", allowed: "a file, where sslcert is given" });
            }
            (None, Some(_)) => {
                return Err(UrlError::Value { name: "sslcert", allowed: "a file, where sslkey is given" });
            }
        };
        Ok(TlsSettings {
            mode,
            roots: self.roots.clone(),
            client,
            negotiation: self.negotiation,
            server_name: !self.no_sni,
        })
    }
}

fn place(name: &str, address: &str) -> Result<Place> {
    let bad_address = UrlError::Value { name: "hostaddr", allowed: "an IP address" };
    let address = if address.is_empty() { None } else { Some(address.parse::<IpAddr>().map_err(|_| bad_address)?) };
    match (name, address) {
        ("", None) => Err(UrlError::NoHost),
        ("", Some(address)) => Ok(Place::Network { name: address.to_string(), address: Some(address) }),
        (name, None) if name.starts_with('/') => Ok(Place::Socket(path(name))),
        (name, _) if name.starts_with('@') => {
            Err(UrlError::Value { name: "host", allowed: "a name, an address or a directory" })
        }
        (name, address) => Ok(Place::Network { name: name.to_owned(), address }),
    }
}

/// An empty item keeps the default port.
fn port(text: Option<&str>) -> Result<u16> {
    let Some(text) = text else { return Ok(DEFAULT_PORT) };
    text.parse().ok().filter(|&port| port > 0).ok_or(UrlError::Port)
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}

/// A known name that cannot be had, or one that nobody knows.
fn unknown(name: &str) -> UrlError {
    match UNSUPPORTED.iter().find(|&&known| known == name) {
        Some(known) => UrlError::Unsupported(known),
        None => {
            UrlError::UnknownParameter(name.chars().take(63).map(|c| if c.is_control() { '?' } else { c }).collect())
        }
    }
}

fn one_of(name: &'static str, value: &str, accepted: &[&str], allowed: &'static str) -> Result<()> {
    if accepted.contains(&value) { Ok(()) } else { Err(UrlError::Value { name, allowed }) }
}

fn switch(name: &'static str, value: &str) -> Result<bool> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(UrlError::Value { name, allowed: "0 or 1" }),
    }
}

fn number(name: &'static str, value: &str) -> Result<u32> {
    let allowed = "a whole number from 0 to 2147483647";
    value.parse().ok().filter(|&number| number <= i32::MAX as u32).ok_or(UrlError::Value { name, allowed })
}

/// Whole seconds within what a socket option takes; zero is nothing.
fn seconds(name: &'static str, value: &str) -> Result<Option<Duration>> {
    let seconds = number(name, value)?;
    if seconds > 32767 {
        return Err(UrlError::Value { name, allowed: "at most 32767 seconds" });
    }
    Ok(Some(Duration::from_secs(seconds.into())).filter(|duration| !duration.is_zero()))
}

/// libpq waits for ever on zero; a job never does.
fn timeout(value: &str) -> Result<Duration> {
    let allowed = "a number of seconds from 1 to 3600";
    let seconds = number("connect_timeout", value)?;
    if !(1..=3600).contains(&seconds) {
        return Err(UrlError::Value { name: "connect_timeout", allowed });
    }
    Ok(Duration::from_secs(seconds.into()))
}

fn target_session(value: &str) -> Result<TargetSession> {
    Ok(match value {
        "any" => TargetSession::Any,
        "read-write" => TargetSession::ReadWrite,
        "read-only" => TargetSession::ReadOnly,
        "primary" => TargetSession::Primary,
        "standby" => TargetSession::Standby,
        "prefer-standby" => TargetSession::PreferStandby,
        _ => {
            let allowed = "any, read-write, read-only, primary, standby or prefer-standby";
            return Err(UrlError::Value { name: "target_session_attrs", allowed });
        }
    })
}
