//! Faults at every step, at random moments and from outside: afterwards the contents are equal, nothing twice, nothing
//! missing.
//!
//! `PGVEIL_SOAK=1` makes the loops long, `PGVEIL_ROUNDS` any length; the seed that a loop prints repeats its moments.

use std::time::{Duration, Instant};

use pgveil_tests::cluster::SUPERUSER;
use pgveil_tests::proxy::Flow;
use pgveil_tests::{Cluster, Database, Direction, Job, Major, Proxy, Result, Stop, wait};

use crate::support::people::People;
use crate::support::random::Random;
use crate::support::record::{Record, halted};
use crate::support::writers::Writers;
use crate::support::{pause, rounds};

/// More steps than any job here has: a loop that gets here does not end.
const STEPS_MAX: u32 = 500;

/// Runs a command with its n-th step failing. Answers whether it had so many steps.
fn fails_at(job: &Job, arguments: &[&str], step: u32, how: &str) -> Result<bool> {
    let chosen = format!("{step}:{how}");
    let finished = job.start_with(arguments, &[("PGVEIL_FAIL", &chosen)])?.wait(wait::LONG)?;
    // A step that is tried again ends well, and says where it failed.
    let reached = finished.code != Some(0) || finished.stderr.contains("failpoint");
    if step == 1 && !reached {
        return Err("step 1 did not fail: build pgveil with `--features failpoints`".into());
    }
    if how == "crash" && reached && finished.signal.is_none() {
        return Err(format!("step {step} was to crash: {finished}").into());
    }
    Ok(reached)
}

/// Goes on after a fault as an operator would: `run` when the copy was whole, else a new snapshot.
fn go_on(people: &People, after: &str) -> Result<()> {
    if Record::is_copied(&people.pair.target)? {
        return people.catch_up(after);
    }
    let refused = people.job.run(&["run", "--once"])?;
    if refused.code != Some(3) {
        return Err(format!("after {after}: `run` must refuse a copy that is not whole: {refused}").into());
    }
    people.job.succeed(&["bootstrap", "--restart-snapshot", "--once"])?;
    people.check(after)
}

fn bootstrap_fails_at_every_step(major: Major, how: &str) -> Result<()> {
    let people = People::new(major, &format!("boot_{how}"))?;
    let mut arguments: &[&str] = &["bootstrap", "--once"];
    for step in 1..STEPS_MAX {
        if !fails_at(&people.job, arguments, step, how)? {
            return people.check("a bootstrap without fault");
        }
        people.pair.source.execute(&format!("insert into person values ({step} + 5000, 'late{step}@example.com')"))?;
        go_on(&people, &format!("a bootstrap with {step}:{how}"))?;
        arguments = &["bootstrap", "--restart-snapshot", "--once"];
    }
    Err("the steps do not end".into())
}

/// What each run of the loop over a stream's steps applies: singles, runs, key changes, several tables.
fn changes(step: u32) -> String {
    let id = step * 1000 + 10_000;
    format!(
        "begin; insert into person values ({id}, 's{id}@example.com'); insert into visit values ({id}, 's{id}@example.com', 1); commit; \
         begin; insert into person select i, 'r' || i || '@example.com' from generate_series({id} + 1, {id} + 40) i; update visit set n = 2 where id = {id}; commit; \
         begin; update person set n = {step}; update person set id = id + 500 where id = {id}; commit; \
         delete from visit where id = {id}"
    )
}

fn stream_fails_at_every_step(major: Major, how: &str) -> Result<()> {
    let people = People::bootstrapped(major, &format!("stream_{how}"))?;
    for step in 1..STEPS_MAX {
        people.pair.source.execute(&changes(step))?;
        let reached = fails_at(&people.job, &["run", "--once"], step, how)?;
        people.catch_up(&format!("a stream with {step}:{how}"))?;
        if !reached {
            return Ok(());
        }
    }
    Err("the steps do not end".into())
}

/// A bootstrap ends at each of its steps in turn, in each of three ways.
mod bootstrap_ends_at_every_step {
    use super::*;

    #[test]
    fn by_a_crash() -> Result<()> {
        bootstrap_fails_at_every_step(Major::V15, "crash")
    }

    #[test]
    fn by_an_error() -> Result<()> {
        bootstrap_fails_at_every_step(Major::V18, "error")
    }

    #[test]
    fn by_a_lost_connection() -> Result<()> {
        bootstrap_fails_at_every_step(Major::V15, "lost")
    }
}

/// A stream ends at each of its steps in turn: guest, statement, checkpoint, commit, acknowledgement.
mod stream_ends_at_every_step {
    use super::*;

    #[test]
    fn by_a_crash() -> Result<()> {
        stream_fails_at_every_step(Major::V18, "crash")
    }

    #[test]
    fn by_an_error() -> Result<()> {
        stream_fails_at_every_step(Major::V15, "error")
    }

    #[test]
    fn by_a_lost_connection() -> Result<()> {
        stream_fails_at_every_step(Major::V18, "lost")
    }
}

/// O07, L02: SIGKILL while streaming, under writers. What the slot was told is never above the checkpoint.
#[test]
fn killed_at_random_moments_in_the_stream() -> Result<()> {
    let mut random = Random::new();
    let people = People::bootstrapped(Major::V15, "kill_stream")?;
    let writers = Writers::start(&people.pair.source, &mut random, 2);
    for round in 0..rounds(5, 50) {
        let running = people.job.start(&["run"])?;
        pause(random.moment(100..2500));
        running.kill()?;
        acknowledged_is_applied(&people).map_err(|error| format!("round {round}: {error}"))?;
    }
    writers.stop();
    people.catch_up("SIGKILL in the stream")
}

/// S02: SIGKILL while copying, under writers.
#[test]
fn killed_at_random_moments_in_the_snapshot() -> Result<()> {
    let mut random = Random::new();
    let people = People::new(Major::V18, "kill_snapshot")?;
    people.pair.source.execute("insert into person select i, 'k' || i || '@example.com', repeat('k', 100) from generate_series(10000, 60000) i")?;
    let writers = Writers::start(&people.pair.source, &mut random, 2);
    let mut arguments: &[&str] = &["bootstrap"];
    for _ in 0..rounds(5, 50) {
        let running = people.job.start(arguments)?;
        pause(random.moment(50..2500));
        running.kill()?;
        arguments = &["bootstrap", "--restart-snapshot"];
    }
    people.job.succeed(&["bootstrap", "--restart-snapshot", "--once"])?;
    writers.stop();
    people.catch_up("SIGKILL in the snapshot")?;
    let slots = format!("select count(*) from pg_replication_slots where database = '{}'", people.pair.source.name());
    assert_eq!(people.pair.source.value(&slots)?, "1", "a killed bootstrap leaves no slot behind");
    Ok(())
}

/// L11: SIGTERM under load ends with exit 0, every time, and within seconds.
#[test]
fn terminated_under_load() -> Result<()> {
    let mut random = Random::new();
    let people = People::bootstrapped(Major::V18, "terminate")?;
    let writers = Writers::start(&people.pair.source, &mut random, 2);
    for round in 0..rounds(5, 50) {
        let running = people.job.start(&["run"])?;
        // The first moments belong to the loader: nothing hears a signal yet, and nothing could be lost.
        pause(random.moment(200..2500));
        let asked = Instant::now();
        let finished = running.terminate()?;
        assert_eq!(finished.code, Some(0), "round {round}: {finished}");
        assert!(asked.elapsed() < Duration::from_secs(15), "round {round} took {:?}", asked.elapsed());
        acknowledged_is_applied(&people)?;
    }
    writers.stop();
    people.catch_up("SIGTERM under load")
}

/// Both servers crash and come back while the job streams: it connects again by itself.
#[test]
fn servers_crash_and_come_back() -> Result<()> {
    let mut random = Random::new();
    let (mut source, mut target) = (Cluster::of(Major::V15).start()?, Cluster::of(Major::V18).start()?);
    let people = People::on(source.server(), target.server(), "crash")?;
    people.job.succeed(&["bootstrap", "--once"])?;
    let mut running = people.streaming()?;
    let writers = Writers::start(&people.pair.source, &mut random, 2);
    for round in 0..rounds(2, 25) {
        writers.wait_for_more(30)?;
        target.restart(Stop::Immediate)?;
        // What the target had not flushed is gone, and must not have been acknowledged.
        acknowledged_is_applied(&people).map_err(|error| format!("round {round}: {error}"))?;
        writers.wait_for_more(30)?;
        source.restart(Stop::Immediate)?;
        writers.wait_for_more(30)?;
        assert!(running.is_running()?, "round {round}: {}", running.output());
    }
    writers.stop();
    people.wait_until_equal("crashes of both servers", wait::LONG)?;
    let finished = running.terminate()?;
    assert_eq!(finished.code, Some(0), "{finished}");
    Ok(())
}

/// The network breaks in either direction, at either end, after any number of bytes.
#[test]
fn connections_are_cut_in_either_direction() -> Result<()> {
    let mut random = Random::new();
    let mut people = People::bootstrapped(Major::V15, "cut")?;
    let proxies = [Proxy::to(people.pair.source.server().port)?, Proxy::to(people.pair.target.server().port)?];
    let through = |database: &Database, proxy: &Proxy| database.server().url_through(proxy.port(), database.name());
    people.job = people
        .job
        .environment("PGVEIL_SOURCE_URL", through(&people.pair.source, &proxies[0]))
        .environment("PGVEIL_TARGET_URL", through(&people.pair.target, &proxies[1]));
    let mut running = people.streaming()?;
    let writers = Writers::start(&people.pair.source, &mut random, 2);
    for round in 0..rounds(8, 100) {
        let proxy = &proxies[round % 2];
        let direction = if random.within(0..2) == 0 { Direction::ToServer } else { Direction::ToClient };
        proxy.set(direction, Flow::CutAfter(random.within(1..30_000)));
        pause(random.moment(100..700));
        if random.within(0..4) == 0 {
            proxy.reset();
        }
        assert!(running.is_running()?, "round {round}: {}", running.output());
    }
    for proxy in &proxies {
        proxy.set(Direction::ToServer, Flow::Open);
        proxy.set(Direction::ToClient, Flow::Open);
    }
    writers.stop();
    people.wait_until_equal("cut connections", wait::LONG)?;
    assert_eq!(running.terminate()?.code, Some(0));
    Ok(())
}

/// L14: a wrong password ends the job at once, at start and when it streams already; it is not shown.
#[test]
fn a_wrong_password_is_not_tried_again() -> Result<()> {
    let source = Cluster::of(Major::V18).access("host all keeper 127.0.0.1/32 scram-sha-256").start()?;
    let target = Database::on_target(Major::V18, "password")?;
    let mut people = People::on(source.server(), target.server(), "password")?;
    let admin = source.server().connect(SUPERUSER)?;
    people.pair.source.execute("create role keeper superuser login password 'right-password-1'")?;
    let url = |password: &str| people.pair.source.url().replace("postgres@", &format!("keeper:{password}@"));
    let (right, wrong) = (url("right-password-1"), url("wrong-password-2"));

    people.job = people.job.environment("PGVEIL_SOURCE_URL", wrong);
    let asked = Instant::now();
    let finished = people.job.run(&["bootstrap", "--once"])?;
    assert_eq!(finished.code, Some(3), "{finished}");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert!(!finished.to_string().contains("password-2"), "the password is shown: {finished}");

    people.job = people.job.environment("PGVEIL_SOURCE_URL", right);
    people.job.succeed(&["bootstrap", "--once"])?;
    let running = people.streaming()?;
    people.pair.source.execute(
        "alter role keeper password 'another-3'; select pg_terminate_backend(pid) from pg_stat_activity where usename = 'keeper'",
    )?;
    let finished = running.wait(Duration::from_secs(20))?;
    drop(admin);
    halted(&finished, 3, &people.pair.target, "ERROR", &["Authentication"])?;
    Ok(())
}

/// O19: a row that the target refuses stops the job, whole transaction unapplied, each time; mended, `run` goes on.
#[test]
fn a_row_that_the_target_refuses_halts_until_mended() -> Result<()> {
    let people = People::bootstrapped(Major::V18, "refused")?;
    let (source, target) = (&people.pair.source, &people.pair.target);
    target.execute("insert into person (id, note) values (777, 'in the way')")?;
    source.execute("begin; insert into visit values (7, 'before@example.com', 1); insert into person values (777, 'canary-refused@example.com', 'canary-refused-note'); commit")?;
    source.execute("insert into visit values (8, 'behind@example.com', 1)")?;
    let mut applied = None;
    for _ in 0..2 {
        let finished = people.job.run(&["run", "--once"])?;
        let record = halted(&finished, 5, target, "ERROR", &["TargetRefused"])?;
        for named in ["23505", "person", "person_pkey"] {
            assert!(record.reason.contains(named), "{named} is not named: {record:?}");
        }
        let status = people.job.run(&["status"])?;
        assert!(
            !format!("{finished}{status}{record:?}").contains("canary-refused"),
            "a value is shown: {finished}{status}"
        );
        assert_eq!(target.value("select count(*) from visit where n = 1 and id in (7, 8)")?, "0");
        assert_eq!(applied.replace(record.applied.clone()).unwrap_or(record.applied.clone()), record.applied);
    }
    target.execute("delete from person where id = 777")?;
    people.catch_up("mending the target")
}

/// A failure among pipelined transactions leaves exactly those before it.
#[test]
fn a_failure_in_the_pipeline_leaves_exactly_what_came_before() -> Result<()> {
    let people = People::bootstrapped(Major::V15, "pipeline")?;
    people.pair.target.execute("insert into person (id) values (10020)")?;
    for id in 10_001..10_060 {
        people.pair.source.execute(&format!("insert into person values ({id}, 'q{id}@example.com')"))?;
    }
    let finished = people.job.run(&["run", "--once"])?;
    halted(&finished, 5, &people.pair.target, "ERROR", &["TargetRefused"])?;
    let there = people
        .pair
        .target
        .value("select string_agg(id::text, ' ' order by id) from person where id > 10000 and email is not null")?;
    let expected: Vec<_> = (10_001..10_020).map(|id| id.to_string()).collect();
    assert_eq!(there, expected.join(" "));
    people.pair.target.execute("delete from person where id = 10020")?;
    people.catch_up("mending the target")
}

/// What the slot was told lies at or below the checkpoint, read in this order.
fn acknowledged_is_applied(people: &People) -> Result<()> {
    let slot =
        format!("select confirmed_flush_lsn from pg_replication_slots where slot_name = '{}'", people.job.slot());
    let told = people.pair.source.value(&slot)?;
    let applied = people.pair.target.value("select applied_lsn from pgveil.checkpoint")?;
    let held = people.pair.target.value(&format!("select '{told}'::pg_lsn <= '{applied}'::pg_lsn"))?;
    if held == "t" { Ok(()) } else { Err(format!("the slot was told {told}, the target holds {applied}").into()) }
}
