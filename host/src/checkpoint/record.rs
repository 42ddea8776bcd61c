//! The job's own row: its state, the source it belongs to, and who may move its checkpoint.

use std::fmt;
use std::str::FromStr;

use pgveil_wire::lsn::Lsn;
use tokio::time::Instant;

use crate::error::{Error, HaltState, Kind, Result};
use crate::limits;
use crate::postgres::{Row, Session};

use super::LOCK_CLASS;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Recorded; the slot may or may not exist yet.
    Initializing,
    /// The slot exists and the tables are being copied.
    Snapshotting,
    /// The copy is whole; the stream is behind the position at start.
    CatchingUp,
    /// The stream keeps up.
    Streaming,
    /// A safety threshold holds the job.
    Paused,
    /// Halted; `run` goes on once it is mended.
    Error,
    /// Halted; only a new snapshot helps.
    ResyncRequired,
}

const STATES: [(JobState, &str); 7] = [
    (JobState::Initializing, "INITIALIZING"),
    (JobState::Snapshotting, "SNAPSHOTTING"),
    (JobState::CatchingUp, "CATCHING_UP"),
    (JobState::Streaming, "STREAMING"),
    (JobState::Paused, "PAUSED"),
    (JobState::Error, "ERROR"),
    (JobState::ResyncRequired, "RESYNC_REQUIRED"),
];

impl fmt::Display for JobState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = STATES.iter().find(|(state, _)| state == self).map_or("", |(_, name)| name);
        formatter.pad(name)
    }
}

impl FromStr for JobState {
    type Err = Error;

    fn from_str(text: &str) -> Result<JobState> {
        STATES.iter().find(|(_, name)| *name == text).map(|(state, _)| *state).ok_or_else(|| {
            Error::new(Kind::NotReady, "target: pgveil.job holds a state that this version does not know")
        })
    }
}

/// What ties a job to one source: a slot of the same name elsewhere is not this job's slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `IDENTIFY_SYSTEM`: the cluster's system identifier.
    pub system: String,
    /// `IDENTIFY_SYSTEM`: the timeline, which a promotion changes.
    pub timeline: i32,
    /// The database the slot belongs to.
    pub database: String,
    /// The publication.
    pub publication: String,
    /// The slot.
    pub slot: String,
}

/// The job's row.
#[derive(Clone, Debug)]
pub struct JobRecord {
    /// The job's id.
    pub job_id: String,
    /// Where it stands.
    pub state: JobState,
    /// The name of the [`Kind`] that halted it.
    pub reason_kind: Option<String>,
    /// What and where; never a value.
    pub reason: Option<String>,
    /// The source it belongs to.
    pub identity: Identity,
    /// Whether the slot is known to have been made.
    pub slot_created: bool,
    /// Where snapshot and stream meet.
    pub consistent_lsn: Option<Lsn>,
    /// The fingerprint of all that decides an output.
    pub fingerprint: String,
    /// The checkpoint, once the copy is whole.
    pub applied_lsn: Option<Lsn>,
}

/// The right to move the checkpoint: a higher epoch than any process before, and the job's advisory lock, which the
/// session it was taken on holds until it ends.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The job's id.
    pub job_id: String,
    /// This process's epoch.
    pub epoch: i64,
    /// The checkpoint when it was claimed.
    pub applied_lsn: Lsn,
}

impl JobRecord {
    /// Reads the job's row.
    pub async fn read(target: &mut Session, job_id: &str) -> Result<Option<JobRecord>> {
        let rows = target
            .query(
                "select j.job_id, j.state, j.reason_kind, j.reason, j.source_system, j.source_timeline, j.source_database, \
                 j.publication, j.slot, j.slot_created, j.consistent_lsn, j.fingerprint, c.applied_lsn \
                 from pgveil.job j left join pgveil.checkpoint c using (job_id) where j.job_id = $1",
                &[Some(job_id)],
            )
            .await?;
        rows.first().map(JobRecord::from_row).transpose()
    }

    fn from_row(row: &Row) -> Result<JobRecord> {
        Ok(JobRecord {
            job_id: row.text("job_id")?.to_owned(),
            state: row.parse("state")?,
            reason_kind: row.optional("reason_kind")?.map(str::to_owned),
            reason: row.optional("reason")?.map(str::to_owned),
            identity: Identity {
                system: row.text("source_system")?.to_owned(),
                timeline: row.parse("source_timeline")?,
                database: row.text("source_database")?.to_owned(),
                publication: row.text("publication")?.to_owned(),
                slot: row.text("slot")?.to_owned(),
            },
            slot_created: row.text("slot_created")? == "t",
            consistent_lsn: row.parse_optional("consistent_lsn")?,
            fingerprint: row.text("fingerprint")?.to_owned(),
            applied_lsn: row.parse_optional("applied_lsn")?,
        })
    }

    /// Records a new job, before anything is made on the source: a crash from here on leaves a trace to clean up by.
    pub async fn create(target: &mut Session, job_id: &str, identity: &Identity, fingerprint: &str) -> Result<()> {
        let timeline = identity.timeline.to_string();
        target
            .execute(
                "insert into pgveil.job (job_id, state, source_system, source_timeline, source_database, publication, slot, fingerprint) \
                 values ($1, 'INITIALIZING', $2, $3::int4, $4, $5, $6, $7)",
                &[
                    Some(job_id),
                    Some(&identity.system),
                    Some(&timeline),
                    Some(&identity.database),
                    Some(&identity.publication),
                    Some(&identity.slot),
                    Some(fingerprint),
                ],
            )
            .await
            .map(|_| ())
    }

    /// The slot exists: records where the snapshot stands and begins the copy.
    pub async fn slot_made(target: &mut Session, job_id: &str, consistent_lsn: Lsn) -> Result<()> {
        let lsn = consistent_lsn.to_string();
        one_row(target, job_id, "update pgveil.job set state = 'SNAPSHOTTING', slot_created = true, consistent_lsn = $2::pg_lsn, updated_at = now() where job_id = $1", &[Some(job_id), Some(&lsn)]).await
    }

    /// The slot is gone again, dropped by us before the copy was whole.
    pub async fn slot_dropped(target: &mut Session, job_id: &str) -> Result<()> {
        one_row(
            target,
            job_id,
            "update pgveil.job set slot_created = false, consistent_lsn = null, updated_at = now() where job_id = $1",
            &[Some(job_id)],
        )
        .await
    }

    /// The copy is whole: the checkpoint begins at the snapshot's consistent point.
    pub async fn copy_finished(target: &mut Session, job_id: &str) -> Result<()> {
        target.batch("begin").await?;
        one_row(target, job_id, "insert into pgveil.checkpoint (job_id, epoch, applied_lsn, guard) select job_id, 0, consistent_lsn, 0 from pgveil.job where job_id = $1 and consistent_lsn is not null", &[Some(job_id)]).await?;
        one_row(
            target,
            job_id,
            "update pgveil.job set state = 'CATCHING_UP', updated_at = now() where job_id = $1",
            &[Some(job_id)],
        )
        .await?;
        target.batch("commit").await.map(|_| ())
    }

    /// Sets the state, and forgets an earlier reason.
    pub async fn set_state(target: &mut Session, job_id: &str, state: JobState) -> Result<()> {
        let name = state.to_string();
        one_row(
            target,
            job_id,
            "update pgveil.job set state = $2, reason_kind = null, reason = null, updated_at = now() where job_id = $1",
            &[Some(job_id), Some(&name)],
        )
        .await
    }

    /// Records why the job halted. A job that has lost WAL stays so until it gets a new snapshot.
    pub async fn halt(target: &mut Session, job_id: &str, error: &Error) -> Result<()> {
        let state = match error.kind().halt_state() {
            HaltState::Error => JobState::Error,
            HaltState::ResyncRequired => JobState::ResyncRequired,
        };
        let (state, reason) = (state.to_string(), error.to_string());
        target
            .execute(
                "update pgveil.job set state = case when state in ('INITIALIZING', 'SNAPSHOTTING') then state else $2 end, \
                 reason_kind = $3, reason = $4, updated_at = now() where job_id = $1 \
                 and (state <> 'RESYNC_REQUIRED' or reason_kind in ('SourceChanged', 'FingerprintChanged'))",
                &[Some(job_id), Some(&state), Some(error.kind().name()), Some(&reason)],
            )
            .await
            .map(|_| ())
    }

    /// Accepts a new fingerprint, once it is proven that what was copied still holds.
    pub async fn set_fingerprint(target: &mut Session, job_id: &str, fingerprint: &str) -> Result<()> {
        one_row(
            target,
            job_id,
            "update pgveil.job set fingerprint = $2, updated_at = now() where job_id = $1",
            &[Some(job_id), Some(fingerprint)],
        )
        .await
    }

    /// Forgets the job and all its records. Target data stays.
    pub async fn delete(target: &mut Session, job_id: &str) -> Result<()> {
        target.execute("delete from pgveil.job where job_id = $1", &[Some(job_id)]).await.map(|_| ())
    }
}

/// Takes the job's advisory lock on this session, or says that another process has it.
///
/// A process that has just ended may hold it a moment longer: its server session ends when the server notices.
pub(super) async fn lock(target: &mut Session, job_id: &str) -> Result<()> {
    let class = LOCK_CLASS.to_string();
    let began = Instant::now();
    loop {
        let rows = target
            .query(
                "select pg_catalog.pg_try_advisory_lock($1::int4, pg_catalog.hashtext($2))",
                &[Some(&class), Some(job_id)],
            )
            .await?;
        if rows.first().and_then(|row| row.get(0)) == Some("t") {
            return Ok(());
        }
        if began.elapsed() >= limits::LOCK_WAIT {
            return Err(Error::new(Kind::JobLocked, format!("job {job_id}")));
        }
        tokio::time::sleep(limits::LOCK_POLL).await;
    }
}

impl Claim {
    /// Takes the job's lock without touching the checkpoint: for `bootstrap` and `cleanup`.
    pub async fn lock(target: &mut Session, job_id: &str) -> Result<()> {
        lock(target, job_id).await
    }

    /// Gives the job's lock back before the session ends, so that another session of this process can take it at once:
    /// the server notices a closed connection only a little later.
    pub async fn unlock(target: &mut Session) -> Result<()> {
        target.batch("select pg_catalog.pg_advisory_unlock_all()").await.map(|_| ())
    }

    /// Makes this process the one that may move the checkpoint. The job's lock must be held already.
    pub async fn take(target: &mut Session, job_id: &str) -> Result<Claim> {
        let rows = target
            .query(
                "update pgveil.checkpoint set epoch = epoch + 1 where job_id = $1 returning epoch, applied_lsn",
                &[Some(job_id)],
            )
            .await?;
        let row = rows.first().ok_or_else(|| Error::new(Kind::NotReady, format!("job {job_id}: no checkpoint yet")))?;
        Ok(Claim { job_id: job_id.to_owned(), epoch: row.parse("epoch")?, applied_lsn: row.parse("applied_lsn")? })
    }
}

async fn one_row(target: &mut Session, job_id: &str, sql: &str, parameters: &[Option<&str>]) -> Result<()> {
    match target.execute(sql, parameters).await? {
        1 => Ok(()),
        _ => Err(Error::new(Kind::NotReady, format!("job {job_id}: its record is not as expected"))),
    }
}
