//! Canaries in every masked column of every kind of operation, also in rows that fail on the target: afterwards no
//! canary is in the target's files, in any output at trace level, in status, errors or the job's records.

use pgveil_tests::cluster::Server;
use pgveil_tests::leak::{Canaries, Leak};
use pgveil_tests::{Cluster, Database, Job, Major, Pair, Result};

use crate::scenario::publish;
use crate::support::native::{KEY, KEY_VARIABLE, POLICY_HEAD};

const SCHEMA: &str = "create table keyed (id text primary key, v text, big text, n int); \
    create table whole (a text, b text); alter table whole replica identity full; \
    create table filtered (id int primary key, v text); \
    create table typed (id int primary key, number numeric, day date, doc text, short varchar(30)); \
    alter table keyed alter big set storage external";

const TABLES: [&str; 4] = ["public.keyed", "public.whole", "public.filtered", "public.typed"];

fn policy(rule: &str) -> String {
    format!(
        "{POLICY_HEAD}tables:\n  \
         public.keyed: {{ columns: {{ id: {rule}, v: {rule}, big: {rule} }}, rest: pass }}\n  \
         public.whole: {{ columns: {{ a: {rule}, b: {rule} }} }}\n  \
         public.filtered: {{ keep: {{ filter: standard/sample, columns: [v], percent: 50, key: people }}, columns: {{ v: {rule} }}, rest: pass }}\n  \
         public.typed: {{ columns: {{ id: pass, number: \"null\", day: \"null\", doc: {rule}, short: {rule} }} }}\n"
    )
}

const MASKED: &str = "{ mask: standard/hash, key: people }";

/// Different canaries, so that a leak tells its operation. None is compressed: they are short.
const CANARIES: [&str; 12] = [
    "canary-snapshot-7f3a",
    "canary-insert-91c0",
    "canary-update-b2d4",
    "canary-delete-55e1",
    "canary-keychange-0c9d",
    "canary-full-3ab7",
    "canary-filter-e810",
    "canary-toast-6642",
    "canary-refused-d01f",
    "canary-rolledback-2b3c",
    "canary-newline-88aa",
    "canary-drift-4f4f",
];

const BEFORE: &str = "insert into keyed select 'canary-snapshot-7f3a' || i, 'canary-snapshot-7f3a', 'canary-toast-6642' || repeat(md5(i::text), 100), i from generate_series(1, 100) i; \
    insert into whole select 'canary-full-3ab7', 'canary-full-3ab7' || i from generate_series(1, 40) i; insert into whole values (null, 'canary-full-3ab7'); \
    insert into filtered select i, 'canary-filter-e810' || i from generate_series(1, 100) i; \
    insert into typed select i, 123, '2020-02-02', 'canary-snapshot-7f3a', 'canary-snapshot-7f3a' from generate_series(1, 50) i";

/// Every kind of operation, alone and in runs.
const CHANGES: [&str; 9] = [
    "insert into keyed values ('canary-insert-91c0', 'canary-insert-91c0', 'canary-toast-6642', 1); insert into keyed select 'canary-insert-91c0' || i, 'canary-insert-91c0', null, 2 from generate_series(1, 60) i",
    "update keyed set v = 'canary-update-b2d4' where n = 1; update keyed set v = 'canary-update-b2d4' || n",
    "update keyed set id = 'canary-keychange-0c9d' || id where n < 10",
    "update keyed set n = n + 1",
    "delete from keyed where n = 3; delete from keyed where id like 'canary-insert%'; update keyed set v = 'canary-delete-55e1' where n = 50; delete from keyed where n = 50",
    "update whole set b = b || 'canary-update-b2d4'; delete from whole where b like '%1%'; delete from whole where a is null",
    "update filtered set v = v || 'x'; delete from filtered where id % 3 = 0; insert into filtered select i, 'canary-filter-e810' || i from generate_series(201, 280) i",
    "begin; savepoint a; insert into keyed values ('canary-rolledback-2b3c', 'canary-rolledback-2b3c'); rollback to a; insert into keyed values (E'canary-newline-88aa\\n)\\t(=', E'canary-newline-88aa\\nnext line'); commit",
    "update typed set number = 77, doc = 'canary-update-b2d4', short = 'canary-update-b2d4'; delete from typed where id < 10",
];

/// A transaction that the target will refuse, and what the operator does at the target before and after.
struct Refusal {
    prepare: &'static str,
    change: &'static str,
    mend: &'static str,
}

/// Violations of every kind that a server answers with the row or the value in its message, detail or context.
const REFUSALS: [Refusal; 5] = [
    Refusal {
        prepare: "alter table keyed add constraint small check (n < 100000)",
        change: "insert into keyed values ('canary-refused-d01f', 'canary-refused-d01f', null, 100001)",
        mend: "alter table keyed drop constraint small",
    },
    Refusal {
        prepare: "alter table typed alter doc type int using null, add constraint d check (doc > 0)",
        change: "insert into typed values (1001, 5, '2021-01-01', 'canary-refused-d01f', 'canary-refused-d01f')",
        mend: "alter table typed drop constraint d, alter doc type text",
    },
    Refusal {
        prepare: "alter table typed alter short type varchar(8) using left(short, 8)",
        change: "insert into typed select i, 5, '2021-01-01', 'canary-refused-d01f', 'canary-refused-d01f' || i from generate_series(2001, 2050) i",
        mend: "alter table typed alter short type varchar(30)",
    },
    Refusal {
        prepare: "alter table whole add constraint one check (length(a) < 10) not valid",
        change: "insert into whole select 'canary-refused-d01f', 'canary-refused-d01f' || i from generate_series(1, 50) i",
        mend: "alter table whole drop constraint one",
    },
    Refusal {
        prepare: "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no %', new; end $$; \
                  create trigger refuse before insert or update or delete on keyed for each row execute function refuse(); alter table keyed enable always trigger refuse",
        change: "update keyed set v = 'canary-refused-d01f'",
        mend: "drop trigger refuse on keyed",
    },
];

/// All that the job has written anywhere but into the target.
struct Outputs(String);

impl Outputs {
    fn run(&mut self, job: &Job, arguments: &[&str]) -> Result<Option<i32>> {
        let arguments = [&["--log", "trace"], arguments].concat();
        let finished = job.start_with(&arguments, &[("RUST_BACKTRACE", "full")])?.wait(pgveil_tests::wait::LONG)?;
        self.0.push_str(&finished.to_string());
        Ok(finished.code)
    }
}

fn pair(source: &Server, target: &Server, purpose: &str) -> Result<Pair> {
    let pair = Pair { source: Database::create(source, purpose)?, target: Database::create(target, purpose)? };
    pair.execute(SCHEMA)?;
    pair.source.execute(BEFORE)?;
    publish(&pair, &TABLES)?;
    Ok(pair)
}

/// A target that logs every statement and its parameters: what it is never sent, it cannot log.
fn talkative(major: Major) -> Result<Cluster> {
    Cluster::of(major)
        .setting("log_statement", "all")
        .setting("log_parameter_max_length", "-1")
        .setting("log_parameter_max_length_on_error", "-1")
        .start()
}

fn scan(canaries: &Canaries, target: &Cluster, pair: &Pair, outputs: &Outputs) -> Result<Vec<Leak>> {
    pair.target.execute("checkpoint")?;
    let mut leaks = canaries.under(&target.server().home)?;
    leaks.extend(canaries.in_bytes("output", outputs.0.as_bytes()));
    for table in ["job", "checkpoint", "job_table", "chunk", "process"] {
        let rows = pair.target.rows(&format!("select t::text from pgveil.{table} t"))?;
        leaks.extend(canaries.in_bytes(table, format!("{rows:?}").as_bytes()));
    }
    Ok(leaks)
}

fn no_canary_gets_through(major: Major) -> Result<()> {
    let (source, target) = (Cluster::of(major).start()?, talkative(major)?);
    let pair = pair(source.server(), target.server(), "leak")?;
    let job = Job::new(&pair, &TABLES, &policy(MASKED))?.environment(KEY_VARIABLE, KEY);
    let mut outputs = Outputs(String::new());
    for arguments in [&["check"][..], &["bootstrap", "--once"]] {
        assert_eq!(outputs.run(&job, arguments)?, Some(0), "{arguments:?}: {}", outputs.0);
    }
    for change in CHANGES {
        pair.source.execute(change)?;
    }
    assert_eq!(outputs.run(&job, &["run", "--once"])?, Some(0), "{}", outputs.0);
    for refusal in REFUSALS {
        pair.target.execute(refusal.prepare)?;
        pair.source.execute(refusal.change)?;
        // Another type at the target is noticed before the first row, a violation by the row.
        let code = outputs.run(&job, &["run", "--once"])?;
        assert!(matches!(code, Some(3 | 5)), "{}: {code:?}: {}", refusal.change, outputs.0);
        outputs.run(&job, &["status"])?;
        outputs.run(&job, &["--json", "status"])?;
        pair.target.execute(refusal.mend)?;
        assert_eq!(outputs.run(&job, &["run", "--once"])?, Some(0), "{}: {}", refusal.change, outputs.0);
    }
    pair.source.execute("alter table keyed add extra text; insert into keyed values ('canary-drift-4f4f', 'canary-drift-4f4f', null, 1, 'canary-drift-4f4f')")?;
    assert_ne!(outputs.run(&job, &["run", "--once"])?, Some(0), "{}", outputs.0);
    let leaks = scan(&Canaries::new(CANARIES)?, &target, &pair, &outputs)?;
    assert_eq!(leaks, []);
    assert_eq!(pair.target.value("select count(*) > 100 from keyed")?, "t", "the rows themselves are there");
    Ok(())
}

#[test]
fn no_canary_gets_through_15() -> Result<()> {
    no_canary_gets_through(Major::V15)
}

#[test]
fn no_canary_gets_through_18() -> Result<()> {
    no_canary_gets_through(Major::V18)
}

/// The scan itself: a policy that passes the columns is a leaky build, and is found out in table, WAL and log.
#[test]
fn a_leaky_job_is_found_out() -> Result<()> {
    let (source, target) = (Cluster::of(Major::V18).start()?, talkative(Major::V18)?);
    let pair = pair(source.server(), target.server(), "leaky")?;
    let job = Job::new(&pair, &TABLES, &policy("pass"))?.environment(KEY_VARIABLE, KEY);
    let mut outputs = Outputs(String::new());
    assert_eq!(outputs.run(&job, &["bootstrap", "--once"])?, Some(0), "{}", outputs.0);
    pair.source.execute(CHANGES[0])?;
    assert_eq!(outputs.run(&job, &["run", "--once"])?, Some(0), "{}", outputs.0);
    let leaks = scan(&Canaries::new(CANARIES)?, &target, &pair, &outputs)?;
    for (canary, place) in [
        ("canary-snapshot-7f3a", "/base/"),
        ("canary-insert-91c0", "/base/"),
        ("canary-snapshot-7f3a", "/pg_wal/"),
        ("canary-full-3ab7", "/pg_wal/"),
    ] {
        let found = leaks.iter().any(|leak| leak.canary == canary && leak.file.to_string_lossy().contains(place));
        assert!(found, "{canary} was not found in {place}");
    }
    Ok(())
}
