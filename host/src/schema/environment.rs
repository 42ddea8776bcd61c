//! How `pg_dump` reaches the source: by environment variables, so that nothing secret stands in its arguments.

use crate::postgres::Endpoint;

/// The parameters of a connection URL that libpq also takes from the environment ("Environment Variables" in the manual's
/// chapter libpq). Keepalives have none; they matter little to a program that runs for seconds.
const VARIABLES: [(&str, &str); 12] = [
    ("hostaddr", "PGHOSTADDR"),
    ("password", "PGPASSWORD"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslsni", "PGSSLSNI"),
    ("gssencmode", "PGGSSENCMODE"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
];

/// Environment variables for a program of PostgreSQL. They may hold a password, so there is no `Debug`.
pub struct ToolEnvironment(Vec<(&'static str, String)>);

impl ToolEnvironment {
    /// Takes host, port, user and database from the endpoint, all else from the URL that the endpoint was parsed from.
    #[must_use]
    pub fn new(endpoint: &Endpoint, url: &str) -> ToolEnvironment {
        let mut variables = vec![
            ("PGHOST", endpoint.host().to_owned()),
            ("PGPORT", endpoint.port().to_string()),
            ("PGUSER", endpoint.user().to_owned()),
            ("PGDATABASE", endpoint.database().to_owned()),
            ("PGAPPNAME", "pgveil schema".to_owned()),
            // A password file or service file must not decide where we go.
            ("PGPASSFILE", "/dev/null".to_owned()),
        ];
        variables.extend(password(url).map(|password| ("PGPASSWORD", password)));
        // pg_dump writes literals in the manner of its session; ours reads them in the standard one.
        let mut options = "-c standard_conforming_strings=on".to_owned();
        for (name, value) in parameters(url) {
            if name == "options" {
                options = format!("{value} {options}");
            } else if let Some((_, variable)) = VARIABLES.iter().find(|(parameter, _)| *parameter == name) {
                variables.retain(|(other, _)| other != variable);
                variables.push((variable, value));
            }
        }
        variables.push(("PGOPTIONS", options));
        ToolEnvironment(variables)
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// The URL's credentials and what follows them, as libpq splits it: at the first `@` before any slash.
///
/// [`Endpoint::parse`] checked the URL before; here what does not fit is simply not there.
fn split(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['@', '/']).filter(|&end| rest[end..].starts_with('@'));
    end.map_or(("", rest), |end| (&rest[..end], &rest[end + 1..]))
}

fn password(url: &str) -> Option<String> {
    let (_, password) = split(url).0.split_once(':')?;
    Some(decode(password)).filter(|password| !password.is_empty())
}

fn parameters(url: &str) -> Vec<(String, String)> {
    let Some((_, query)) = split(url).1.split_once('?') else { return Vec::new() };
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

/// Undoes percent-encoding. A plus sign stays a plus sign.
fn decode(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut decoded = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.extend(byte);
        decoded.extend_from_slice(piece.as_bytes().get(2..).unwrap_or_default());
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_and_parameters_are_found_where_libpq_finds_them() {
        for (url, expected, count) in [
            ("postgresql://u:p%40%2Fss+%25@h:1/d?sslmode=disable", Some("p@/ss+%"), 1),
            ("postgres://u:a?b=c@h/d?x=1&y=%20", Some("a?b=c"), 2),
            ("postgresql://u@h/d", None, 0),
            ("postgresql://u:@h/d", None, 0),
            ("postgresql:///d?host=/tmp&user=u@x:y&password=z", None, 3),
        ] {
            assert_eq!(password(url).as_deref(), expected, "{url}");
            assert_eq!(parameters(url).len(), count, "{url}");
        }
    }
}
