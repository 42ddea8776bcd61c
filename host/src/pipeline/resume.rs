//! `run`: goes on from the checkpoint, once it is proven that nothing is missing in between.

use std::sync::Arc;

use crate::checkpoint::{Claim, JobRecord, JobState, TableRecord, is_installed, read_tables};
use crate::error::{Error, Kind, Result};
use crate::observe::heartbeat::{Heartbeat, Vitals};
use crate::postgres::Session;
use crate::relation::Table;
use crate::source::{shape, slot};
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
    let recorded = read_tables(&mut control, prepared.job_id()).await?;
    let proven = prove(&prepared, &record, &recorded).await;
    if let Err(error) = &proven
        && !error.is_transient()
    {
        JobRecord::halt(&mut control, prepared.job_id(), error).await?;
    }
    let Proven { masking, tables, position } = proven?;
    control.close().await;

    let vitals = Arc::new(Vitals::default());
    let heartbeat = Heartbeat::start(Arc::clone(&prepared.target), prepared.job_id().to_owned(), prepared.heartbeat(), Arc::clone(&vitals));
    let ended = prepared.stream(&masking, tables, vitals, once.then_some(position))?.run(stop).await;
    heartbeat.end().await;
    ended
}

/// What must hold before the stream goes on.
struct Proven {
    masking: Masking,
    tables: Vec<Arc<Table>>,
    position: pgveil_wire::lsn::Lsn,
}

/// Same source, same slot with nothing lost, same rules for the rows that were copied.
async fn prove(prepared: &Prepared, record: &JobRecord, recorded: &[TableRecord]) -> Result<Proven> {
    let mut replication = Session::connect_replication(&prepared.source, "identify").await?;
    let found = slot::identify(&mut replication, prepared.publication(), prepared.slot()).await?;
    replication.close().await;
    let mut source = Session::connect(&prepared.source, "resume").await?;
    let position = current_position(&mut source).await?;
    slot::verify_continuity(record, slot::state(&mut source, prepared.slot()).await?.as_ref(), &found)?;
    let tables = recorded.iter().map(|table| shape::read(table.name.clone(), table.relation_id, &table.shape).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    let masking = prepared.masking(&tables)?;
    if masking.fingerprint() != record.fingerprint {
        let changed = recorded.iter().filter(|table| masking.table_fingerprint(&table.name) != table.fingerprint);
        let names: Vec<String> = changed.map(|table| table.name.to_string()).collect();
        let which = if names.is_empty() { "the job's tables".to_owned() } else { names.join(", ") };
        return Err(Error::new(Kind::FingerprintChanged, format!("job {}: {which}", record.job_id)));
    }
    Ok(Proven { masking, tables, position })
}
