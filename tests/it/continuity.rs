//! Continuity that cannot be proven: the job stops, says why, and stays stopped until a new snapshot or the former
//! state of things.

use pgveil_tests::{Cluster, Database, Major, Result, wait};

use crate::support::native::{KEY_VARIABLE, POLICY_HEAD};
use crate::support::people::{People, TABLES, policy};
use crate::support::record::{Record, halted};

const RESYNC: &str = "RESYNC_REQUIRED";

/// `run` refuses with exit 4, twice; `status` says what to do; a new snapshot ends it.
fn needs_new_snapshot(people: &People, kinds: &[&str]) -> Result<()> {
    for _ in 0..2 {
        let finished = people.job.run(&["run", "--once"])?;
        halted(&finished, 4, &people.pair.target, RESYNC, kinds)?;
    }
    let status = people.job.run(&["status"])?;
    assert!(status.stdout.contains(RESYNC) && status.stdout.contains("--restart-snapshot"), "{status}");
    people.job.succeed(&["bootstrap", "--restart-snapshot", "--once"])?;
    people.check("a new snapshot")?;
    people.pair.source.execute("insert into person values (4321, 'fresh@example.com')")?;
    people.catch_up("going on behind it")
}

fn drop_slot(people: &People) -> Result<()> {
    people.pair.source.execute(&format!("select pg_drop_replication_slot('{}')", people.job.slot()))
}

#[test]
fn the_slot_was_dropped() -> Result<()> {
    let people = People::bootstrapped(Major::V15, "dropped")?;
    drop_slot(&people)?;
    people.pair.source.execute("insert into person values (1000, 'missed@example.com')")?;
    needs_new_snapshot(&people, &["SlotMissing"])
}

#[test]
fn the_slot_was_advanced() -> Result<()> {
    let people = People::bootstrapped(Major::V18, "advanced")?;
    people.pair.source.execute("insert into person values (1000, 'missed@example.com')")?;
    people
        .pair
        .source
        .execute(&format!("select pg_replication_slot_advance('{}', pg_current_wal_lsn())", people.job.slot()))?;
    needs_new_snapshot(&people, &["SlotAdvanced"])
}

/// S14: a slot of the same name, made later, is another slot.
#[test]
fn the_slot_was_made_again() -> Result<()> {
    let people = People::bootstrapped(Major::V15, "recreated")?;
    drop_slot(&people)?;
    people.pair.source.execute("insert into person values (1000, 'missed@example.com')")?;
    people
        .pair
        .source
        .execute(&format!("select pg_create_logical_replication_slot('{}', 'pgoutput')", people.job.slot()))?;
    needs_new_snapshot(&people, &["SlotAdvanced", "SlotMissing"])
}

/// L05, L17: the source has thrown away the WAL that the slot needs.
#[test]
fn the_slot_was_invalidated() -> Result<()> {
    let source =
        Cluster::of(Major::V18).setting("max_slot_wal_keep_size", "16MB").setting("max_wal_size", "64MB").start()?;
    let target = Database::on_target(Major::V18, "invalidated")?.server().clone();
    let people = People::on(source.server(), &target, "invalidated")?;
    people.job.succeed(&["bootstrap", "--once"])?;
    let lost = format!("select wal_status from pg_replication_slots where slot_name = '{}'", people.job.slot());
    wait::until("the slot to be lost", wait::LONG, || {
        people.pair.source.execute("create table if not exists filler (i int); insert into filler values (1)")?;
        people.pair.source.execute("select pg_switch_wal()")?;
        people.pair.source.execute("checkpoint")?;
        Ok((people.pair.source.value(&lost)? == "lost").then_some(()))
    })?;
    needs_new_snapshot(&people, &["SlotLost"])
}

/// Another cluster behind the same URL, with a slot and a publication of the same names. Back at the former, it goes on.
#[test]
fn the_source_is_another_cluster() -> Result<()> {
    let mut people = People::bootstrapped(Major::V15, "other_source")?;
    let other = People::on(people.pair.target.server(), people.pair.target.server(), "impostor")?;
    other
        .pair
        .source
        .execute(&format!("select pg_create_logical_replication_slot('{}', 'pgoutput')", people.job.slot()))?;
    let former = people.pair.source.url();
    people.job = people.job.environment("PGVEIL_SOURCE_URL", other.pair.source.url());
    let finished = people.job.run(&["run", "--once"])?;
    halted(&finished, 4, &people.pair.target, RESYNC, &["SourceChanged"])?;

    people.job = people.job.environment("PGVEIL_SOURCE_URL", former);
    people.pair.source.execute("insert into person values (1000, 'kept@example.com')")?;
    people.catch_up("pointing the job at its own source again")
}

/// The rules for rows already copied changed: only a new snapshot makes them hold, or the former rules.
#[test]
fn the_policy_changed() -> Result<()> {
    let people = People::bootstrapped(Major::V18, "policy")?;
    people.pair.source.execute("insert into person values (1000, 'policy@example.com')")?;
    people.job.write_policy(&policy().replacen("columns: {", "columns: { note: \"null\",", 1))?;
    let finished = people.job.run(&["run", "--once"])?;
    halted(&finished, 4, &people.pair.target, RESYNC, &["FingerprintChanged"])?;
    assert_eq!(people.pair.target.value("select count(*) from person where id = 1000")?, "0");

    people.job.write_policy(&policy())?;
    people.catch_up("the former policy")?;

    people.job.write_policy(&policy().replacen("mask: standard/hash", "domain: other, mask: standard/hash", 1))?;
    let finished = people.job.run(&["run", "--once"])?;
    halted(&finished, 4, &people.pair.target, RESYNC, &["FingerprintChanged"])?;
    people.job.succeed(&["bootstrap", "--restart-snapshot", "--once"]).map(drop)
}

/// The layout of the policy file decides nothing.
#[test]
fn a_policy_written_otherwise_is_the_same_policy() -> Result<()> {
    let people = People::bootstrapped(Major::V15, "layout")?;
    let tables = TABLES.iter().rev().map(|table| {
        format!("  {table}:\n    rest: pass\n    columns:\n      # as before\n      \"email\": {{ key: people, \"mask\": standard/hash }}\n")
    });
    people.job.write_policy(&format!("# another layout\n{POLICY_HEAD}tables:\n{}", tables.collect::<String>()))?;
    people.pair.source.execute("insert into person values (1000, 'same@example.com')")?;
    people.catch_up("another layout")
}

#[test]
fn the_key_changed() -> Result<()> {
    let mut people = People::bootstrapped(Major::V18, "key")?;
    people.pair.source.execute("insert into person values (1000, 'key@example.com')")?;
    let former = crate::support::native::KEY;
    people.job = people.job.environment(KEY_VARIABLE, former.replace("1f", "20"));
    let finished = people.job.run(&["run", "--once"])?;
    halted(&finished, 4, &people.pair.target, RESYNC, &["FingerprintChanged"])?;
    people.job = people.job.environment(KEY_VARIABLE, former);
    people.catch_up("the former key")
}

/// Two processes on one job: the second is refused, the first does not notice.
#[test]
fn a_second_process_is_refused() -> Result<()> {
    let people = People::bootstrapped(Major::V15, "second")?;
    let mut running = people.streaming()?;
    for arguments in
        [&["run", "--once"][..], &["run"], &["bootstrap", "--restart-snapshot", "--once"], &["cleanup", "--yes"]]
    {
        let refused = people.job.run(arguments)?;
        assert_eq!(refused.code, Some(3), "{arguments:?}: {refused}");
        let record = Record::read(&people.pair.target)?.ok_or("the record is gone")?;
        assert_eq!((record.state.as_str(), record.kind.as_str()), ("STREAMING", ""), "after {arguments:?}");
        assert!(running.is_running()?, "{}", running.output());
    }
    people.pair.source.execute("insert into person values (1000, 'one@example.com')")?;
    people.wait_until_equal("a second process", wait::LONG)?;
    assert_eq!(running.terminate()?.code, Some(0));
    Ok(())
}

/// `run` before `bootstrap`, and `bootstrap` twice.
#[test]
fn commands_out_of_order_are_refused() -> Result<()> {
    let people = People::new(Major::V18, "order")?;
    let early = people.job.run(&["run", "--once"])?;
    assert_eq!(early.code, Some(3), "{early}");
    people.job.succeed(&["bootstrap", "--once"])?;
    let again = people.job.run(&["bootstrap", "--once"])?;
    assert_eq!(again.code, Some(3), "{again}");
    people.pair.source.execute("insert into person values (1000, 'order@example.com')")?;
    people.catch_up("a refused bootstrap")
}

/// A slot that is not the job's is never taken nor dropped.
#[test]
fn a_slot_of_somebody_else_is_left_alone() -> Result<()> {
    let people = People::new(Major::V15, "foreign_slot")?;
    let source = &people.pair.source;
    source.execute(&format!("select pg_create_logical_replication_slot('{}', 'pgoutput')", people.job.slot()))?;
    let found =
        format!("select confirmed_flush_lsn from pg_replication_slots where slot_name = '{}'", people.job.slot());
    let before = source.value(&found)?;
    for arguments in
        [&["bootstrap", "--once"][..], &["bootstrap", "--restart-snapshot", "--once"], &["cleanup", "--yes"]]
    {
        let refused = people.job.run(arguments)?;
        assert_ne!((refused.code, arguments[0]), (Some(0), "bootstrap"), "{refused}");
        assert_eq!(source.value(&found)?, before, "after {arguments:?}");
    }
    Ok(())
}
