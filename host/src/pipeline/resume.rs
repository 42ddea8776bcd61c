//! `run`: goes on from the checkpoint, once it is proven that nothing is missing in between.
//!
//! A table that changed its shape stops the stream at the change. The `run` after that takes the new shape over, if the
//! policy decides every column of it, the target has the columns, and the rules for the rows that were copied are what
//! they were.

use std::sync::Arc;
use std::time::Duration;

use pgveil_wire::lsn::Lsn;

use crate::apply;
use crate::config::TableName;
use crate::checkpoint::{Claim, JobRecord, JobState, TableRecord, is_installed, read_tables, set_shape};
use crate::error::{Error, Kind, Result};
use crate::observe::heartbeat::{Heartbeat, Vitals};
use crate::postgres::Session;
use crate::relation::Table;
use crate::source::{schema, shape, slot};
use crate::stop::Stop;

use super::backoff::Backoff;
use super::masking::Masking;
use super::prepare::Prepared;
use super::stream::current_position;

/// What `run` is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// End once all is applied that the source had committed at the start.
    pub once: bool,
    /// Rows that the former policy masked may stay beside those that the present one masks.
    pub accept_policy_change: bool,
}

/// Streams from the checkpoint until asked to stop, or until all is applied that the source had committed at the start.
///
/// # Errors
/// [`Kind::NotReady`] without a whole copy, [`Kind::JobLocked`], the kinds of `slot::verify_continuity` and
/// [`Kind::FingerprintChanged`], which stay in the job's record; and whatever ends the stream.
pub async fn run(prepared: Prepared, options: Options, mut stop: Stop) -> Result<()> {
    let (first, longest) = prepared.reconnect();
    let mut backoff = Backoff::new(first, longest);
    let Proven { masking, fingerprint, tables, position } = loop {
        // A server may be away when the job starts just as well as later.
        match start(&prepared, options).await {
            Ok(proven) => break proven,
            Err(error) if error.is_transient() => {
                if !backoff.wait(&error, Duration::ZERO, &mut stop).await {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    };
    let vitals = Arc::new(Vitals::default());
    let heartbeat = Heartbeat::start(Arc::clone(&prepared.target), prepared.job_id().to_owned(), prepared.heartbeat(), Arc::clone(&vitals));
    let mut stream = prepared.stream(&masking, tables, vitals, options.once.then_some(position))?;
    stream.fingerprint = fingerprint;
    let ended = stream.run(stop).await;
    heartbeat.end().await;
    ended
}

/// Proves that the job may go on, and records it when it may not.
async fn start(prepared: &Prepared, options: Options) -> Result<Proven> {
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
    let proven = prove(prepared, &record, &mut control, options).await;
    if let Err(error) = &proven
        && is_recorded(error.kind())
    {
        JobRecord::halt(&mut control, prepared.job_id(), error).await?;
    }
    let proven = proven?;
    Claim::unlock(&mut control).await?;
    control.close().await;
    Ok(proven)
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
async fn prove(prepared: &Prepared, record: &JobRecord, control: &mut Session, options: Options) -> Result<Proven> {
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
        accept_rules(control, record, &recorded, &masking, options).await?;
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

/// Takes over changed rules where no row of the target was masked by the former ones, or where the operator says so.
async fn accept_rules(control: &mut Session, record: &JobRecord, recorded: &[TableRecord], masking: &Masking, options: Options) -> Result<()> {
    let changed: Vec<&TableRecord> = recorded.iter().filter(|table| masking.table_fingerprint(&table.name) != table.fingerprint).collect();
    let names: Vec<&TableName> = changed.iter().map(|table| &table.name).collect();
    let masked = apply::schema::occupied(control, &names).await?;
    if !masked.is_empty() && !options.accept_policy_change {
        let names: Vec<String> = masked.iter().map(ToString::to_string).collect();
        return Err(Error::new(Kind::FingerprintChanged, format!("job {}: {}", record.job_id, names.join(", "))));
    }
    control.batch("begin").await?;
    for table in changed {
        set_shape(control, &record.job_id, table.relation_id, &table.shape, &masking.table_fingerprint(&table.name)).await?;
        tracing::warn!(table = %table.name, holds_rows = masked.contains(&table.name), "took over the table's changed rules");
    }
    JobRecord::set_fingerprint(control, &record.job_id, &masking.fingerprint()).await?;
    control.batch("commit").await.map(|_| ())
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
