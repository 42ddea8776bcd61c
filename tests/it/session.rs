//! The connection type against real servers: every way in, every way to move rows, and what errors tell.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use pgveil::error::{Error, Kind};
use pgveil::postgres::{Endpoint, Reply, Session, Side, TlsState, TransactionStatus};
use pgveil_tests::{Cluster, Database, Major, Result, on_every_version};

/// The harness's own client blocks, so a test makes its databases first and then enters a runtime.
fn run<T>(test: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(test)
}

fn endpoint(url: &str) -> Result<Endpoint> {
    Ok(Endpoint::parse(Side::Target, url, true)?)
}

async fn connect(url: &str) -> Result<Session> {
    Ok(Session::connect(&endpoint(url)?, "test").await?)
}

/// All that a person may ever see of an error.
fn all_words(error: &Error) -> String {
    let mut words = format!("{error} / {error:?}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push_str(&format!(" / {inner} / {inner:?}"));
        cause = inner.source();
    }
    words
}

fn ready(reply: &Reply) -> bool {
    matches!(reply, Reply::Ready(_))
}

on_every_version! {
    fn a_session_pins_what_text_output_depends_on(major) {
        let database = Database::on_source(major, "session_pins")?;
        // The role's own settings are contrary, and stronger than the server's.
        database.execute(&format!("ALTER DATABASE \"{}\" SET standard_conforming_strings = off", database.name()))?;
        database.execute(&format!("ALTER DATABASE \"{}\" SET search_path = public", database.name()))?;
        database.execute(&format!("ALTER DATABASE \"{}\" SET statement_timeout = '1ms'", database.name()))?;
        run(async {
            let url = format!("{}?options=-c%20TimeZone%3DAsia%2FTokyo%20-c%20geqo%3Doff", database.url());
            let endpoint = endpoint(&url)?;
            for mut session in [
                Session::connect(&endpoint, "pins").await?,
                Session::connect_replication(&endpoint, "pins").await?,
            ] {
                let sql = "SELECT pg_catalog.concat_ws(' ', '1999-12-31'::date, '1.5 day'::interval, \
                           '2000-01-01 00:00Z'::timestamptz, 0.1::float8 + 0.2::float8, '\\x00ff'::bytea, 5::money) AS text, \
                           pg_catalog.current_setting('search_path') AS path, \
                           pg_catalog.current_setting('application_name') AS name, \
                           pg_catalog.current_setting('statement_timeout') AS timeout, \
                           pg_catalog.current_setting('geqo') AS geqo";
                let rows = session.batch(sql).await?;
                let row = rows.first().ok_or("no row")?;
                let text = r"1999-12-31 1 day 12:00:00 2000-01-01 00:00:00+00 0.30000000000000004 \x00ff $5.00";
                assert_eq!(row.text("text")?, text);
                assert!(matches!(row.text("path")?, "" | "\"\""), "search_path");
                assert_eq!(row.text("name")?, "pgveil pins");
                assert_eq!((row.text("timeout")?, row.text("geqo")?), ("0", "off"));
                assert_eq!(session.parameter("client_encoding"), Some("UTF8"));
                assert_eq!(session.server_version() / 10_000, major.number());
                session.close().await;
            }
            Ok(())
        })?;
    }

    fn queries_give_rows_and_counts(major) {
        let database = Database::on_target(major, "session_queries")?;
        run(async {
            let mut session = connect(&database.url()).await?;
            let rows = session.query("SELECT $1::int + 1 AS n, $2::text AS t, $3::text AS nothing", &[Some("41"), Some("ä"), None]).await?;
            let row = rows.first().ok_or("no row")?;
            assert_eq!((row.parse::<i64>("n")?, row.text("t")?, row.optional("nothing")?), (42, "ä", None));
            assert_eq!((row.get(0), row.get(2), row.get(3), row.len()), (Some("42"), None, None, 3));
            for error in [row.text("nothing").err(), row.parse::<u8>("t").map(drop).err(), row.optional("x").err()] {
                let error = error.ok_or("no error")?;
                assert!(!all_words(&error).contains('ä'), "{error}");
            }
            session.batch("CREATE TABLE public.t (a int); BEGIN; INSERT INTO public.t VALUES (1), (2)").await?;
            assert_eq!(session.transaction(), TransactionStatus::InTransaction);
            assert_eq!(session.execute("UPDATE public.t SET a = a + $1", &[Some("1")]).await?, 2);
            let rows = session.batch("SELECT 0 AS a; SELECT a FROM public.t ORDER BY a; COMMIT").await?;
            assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<_>>(), [Some("2"), Some("3")]);
            assert_eq!(session.transaction(), TransactionStatus::Idle);
            assert!(session.batch("").await?.is_empty());
            // What the protocol cannot carry is refused before anything is sent.
            assert_eq!(session.batch("SELECT \0").await.err().ok_or("a zero byte")?.kind(), Kind::Internal);
            assert_eq!(session.query("SELECT 1", &[]).await?.len(), 1);
            // A row larger than any buffer, twice, with small ones in between.
            for length in [3_000_000, 10, 2_000_000] {
                let rows = session.query("SELECT pg_catalog.repeat('x', $1::int) AS x", &[Some(&length.to_string())]).await?;
                assert_eq!(rows.first().ok_or("no row")?.text("x")?.len(), length);
            }
            Ok(())
        })?;
    }

    fn replication_streams_and_ends(major) {
        let database = Database::on_source(major, "session_replication")?;
        database.execute("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")?;
        let slot = format!("slot_{}", database.name());
        database.value(&format!("SELECT lsn FROM pg_create_logical_replication_slot('{slot}', 'pgoutput')"))?;
        database.execute("INSERT INTO t SELECT generate_series(1, 100)")?;
        let start = format!("START_REPLICATION SLOT \"{slot}\" LOGICAL 0/0 (proto_version '1', publication_names 'p')");
        run(async {
            let source = Endpoint::parse(Side::Source, &database.url(), true)?;
            let mut stream = Session::connect_replication(&source, "stream").await?.copy_both(&start).await?;
            let mut inserts = 0;
            while inserts < 100 {
                let payload = stream.next().await?;
                // XLogData: tag, three times eight bytes, then the message.
                inserts += i32::from(payload.first() == Some(&b'w') && payload.get(25) == Some(&b'I'));
                stream.send_status(&[b"r".as_slice(), &[0; 33]].concat()).await?;
            }
            let busy = Session::connect_replication(&source, "stream").await?.copy_both(&start).await;
            assert_eq!(busy.err().ok_or("two walsenders on one slot")?.kind(), Kind::SlotActive);
            stream.end().await?;
            // The slot is free at once.
            Session::connect_replication(&source, "stream").await?.copy_both(&start).await?.end().await?;
            let missing = start.replace(&slot, "no_such_slot");
            let error = Session::connect_replication(&source, "stream").await?.copy_both(&missing).await;
            assert_eq!(error.err().ok_or("a slot that does not exist")?.kind(), Kind::SlotMissing);
            Ok(())
        })?;
    }
}

#[test]
fn rows_are_copied_out_and_in() -> Result<()> {
    let database = Database::on_target(Major::V15, "session_copy")?;
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")?;
    run(async {
        let (mut from, mut into) = (connect(&database.url()).await?, connect(&database.url()).await?);
        let sql =
            "COPY (SELECT g, pg_catalog.repeat('x', g % 1000) FROM pg_catalog.generate_series(1, 20000) g) TO STDOUT";
        let mut copy = from.copy_out(sql).await?;
        let mut target = into.copy_in("COPY public.t FROM STDIN").await?;
        let mut chunk = Vec::new();
        let (mut rows, mut calls) = (0, 0);
        while copy.next_chunk(&mut chunk, 64 * 1024).await? {
            calls += 1;
            assert!(chunk.iter().map(|row| row.len()).sum::<usize>() < 64 * 1024 + 1100, "a chunk above its bound");
            for row in chunk.drain(..) {
                assert!(row.ends_with(b"\n"), "a piece that is no row");
                rows += 1;
                target.send(&row).await?;
            }
        }
        assert_eq!((rows, copy.rows(), copy.next().await?.is_none()), (20_000, 20_000, true));
        assert!(calls < 5000, "{calls} calls for 20000 rows");
        assert_eq!(target.finish().await?, 20_000);
        assert_eq!(
            into.query("SELECT count(*), sum(length(b)) FROM public.t", &[]).await?.first().ok_or("no row")?.get(1),
            Some("9990000")
        );

        // Given up, the rows are gone and the session goes on.
        let mut target = into.copy_in("COPY public.t FROM STDIN").await?;
        target.send(b"0\tx\n").await?;
        target.abort().await?;
        assert_eq!(
            into.query("SELECT count(*) FROM public.t", &[]).await?.first().ok_or("no row")?.get(0),
            Some("20000")
        );

        // An error half way through either direction leaves the session usable.
        let mut copy =
            from.copy_out("COPY (SELECT 1 / (5 - g) FROM pg_catalog.generate_series(1, 9) g) TO STDOUT").await?;
        let error = loop {
            match copy.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return Err("no error".into()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.place(), "target: SQLSTATE 22012");
        from.batch("SELECT 1").await?;

        // Dropped half way, it is not.
        let _dropped = into.copy_in("COPY public.t FROM STDIN").await?;
        assert_eq!(
            into.batch("SELECT 1").await.err().ok_or("a session in the middle of COPY")?.kind(),
            Kind::ConnectionLost
        );
        assert_eq!(from.copy_out("SELECT 1").await.err().ok_or("no COPY")?.kind(), Kind::Internal);
        Ok(())
    })
}

#[test]
fn no_error_tells_a_value() -> Result<()> {
    let database = Database::on_target(Major::V15, "session_redaction")?;
    database.execute(
        "CREATE DOMAIN short AS text CHECK (length(value) < 3);
         CREATE TABLE t (a text CONSTRAINT t_key PRIMARY KEY, b int NOT NULL CHECK (b > 0), c short, d varchar(2));
         INSERT INTO t VALUES ('canary', 1);
         CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$
           BEGIN RAISE EXCEPTION 'canary' USING DETAIL = 'canary', HINT = 'canary'; END $$",
    )?;
    run(async {
        let mut session = connect(&database.url()).await?;
        let refused = ": the target refused a statement";
        let cases = [
            ("INSERT INTO public.t VALUES ('canary', 1)", "SQLSTATE 23505, table public.t, constraint t_key"),
            ("INSERT INTO public.t VALUES ('canary2', NULL)", "SQLSTATE 23502, table public.t, column b"),
            ("INSERT INTO public.t VALUES ('canary2', -1)", "SQLSTATE 23514, table public.t, constraint t_b_check"),
            ("INSERT INTO public.t VALUES ('a', 1, 'canary')", "SQLSTATE 23514, type short, constraint short_check"),
            ("INSERT INTO public.t VALUES ('a', 1, 'a', 'canary')", "SQLSTATE 22001"),
            ("SELECT 'canary'::int", "SQLSTATE 22P02"),
            ("SELECT canary", "SQLSTATE 42703"),
            ("SELECT public.f()", "SQLSTATE P0001"),
        ];
        for (sql, place) in cases {
            for error in [session.batch(sql).await.err(), session.query(sql, &[]).await.err()] {
                let error = error.ok_or("no error")?;
                // Where a table is given, the schema of a domain is not shown: the place stays short.
                assert_eq!(error.to_string(), format!("target: {place}{refused}"), "{sql}");
                assert!(!all_words(&error).contains("canary"), "{}", all_words(&error));
            }
        }
        let mut copy = session.copy_in("COPY public.t FROM STDIN").await?;
        copy.send(b"new\t1\t\\N\t\\N\ncanary\t1\t\\N\t\\N\n").await?;
        let error = copy.finish().await.err().ok_or("no error")?;
        assert_eq!(error.place(), "target: SQLSTATE 23505, table public.t, constraint t_key");
        assert!(!all_words(&error).contains("canary"));
        Ok(())
    })
}

#[test]
fn a_pipeline_skips_to_the_next_sync_after_an_error() -> Result<()> {
    let database = Database::on_target(Major::V15, "session_pipeline")?;
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")?;
    run(async {
        let (mut writer, mut reader) = connect(&database.url()).await?.into_pipeline();
        writer.parse("insert", "INSERT INTO public.t VALUES ($1, $2) RETURNING a")?;
        for (key, fails) in [("1", false), ("1", true), ("2", false)] {
            writer.bind("insert", [Some(key.as_bytes()), None])?;
            writer.execute()?;
            writer.bind("insert", [Some(if fails { &b"90"[..] } else { key.as_bytes() }), Some(&b"x"[..])])?;
            writer.sync()?;
        }
        writer.close_statement("insert")?;
        writer.parse("copy", "COPY public.t FROM STDIN")?;
        writer.bind("copy", [])?;
        writer.execute()?;
        writer.flush().await?;
        writer.start_copy_data()?;
        writer.put(b"7\tseven\n");
        writer.copy_buffer().extend_from_slice(b"8\t\\N\n");
        writer.end_copy_data()?;
        writer.copy_done()?;
        writer.sync()?;
        writer.query("SELECT b FROM public.t WHERE a = 7")?;
        assert!(writer.pending_bytes() > 0);
        writer.flush().await?;
        assert_eq!(writer.pending_bytes(), 0);

        let mut seen = Vec::new();
        while seen.iter().filter(|word: &&String| word.starts_with("ready")).count() < 5 {
            seen.push(match reader.next().await? {
                Reply::ParseComplete => "parsed".to_owned(),
                Reply::BindComplete => "bound".to_owned(),
                Reply::CloseComplete => "closed".to_owned(),
                Reply::Command { rows } => format!("{rows} rows"),
                Reply::Row(value) => {
                    format!("row {}", value.map_or("NULL".into(), |v| String::from_utf8_lossy(&v).into_owned()))
                }
                Reply::CopyInReady => "copy".to_owned(),
                Reply::Ready(status) => format!("ready {status:?}"),
                Reply::Error(error) => format!("error {}", error.sqlstate),
            });
        }
        let expected = "parsed, bound, row 1, 1 rows, bound, ready Idle, bound, error 23505, ready Idle, bound, row 2, \
                        1 rows, bound, ready Idle, closed, parsed, bound, copy, 2 rows, ready Idle, row seven, 1 rows, ready Idle";
        assert_eq!(seen.join(", "), expected);

        // A parameter that cannot be written takes its whole message back; Flush brings answers without ending anything.
        writer.parse("", "SELECT $1::text")?;
        let refused = writer.bind_with("", [()], |(), _| Err(Error::new(Kind::SourceData, "here")));
        assert_eq!(refused.err().ok_or("no error")?.kind(), Kind::SourceData);
        writer.bind("", [Some(&b"7"[..])])?;
        writer.execute()?;
        writer.flush_request()?;
        writer.flush().await?;
        assert!(matches!(reader.next().await?, Reply::ParseComplete));
        assert!(matches!(reader.next().await?, Reply::BindComplete));
        assert!(matches!(reader.next().await?, Reply::Row(Some(value)) if value == b"7"[..]));
        assert!(matches!(reader.next().await?, Reply::Command { rows: 1 }));

        // Writing far ahead of the reader, from another task.
        let ahead = tokio::spawn(async move {
            for number in 0..20_000 {
                writer.parse("", "SELECT $1::text")?;
                writer.bind("", [Some(number.to_string().as_bytes())])?;
                writer.execute()?;
                if writer.pending_bytes() > 64 * 1024 {
                    writer.flush().await?;
                }
            }
            writer.sync()?;
            writer.flush().await?;
            writer.close().await
        });
        let mut next = 0;
        loop {
            match reader.next().await? {
                Reply::Row(value) => {
                    assert!(value.is_some_and(|value| value == next.to_string().as_bytes()), "out of order");
                    next += 1;
                }
                reply if ready(&reply) => break,
                Reply::Error(error) => return Err(format!("{error:?}").into()),
                _ => {}
            }
        }
        assert_eq!(next, 20_000);
        ahead.await??;
        let end = reader.next().await.err().ok_or("the server stayed")?;
        assert_eq!(end.kind(), Kind::ConnectionLost);
        Ok(())
    })
}

#[test]
fn a_running_query_is_cancelled_and_an_ended_session_is_told() -> Result<()> {
    let database = Database::on_target(Major::V15, "session_cancel")?;
    run(async {
        let (mut session, mut other) = (connect(&database.url()).await?, connect(&database.url()).await?);
        let cancel = session.cancel();
        let waiting = tokio::spawn(async move {
            let error = session.query("SELECT pg_catalog.pg_sleep(60)", &[]).await.err();
            (session, error)
        });
        let pid = |session: &Session| session.backend_pid().to_string();
        let running =
            "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        while other.query(running, &[]).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.send().await?;
        let (mut session, error) = waiting.await?;
        assert_eq!(error.ok_or("not cancelled")?.place(), "target: SQLSTATE 57014");
        session.batch("SELECT 1").await?;

        other.query("SELECT pg_catalog.pg_terminate_backend($1::int, 5000)", &[Some(&pid(&session))]).await?;
        let error = session.batch("SELECT 1").await.err().ok_or("the session lives")?;
        assert!(matches!(error.kind(), Kind::ServerRestarting | Kind::ConnectionLost), "{error}");
        assert!(!session.is_usable());
        Ok(())
    })
}

/// Roles by method of authentication, all with the same password.
const ROLES: &str = "CREATE ROLE plain LOGIN SUPERUSER PASSWORD 'canärie';
    SET password_encryption = 'md5'; CREATE ROLE digest LOGIN PASSWORD 'canärie';
    SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'canärie';
    CREATE ROLE certified LOGIN; CREATE ROLE only_tls LOGIN; CREATE ROLE only_clear LOGIN; CREATE ROLE nobody LOGIN";

const ACCESS: &str = "local all plain password\nhost all plain 127.0.0.1/32 password\nhost all digest 127.0.0.1/32 md5\n\
    host all scram 127.0.0.1/32 scram-sha-256\nhostssl all certified 127.0.0.1/32 cert\n\
    hostssl all only_tls 127.0.0.1/32 trust\nhostnossl all only_tls 127.0.0.1/32 reject\n\
    hostnossl all only_clear 127.0.0.1/32 trust\nhostssl all only_clear 127.0.0.1/32 reject\n\
    host all nobody 127.0.0.1/32 reject";

/// One word for how a connection went.
async fn how(url: &str) -> Result<String> {
    let mut session = match Session::connect(&endpoint(url)?, "test").await {
        Ok(session) => session,
        Err(error) => {
            assert!(!all_words(&error).contains("canärie"), "{}", all_words(&error));
            return Ok(error.kind().name().to_owned());
        }
    };
    let sql = "SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()";
    let encrypted = session.batch(sql).await?.first().ok_or("no row")?.boolean("ssl")?;
    let state = session.tls();
    assert_eq!(encrypted, state != TlsState::None, "the server knows better");
    Ok(match state {
        TlsState::None => "clear".to_owned(),
        TlsState::Encrypted(version) => format!("encrypted {version:?}"),
        TlsState::Verified(version) => format!("verified {version:?}"),
    })
}

#[test]
fn every_way_in_and_every_door_that_stays_shut() -> Result<()> {
    let cluster = Cluster::of(Major::V15).tls().setting("ssl_ca_file", "../tls/ca.crt").access(ACCESS).start()?;
    let server = cluster.server();
    server.connect("postgres")?.batch_execute(ROLES)?;
    let authority = cluster.authority().ok_or("no authority")?;
    let (certificate, key) = authority.client("certified")?;
    let root = authority.root();
    let stranger = unrelated_authority(&server.home)?;
    let (other_root, (strange_certificate, strange_key)) = (stranger.root(), stranger.client("certified")?);
    let password = "can%C3%A4rie";
    let [root, other, certificate, key] =
        [&root, &other_root, &certificate, &key].map(|path| path.display().to_string());
    let strange = format!("sslcert={}&sslkey={}", strange_certificate.display(), strange_key.display());
    let (port, home) = (server.port, server.home.display().to_string());
    let at = |user: &str, host: &str, query: &str| format!("postgresql://{user}@{host}:{port}/postgres?{query}");
    let (good, bad) = (|role: &str| format!("{role}:{password}"), |role: &str| format!("{role}:wrong"));
    let full = format!("sslmode=verify-full&sslrootcert={root}");
    let cases = [
        // Methods.
        (at(&good("plain"), "127.0.0.1", "sslmode=disable"), "clear"),
        (at(&bad("plain"), "127.0.0.1", "sslmode=disable"), "Authentication"),
        (at(&good("digest"), "127.0.0.1", "sslmode=disable"), "clear"),
        (at(&bad("digest"), "127.0.0.1", ""), "Authentication"),
        (at(&good("scram"), "127.0.0.1", "sslmode=disable"), "clear"),
        (at(&good("scram"), "127.0.0.1", ""), "encrypted V1_3"),
        (at(&bad("scram"), "127.0.0.1", ""), "Authentication"),
        (at("scram", "127.0.0.1", ""), "Authentication"),
        (at("nobody", "127.0.0.1", ""), "Authentication"),
        (at("no_such_role", "127.0.0.1", ""), "Authentication"),
        (format!("postgresql:///postgres?host={home}&port={port}&user=plain&password={password}"), "clear"),
        (format!("postgresql:///postgres?host={home}&port={port}&user=scram&sslmode=require"), "clear"),
        // sslmode.
        (at("postgres", "localhost", "sslmode=disable"), "clear"),
        (at("postgres", "127.0.0.1", "sslmode=allow"), "clear"),
        (at("postgres", "127.0.0.1", "sslmode=require"), "encrypted V1_3"),
        (at("postgres", "127.0.0.1", &format!("sslmode=require&sslrootcert={root}")), "verified V1_3"),
        (at("postgres", "127.0.0.1", &format!("sslmode=require&sslrootcert={other}")), "Tls"),
        (at("postgres", "127.0.0.1", &full), "verified V1_3"),
        (at("postgres", "no-such-name", &format!("{full}&hostaddr=127.0.0.1")), "Tls"),
        (
            at("postgres", "no-such-name", &format!("sslmode=verify-ca&sslrootcert={root}&hostaddr=127.0.0.1")),
            "verified V1_3",
        ),
        (at("postgres", "127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={other}")), "Tls"),
        (at("postgres", "127.0.0.1", "sslmode=verify-full"), "Tls"),
        (at("postgres", "127.0.0.1", "sslmode=verify-full&sslrootcert=/no/such/file"), "Tls"),
        (at("postgres", "127.0.0.1", &format!("sslmode=verify-full&sslrootcert={key}")), "Tls"),
        // The other way round, where pg_hba.conf has a line for one kind of connection only.
        (at("only_tls", "127.0.0.1", "sslmode=allow"), "encrypted V1_3"),
        (at("only_tls", "127.0.0.1", "sslmode=disable"), "Authentication"),
        (at("only_clear", "127.0.0.1", "sslmode=prefer"), "clear"),
        (at("only_clear", "127.0.0.1", "sslmode=require"), "Authentication"),
        // A client's certificate.
        (at("certified", "127.0.0.1", &format!("{full}&sslcert={certificate}&sslkey={key}")), "verified V1_3"),
        (at("certified", "127.0.0.1", &full), "Authentication"),
        (at("certified", "127.0.0.1", &format!("{full}&{strange}")), "Tls"),
        // Several hosts, and what they must be.
        (format!("postgresql://postgres@127.0.0.1:1,127.0.0.1:{port}/postgres?sslmode=disable"), "clear"),
        (at("postgres", "127.0.0.1", "target_session_attrs=primary&sslmode=disable"), "clear"),
        (at("postgres", "127.0.0.1", "target_session_attrs=prefer-standby&sslmode=disable"), "clear"),
        (at("postgres", "127.0.0.1", "target_session_attrs=standby&sslmode=disable"), "ConnectionLost"),
        ("postgresql://postgres@127.0.0.1:1/postgres".to_owned(), "ConnectionLost"),
        (format!("postgresql://postgres@127.0.0.1:{port}/no_such_database"), "TargetRefused"),
    ];
    run(async {
        for (url, outcome) in cases {
            assert_eq!(how(&url).await?, outcome, "{url}");
        }
        // Cancelling goes over TLS where the session does.
        let url = at("postgres", "127.0.0.1", &full);
        Session::connect(&endpoint(&url)?, "test").await?.cancel().send().await?;
        Ok(())
    })?;
    // A wrong password is tried once, though `prefer` has a second way to connect.
    let log = server.log()?;
    let failures = log.matches("password authentication failed for user \"scram\"").count();
    assert_eq!(failures, 1, "{log}");
    Ok(())
}

/// An authority that nobody here knows.
fn unrelated_authority(home: &Path) -> Result<pgveil_tests::tls::Authority> {
    let folder = home.join("unrelated");
    std::fs::create_dir_all(&folder)?;
    pgveil_tests::tls::Authority::create(&folder)
}

#[test]
fn a_certificate_that_is_its_own_authority_is_good_where_it_is_named() -> Result<()> {
    let mut cluster = Cluster::of(Major::V15).tls().start()?;
    // The manual's recipe: the server shows the very certificate that stands in the root file, and that one is an authority's.
    let authority = cluster.authority().ok_or("no authority")?;
    let folder = authority.root().parent().ok_or("no folder")?.to_owned();
    let status = std::process::Command::new("openssl")
        .args(["req", "-new", "-x509", "-days", "2", "-nodes", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .arg("-out")
        .arg(folder.join("self.crt"))
        .arg("-keyout")
        .arg(folder.join("self.key"))
        .output()?
        .status;
    assert!(status.success());
    let own = folder.join("self.crt");
    // Overwritten in place, so that owner and rights stay.
    for (from, to) in
        [("self.crt", cluster_file(&cluster, "ssl_cert_file")?), ("self.key", cluster_file(&cluster, "ssl_key_file")?)]
    {
        std::fs::write(to, std::fs::read(folder.join(from))?)?;
    }
    cluster.restart(pgveil_tests::Stop::Fast)?;
    let port = cluster.server().port;
    let own = own.display();
    let cases = [
        (
            format!("postgresql://postgres@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={own}"),
            "verified V1_3",
        ),
        (format!("postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={own}"), "Tls"),
        (
            format!("postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=verify-ca&sslrootcert={own}"),
            "verified V1_3",
        ),
    ];
    run(async {
        for (url, outcome) in cases {
            assert_eq!(how(&url).await?, outcome, "{url}");
        }
        Ok(())
    })
}

fn cluster_file(cluster: &Cluster, setting: &str) -> Result<String> {
    let row = cluster.server().connect("postgres")?.query_one(&format!("SHOW {setting}"), &[])?;
    Ok(row.get(0))
}
