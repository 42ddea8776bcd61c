//! A job with two masked tables: one found by its key, one by its whole rows.

use std::time::Duration;

use pgveil_tests::cluster::Server;
use pgveil_tests::compare::{Comparison, SourceRow};
use pgveil_tests::runner::Running;
use pgveil_tests::{Database, Job, Major, Pair, Result, wait};

use super::native::{self, KEY, KEY_VARIABLE, POLICY_HEAD};
use super::record::Record;
use crate::scenario::publish;

/// The tables of the job.
pub const TABLES: [&str; 2] = ["public.person", "public.visit"];

const SCHEMA: &str = "create table person (id int primary key, email text, note text, n int not null default 0); \
    create table visit (id int not null, email text not null, n int); alter table visit replica identity full";

const ROWS: &str = "insert into person select i, case when i % 7 <> 0 then 'p' || i || '@example.com' end, 'note ' || i from generate_series(1, 400) i; \
    insert into visit select i, 'v' || i || '@example.com', i from generate_series(1, 100) i";

/// Databases with rows, and a job that is not bootstrapped yet.
pub struct People {
    pub pair: Pair,
    pub job: Job,
}

impl People {
    /// On the shared clusters.
    pub fn new(major: Major, purpose: &str) -> Result<People> {
        People::of(Pair::of(major, purpose)?)
    }

    /// On clusters of one's own.
    pub fn on(source: &Server, target: &Server, purpose: &str) -> Result<People> {
        People::of(Pair { source: Database::create(source, purpose)?, target: Database::create(target, purpose)? })
    }

    fn of(pair: Pair) -> Result<People> {
        pair.execute(SCHEMA)?;
        pair.source.execute(ROWS)?;
        publish(&pair, &TABLES)?;
        // Short waits between attempts: tests break connections on purpose.
        let sections = "schema: { mode: existing }\nsafety: { reconnect_first: 50ms, reconnect_longest: 500ms }\n";
        let job = Job::new(&pair, &TABLES, &policy())?.environment(KEY_VARIABLE, KEY).sections(sections)?;
        Ok(People { pair, job })
    }

    /// The same, with the copy made and compared.
    pub fn bootstrapped(major: Major, purpose: &str) -> Result<People> {
        let people = People::new(major, purpose)?;
        people.job.succeed(&["bootstrap", "--once"])?;
        people.check("the snapshot")?;
        Ok(people)
    }

    /// Both tables, every row: what passes is equal, what is masked is what the native mask makes of it.
    pub fn check(&self, after: &str) -> Result<()> {
        for table in TABLES {
            let compared =
                Comparison::of(table).mask("email", masked("email")).check(&self.pair.source, &self.pair.target);
            compared.map_err(|error| format!("after {after}: {error}"))?;
        }
        Ok(())
    }

    /// `run --once`, then [`check`](Self::check).
    pub fn catch_up(&self, after: &str) -> Result<()> {
        self.job.succeed(&["run", "--once"])?;
        self.check(after)
    }

    /// `run` in the background, once it keeps up.
    pub fn streaming(&self) -> Result<Running> {
        let running = self.job.start(&["run"])?;
        keeps_up(&self.pair, &self.job)?;
        Ok(running)
    }

    /// Waits until the slot has passed all that the source has written by now, then compares.
    pub fn wait_until_equal(&self, after: &str, limit: Duration) -> Result<()> {
        let position = self.pair.source.wal_position()?;
        self.pair.source.wait_for_slot(self.job.slot(), &position, limit)?;
        self.check(after)
    }
}

/// Waits until a walsender serves the job and its record says STREAMING: a run before leaves that state behind, too.
pub fn keeps_up(pair: &Pair, job: &Job) -> Result<()> {
    let served = format!("select active::text from pg_replication_slots where slot_name = '{}'", job.slot());
    pair.source.wait_for(&served, "true", wait::LONG)?;
    wait::until("state STREAMING", wait::LONG, || {
        Ok(Record::read(&pair.target)?.filter(|record| record.state == "STREAMING").map(drop))
    })
}

/// The policy of this job.
pub fn policy() -> String {
    let tables = TABLES.map(|table| {
        format!("  {table}:\n    columns: {{ email: {{ mask: standard/hash, key: people }} }}\n    rest: pass\n")
    });
    format!("{POLICY_HEAD}tables:\n{}", tables.concat())
}

/// The native mask of a column; NULL stays NULL.
pub fn masked(column: &str) -> impl Fn(&SourceRow<'_>) -> Option<String> + '_ {
    move |row| row.get(column).map(native::hash)
}
