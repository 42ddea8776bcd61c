//! The harness itself, on real clusters: what it promises to the tests that stand on it.

use std::{thread, time::Duration};

use crate::{
    Cluster, Database, Direction, Major, Pair, Proxy, Result, Stop,
    compare::Comparison,
    database::rows,
    leak::Canaries,
    on_every_version,
    proxy::Flow,
    runner::{Job, Running},
    version::Major as Version,
    wait,
};

on_every_version! {
    fn a_pair_of_databases_on_two_clusters(major) {
        let pair = Pair::of(major, "pair")?;
        let version = format!("{major}");
        for database in [&pair.source, &pair.target] {
            assert_eq!(database.value("SELECT current_setting('server_version_num')::int / 10000")?, version);
        }
        let identifier = "SELECT system_identifier FROM pg_control_system()";
        assert_ne!(pair.source.value(identifier)?, pair.target.value(identifier)?);
    }

    fn a_logical_slot_is_created_read_and_gone_with_its_database(major) {
        let source = Database::on_source(major, "slot")?;
        source.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")?;
        let slot = source.name().to_owned();
        source.execute(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"))?;
        source.execute("INSERT INTO t SELECT generate_series(1, 3)")?;
        let changes = source.value(&format!(
            "SELECT count(*) FROM pg_logical_slot_get_binary_changes('{slot}', NULL, NULL, \
             'proto_version', '1', 'publication_names', 'p') WHERE get_byte(data, 0) = ascii('I')"
        ))?;
        assert_eq!(changes, "3");
        let position = source.wal_position()?;
        source.execute(&format!("SELECT pg_replication_slot_advance('{slot}', '{position}')"))?;
        source.wait_for_slot(&slot, &position, wait::LONG)?;
        let server = source.server().clone();
        drop(source);
        let left = rows(&mut server.connect("postgres")?, &format!("SELECT FROM pg_replication_slots WHERE slot_name = '{slot}'"))?;
        assert!(left.is_empty());
    }

    fn a_private_cluster_comes_back_after_every_way_of_stopping(major) {
        let mut cluster = Cluster::of(major).setting("log_checkpoints", "on").start()?;
        let database = Database::create(cluster.server(), "stop")?;
        database.execute("CREATE TABLE t (n int)")?;
        for (n, how) in [Stop::Smart, Stop::Fast, Stop::Immediate, Stop::Kill].into_iter().enumerate() {
            database.execute(&format!("INSERT INTO t VALUES ({n})"))?;
            cluster.restart(how)?;
            assert_eq!(database.value("SELECT count(*) FROM t")?, (n + 1).to_string(), "after {how:?}");
        }
        let log = cluster.server().log()?;
        for stopped in ["smart shutdown", "fast shutdown", "immediate shutdown", "database system was interrupted"] {
            assert!(log.contains(stopped), "{stopped} is not in the log:\n{log}");
        }
    }
}

#[test]
fn clusters_have_contrary_defaults_and_the_harness_pins_its_own() -> Result<()> {
    let database = Database::on_source(Major::V18, "pins")?;
    let sql = "SELECT '2026-01-02 03:04:05+00'::timestamptz || ' ' || '1 day 2 hours'::interval || ' ' || '\\x00'::bytea::text";
    assert_eq!(database.value(sql)?, "2026-01-02 03:04:05+00 1 day 02:00:00 \\x00");
    let mut unpinned = database.url().parse::<postgres::Config>()?.connect(postgres::NoTls)?;
    let plain = rows(&mut unpinned, sql)?.remove(0).remove(0);
    assert_eq!(plain.as_deref(), Some("02/01/2026 08:49:05 +0545 1 2:00:00 \\000"));
    Ok(())
}

#[test]
fn a_server_behind_a_proxy_is_cut_off_and_reached_again() -> Result<()> {
    let database = Database::on_source(Major::V15, "proxy")?;
    let proxy = Proxy::to(database.server().port)?;
    let url = database.server().url_through(proxy.port(), database.name());
    let connect = || url.parse::<postgres::Config>()?.connect_timeout(Duration::from_secs(5)).connect(postgres::NoTls);
    let mut client = connect()?;
    client.batch_execute("SELECT 1")?;
    proxy.set(Direction::ToClient, Flow::CutAfter(100));
    assert!(client.simple_query("SELECT repeat('x', 1000)").is_err(), "cut in the middle of an answer");
    proxy.refuse(true);
    assert!(connect().is_err());
    proxy.refuse(false);
    let mut client = connect()?;
    proxy.set(Direction::ToClient, Flow::Stalled);
    let waiting = thread::spawn(move || client.simple_query("SELECT 1").is_ok());
    database.wait_for(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'SELECT 1' AND state = 'idle'",
        "1",
        wait::LONG,
    )?;
    assert!(!waiting.is_finished(), "the server has answered, and the answer waits in the proxy");
    proxy.set(Direction::ToClient, Flow::Open);
    assert!(waiting.join().is_ok_and(|answered| answered));
    Ok(())
}

#[test]
fn tls_is_served_where_the_build_has_it_and_refused_with_reason_elsewhere() -> Result<()> {
    let cluster = Cluster::of(Major::V15).access("hostssl all secure 127.0.0.1/32 trust").tls().start()?;
    let server = cluster.server();
    server.connect("postgres")?.batch_execute("CREATE ROLE secure LOGIN")?;
    let root = cluster.authority().ok_or("no authority")?.root();
    let mut psql = std::process::Command::new("/usr/bin/openssl");
    psql.args(["s_client", "-starttls", "postgres", "-verify_return_error", "-CAfile"]).arg(root);
    psql.args(["-verify_ip", "127.0.0.1", "-connect", &format!("127.0.0.1:{}", server.port)]);
    let finished = Running::spawn(psql)?.wait(wait::LONG)?;
    assert!(finished.stdout.contains("Verify return code: 0 (ok)"), "{finished}");
    if !Version::V18.has_tls()? {
        let refused = Cluster::of(Major::V18).tls().start().err().ok_or("it started")?.to_string();
        assert!(refused.contains("built without TLS"), "{refused}");
    }
    Ok(())
}

#[test]
fn canaries_are_found_in_tables_wal_and_log_and_not_where_they_never_were() -> Result<()> {
    let cluster = Cluster::of(Major::V18).setting("log_statement", "all").start()?;
    let database = Database::create(cluster.server(), "leak")?;
    let secret = "canary-7f3a91c0";
    let canaries = Canaries::new([secret])?;
    assert_eq!(canaries.under(&cluster.server().home)?, []);
    database.execute(&format!("CREATE TABLE t (v text); INSERT INTO t VALUES ('{secret}')"))?;
    database.execute("CHECKPOINT")?;
    let leaks = canaries.under(&cluster.server().home)?;
    for place in ["/pg_wal/", "/base/", "/log"] {
        assert!(
            leaks.iter().any(|leak| leak.file.to_string_lossy().contains(place)),
            "not found in {place}: {leaks:?}"
        );
    }
    Ok(())
}

#[test]
fn a_comparison_masks_filters_counts_duplicates_and_shows_differences() -> Result<()> {
    let pair = Pair::of(Major::V15, "compare")?;
    pair.execute("CREATE TABLE t (id int, \"e Mail\" text, n int)")?;
    pair.source.execute("INSERT INTO t VALUES (1, 'A', 1), (1, 'A', 1), (2, NULL, 2), (3, 'C', 0)")?;
    pair.target.execute("INSERT INTO t VALUES (1, 'a', 1), (2, NULL, 2), (1, 'a', 1)")?;
    let comparison = Comparison::of("t")
        .mask("e Mail", |row| row.get("e Mail").map(str::to_lowercase))
        .keep(|row| row.get("n") != Some("0"));
    assert_eq!(comparison.check(&pair.source, &pair.target)?, 3);
    pair.target.execute("DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (1, 'a', 1)")?;
    let error = comparison.check(&pair.source, &pair.target).unwrap_err().to_string();
    assert_eq!(
        error,
        "t: source and target differ in 2 rows (id, e Mail, n)\n  missing at the target (1 times): 2 | NULL | 2\n  \
         should not be at the target (1 times): 1 | a | 1"
    );
    Ok(())
}

#[test]
fn a_job_writes_its_files_and_gives_its_urls_in_the_environment_only() -> Result<()> {
    let pair = Pair::of(Major::V18, "job")?;
    let job = Job::new(&pair, &["public.t", "\"Shop\".\"order\""], "version: 1\n")?.publication("other")?;
    let text = std::fs::read_to_string(job.path())?;
    assert!(text.contains(r#"tables: ["public.t", "\"Shop\".\"order\""]"#), "{text}");
    assert!(text.contains("publication: other") && !text.contains("postgresql://"), "{text}");
    Ok(())
}

/// Not a test: what the test below runs and kills.
#[test]
#[ignore = "waits to be killed by the test below"]
#[expect(clippy::print_stdout, reason = "the parent reads where the cluster is")]
fn hold_a_cluster_until_killed() -> Result<()> {
    let cluster = Cluster::of(Major::V18).start()?;
    println!("home={}", cluster.server().home.display());
    let started = std::time::Instant::now();
    wait::until("being killed", wait::LONG, || Ok((started.elapsed() > wait::LONG / 2).then_some(())))
}

#[test]
fn a_killed_test_leaves_no_server_and_no_files() -> Result<()> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["--exact", "real::hold_a_cluster_until_killed", "--ignored", "--nocapture"]);
    let mut running = Running::spawn(command)?;
    running.wait_for_output("home=", wait::LONG)?;
    let output = running.output();
    let home = output.lines().find_map(|line| line.split_once("home=")).ok_or("no home")?.1.to_owned();
    let port = std::fs::read_to_string(format!("{home}/data/postmaster.pid"))?
        .lines()
        .nth(3)
        .ok_or("no port")?
        .parse::<u16>()?;
    running.kill()?;
    wait::until("the files to go", wait::LONG, || Ok((!std::path::Path::new(&home).exists()).then_some(())))?;
    wait::until("the port to close", wait::LONG, || {
        Ok(std::net::TcpStream::connect(("127.0.0.1", port)).is_err().then_some(()))
    })
}
