//! `run`: goes on from the checkpoint, once it is proven that nothing is missing in between.
//!
//! A table that changed its shape stops the stream at the change, unless it has been decided: the policy decides every
//! column, the target takes the rows, and for columns that were copied before the rules are what they were. Then the new shape
//! is taken over into the record; rows of the former one may still come.

use std::sync::Arc;
use std::time::Duration;

use pgveil_wire::lsn::Lsn;

use crate::apply;
use crate::checkpoint::{Claim, JobRecord, JobState, TableRecord, is_installed, read_tables, set_shape};
use crate::error::{Error, Kind, Result};
use crate::observe::heartbeat::{Heartbeat, Vitals};
use crate::postgres::Session;
use crate::relation::Table;
use crate::source::{schema, shape, slot};
use crate::stop::Stop;

use super::backoff::Backoff;
use super::changes::{Changes, taken_by_target};
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
    let heartbeat = Heartbeat::start(
        Arc::clone(&prepared.target),
        prepared.job_id().to_owned(),
        prepared.heartbeat(),
        Arc::clone(&vitals),
    );
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
        return Err(Error::new(
            Kind::NotReady,
            format!("job {}: its bootstrap did not finish ({})", record.job_id, record.state),
        ));
    }
    let proven = prove(prepared, &record, &mut control, options).await;
    if let Err(error) = &proven
        && is_recorded(error.kind())
    {
        JobRecord::halt(&mut control, prepared.job_id(), error).await?;
    }
    let proven = proven?;
    if is_restored(&record) {
        JobRecord::set_state(&mut control, prepared.job_id(), JobState::CatchingUp).await?;
    }
    Claim::unlock(&mut control).await?;
    control.close().await;
    Ok(proven)
}

/// A file can be mended before the next try, and a server may answer then: neither says anything about the job.
fn is_recorded(kind: Kind) -> bool {
    kind.reaction() == crate::error::Reaction::Halt && kind.exit_code() != 2
}

/// Whether the job waited for a new snapshot for a reason that has just been seen to be gone: the former source or the former rules
/// are back. A slot that was lost or moved never comes back.
fn is_restored(record: &JobRecord) -> bool {
    let restorable = [Kind::FingerprintChanged, Kind::SourceChanged].map(Kind::name);
    record.state == JobState::ResyncRequired
        && record.reason_kind.as_deref().is_some_and(|kind| restorable.contains(&kind))
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

    let records = read_tables(control, prepared.job_id()).await?;
    let recorded = records
        .iter()
        .map(|table| shape::read(&table.name, table.relation_id, &table.shape))
        .collect::<Result<Vec<_>>>()?;
    let catalog = schema::read_tables(&mut source, prepared.publication()).await?;
    let changes = Changes::find(recorded, catalog);
    let proof = Proof { prepared, record, records: &records, position, options };
    if changes.is_empty() { proof.unchanged(control, &changes).await } else { proof.changed(control, &changes).await }
}

/// What a decision on the way is made from.
struct Proof<'a> {
    prepared: &'a Prepared,
    record: &'a JobRecord,
    records: &'a [TableRecord],
    position: Lsn,
    options: Options,
}

impl Proof<'_> {
    /// No table changed: the rules must be what they were.
    async fn unchanged(&self, control: &mut Session, changes: &Changes) -> Result<Proven> {
        let masking = self.prepared.masking(&changes.copied())?;
        self.require_rules(control, &masking).await?;
        let former = taken_by_target(control, changes.former()).await?;
        Ok(self.proven(masking, changes.copied(), former))
    }

    /// Some did. What is decided is taken over; else the stream goes on up to the change and stops there.
    async fn changed(&self, control: &mut Session, changes: &Changes) -> Result<Proven> {
        let current = changes.current();
        let next = self.prepared.masking(&current);
        let refused = match &next {
            Ok(next) => changes.undecided(control, next).await?,
            Err(_) => None,
        };
        if let (Ok(next), None) = (next, refused.as_ref()) {
            changes.compare_decisions(self.prepared, &self.record.job_id)?;
            changes.adopt(self.prepared, control, &self.record.job_id, &next).await?;
            let former = changes.former().into_iter().chain(changes.left()).collect();
            return Ok(self.proven(next, current, taken_by_target(control, former).await?));
        }
        match self.prepared.masking_before(&changes.copied(), &current) {
            Ok(before) => {
                self.require_rules(control, &before).await?;
                let former = taken_by_target(control, changes.former()).await?;
                Ok(self.proven(before, changes.copied(), former))
            }
            // The policy is written for the new shape already, the target is not.
            Err(error) => Err(refused.unwrap_or(error)),
        }
    }

    /// The rules are those that the rows of the target were masked by. Others are taken over only where no row was masked or
    /// filtered yet, or where the operator says so.
    async fn require_rules(&self, control: &mut Session, masking: &Masking) -> Result<()> {
        if masking.fingerprint() == self.record.fingerprint {
            return Ok(());
        }
        let job_id = &self.record.job_id;
        let changed =
            || self.records.iter().filter(|table| masking.table_fingerprint(&table.name) != table.fingerprint);
        let mut masked =
            apply::schema::occupied(control, &changed().map(|table| &table.name).collect::<Vec<_>>()).await?;
        let mut shapes = Vec::new();
        for table in changed() {
            let recorded = shape::read(&table.name, table.relation_id, &table.shape)?;
            let decided = self.prepared.decisions(&recorded.table);
            // What a filter dropped is nowhere to be seen: an empty table proves nothing of another filter.
            if decided.filters != recorded.decisions.filters && !masked.contains(&table.name) {
                masked.push(table.name.clone());
            }
            shapes.push((table, shape::write(&recorded.table, &decided, &recorded.former)?));
        }
        if !masked.is_empty() && !self.options.accept_policy_change {
            let names: Vec<String> = masked.iter().map(ToString::to_string).collect();
            return Err(Error::new(Kind::FingerprintChanged, format!("job {job_id}: {}", names.join(", "))));
        }
        control.batch("begin").await?;
        for (table, shape) in shapes {
            set_shape(control, job_id, table.relation_id, &shape, &masking.table_fingerprint(&table.name)).await?;
            tracing::warn!(table = %table.name, holds_rows = masked.contains(&table.name), "took over the table's changed rules");
        }
        JobRecord::set_fingerprint(control, job_id, &masking.fingerprint()).await?;
        control.batch("commit").await.map(|_| ())
    }

    /// With the former shapes where the policy of now decides them too; a row in one that it does not stops the stream.
    fn proven(&self, masking: Masking, tables: Vec<Arc<Table>>, former: Vec<Arc<Table>>) -> Proven {
        let fingerprint = masking.fingerprint();
        if !former.is_empty() {
            let all: Vec<Arc<Table>> = former.into_iter().chain(tables.iter().cloned()).collect();
            if let Ok(masking) = self.prepared.masking(&all) {
                return Proven { masking, fingerprint, tables: all, position: self.position };
            }
        }
        Proven { masking, fingerprint, tables, position: self.position }
    }
}
