//! Tables that change their shape while the job runs: it stops before anything of the transaction is applied, names the
//! difference, and goes on once the operator has decided.

use std::time::Duration;

use pgveil_tests::compare::Comparison;
use pgveil_tests::{Job, Major, Pair, Result};

use crate::scenario::publish;
use crate::support::native::{KEY, KEY_VARIABLE, POLICY_HEAD};
use crate::support::people::{keeps_up, masked};
use crate::support::record::{Record, halted};

const SCHEMA: &str = "create type mood as enum ('glad', 'sad'); create table t (id int primary key, email text, name varchar(10), amount numeric(6,2), mood mood, twice int generated always as (id * 2) stored)";

const ROWS: &str =
    "insert into t select i, 'e' || i || '@example.com', 'n' || i, i / 3.0, 'glad' from generate_series(1, 50) i";

/// Every column but generated ones decided by name.
const COLUMNS: &str = "id: pass, email: { mask: standard/hash, key: people }, name: pass, amount: pass, mood: pass";

/// A bootstrapped job on one table.
struct Drift {
    pair: Pair,
    job: Job,
}

fn policy(columns: &str) -> String {
    format!("{POLICY_HEAD}tables:\n  public.t:\n    columns: {{ {columns} }}\n")
}

impl Drift {
    fn new(major: Major, purpose: &str) -> Result<Drift> {
        let pair = Pair::of(major, purpose)?;
        pair.execute(SCHEMA)?;
        pair.source.execute(ROWS)?;
        publish(&pair, &["public.t"])?;
        let job = Job::new(&pair, &["public.t"], &policy(COLUMNS))?.environment(KEY_VARIABLE, KEY);
        job.succeed(&["bootstrap", "--once"])?;
        let drift = Drift { pair, job };
        drift.check(&["email"])?;
        Ok(drift)
    }

    /// Both ends, with these columns masked by `standard/hash`.
    fn check(&self, columns: &[&str]) -> Result<()> {
        let compared =
            columns.iter().fold(Comparison::of("public.t"), |compared, column| compared.mask(column, masked(column)));
        compared.check(&self.pair.source, &self.pair.target).map(drop)
    }

    fn contents(&self) -> Result<String> {
        self.pair.target.value("select count(*) || coalesce(string_agg(t::text, '|' order by t::text), '') from t")
    }

    /// The change meets a running job, which stops. `named` is what the reason tells the operator; what it must not
    /// tell is a value.
    fn stops(&self, change: &str, kinds: &[&str], named: &[&str]) -> Result<()> {
        let running = self.job.start(&["run"])?;
        keeps_up(&self.pair, &self.job)?;
        self.pair.source.execute("insert into t (id, email) values (900, 'before@example.com')")?;
        self.pair.target.wait_for("select count(*) from t where id = 900", "1", Duration::from_secs(10))?;
        let before = self.contents()?;
        self.pair.source.execute(change)?;
        let finished = running.wait(Duration::from_secs(20))?;
        let record = halted(&finished, 5, &self.pair.target, "ERROR", kinds)?;
        assert_eq!(self.contents()?, before, "something of the transaction was applied");
        for name in named {
            assert!(record.reason.contains(name), "{name} is not named: {}", record.reason);
        }
        assert!(!format!("{finished}{record:?}").contains("canary"), "a value is shown: {finished}{record:?}");
        // Nobody has decided: it stays as it is.
        let again = self.job.run(&["run", "--once"])?;
        assert!(matches!(again.code, Some(2 | 3 | 5)), "{again}");
        assert_eq!(self.contents()?, before);
        assert_eq!(Record::read(&self.pair.target)?.map(|record| record.applied), Some(record.applied));
        Ok(())
    }

    /// The operator has altered the target and written the policy again.
    fn decided(&self, target: &str, columns: &str, masks: &[&str]) -> Result<()> {
        self.pair.target.execute(target)?;
        self.job.write_policy(&policy(columns))?;
        self.job.succeed(&["run", "--once"])?;
        self.check(masks)?;
        self.pair.source.execute(
            "insert into t (id) values (9999); update t set id = 9998 where id = 9999; delete from t where id = 2",
        )?;
        self.job.succeed(&["run", "--once"])?;
        self.check(masks)
    }
}

/// D02: a column that appears is never passed: it waits for the policy, then is masked.
#[test]
fn an_added_column_waits_for_the_policy() -> Result<()> {
    let drift = Drift::new(Major::V15, "added")?;
    drift.stops(
        "alter table t add ssn text; insert into t (id, ssn) values (100, 'canary-ssn')",
        &["RelationChanged"],
        &["public.t", "ssn"],
    )?;
    drift.decided(
        "alter table t add ssn text",
        &format!("{COLUMNS}, ssn: {{ mask: standard/hash, key: people }}"),
        &["email", "ssn"],
    )
}

/// The same column with a default, which older rows have at the source without ever having been sent.
#[test]
fn an_added_column_with_a_default() -> Result<()> {
    let drift = Drift::new(Major::V18, "added_default")?;
    drift.stops(
        "alter table t add level int not null default 7; update t set name = 'x' where id = 3",
        &["RelationChanged"],
        &["public.t", "level"],
    )?;
    drift.decided("alter table t add level int not null default 7", &format!("{COLUMNS}, level: pass"), &["email"])
}

/// D02 before the copy: an undecided column is refused before anything is made.
#[test]
fn a_column_that_is_undecided_before_the_copy_is_refused() -> Result<()> {
    let pair = Pair::of(Major::V18, "undecided")?;
    pair.execute(SCHEMA)?;
    pair.execute("alter table t add ssn text")?;
    pair.source.execute("insert into t (id, ssn) values (1, 'canary-ssn')")?;
    publish(&pair, &["public.t"])?;
    let job = Job::new(&pair, &["public.t"], &policy(COLUMNS))?.environment(KEY_VARIABLE, KEY);
    for arguments in [&["check"][..], &["bootstrap", "--once"]] {
        let refused = job.run(arguments)?;
        assert!(matches!(refused.code, Some(2 | 3)), "{arguments:?}: {refused}");
        assert!(refused.to_string().contains("ssn") && !refused.to_string().contains("canary"), "{refused}");
    }
    assert_eq!(pair.target.value("select count(*) from t")?, "0");
    let slots = format!("select count(*) from pg_replication_slots where slot_name = '{}'", job.slot());
    assert_eq!(pair.source.value(&slots)?, "0");
    Ok(())
}

/// D01: rows and changes of shape mixed in one transaction: none of it is applied.
#[test]
fn several_changes_within_one_transaction() -> Result<()> {
    let drift = Drift::new(Major::V15, "mixed")?;
    drift.stops(
        "begin; insert into t (id, email) values (101, 'canary-1'); alter table t add extra int default 3; insert into t (id, email) values (102, 'canary-2'); \
         alter table t rename column name to title; update t set title = 'x' where id = 1; alter table t drop column extra; \
         insert into t (id, email) values (103, 'canary-3'); alter table t alter amount type text; insert into t (id) values (104); commit",
        &["RelationChanged"],
        &["public.t"],
    )
}

/// D04: a new label of an enum is known only by the row that uses it.
#[test]
fn an_enum_label_that_the_target_lacks() -> Result<()> {
    let drift = Drift::new(Major::V15, "label")?;
    drift.stops("begin; alter type mood add value 'canary'; commit; begin; insert into t (id, mood) values (100, 'canary'); commit", &["TargetRefused"], &["public.t", "22P02"])?;
    drift.decided("alter type mood add value 'canary'", COLUMNS, &["email"])
}

/// D06: a table of the same name is another table: its rows were never copied.
#[test]
fn a_table_dropped_and_made_again() -> Result<()> {
    let drift = Drift::new(Major::V18, "made_again")?;
    let again = SCHEMA.split_once("; ").map_or("", |(_, table)| table);
    drift.stops(
        &format!("drop table t; {again}; insert into t (id) values (1); alter publication pgveil add table t; insert into t (id, email) values (2, 'canary-again')"),
        &["RelationChanged", "UnknownRelation"],
        &["public.t"],
    )?;
    drift.job.succeed(&["bootstrap", "--restart-snapshot", "--once"])?;
    drift.check(&["email"])
}

/// D07: a length is part of the shape.
#[test]
fn a_length_and_a_precision() -> Result<()> {
    let drift = Drift::new(Major::V15, "length")?;
    let change = "alter table t alter name type varchar(20), alter amount type numeric(8,4)";
    drift.stops(
        &format!("{change}; insert into t (id, name, amount) values (100, 'canary-name-long', 1.2345)"),
        &["RelationChanged"],
        &["public.t", "name", "amount"],
    )?;
    drift.decided(change, COLUMNS, &["email"])
}

#[test]
fn a_renamed_column() -> Result<()> {
    let drift = Drift::new(Major::V18, "renamed")?;
    let change = "alter table t rename column name to title";
    drift.stops(
        &format!("{change}; insert into t (id, title) values (100, 'canary')"),
        &["RelationChanged"],
        &["public.t", "name", "title"],
    )?;
    drift.decided(change, &COLUMNS.replace("name:", "title:"), &["email"])
}

#[test]
fn a_dropped_column() -> Result<()> {
    let drift = Drift::new(Major::V15, "dropped_column")?;
    let change = "alter table t drop column amount";
    drift.stops(
        &format!("{change}; insert into t (id, name) values (100, 'canary')"),
        &["RelationChanged"],
        &["public.t", "amount"],
    )?;
    drift.decided(change, &COLUMNS.replace(" amount: pass,", ""), &["email"])
}

#[test]
fn a_retyped_column() -> Result<()> {
    let drift = Drift::new(Major::V18, "retyped")?;
    let change = "alter table t alter name type text";
    drift.stops(
        &format!("{change}; insert into t (id, name) values (100, 'canary, and a long one')"),
        &["RelationChanged"],
        &["public.t", "name"],
    )?;
    drift.decided(change, COLUMNS, &["email"])
}

/// The rows are found in another way from here on.
#[test]
fn a_changed_identity() -> Result<()> {
    let drift = Drift::new(Major::V15, "identity")?;
    drift.stops(
        "alter table t replica identity full; update t set name = 'canary' where id = 1",
        &["RelationChanged"],
        &["public.t"],
    )?;
    drift.decided("alter table t replica identity full", COLUMNS, &["email"])
}

/// D14: what was rolled back never was.
#[test]
fn a_change_within_a_savepoint_that_is_rolled_back() -> Result<()> {
    let drift = Drift::new(Major::V18, "rolled_back")?;
    drift.pair.source.execute(
        "begin; insert into t (id) values (100); savepoint a; alter table t add extra text; insert into t (id, extra) values (101, 'x'); \
         rollback to a; insert into t (id, email) values (102, 'kept@example.com'); commit",
    )?;
    drift.job.succeed(&["run", "--once"])?;
    drift.check(&["email"])
}

/// What is no change of shape is none: statistics, storage, indexes, comments, another default.
#[test]
fn changes_that_do_not_concern_rows() -> Result<()> {
    let drift = Drift::new(Major::V15, "harmless")?;
    drift.pair.source.execute(
        "alter table t alter name set default 'd', alter email set storage external, alter id set statistics 50; create index on t (name); \
         comment on table t is 'x'; analyze t",
    )?;
    drift.pair.source.execute("vacuum full t")?;
    drift
        .pair
        .source
        .execute("insert into t (id, email) values (100, 'after@example.com'); update t set amount = 1 where id = 4")?;
    drift.job.succeed(&["run", "--once"])?;
    drift.check(&["email"])
}

/// D12: a row of the former shape, read after the change: the stream's own description counts, not the catalogue's.
#[test]
fn rows_of_the_former_shape_before_the_change() -> Result<()> {
    let drift = Drift::new(Major::V18, "former_shape")?;
    drift.pair.source.execute("insert into t (id, email) values (100, 'former@example.com')")?;
    drift.pair.source.execute("alter table t add note text")?;
    drift.pair.source.execute("insert into t (id, note) values (101, 'later')")?;
    drift.decided("alter table t add note text", &format!("{COLUMNS}, note: pass"), &["email"])
}
