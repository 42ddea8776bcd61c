//! What the target records of a job.

use pgveil_tests::runner::Finished;
use pgveil_tests::{Database, Result};

/// The job's row in the target, as far as tests look at it.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// `pgveil.job.state`.
    pub state: String,
    /// `pgveil.job.reason_kind`, empty where there is none.
    pub kind: String,
    /// `pgveil.job.reason`, empty where there is none.
    pub reason: String,
    /// The checkpoint, empty before the copy is whole.
    pub applied: String,
}

impl Record {
    /// The only job that this database is a target of; `None` before there is one.
    pub fn read(target: &Database) -> Result<Option<Record>> {
        if target.value("select (to_regclass('pgveil.job') is not null)::text")? == "false" {
            return Ok(None);
        }
        let rows = target.rows(
            "select state, reason_kind, reason, applied_lsn from pgveil.job left join pgveil.checkpoint using (job_id)",
        )?;
        let mut found = rows.into_iter().map(|row| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || values.next().unwrap_or_default();
            Record { state: next(), kind: next(), reason: next(), applied: next() }
        });
        Ok(found.next())
    }

    /// Whether the copy is whole, so that `run` may go on.
    pub fn is_copied(target: &Database) -> Result<bool> {
        Ok(Record::read(target)?.is_some_and(|record| !record.applied.is_empty()))
    }
}

/// The job has ended with this code, and its record says why.
pub fn halted(finished: &Finished, code: i32, target: &Database, state: &str, kinds: &[&str]) -> Result<Record> {
    let record = Record::read(target)?.ok_or("no record of the job")?;
    if finished.code != Some(code) || record.state != state || !kinds.contains(&record.kind.as_str()) {
        return Err(format!("expected exit {code}, {state}, one of {kinds:?}; found {record:?}\n{finished}").into());
    }
    Ok(record)
}
