//! The grammar of a connection URL, as libpq reads it: which bytes are user, hosts, database, parameters.
//!
//! `postgresql://[user[:password]@][host][:port][,…][/database][?name=value[&…]]`, every part percent-encoded. The crate
//! `url` cannot read it: several hosts and socket directories are outside of what web URLs allow. Source: the manual,
//! "Connection URIs" in chapter libpq.
//!
//! What a part means is decided in [`super::parameters`]. No error here quotes the URL, for a password with a forgotten
//! percent-encoding ends up in the strangest parts of it.

use thiserror::Error;

/// A URL taken apart. Holds the password: no `Debug`.
pub(super) struct Parts {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Each host with its port, as written; an empty host stands for the default one.
    pub(super) hosts: Vec<(String, Option<String>)>,
    pub(super) database: Option<String>,
    pub(super) parameters: Vec<(String, String)>,
}

/// Why a URL is not usable. Names parameters, never values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum UrlError {
    #[error("it must start with postgresql:// or postgres://")]
    Scheme,
    #[error("a percent sign must be followed by two hexadecimal digits; write a percent sign itself as %25")]
    PercentEncoding,
    #[error("%00 is not allowed")]
    ZeroByte,
    #[error("a percent-encoded part is not UTF-8")]
    NotUtf8,
    #[error("an IPv6 address has no closing bracket, or is followed by something other than a port")]
    Bracket,
    #[error("a parameter has no value: write name=value")]
    ParameterWithoutValue,
    #[error("the port is not a number from 1 to 65535; if the password holds one of @ / : write it percent-encoded")]
    Port,
    #[error("{0} hosts and {1} ports: give one port, or one for each host")]
    PortCount(usize, usize),
    #[error("{0} hosts and {1} host addresses: give one address for each host")]
    AddressCount(usize, usize),
    #[error("the host is missing: name one, or a socket directory by ?host=/directory")]
    NoHost,
    #[error("the user is missing")]
    NoUser,
    #[error("unknown parameter {0}")]
    UnknownParameter(String),
    #[error("parameter {0} is not supported")]
    Unsupported(&'static str),
    #[error("parameter {name}: allowed is {allowed}")]
    Value { name: &'static str, allowed: &'static str },
    #[error(
        "sslmode={0} does not check the server's certificate; a host that is not on this machine needs sslmode=verify-full, or `require_tls: false` in the job file"
    )]
    Unverified(&'static str),
}

type Result<T> = std::result::Result<T, UrlError>;

/// Takes a URL apart.
pub(super) fn split(url: &str) -> Result<Parts> {
    let rest = url.strip_prefix("postgresql://").or_else(|| url.strip_prefix("postgres://")).ok_or(UrlError::Scheme)?;

    // As libpq: credentials end at the first @ that comes before any slash.
    let credentials_end = rest.find(['@', '/']).filter(|&end| rest[end..].starts_with('@'));
    let (credentials, rest) = match credentials_end {
        Some(end) => (Some(&rest[..end]), &rest[end + 1..]),
        None => (None, rest),
    };
    let (user, password) =
        match credentials.map(|text| text.split_once(':').map_or((text, None), |(u, p)| (u, Some(p)))) {
            Some((user, password)) => (present(user)?, password.map(present).transpose()?.flatten()),
            None => (None, None),
        };

    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (hosts, database) = rest.split_once('/').map_or((rest, None), |(hosts, database)| (hosts, Some(database)));
    Ok(Parts {
        user,
        password,
        hosts: split_hosts(hosts)?,
        database: database.map(present).transpose()?.flatten(),
        parameters: query.map(split_parameters).transpose()?.unwrap_or_default(),
    })
}

/// `host[:port][,…]`; IPv6 addresses in brackets.
fn split_hosts(text: &str) -> Result<Vec<(String, Option<String>)>> {
    text.split(',')
        .map(|item| {
            let (host, port) = match item.strip_prefix('[') {
                Some(bracketed) => {
                    let (host, after) = bracketed.split_once(']').ok_or(UrlError::Bracket)?;
                    let port =
                        if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(UrlError::Bracket)?) };
                    (host, port)
                }
                None => item.split_once(':').map_or((item, None), |(host, port)| (host, Some(port))),
            };
            Ok((decode(host)?, port.map(present).transpose()?.flatten()))
        })
        .collect()
}

fn split_parameters(query: &str) -> Result<Vec<(String, String)>> {
    query
        .split('&')
        .filter(|item| !item.is_empty())
        .map(|item| {
            let (name, value) = item.split_once('=').ok_or(UrlError::ParameterWithoutValue)?;
            let (name, value) = (decode(name)?, decode(value)?);
            // JDBC's spelling, which libpq accepts in URLs as well.
            Ok(if name == "ssl" && value == "true" {
                ("sslmode".to_owned(), "require".to_owned())
            } else {
                (name, value)
            })
        })
        .collect()
}

/// The decoded part, or nothing if it is empty.
fn present(text: &str) -> Result<Option<String>> {
    decode(text).map(|text| Some(text).filter(|text| !text.is_empty()))
}

/// Undoes percent-encoding. A plus sign stays a plus sign.
fn decode(text: &str) -> Result<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    decoded.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(UrlError::PercentEncoding)?;
        decoded.push(byte);
        decoded.extend_from_slice(&piece.as_bytes()[2..]);
    }
    if decoded.contains(&0) {
        return Err(UrlError::ZeroByte);
    }
    String::from_utf8(decoded).map_err(|_| UrlError::NotUtf8)
}
