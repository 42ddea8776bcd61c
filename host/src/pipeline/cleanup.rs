//! Takes back what a job made: its slot on the source, its records in the target. Target data stays.

use crate::checkpoint::{Claim, JobRecord, TableRecord, delete_tables, is_installed, read_tables};
use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::postgres::{Endpoint, Session};
use crate::source::slot;

use super::prepare::Prepared;

/// What `cleanup` did.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Cleaned {
    /// The job's records were there, and are gone.
    pub records_deleted: bool,
    /// The slot was there, and is gone.
    pub slot_dropped: bool,
    /// No job is left, so the schema `pgveil` is gone too.
    pub schema_dropped: bool,
}

/// Drops the job's slot and its records.
///
/// # Errors
/// [`Kind::JobLocked`] while a process runs the job. [`Kind::SourceChanged`] when the slot of that name is not the one
/// that the record names: nothing is deleted then, so that nothing is forgotten either.
pub async fn cleanup(prepared: &Prepared) -> Result<Cleaned> {
    let nothing = Cleaned { records_deleted: false, slot_dropped: false, schema_dropped: false };
    let mut target = Session::connect(&prepared.target, "cleanup").await?;
    if !is_installed(&mut target).await? {
        return Ok(nothing);
    }
    Claim::lock(&mut target, prepared.job_id()).await?;
    let Some(record) = JobRecord::read(&mut target, prepared.job_id()).await? else { return Ok(nothing) };
    // First the slot: if that fails, the record that names it stays.
    let slot_dropped = slot::drop_owned(&prepared.source, &record.identity).await?;
    JobRecord::delete(&mut target, prepared.job_id()).await?;
    Ok(Cleaned { records_deleted: true, slot_dropped, schema_dropped: drop_schema_if_unused(&mut target).await? })
}

/// Drops the schema `pgveil` when no job is left in it. A bootstrap that begins at this moment waits for our lock, and
/// then makes the schema anew.
async fn drop_schema_if_unused(target: &mut Session) -> Result<bool> {
    target.batch("begin").await?;
    target.batch("lock table pgveil.job in access exclusive mode").await?;
    let rows = target.query("select exists (select from pgveil.job) as used", &[]).await?;
    let used = rows.first().is_some_and(|row| row.get(0) == Some("t"));
    if !used {
        target.batch("set local client_min_messages = error; drop schema pgveil cascade").await?;
    }
    target.batch("commit").await?;
    Ok(!used)
}

/// Undoes an earlier bootstrap of the job, so that another can begin: its slot, the rows it copied, its records.
///
/// Only tables that the record names are emptied. A slot on another server than the one the job names now is left there.
///
/// # Errors
/// What either server refuses.
pub async fn discard(
    target: &mut Session,
    source: &Endpoint,
    record: &JobRecord,
    notice: &(dyn Fn(String) + Sync),
) -> Result<()> {
    match slot::drop_owned(source, &record.identity).await {
        Ok(true) => notice(format!("dropped slot {}", record.identity.slot)),
        Ok(false) => {}
        Err(error) if error.kind() == Kind::SourceChanged => {
            notice(format!(
                "slot {} was not dropped, for the source is not the former one ({}); drop it there by hand",
                record.identity.slot,
                error.place()
            ));
        }
        Err(error) => return Err(error),
    }
    let tables = read_tables(target, &record.job_id).await?;
    empty(target, &tables).await?;
    delete_tables(target, &record.job_id).await?;
    JobRecord::delete(target, &record.job_id).await
}

/// Empties those of the tables that exist, in one statement, for they may refer to each other.
async fn empty(target: &mut Session, tables: &[TableRecord]) -> Result<()> {
    let names: Vec<TableName> = tables.iter().map(|table| table.name.clone()).collect();
    let there = crate::apply::schema::read_tables(target, &names).await?;
    if there.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = there.keys().map(|name| format!("only {}", name.quoted())).collect();
    target
        .batch(&format!("truncate {}", names.join(", ")))
        .await
        .map_err(|error| error.within("emptying the job's tables"))
        .map(|_| ())
}

/// Takes back a bootstrap that did not finish: the slot, so that the source keeps no WAL for nobody. The reason stays.
/// `false` when nothing was recorded, so that nothing was made either; or when the copy is whole after all, and only the answer
/// to its last commit was lost: `run` then goes on, and needs the slot.
///
/// # Errors
/// When the slot could not be dropped; the record then still names it, and `cleanup` drops it.
pub async fn undo(prepared: &Prepared, reason: &Error) -> Result<bool> {
    let mut target = Session::connect(&prepared.target, "undo").await?;
    let Some(record) = JobRecord::read(&mut target, prepared.job_id()).await? else { return Ok(false) };
    if record.applied_lsn.is_some() {
        JobRecord::halt(&mut target, prepared.job_id(), reason).await?;
        return Ok(false);
    }
    let dropped = slot::drop_owned(&prepared.source, &record.identity).await;
    JobRecord::halt(&mut target, prepared.job_id(), reason).await?;
    dropped?;
    JobRecord::slot_dropped(&mut target, prepared.job_id()).await?;
    Ok(true)
}
