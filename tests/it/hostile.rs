//! Guests that misbehave, run as real jobs: each halts the job with exit 6, nothing of the transaction reaches the
//! target, no value is shown, and a later run with a mended guest goes on.
//!
//! One job has a table for each misdeed, all empty when it is copied. The transactions, one a table, are all written
//! before the first run; every run gets one further, because the guest before is mended.

use pgveil_tests::compare::Comparison;
use pgveil_tests::{Job, Major, Pair, Result};

use crate::scenario::publish;
use crate::support::native::{KEY, KEY_VARIABLE};
use crate::support::people::masked;
use crate::support::record::{Record, halted};

/// A misdeed: the function, its number, and how the job must end.
struct Misdeed {
    function: &'static str,
    number: u64,
    kinds: &'static [&'static str],
    column: &'static str,
}

const fn misdeed(function: &'static str, number: u64, kinds: &'static [&'static str]) -> Misdeed {
    Misdeed { function, number, kinds, column: "text" }
}

const OUTPUT: &[&str] = &["GuestOutput"];
const TRAP: &[&str] = &["GuestTrap"];
const FUEL: &[&str] = &["GuestFuel"];
/// An allocation that is refused ends the guest, with or without a trap of its own; filling what it got may cost its fuel before.
const MEMORY: &[&str] = &["GuestMemory", "GuestTrap", "GuestFuel"];

/// What uses up fuel, stack, memory or patience.
const EXHAUST: &[Misdeed] = &[
    misdeed("loop", 0, FUEL),
    misdeed("recurse", 0, &["GuestTrap", "GuestFuel"]),
    misdeed("take-all-memory", 0, &["GuestMemory", "GuestFuel"]),
    misdeed("take-memory-politely", 0, &["GuestMemory", "GuestFuel"]),
    misdeed("fill-memory", 0, FUEL),
    misdeed("burn", 1_000_000_000, FUEL),
    misdeed("burn-then-trap", 1000, TRAP),
    misdeed("divide-by-zero", 0, TRAP),
    misdeed("trap-at-row", 0, TRAP),
    misdeed("trap-at-row", 2, TRAP),
    misdeed("panic-with-the-value", 1, TRAP),
    misdeed("fault-at-row", 1, &["GuestFault"]),
    misdeed("fault-beyond", 0, &["GuestFault", "GuestOutput"]),
    misdeed("huge-value", 0, MEMORY),
    misdeed("long-value", 8_000_000, OUTPUT),
    misdeed("huge-list", 0, MEMORY),
    misdeed("many-columns", 0, &["GuestOutput", "GuestMemory", "GuestTrap", "GuestFuel"]),
    misdeed("false-length", 0, &["GuestOutput", "GuestTrap", "GuestMemory"]),
];

/// What is no proper column.
const MISSHAPE: &[Misdeed] = &[
    misdeed("no-columns", 0, OUTPUT),
    misdeed("extra-column", 0, OUTPUT),
    misdeed("too-few-rows", 0, OUTPUT),
    misdeed("too-many-rows", 0, OUTPUT),
    misdeed("states-without-ends", 0, OUTPUT),
    misdeed("ends-without-states", 0, OUTPUT),
    misdeed("falling-offsets", 0, OUTPUT),
    misdeed("offsets-beyond", 0, OUTPUT),
    misdeed("offsets-at-the-limit", 0, OUTPUT),
    misdeed("bytes-left-over", 0, OUTPUT),
    misdeed("bytes-in-a-null", 0, OUTPUT),
    misdeed("split-character", 0, OUTPUT),
    misdeed("bad-utf8", 0, OUTPUT),
    misdeed("surrogate", 0, OUTPUT),
    misdeed("nul-byte", 0, OUTPUT),
    misdeed("unknown-state", 0, OUTPUT),
];

/// What has the proper shape and breaks a promise.
const DECEIVE: &[Misdeed] = &[
    Misdeed { column: "text not null", ..misdeed("null", 0, OUTPUT) },
    misdeed("null", 0, OUTPUT),
    misdeed("unchanged", 0, OUTPUT),
    misdeed("count-calls", 0, &["GuestNotDeterministic"]),
    misdeed("count-rows", 0, &["GuestNotDeterministic"]),
    misdeed("count-batch", 0, &["GuestNotDeterministic"]),
    Misdeed { column: "varchar(60)", ..misdeed("lengthen", 0, OUTPUT) },
];

/// Filters. What a filter dropped is nowhere to be seen, so another one needs a new snapshot.
const FILTERS: &[Misdeed] = &[
    misdeed("keep-maybe", 0, OUTPUT),
    misdeed("keep-too-few", 0, OUTPUT),
    misdeed("keep-too-many", 0, OUTPUT),
    misdeed("keep-by-chance", 0, &["GuestNotDeterministic"]),
    misdeed("keep-looping", 0, FUEL),
    misdeed("keep-fault", 0, &["GuestFault"]),
    misdeed("keep-trap", 0, TRAP),
];

impl Misdeed {
    /// What depends on an instance's calls is noticed at its second: so many rows that every worker gets several batches.
    fn rows(&self) -> u32 {
        if self.kinds == ["GuestNotDeterministic"] { 20_000 } else { 3 }
    }

    /// A table's entry in the policy: misbehaving, or mended.
    fn policy(&self, table: usize, mended: bool) -> String {
        let (function, number) = (self.function, self.number);
        let rule = if mended {
            "mask: standard/hash, key: people".to_owned()
        } else {
            format!("mask: hostile/{function}, n: {number}")
        };
        format!("  public.t{table}: {{ columns: {{ v: {{ {rule} }} }}, rest: pass }}\n")
    }
}

fn head(component: &str) -> String {
    format!(
        "version: 1\nguests: {{ standard: {{ builtin: standard }}, hostile: {{ path: {component:?} }} }}\nkeys: {{ people: {{ env: {KEY_VARIABLE} }} }}\ntables:\n"
    )
}

/// The policy with the first tables mended.
fn policy(misdeeds: &[Misdeed], mended: usize) -> String {
    let tables = misdeeds.iter().enumerate().map(|(table, misdeed)| misdeed.policy(table, table < mended));
    format!(
        "{}  public.witness: {{ rest: pass }}\n{}",
        head(pgveil_artifacts::HOSTILE.path),
        tables.collect::<String>()
    )
}

fn halts_and_goes_on(major: Major, purpose: &str, misdeeds: &[Misdeed]) -> Result<()> {
    let pair = Pair::of(major, purpose)?;
    let mut names = vec!["public.witness".to_owned()];
    pair.execute("create table witness (id int primary key)")?;
    for (table, misdeed) in misdeeds.iter().enumerate() {
        pair.execute(&format!("create table t{table} (id int primary key, v {})", misdeed.column))?;
        names.push(format!("public.t{table}"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    publish(&pair, &names)?;
    // Every batch is run twice, so that what depends on calls is noticed at its first.
    let sections = "schema: { mode: existing }\nsafety: { audit_percent: 100 }\n";
    let job = Job::new(&pair, &names, &policy(misdeeds, 0))?.environment(KEY_VARIABLE, KEY).sections(sections)?;
    job.succeed(&["bootstrap", "--once"])?;
    for table in 0..misdeeds.len() {
        let rows = misdeeds.get(table).map_or(0, Misdeed::rows);
        // Values of different lengths: a sum of offsets must not come out right by chance.
        let rows = format!(
            "insert into t{table} select i, 'canary-hostile-' || repeat('x', i % 7) from generate_series(1, {rows}) i"
        );
        pair.source.execute(&format!("begin; insert into witness values ({table}); {rows}; commit"))?;
    }
    for (table, misdeed) in misdeeds.iter().enumerate() {
        job.write_policy(&policy(misdeeds, table))?;
        halts(&job, &pair, table, misdeed)
            .map_err(|error| format!("{} ({}): {error}", misdeed.function, misdeed.number))?;
    }
    job.write_policy(&policy(misdeeds, misdeeds.len()))?;
    job.succeed(&["run", "--once"])?;
    for (table, _) in misdeeds.iter().enumerate().filter(|(_, misdeed)| misdeed.column == "text") {
        Comparison::of(&format!("public.t{table}")).mask("v", masked("v")).check(&pair.source, &pair.target)?;
    }
    Ok(())
}

/// The job comes as far as this table, and halts.
fn halts(job: &Job, pair: &Pair, table: usize, misdeed: &Misdeed) -> Result<()> {
    let finished = job.start_with(&["--log", "trace", "run", "--once"], &[])?.wait(pgveil_tests::wait::LONG)?;
    let record = halted(&finished, 6, &pair.target, "ERROR", misdeed.kinds)?;
    for named in [&format!("public.t{table}"), misdeed.function] {
        if !record.reason.contains(named) {
            return Err(format!("{named} is not named: {}", record.reason).into());
        }
    }
    let status = job.run(&["status"])?;
    for (place, text) in [("output", finished.to_string()), ("status", status.to_string()), ("record", record.reason)] {
        if text.contains("canary") {
            return Err(format!("a value is shown in {place}: {text}").into());
        }
    }
    // Transactions before it may wait with it: they were masked in one window. Of it and those behind it nothing is there.
    let witnesses = pair.target.value(&format!("select count(*) from witness where id >= {table}"))?;
    let rows = pair.target.value(&format!("select count(*) from t{table}"))?;
    if (witnesses.as_str(), rows.as_str()) != ("0", "0") {
        return Err(format!("{witnesses} transactions and {rows} rows of the failing one are there").into());
    }
    Ok(())
}

#[test]
fn guests_that_exhaust_what_they_are_given() -> Result<()> {
    halts_and_goes_on(Major::V15, "exhaust", EXHAUST)
}

#[test]
fn guests_that_return_no_proper_columns() -> Result<()> {
    halts_and_goes_on(Major::V18, "misshape", MISSHAPE)
}

#[test]
fn guests_that_break_a_promise() -> Result<()> {
    halts_and_goes_on(Major::V15, "deceive", DECEIVE)
}

/// A one-table job whose snapshot has rows: `v` goes through the function.
fn single(pair: &Pair, component: &str, rule: &str, column: &str, rows: &str) -> Result<Job> {
    pair.execute(&format!("create table t (id int primary key, v {column})"))?;
    pair.source.execute(rows)?;
    publish(pair, &["public.t"])?;
    Ok(Job::new(
        pair,
        &["public.t"],
        &format!("{}  public.t: {{ columns: {{ v: {{ {rule} }} }}, rest: pass }}\n", head(component)),
    )?
    .environment(KEY_VARIABLE, KEY))
}

const ROWS: &str = "insert into t select i, 'canary-hostile-' || i from generate_series(1, 5000) i";

/// Each filter halts the job; with another one, or none, a new snapshot goes on.
#[test]
fn filters_that_misbehave() -> Result<()> {
    for filter in FILTERS {
        let pair = Pair::of(Major::V18, "filters")?;
        let job =
            single(&pair, pgveil_artifacts::HOSTILE.path, "mask: standard/hash, key: people", "text", "select 1")?;
        let plain = format!(
            "{}  public.t: {{ columns: {{ v: {{ mask: standard/hash, key: people }} }}, rest: pass",
            head(pgveil_artifacts::HOSTILE.path)
        );
        job.write_policy(&format!("{plain}, keep: {{ filter: hostile/{}, columns: [v] }} }}\n", filter.function))?;
        let job = job.sections("schema: { mode: existing }\nsafety: { audit_percent: 100 }\n")?;
        job.succeed(&["bootstrap", "--once"])?;
        pair.source.execute(&format!(
            "insert into t select i, 'canary-hostile-' || i from generate_series(1, {}) i",
            filter.rows()
        ))?;
        let finished = job.start_with(&["--log", "trace", "run", "--once"], &[])?.wait(pgveil_tests::wait::LONG)?;
        let record = halted(&finished, 6, &pair.target, "ERROR", filter.kinds)
            .map_err(|error| format!("{}: {error}", filter.function))?;
        assert!(record.reason.contains("public.t") && record.reason.contains(filter.function), "{record:?}");
        assert!(!format!("{finished}{record:?}").contains("canary"), "a value is shown: {finished}");
        assert_eq!(pair.target.value("select count(*) from t")?, "0");
        job.write_policy(&format!("{plain} }}\n"))?;
        let other = job.run(&["run", "--once"])?;
        halted(&other, 4, &pair.target, "RESYNC_REQUIRED", &["FingerprintChanged"])?;
        job.succeed(&["bootstrap", "--restart-snapshot", "--once"])?;
        assert_eq!(pair.target.value("select count(*) from t")?, filter.rows().to_string());
    }
    Ok(())
}

/// In the snapshot: the copy is taken back, its slot too; a mended guest copies.
#[test]
fn a_guest_that_fails_in_the_snapshot() -> Result<()> {
    let pair = Pair::of(Major::V18, "hostile_snapshot")?;
    let job =
        single(&pair, pgveil_artifacts::HOSTILE.path, "mask: hostile/panic-with-the-value, n: 700", "text", ROWS)?;
    let finished = job.start_with(&["--log", "trace", "bootstrap", "--once"], &[])?.wait(pgveil_tests::wait::LONG)?;
    assert_eq!(finished.code, Some(6), "{finished}");
    assert!(!finished.to_string().contains("canary"), "a value is shown: {finished}");
    assert_eq!(
        pair.source.value(&format!("select count(*) from pg_replication_slots where slot_name = '{}'", job.slot()))?,
        "0"
    );
    job.write_policy(&format!(
        "{}  public.t: {{ columns: {{ v: {{ mask: standard/hash, key: people }} }}, rest: pass }}\n",
        head(pgveil_artifacts::HOSTILE.path)
    ))?;
    job.succeed(&["bootstrap", "--restart-snapshot", "--once"])?;
    assert_eq!(
        pair.target.value("select count(*) || ' ' || count(distinct v) || ' ' || min(length(v)) from t")?,
        "5000 5000 64"
    );
    Ok(())
}

/// W16: what cannot even be loaded or bound is refused before any server is touched: nothing listens at these URLs.
#[test]
fn guests_that_are_refused_before_a_server_is_touched() -> Result<()> {
    let pair = Pair::of(Major::V15, "refused_guest")?;
    let job = single(&pair, "none.wasm", "mask: hostile/identity", "text", "select 1")?;
    let nowhere = "postgresql://nobody@127.0.0.1:1/nothing";
    let job = job.environment("PGVEIL_SOURCE_URL", nowhere).environment("PGVEIL_TARGET_URL", nowhere);
    let cases = [
        (pgveil_artifacts::HOSTILE_START.path, "hostile"),
        (pgveil_artifacts::HOSTILE_IMPORT.path, "hostile:outside/disk"),
        (pgveil_artifacts::HOSTILE.module_path, "hostile"),
        ("/dev/null", "hostile"),
    ];
    for (component, named) in cases {
        job.write_policy(&format!(
            "{}  public.t: {{ columns: {{ v: {{ mask: hostile/identity }} }}, rest: pass }}\n",
            head(component)
        ))?;
        let refused = job.run(&["bootstrap", "--once"])?;
        assert_eq!(refused.code, Some(6), "{component}: {refused}");
        assert!(refused.to_string().contains(named), "{component}: {refused}");
    }
    Ok(())
}

/// A guest that does not want to be bound is refused before the slot is made, and its words are bounded.
#[test]
fn guests_that_refuse_to_be_bound() -> Result<()> {
    for (number, function) in ["refuse-to-bind", "refuse-at-length", "trap-at-bind"].into_iter().enumerate() {
        let pair = Pair::of(Major::V18, &format!("bind_{number}"))?;
        let job = single(&pair, pgveil_artifacts::HOSTILE.path, &format!("mask: hostile/{function}"), "text", ROWS)?;
        let refused = job.run(&["bootstrap", "--once"])?;
        assert!(matches!(refused.code, Some(2 | 3 | 6)), "{function}: {refused}");
        assert!(refused.to_string().contains(function) && refused.to_string().len() < 20_000, "{function}: {refused}");
        assert_eq!(pair.target.value("select count(*) from t")?, "0");
        assert_eq!(
            pair.source
                .value(&format!("select count(*) from pg_replication_slots where slot_name = '{}'", job.slot()))?,
            "0"
        );
    }
    Ok(())
}

/// What only the target can notice: nonsense for the type, equal values for a unique column.
#[test]
fn output_that_the_target_refuses() -> Result<()> {
    for (purpose, function, column, value) in
        [("nonsense", "write-nonsense", "int", "4711"), ("collide", "collide", "text unique", "'canary-' || i")]
    {
        let pair = Pair::of(Major::V15, &format!("hostile_{purpose}"))?;
        let job =
            single(&pair, pgveil_artifacts::HOSTILE.path, &format!("mask: hostile/{function}"), column, "select 1")?;
        job.succeed(&["bootstrap", "--once"])?;
        pair.source.execute(&format!("insert into t select i, {value} from generate_series(1, 2) i"))?;
        let finished = job.run(&["run", "--once"])?;
        assert!(matches!(finished.code, Some(5 | 6)), "{function}: {finished}");
        let record = Record::read(&pair.target)?.ok_or("no record")?;
        let shown = format!("{finished}{record:?}");
        assert!(
            !shown.contains("canary") && !shown.contains("4711") && !shown.contains("nonsense\""),
            "{function}: {shown}"
        );
        assert_eq!(pair.target.value("select count(*) from t")?, "0");
    }
    Ok(())
}

/// Output that COPY or SQL would take for something else is a value like any other.
#[test]
fn output_full_of_escapes_is_stored_as_it_is() -> Result<()> {
    let pair = Pair::of(Major::V18, "escapes")?;
    let job = single(&pair, pgveil_artifacts::HOSTILE.path, "mask: hostile/write-escapes", "text", ROWS)?;
    job.succeed(&["bootstrap", "--once"])?;
    pair.source.execute("insert into t values (10001, 'x'); insert into t select i, 'y' from generate_series(20001, 20100) i; update t set v = 'z' where id < 50")?;
    job.succeed(&["run", "--once"])?;
    let found = pair.target.rows("select distinct v from t")?;
    assert_eq!(found, [[Some("\\N\t\\.\n'); drop table users; --".to_owned())]]);
    assert_eq!(pair.target.value("select count(*) from t")?, "5101");
    Ok(())
}

/// A guest that is honest at first: the audit runs its batches again in a fresh instance, where it has not turned yet.
#[test]
fn a_guest_that_turns_after_some_calls_is_noticed() -> Result<()> {
    let pair = Pair::of(Major::V15, "turn_later")?;
    let job = single(&pair, pgveil_artifacts::HOSTILE.path, "mask: hostile/turn-later, n: 3", "text", ROWS)?;
    let job =
        job.sections("schema: { mode: existing }\nsafety: { audit_percent: 100 }\nlimits: { batch_rows: 100 }\n")?;
    let finished = job.run(&["bootstrap", "--once"])?;
    assert_eq!(finished.code, Some(6), "{finished}");
    Ok(())
}
