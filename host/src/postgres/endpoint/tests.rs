//! What connection URLs mean, and what is wrong with the wrong ones.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

use super::*;
use crate::postgres::url::UrlError;

/// Everything of an endpoint that can be told, on one line.
fn describe(url: &str) -> String {
    let endpoint = match Endpoint::parse(Side::Source, url, true) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Url);
            return error.place().to_owned();
        }
    };
    let settings = endpoint.settings();
    let hosts: Vec<_> = settings.hosts.iter().map(Host::to_string).collect();
    let password = settings.password.as_ref().map_or("-", |secret| &secret.0);
    format!(
        "{} | {} | {} | {} | {}",
        hosts.join(", "),
        settings.user,
        password,
        settings.database,
        settings.tls.mode.name()
    )
}

#[test]
fn urls_mean_what_they_mean_to_libpq() {
    let cases = [
        ("postgresql://u@localhost", "host localhost:5432 | u | - | u | prefer"),
        ("postgres://u:p@127.0.0.1:6000/d", "host 127.0.0.1:6000 | u | p | d | prefer"),
        ("postgresql://u%40x:p%3a%2F%25@localhost/d%20b", "host localhost:5432 | u@x | p:/% | d b | prefer"),
        ("postgresql://u:a+b@localhost/d", "host localhost:5432 | u | a+b | d | prefer"),
        ("postgresql://u:p?q@localhost/d", "host localhost:5432 | u | p?q | d | prefer"),
        ("postgresql://u@[::1]:6000/d", "host [::1]:6000 | u | - | d | prefer"),
        ("postgresql:///d?host=/run/postgresql&user=u", "socket /run/postgresql/.s.PGSQL.5432 | u | - | d | prefer"),
        ("postgresql://u@%2Frun%2Fpostgresql:6000/d", "socket /run/postgresql/.s.PGSQL.6000 | u | - | d | prefer"),
        ("postgresql://localhost/d?user=u&password=p%26q&port=7", "host localhost:7 | u | p&q | d | prefer"),
        (
            "postgresql://u@a:1,b:2,[::3]/d?sslmode=verify-full",
            "host a:1, host b:2, host [::3]:5432 | u | - | d | verify-full",
        ),
        (
            "postgresql://u@a,b:/d?port=9&sslmode=verify-full&sslrootcert=system",
            "host a:9, host b:9 | u | - | d | verify-full",
        ),
        ("postgresql://u@a/d?sslrootcert=system", "host a:5432 | u | - | d | verify-full"),
        ("postgresql://u@a/d?sslmode=require&sslrootcert=/ca", "host a:5432 | u | - | d | require"),
        ("postgresql://u@a/d?sslmode=verify-ca&sslrootcert=/ca", "host a:5432 | u | - | d | verify-ca"),
        ("postgresql://u@db/d?hostaddr=127.0.0.1", "host db:5432 | u | - | d | prefer"),
        ("postgresql://u@localhost/d?ssl=true", "host localhost:5432 | u | - | d | require"),
        ("postgresql://u@localhost/d?", "host localhost:5432 | u | - | d | prefer"),
        (
            "postgresql://u@localhost/d?keepalives=1&keepalives_idle=5&keepalives_interval=0&keepalives_count=2\
             &tcp_user_timeout=0&connect_timeout=3&application_name=x&options=-c%20geqo%3Doff\
             &target_session_attrs=primary&channel_binding=prefer&gssencmode=disable&sslsni=0&sslnegotiation=postgres\
             &client_encoding=UTF8&sslcompression=0&fallback_application_name=y&ssl_min_protocol_version=TLSv1.2",
            "host localhost:5432 | u | - | d | prefer",
        ),
    ];
    for (url, meaning) in cases {
        assert_eq!(describe(url), meaning, "{url}");
    }
}

#[test]
fn each_wrong_url_has_its_reason() {
    let unverified = |mode| {
        format!(
            "sslmode={mode} does not check the server's certificate; a host that is not on this machine needs \
             sslmode=verify-full, or `require_tls: false` in the job file"
        )
    };
    let number = "a whole number from 0 to 2147483647";
    let cases = [
        ("mysql://u@h/d", "it must start with postgresql:// or postgres://".to_owned()),
        ("host=h user=u", "it must start with postgresql:// or postgres://".to_owned()),
        ("postgresql://localhost/d", "the user is missing".to_owned()),
        ("postgresql://u@/d", "the host is missing: name one, or a socket directory by ?host=/directory".to_owned()),
        (
            "postgresql://u@a,,b/d",
            "the host is missing: name one, or a socket directory by ?host=/directory".to_owned(),
        ),
        ("postgresql://u@localhost:x/d", UrlError::Port.to_string()),
        ("postgresql://u@localhost:0/d", UrlError::Port.to_string()),
        ("postgresql://u@localhost:65536/d", UrlError::Port.to_string()),
        // A slash in the password ends the credentials, so what stands before it is taken for host and port.
        ("postgresql://u:pass/word@localhost/d", UrlError::Port.to_string()),
        ("postgresql://u@[::1/d", UrlError::Bracket.to_string()),
        ("postgresql://u@[::1]x/d", UrlError::Bracket.to_string()),
        ("postgresql://u:%4@localhost/d", UrlError::PercentEncoding.to_string()),
        ("postgresql://u:%+1@localhost/d", UrlError::PercentEncoding.to_string()),
        ("postgresql://u:100%@localhost/d", UrlError::PercentEncoding.to_string()),
        ("postgresql://u:%00@localhost/d", UrlError::ZeroByte.to_string()),
        ("postgresql://u:%ff@localhost/d", UrlError::NotUtf8.to_string()),
        ("postgresql://u@localhost/d?sslmode", UrlError::ParameterWithoutValue.to_string()),
        ("postgresql://u@localhost/d?sslmdoe=require", "unknown parameter sslmdoe".to_owned()),
        ("postgresql://u@localhost/d?sslfoo=1", "unknown parameter sslfoo".to_owned()),
        ("postgresql://u@localhost/d?Host=x", "unknown parameter Host".to_owned()),
        ("postgresql://u@localhost/d?sslcrl=/x", "parameter sslcrl is not supported".to_owned()),
        ("postgresql://u@localhost/d?replication=database", "parameter replication is not supported".to_owned()),
        ("postgresql://u@localhost/d?service=x", "parameter service is not supported".to_owned()),
        (
            "postgresql://u@localhost/d?sslmode=on",
            "parameter sslmode: allowed is disable, allow, prefer, require, verify-ca or verify-full".to_owned(),
        ),
        (
            "postgresql://u@localhost/d?channel_binding=require",
            "parameter channel_binding: allowed is disable or prefer".to_owned(),
        ),
        (
            "postgresql://u@localhost/d?gssencmode=require",
            "parameter gssencmode: allowed is disable or prefer".to_owned(),
        ),
        ("postgresql://u@localhost/d?client_encoding=LATIN1", "parameter client_encoding: allowed is UTF8".to_owned()),
        (
            "postgresql://u@localhost/d?connect_timeout=0",
            "parameter connect_timeout: allowed is a number of seconds from 1 to 3600".to_owned(),
        ),
        ("postgresql://u@localhost/d?keepalives_count=-1", format!("parameter keepalives_count: allowed is {number}")),
        ("postgresql://u@localhost/d?keepalives=2", "parameter keepalives: allowed is 0 or 1".to_owned()),
        (
            "postgresql://u@localhost/d?keepalives_idle=40000",
            "parameter keepalives_idle: allowed is at most 32767 seconds".to_owned(),
        ),
        (
            "postgresql://u@a,b,localhost/d?port=1,2",
            "3 hosts and 2 ports: give one port, or one for each host".to_owned(),
        ),
        (
            "postgresql://u@a,b/d?hostaddr=127.0.0.1",
            "2 hosts and 1 host addresses: give one address for each host".to_owned(),
        ),
        ("postgresql://u@a/d?hostaddr=b", "parameter hostaddr: allowed is an IP address".to_owned()),
        (
            "postgresql://u@a/d?sslmode=require&sslrootcert=system",
            "parameter sslmode: allowed is verify-full, where sslrootcert is system".to_owned(),
        ),
        (
            "postgresql://u@a/d?sslmode=verify-ca",
            "parameter sslrootcert: allowed is a file, where sslmode is verify-ca".to_owned(),
        ),
        (
            "postgresql://u@localhost/d?sslnegotiation=direct",
            "parameter sslnegotiation: allowed is postgres, where sslmode is below require".to_owned(),
        ),
        (
            "postgresql://u@localhost/d?sslcert=/c",
            "parameter sslkey: allowed is a file, where sslcert is given".to_owned(),
        ),
        ("postgresql://u@db/d", unverified("prefer")),
        ("postgresql://u@db/d?sslmode=disable", unverified("disable")),
        ("postgresql://u@db/d?sslmode=require", unverified("require")),
        ("postgresql://u@localhost,db/d", unverified("prefer")),
        ("postgresql://u@10.0.0.1/d", unverified("prefer")),
        // Where the bytes go counts, not what the host is called.
        ("postgresql://u@localhost/d?hostaddr=10.0.0.1", unverified("prefer")),
        ("postgresql://u@127.0.0.1.example.com/d", unverified("prefer")),
    ];
    for (url, reason) in cases {
        assert_eq!(describe(url), format!("source URL: {reason}"), "{url}");
    }
}

#[test]
fn plain_text_to_another_host_must_be_asked_for() {
    assert!(Endpoint::parse(Side::Target, "postgresql://u@db/d?sslmode=disable", false).is_ok());
    for local in ["127.8.9.1", "[::1]", "[::ffff:127.0.0.1]", "LOCALHOST", "%2Ftmp"] {
        assert!(Endpoint::parse(Side::Target, &format!("postgresql://u@{local}/d"), true).is_ok(), "{local}");
    }
}

#[test]
fn the_password_is_in_no_text() {
    let urls = [
        "postgresql://u:canary@localhost/d",
        "postgresql://u:canary@localhost:bad/d",
        "postgresql://u:canary/@localhost:bad/d",
        "postgresql://canary%@localhost/d",
        "postgresql://u@localhost/d?password=canary&sslmode=canary",
        "canary",
    ];
    for url in urls {
        let text = match Endpoint::parse(Side::Source, url, true) {
            Ok(endpoint) => format!("{endpoint:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn accessors_give_what_pg_dump_needs() {
    let endpoint = Endpoint::parse(Side::Target, "postgresql://u:p@%2Ftmp:7,localhost/d", true).unwrap();
    assert_eq!((endpoint.host(), endpoint.port(), endpoint.user(), endpoint.database()), ("/tmp", 7, "u", "d"));
    assert_eq!(endpoint.side().to_string(), "target");
}
