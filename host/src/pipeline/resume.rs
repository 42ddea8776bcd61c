//! `run`: goes on from the checkpoint, once it is proven that nothing is missing in between.
//!
//! A table that changed its shape stops the stream at the change. The `run` after that takes the new shape over, if the
//! policy decides every column of it, the target has the columns, and the rules for the rows that were copied are what
//! they were.

use std::sync::Arc;

use pgveil_wire::lsn::Lsn;

use crate::apply;
use crate::checkpoint::{Claim, JobRecord, JobState, TableRecord, is_installed, read_tables, set_shape};
use crate::error::{Error, Kind, Result};
use crate::observe::heartbeat::{Heartbeat, Vitals};
use crate::postgres::Session;
use crate::relation::Table;
use crate::source::{schema, shape, slot};
use crate::stop::Stop;

use super::masking::Masking;
use super::prepare::Prepared;
use super::stream::current_position;

/// Streams from the checkpoint until asked to stop, or until all is applied that the source had committed at the start.
///
/// # Errors
/// [`Kind::NotReady`] without a whole copy, [`Kind::JobLocked`], the kinds of `slot::verify_continuity` and
/// [`Kind::FingerprintChanged`], which stay in the job's record; and whatever ends the stream.
pub async fn run(prepared: Prepared, once: bool, stop: Stop) -> Result<()> {
    let mut control = Session::connect(&prepared.target, "control").await?;
    let never = || Error::new(Kind::NotReady, format!("job {}: it was never bootstrapped", prepared.job_id()));
    if !is_installed(&mut control).await? {
        return Err(never());
    }
    Claim::lock(&mut control, prepared.job_id()).await?;
    let record = JobRecord::read(&mut control, prepared.job_id()).await?.ok_or_else(never)?;
    if matches!(record.state, JobState::Initializing | JobState::Snapshotting) {
        return Err(Error::new(Kind::NotReady, format!("job {}: its bootstrap did not finish ({})", record.job_id, record.state)));
    }
    let proven = prove(&prepared, &record, &mut control).await;
    if let Err(error) = &proven
        && is_recorded(error.kind())
    {
        JobRecord::halt(&mut control, prepared.job_id(), error).await?;
    }
    let Proven { masking, fingerprint, tables, position } = proven?;
    Claim::unlock(&mut control).await?;
    control.close().await;

    let vitals = Arc::new(Vitals::default());
    let heartbeat = Heartbeat::start(Arc::clone(&prepared.target), prepared.job_id().to_owned(), prepared.heartbeat(), Arc::clone(&vitals));
    let mut stream = prepared.stream(&masking, tables, vitals, once.then_some(position))?;
    stream.fingerprint = fingerprint;
    let ended = stream.run(stop).await;
    heartbeat.end().await;
    ended
}

/// A file can be mended before the next try, and a server may answer then: neither says anything about the job.
fn is_recorded(kind: Kind) -> bool {
    kind.reaction() == crate::error::Reaction::Halt && kind.exit_code() != 2
}

/// What must hold before the stream goes on.
struct Proven {
    masking: Masking,
    /// What the job's record says of it.
    fingerprint: String,
    /// Every shape of the tables that may be announced.
    tables: Vec<Arc<Table>>,
    position: Lsn,
}

/// Same source, same slot with nothing lost, same rules for the rows that were copied.
async fn prove(prepared: &Prepared, record: &JobRecord, control: &mut Session) -> Result<Proven> {
    let mut replication = Session::connect_replication(&prepared.source, "identify").await?;
    let found = slot::identify(&mut replication, prepared.publication(), prepared.slot()).await?;
    replication.close().await;
    let mut source = Session::connect(&prepared.source, "resume").await?;
    let position = current_position(&mut source).await?;
    slot::verify_continuity(record, slot::state(&mut source, prepared.slot()).await?.as_ref(), &found)?;

    let recorded = read_tables(control, prepared.job_id()).await?;
    let copied = recorded.iter().map(|table| shape::read(table.name.clone(), table.relation_id, &table.shape).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    let current = current_shapes(prepared, &mut source, &copied).await?;
    let masking = prepared.masking_before(&copied, &current)?;
    if masking.fingerprint() != record.fingerprint {
        return Err(fingerprint_changed(record, &recorded, &masking));
    }
    // The stream knows where a change lies, the catalogue does not: until it has stopped there, rows of the old shape may come.
    let stopped_at_change = record.reason_kind.as_deref() == Some(Kind::RelationChanged.name());
    if copied == current || !stopped_at_change {
        return Ok(Proven { fingerprint: masking.fingerprint(), masking, tables: copied, position });
    }
    let next = prepared.masking(&current)?;
    require_on_target(control, &current).await?;
    adopt(control, prepared.job_id(), &copied, &current, &next).await?;
    // The transaction that changed a table may hold rows of both shapes.
    let tables: Vec<Arc<Table>> = copied.iter().filter(|table| !current.contains(table)).chain(&current).cloned().collect();
    Ok(Proven { fingerprint: next.fingerprint(), masking: prepared.masking(&tables)?, tables, position })
}

/// The tables as the source has them now; one that is gone, or was made anew, stays as it was copied, and the stream decides.
async fn current_shapes(prepared: &Prepared, source: &mut Session, copied: &[Arc<Table>]) -> Result<Vec<Arc<Table>>> {
    let catalog = schema::read_tables(source, prepared.publication()).await?;
    let current = copied.iter().map(|table| {
        let found = catalog.tables.iter().find(|found| found.table.relation_id == table.relation_id && found.table.name == table.name);
        Arc::clone(found.map_or(table, |found| &found.table))
    });
    Ok(current.collect())
}

fn fingerprint_changed(record: &JobRecord, recorded: &[TableRecord], masking: &Masking) -> Error {
    let changed = recorded.iter().filter(|table| masking.table_fingerprint(&table.name) != table.fingerprint);
    let names: Vec<String> = changed.map(|table| table.name.to_string()).collect();
    let which = if names.is_empty() { "the job's tables".to_owned() } else { names.join(", ") };
    Error::new(Kind::FingerprintChanged, format!("job {}: {which}", record.job_id))
}

/// A column that the target lacks is the operator's to add.
async fn require_on_target(control: &mut Session, tables: &[Arc<Table>]) -> Result<()> {
    let names: Vec<_> = tables.iter().map(|table| table.name.clone()).collect();
    let there = apply::schema::read_tables(control, &names).await?;
    for table in tables {
        let found = there.get(&table.name);
        let lacking = table.columns.iter().find(|column| found.is_none_or(|found| found.column(&column.name).is_none()));
        if let Some(column) = lacking {
            return Err(Error::new(Kind::RelationChanged, format!("table {}: the target lacks column {}", table.name, column.name)));
        }
    }
    Ok(())
}

/// Takes the new shapes over into the job's record.
async fn adopt(control: &mut Session, job_id: &str, copied: &[Arc<Table>], current: &[Arc<Table>], masking: &Masking) -> Result<()> {
    control.batch("begin").await?;
    for table in current.iter().filter(|table| !copied.contains(table)) {
        set_shape(control, job_id, table.relation_id, &shape::write(table)?, &masking.table_fingerprint(&table.name)).await?;
        tracing::info!(table = %table.name, "took over the table's new shape");
    }
    JobRecord::set_fingerprint(control, job_id, &masking.fingerprint()).await?;
    control.batch("commit").await.map(|_| ())
}
