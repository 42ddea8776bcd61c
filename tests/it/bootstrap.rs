//! The first start: what is copied, and what is left behind when it is cut short.

use std::time::Duration;

use pgveil_tests::compare::Comparison;
use pgveil_tests::runner::Running;
use pgveil_tests::{Cluster, Database, Job, Major, Pair, Result, on_every_version};

use crate::scenario::{pass_all, publish};

/// Long enough for a slow machine, short enough for a test that fails.
const SOON: Duration = Duration::from_secs(30);

const TABLE: &[&str] = &["public.t"];

/// Two databases with `public.t` on both, rows at the source, and a job between them.
fn job(major: Major, purpose: &str, rows: usize) -> Result<(Pair, Job)> {
    let pair = Pair::of(major, purpose)?;
    pair.execute("create table t (id int primary key, v text)")?;
    pair.source.execute(&format!("insert into t select i, repeat('v', 200) || i from generate_series(1, {rows}) i"))?;
    publish(&pair, TABLE)?;
    let job = Job::new(&pair, TABLE, &pass_all(TABLE))?;
    Ok((pair, job))
}

fn slots(pair: &Pair, job: &Job) -> Result<String> {
    pair.source.value(&format!("select count(*) from pg_replication_slots where slot_name = '{}'", job.slot()))
}

fn state(pair: &Pair) -> Result<String> {
    pair.target.value("select coalesce(max(state), 'none') from pgveil.job")
}

/// Waits until the job has begun to stream.
fn wait_for_stream(pair: &Pair, job: &Job) -> Result<()> {
    let streaming = format!(
        "select count(*) from pg_replication_slots s join pg_stat_replication r on r.pid = s.active_pid \
         where s.slot_name = '{}' and r.application_name = 'pgveil stream'",
        job.slot()
    );
    pair.source.wait_for(&streaming, "1", SOON)
}

/// Starts a bootstrap and holds it in the middle of its copy: the target's table is locked against writers. The lock lasts
/// as long as the client.
fn held_in_copy(pair: &Pair, job: &Job) -> Result<(Running, postgres::Client)> {
    let mut holder = pair.target.connect()?;
    holder.batch_execute("begin; lock table t in share mode")?;
    let running = job.start(&["bootstrap", "--once"])?;
    let waiting = "select count(*) > 0 from pg_stat_activity where application_name = 'pgveil copy' and wait_event_type = 'Lock' \
                   and datname = current_database()";
    pair.target.wait_for(waiting, "t", SOON)?;
    Ok((running, holder))
}

/// S17: while the slot waits for an older transaction, the operator is told for whom; the wait can be cancelled, and goes on by
/// itself when that transaction ends. On a cluster of its own: such a transaction holds up every new slot.
#[test]
fn a_slot_that_waits_says_for_whom() -> Result<()> {
    if !pgveil_tests::version::is_tested(Major::V15)? {
        return Ok(());
    }
    let cluster = Cluster::of(Major::V15).start()?;
    let pair = Pair {
        source: Database::create(cluster.server(), "waiting_slot")?,
        target: Database::on_target(Major::V15, "waiting_slot")?,
    };
    pair.execute("create table t (id int primary key, v text)")?;
    publish(&pair, TABLE)?;
    let job = Job::new(&pair, TABLE, &pass_all(TABLE))?;
    let mut writer = pair.source.connect()?;
    writer.batch_execute("begin; insert into t values (1, 'still open')")?;
    let pid: i32 = writer.query_one("select pg_backend_pid()", &[])?.get(0);

    let mut running = job.start(&["bootstrap", "--once"])?;
    running.wait_for_output(&format!("the transaction of pid {pid}"), SOON)?;
    let stopped = running.terminate()?;
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert_eq!(slots(&pair, &job)?, "0", "the server gave up too");

    let mut running = job.start(&["bootstrap", "--once", "--restart-snapshot"])?;
    running.wait_for_output(&format!("the transaction of pid {pid}"), SOON)?;
    writer.batch_execute("commit")?;
    let finished = running.wait(SOON)?;
    assert_eq!(finished.code, Some(0), "{finished}");
    Comparison::of("public.t").check(&pair.source, &pair.target).map(drop)
}

on_every_version! {
    /// S01: rows written at full speed while the copy begins and runs are there once.
    fn writers_at_full_speed_lose_nothing(major) {
        let (pair, job) = job(major, "writers", 20_000)?;
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let writer = scope.spawn(|| -> Result<u32> {
                let mut client = pair.source.connect()?;
                let mut written = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let id = 1_000_000 + written;
                    client.batch_execute(&format!("insert into t values ({id}, 'w'); update t set v = v || '!' where id = {id} - 5; delete from t where id = {written} * 7"))?;
                    written += 1;
                }
                Ok(written)
            });
            let copied = job.succeed(&["bootstrap", "--once"]);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let written = writer.join().map_err(|_| "the writer panicked")??;
            copied?;
            assert!(written > 10, "the writer wrote {written} times only");
            Ok(())
        })?;
        job.succeed(&["run", "--once"])?;
        Comparison::of("public.t").check(&pair.source, &pair.target)?;
    }

    /// S09, S11, N01, N02, N04: odd tables and odd names, made on the target by pg_dump.
    fn odd_tables_are_copied(major) {
        let pair = Pair::of(major, "odd_tables")?;
        pair.source.execute(
            "create schema \"Q_\"\" . S\"; create table \"Q_\"\" . S\".\"T \"\" .\" (\"c\"\" x\" int primary key, b bytea); \
             insert into \"Q_\"\" . S\".\"T \"\" .\" values (1, '\\xdeadbeef'), (2, null); \
             create table \"a\\b\" (id int primary key, v text); insert into \"a\\b\" values (1, '\\N'), (2, ''), (3, null), (4, E'\\t\\n\\\\'); \
             create table \"a_b\" (id int primary key); insert into a_b values (7); \
             create table empty (id int primary key, v text); create table one (id int primary key); insert into one values (1); \
             create table nokey (a int, b text); alter table nokey replica identity full; insert into nokey values (1, null), (1, null); \
             create table parent (id int primary key); create table child (primary key (id)) inherits (parent); \
             insert into parent values (1); insert into child values (2)",
        )?;
        let tables = ["\"Q_\"\" . S\".\"T \"\" .\"", "public.\"a\\b\"", "public.a_b", "public.empty", "public.one", "public.nokey", "public.parent", "public.child"];
        publish(&pair, &tables)?;
        let job = Job::new(&pair, &tables, &pass_all(&tables))?.sections("schema: { mode: pg_dump }\n")?;
        job.succeed(&["bootstrap", "--once"])?;
        for table in tables {
            Comparison::of(table).check(&pair.source, &pair.target)?;
        }
        assert_eq!(pair.target.value("select count(*) from only parent")?, "1");
    }

    /// S19: nothing of the copy is left on the source.
    fn no_transaction_stays_open_on_the_source(major) {
        let (pair, job) = job(major, "no_open_transaction", 100)?;
        let running = job.start(&["bootstrap"])?;
        wait_for_stream(&pair, &job)?;
        let open = pair.source.value("select count(*) from pg_stat_activity where application_name like 'pgveil%' and state like 'idle in transaction%' and datname = current_database()")?;
        assert_eq!(open, "0");
        assert_eq!(running.terminate()?.code, Some(0));
    }

    /// Many chunks, several workers: each row once.
    fn a_large_table_is_copied_in_chunks(major) {
        let (pair, job) = job(major, "chunks", 30_000)?;
        let job = job.sections("schema: { mode: existing }\nlimits: { copy_chunk: 1MiB, copy_workers: 3, batch_rows: 100 }\n")?;
        job.succeed(&["bootstrap", "--once"])?;
        Comparison::of("public.t").check(&pair.source, &pair.target)?;
        assert!(pair.target.value("select count(*) from pgveil.chunk")?.parse::<u32>()? > 3);
    }

    /// S04: a copy session that is gone ends the bootstrap, and the slot goes with it.
    fn a_lost_copy_session_stops_the_bootstrap(major) {
        let (pair, job) = job(major, "lost_copy", 50_000)?;
        let (running, holder) = held_in_copy(&pair, &job)?;
        pair.source.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pgveil copy' and datname = current_database()")?;
        drop(holder);
        let finished = running.wait(SOON)?;
        assert_eq!(finished.code, Some(1), "{finished}");
        assert_eq!(slots(&pair, &job)?, "0", "the slot was dropped again");
        assert_eq!(state(&pair)?, "SNAPSHOTTING");
        job.succeed(&["bootstrap", "--once", "--restart-snapshot"])?;
        Comparison::of("public.t").check(&pair.source, &pair.target)?;
    }

    /// SIGTERM in the copy: exit 0, no slot, and the way on is told.
    fn sigterm_in_the_copy_takes_the_slot_along(major) {
        let (pair, job) = job(major, "sigterm_copy", 20_000)?;
        let (running, holder) = held_in_copy(&pair, &job)?;
        assert_eq!(running.terminate()?.code, Some(0));
        drop(holder);
        assert_eq!(slots(&pair, &job)?, "0");
        let again = job.run(&["bootstrap", "--once"])?;
        assert_eq!(again.code, Some(3), "{again}");
        assert!(again.stderr.contains("--restart-snapshot"), "{again}");
        job.succeed(&["bootstrap", "--once", "--restart-snapshot"])?;
        Comparison::of("public.t").check(&pair.source, &pair.target)?;
    }

    /// SIGKILL in the copy: the record shows it, `run` refuses, a new start takes the old slot away.
    fn sigkill_in_the_copy_is_seen_and_mended(major) {
        let (pair, job) = job(major, "sigkill_copy", 20_000)?;
        let (running, holder) = held_in_copy(&pair, &job)?;
        running.kill()?;
        drop(holder);
        assert_eq!(slots(&pair, &job)?, "1", "nobody could drop it");
        let status = job.succeed(&["status"])?;
        assert!(status.stdout.contains("SNAPSHOTTING") && status.stdout.contains("--restart-snapshot"), "{status}");
        assert_eq!(job.run(&["run", "--once"])?.code, Some(3));
        job.succeed(&["bootstrap", "--once", "--restart-snapshot"])?;
        Comparison::of("public.t").check(&pair.source, &pair.target)?;
        assert_eq!(slots(&pair, &job)?, "1");
    }

    /// `cleanup` refuses while the job runs, then takes slot and records and leaves the data.
    fn cleanup_takes_slot_and_records_only(major) {
        let (pair, job) = job(major, "cleanup", 10)?;
        let running = job.start(&["bootstrap"])?;
        wait_for_stream(&pair, &job)?;
        assert_eq!(job.run(&["cleanup", "--yes"])?.code, Some(3));
        assert_eq!(job.run(&["run", "--once"])?.code, Some(3), "a second process is refused");
        assert_eq!(running.terminate()?.code, Some(0));
        job.succeed(&["cleanup", "--yes"])?;
        assert_eq!(slots(&pair, &job)?, "0");
        assert_eq!(pair.target.value("select to_regnamespace('pgveil') is null")?, "t");
        assert_eq!(pair.target.value("select count(*) from t")?, "10");
        job.succeed(&["cleanup", "--yes"])?;
    }

    /// A slot that somebody else made is neither used nor dropped.
    fn a_foreign_slot_is_left_alone(major) {
        let (pair, job) = job(major, "foreign_slot", 10)?;
        pair.source.execute(&format!("select pg_create_logical_replication_slot('{}', 'pgoutput')", job.slot()))?;
        let finished = job.run(&["bootstrap", "--once"])?;
        assert_eq!(finished.code, Some(3), "{finished}");
        job.run(&["cleanup", "--yes"])?;
        assert_eq!(slots(&pair, &job)?, "1");
        pair.source.execute(&format!("select pg_drop_replication_slot('{}')", job.slot()))?;
    }

    /// L04, L12, S14: a slot that is gone, or ahead of the checkpoint, is no continuation.
    fn a_broken_slot_is_never_continued(major) {
        let (pair, job) = job(major, "broken_slot", 10)?;
        job.succeed(&["bootstrap", "--once"])?;
        pair.source.execute("insert into t values (100, 'missed by us')")?;
        pair.source.execute(&format!("select pg_replication_slot_advance('{}', pg_current_wal_lsn())", job.slot()))?;
        let advanced = job.run(&["run", "--once"])?;
        assert_eq!(advanced.code, Some(4), "{advanced}");
        assert_eq!(state(&pair)?, "RESYNC_REQUIRED");
        pair.source.execute(&format!("select pg_drop_replication_slot('{}')", job.slot()))?;
        assert_eq!(job.run(&["run", "--once"])?.code, Some(4));
        let status = job.succeed(&["status"])?;
        assert!(status.stdout.contains("SlotAdvanced") && status.stdout.contains("does not exist"), "{status}");
        job.succeed(&["bootstrap", "--once", "--restart-snapshot"])?;
        Comparison::of("public.t").check(&pair.source, &pair.target)?;
    }
}
