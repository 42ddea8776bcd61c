//! One scenario: the same tables at both ends, rows before the snapshot, changes behind it, then both ends compared.

use pgveil_tests::compare::Comparison;
use pgveil_tests::{Job, Major, Pair, Result};

/// What is done at the source, and with which tables. All SQL is run as written.
#[derive(Default)]
pub struct Scenario<'a> {
    /// Run at both ends.
    pub schema: &'a str,
    /// Rows that are there before the snapshot.
    pub before: &'a str,
    /// Changes behind the snapshot, each run by itself.
    pub changes: &'a [&'a str],
    /// The tables as SQL writes them; all columns pass.
    pub tables: &'a [&'a str],
}

impl Scenario<'_> {
    /// Snapshot, compare, changes, stream, compare.
    pub fn check(&self, major: Major, purpose: &str) -> Result<()> {
        let (pair, job) = self.bootstrapped(major, purpose)?;
        for change in self.changes {
            pair.source.execute(change)?;
        }
        job.succeed(&["run", "--once"])?;
        self.compare(&pair, "the stream")
    }

    /// The same up to the snapshot, compared; for tests that go on in their own way.
    pub fn bootstrapped(&self, major: Major, purpose: &str) -> Result<(Pair, Job)> {
        let pair = Pair::of(major, purpose)?;
        pair.execute(self.schema)?;
        pair.source.execute(self.before)?;
        publish(&pair, self.tables)?;
        let job = Job::new(&pair, self.tables, &pass_all(self.tables))?;
        job.succeed(&["bootstrap", "--once"])?;
        self.compare(&pair, "the snapshot")?;
        Ok((pair, job))
    }

    fn compare(&self, pair: &Pair, after: &str) -> Result<()> {
        for table in self.tables {
            Comparison::of(table)
                .check(&pair.source, &pair.target)
                .map_err(|error| format!("after {after}: {error}"))?;
        }
        Ok(())
    }
}

/// A publication named `pgveil` of the tables.
pub fn publish(pair: &Pair, tables: &[&str]) -> Result<()> {
    pair.source.execute(&format!("create publication pgveil for table only {}", tables.join(", only ")))
}

/// A policy that passes every column.
pub fn pass_all(tables: &[&str]) -> String {
    let tables = tables.iter().map(|table| format!("  {}: {{ rest: pass }}\n", yaml_text(table)));
    format!("version: 1\ntables:\n{}", tables.collect::<String>())
}

/// A text as a double-quoted YAML scalar.
pub fn yaml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
