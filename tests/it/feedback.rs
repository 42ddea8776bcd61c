//! What the slot is told, and when: through stalls, on idle tables, never ahead of the target.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgveil_tests::database::rows;
use pgveil_tests::proxy::Flow;
use pgveil_tests::{Cluster, Database, Direction, Job, Major, Pair, Proxy, Result, wait};

use crate::scenario::{pass_all, publish};
use crate::support::people::People;
use crate::support::random::Random;
use crate::support::writers::Writers;
use crate::support::{pause, rounds};

/// Well beyond the walsender's patience of five seconds.
const STALL: Duration = Duration::from_secs(12);

/// A job whose source gives up a silent consumer after five seconds, and a proxy before its target.
fn impatient(major: Major, purpose: &str) -> Result<(Cluster, Proxy, People)> {
    let source = Cluster::of(major).setting("wal_sender_timeout", "5s").start()?;
    let target = Database::on_target(major, purpose)?.server().clone();
    let mut people = People::on(source.server(), &target, purpose)?;
    let proxy = Proxy::to(target.port)?;
    let url = target.url_through(proxy.port(), people.pair.target.name());
    people.job = people.job.environment("PGVEIL_TARGET_URL", url);
    people.job.succeed(&["bootstrap", "--once"])?;
    Ok((source, proxy, people))
}

/// The walsender that serves the job, by its process id: another one means that the connection was lost.
fn walsender(people: &People) -> Result<String> {
    people
        .pair
        .source
        .value(&format!("select active_pid from pg_replication_slots where slot_name = '{}'", people.job.slot()))
}

fn survives_stall(people: &People, stall: impl FnOnce() -> Result<()>) -> Result<()> {
    let running = people.streaming()?;
    let before = walsender(people)?;
    people.pair.source.execute("insert into person select i, 's' || i || '@example.com', repeat('s', 500) from generate_series(10000, 40000) i")?;
    stall()?;
    assert_eq!(walsender(people)?, before, "the walsender gave the job up: {}", running.output());
    people.wait_until_equal("a stalled target", wait::LONG)?;
    assert_eq!(running.terminate()?.code, Some(0));
    Ok(())
}

/// The target waits for a lock much longer than the walsender waits for an answer.
#[test]
fn a_locked_target_does_not_cost_the_connection() -> Result<()> {
    let (_source, _proxy, people) = impatient(Major::V15, "locked")?;
    let mut locker = people.pair.target.connect()?;
    locker.batch_execute("begin; lock table person in access exclusive mode")?;
    // The lock is held before the rows arrive, and given back by the end of the transaction.
    survives_stall(&people, || {
        pause(STALL);
        Ok(locker.batch_execute("rollback")?)
    })
}

/// The target's connection takes no bytes for as long.
#[test]
fn a_stalled_connection_to_the_target_does_not_cost_the_one_to_the_source() -> Result<()> {
    let (_source, proxy, people) = impatient(Major::V18, "stalled")?;
    survives_stall(&people, || {
        proxy.set(Direction::ToServer, Flow::Stalled);
        pause(STALL);
        proxy.set(Direction::ToServer, Flow::Open);
        Ok(())
    })
}

/// L01, S12: nothing happens in the job's tables, much elsewhere, also in another database: the slot moves on, the
/// checkpoint before it.
#[test]
fn idle_tables_let_the_slot_advance() -> Result<()> {
    let people = People::bootstrapped(Major::V15, "idle")?;
    let (source, target) = (&people.pair.source, &people.pair.target);
    let elsewhere = Database::on_source(Major::V15, "elsewhere")?;
    let running = people.streaming()?;
    for database in [source, &elsewhere] {
        database
            .execute("create table busy as select i, repeat('b', 1000) as filler from generate_series(1, 3000) i")?;
        let position = database.wal_position()?;
        source.wait_for_slot(people.job.slot(), &position, Duration::from_secs(20))?;
        let applied = format!("select applied_lsn >= '{position}'::pg_lsn from pgveil.checkpoint");
        assert_eq!(target.value(&applied)?, "t", "the slot has passed {position}, the checkpoint has not");
    }
    assert_eq!(running.terminate()?.code, Some(0));
    Ok(())
}

/// O11, O16: a single transaction is there within two seconds, and acknowledged without another behind it.
#[test]
fn the_last_transaction_needs_no_successor() -> Result<()> {
    let people = People::bootstrapped(Major::V18, "last")?;
    let running = people.streaming()?;
    people.pair.source.execute("begin; savepoint x; rollback to x; commit; insert into person (id) values (9001)")?;
    people.pair.target.wait_for("select count(*) from person where id = 9001", "1", Duration::from_secs(2))?;
    people.wait_until_equal("one transaction", Duration::from_secs(5))?;
    assert_eq!(running.terminate()?.code, Some(0));
    Ok(())
}

/// L02: sampled while the job is killed again and again, what the slot was told is never above the checkpoint.
#[test]
fn the_slot_is_never_told_more_than_the_target_holds() -> Result<()> {
    let mut random = Random::new();
    let people = People::bootstrapped(Major::V18, "never_ahead")?;
    let writers = Writers::start(&people.pair.source, &mut random, 2);
    let ended = Arc::new(AtomicBool::new(false));
    let sampler = {
        let (mut source, mut target, ended) =
            (people.pair.source.connect()?, people.pair.target.connect()?, ended.clone());
        let slot = people.job.slot().to_owned();
        std::thread::spawn(move || -> Result<u64> {
            let mut samples = 0;
            while !ended.load(Ordering::Relaxed) {
                // First what was told, then what is there: time only ever makes the second larger.
                let told = rows(
                    &mut source,
                    &format!("select confirmed_flush_lsn from pg_replication_slots where slot_name = '{slot}'"),
                )?;
                let told = told.into_iter().flatten().next().flatten().ok_or("no slot")?;
                let held = rows(
                    &mut target,
                    &format!("select applied_lsn, applied_lsn >= '{told}'::pg_lsn from pgveil.checkpoint"),
                )?;
                if held.first().and_then(|row| row.get(1)).and_then(Option::as_deref) != Some("t") {
                    return Err(format!("told {told}, held {held:?}").into());
                }
                samples += 1;
            }
            Ok(samples)
        })
    };
    for _ in 0..rounds(4, 40) {
        let running = people.job.start(&["run"])?;
        pause(random.moment(500..2500));
        running.kill()?;
    }
    ended.store(true, Ordering::Relaxed);
    let samples = sampler.join().map_err(|_| "the sampler panicked")??;
    assert!(samples > 100, "only {samples} samples");
    writers.stop();
    people.catch_up("sampling")
}

/// Commit order: whoever reads the target at any moment sees a prefix of the source's history.
#[test]
fn a_reader_of_the_target_sees_a_prefix_of_history() -> Result<()> {
    let pair = Pair::of(Major::V15, "prefix")?;
    let tables = ["public.a", "public.b"];
    pair.execute("create table a (n int primary key, v text); create table b (n int primary key, v text)")?;
    publish(&pair, &tables)?;
    let job = Job::new(&pair, &tables, &pass_all(&tables))?;
    job.succeed(&["bootstrap", "--once"])?;
    let running = job.start(&["run"])?;
    let transactions = 2000;
    let mut writer = pair.source.connect()?;
    let writing = std::thread::spawn(move || -> Result<()> {
        for n in 1..=transactions {
            // Long and short ones in turn, each row alone telling its place.
            let table = if n % 3 == 0 { "b" } else { "a" };
            writer.batch_execute(&format!("insert into {table} values ({n}, repeat('x', {}))", n % 7 * 300))?;
        }
        Ok(())
    });
    let seen = "select count(*), max(n), count(*) = coalesce(max(n), 0) from (select n from a union all select n from b) both_tables";
    let mut reader = pair.target.connect()?;
    let mut moments = std::collections::BTreeSet::new();
    // Without a pause between two looks: the more moments are seen, the more is proven.
    let deadline = Instant::now() + wait::LONG;
    loop {
        let found = rows(&mut reader, seen)?.into_iter().next().ok_or("no row")?;
        if found.get(2).and_then(Option::as_deref) != Some("t") {
            return Err(format!("a hole: {found:?}").into());
        }
        let count = found.into_iter().next().flatten().unwrap_or_default();
        let ended = count == transactions.to_string();
        moments.insert(count);
        if ended {
            break;
        }
        if Instant::now() > deadline {
            return Err(format!("the history is not whole: {moments:?}").into());
        }
    }
    writing.join().map_err(|_| "the writer panicked")??;
    assert!(moments.len() > 3, "the reader only saw {moments:?}");
    assert_eq!(running.terminate()?.code, Some(0));
    Ok(())
}
