//! What `status` tells: the job's record in the target, the slot at the source, and what follows from both.
//!
//! Each server is asked by itself: when one is down, what the other says is still shown.

use pgveil_wire::lsn::Lsn;
use serde::Serialize;

use crate::checkpoint::{JobRecord, JobState, TableState, is_installed, read_tables};
use crate::config::ByteSize;
use crate::error::{Error, Kind, Result};
use crate::postgres::{Row, Session};
use crate::source::slot::{self, SlotState};

use super::prepare::Prepared;
use super::stream::current_position;

/// All that is known of a job. Field names are stable: scripts read them.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The job's id.
    pub job: String,
    /// Where it stands; `NOT_BOOTSTRAPPED` before there is a record.
    pub state: String,
    /// Why it halted.
    pub reason: Option<Reason>,
    /// Where snapshot and stream meet.
    pub consistent_lsn: Option<String>,
    /// The checkpoint.
    pub applied_lsn: Option<String>,
    /// Where the source is; `None` when it does not answer.
    pub source_lsn: Option<String>,
    /// Bytes of WAL between the two.
    pub lag_bytes: Option<u64>,
    /// Age of the last applied transaction, unless all is applied.
    pub lag_seconds: Option<u64>,
    /// The slot; `None` when the source does not answer.
    pub slot: Option<SlotReport>,
    /// Why the source could not be asked.
    pub source_error: Option<String>,
    /// The tables.
    pub tables: Vec<TableReport>,
    /// The fingerprint of policy, guests and keys that the copied rows were masked by.
    pub fingerprint: Option<String>,
    /// The guests as they are on this machine now.
    pub guests: Vec<GuestReport>,
    /// The running process's sign of life.
    pub process: Option<ProcessReport>,
    /// What the operator should do, if anything.
    pub advice: Vec<String>,
}

/// Why a job halted.
#[derive(Debug, Serialize)]
pub struct Reason {
    /// The name of the error's kind.
    pub kind: String,
    /// What and where.
    pub text: String,
    /// What to do about it.
    pub remedy: Option<&'static str>,
}

/// What the source says of the slot.
#[derive(Debug, Serialize)]
pub struct SlotReport {
    /// Its name.
    pub name: String,
    /// Whether it exists.
    pub exists: bool,
    /// Whether a walsender holds it.
    pub active: bool,
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub wal_status: Option<String>,
    /// What the consumer confirmed.
    pub confirmed_lsn: Option<String>,
    /// Bytes of WAL that the source keeps for it.
    pub retained_bytes: Option<u64>,
    /// Bytes that may be written until the slot is in danger; `None` without a limit.
    pub safe_bytes: Option<u64>,
}

/// How far a table's copy is.
#[derive(Debug, Serialize)]
pub struct TableReport {
    /// The table, as SQL writes it.
    pub name: String,
    /// `copying` or `copied`.
    pub state: &'static str,
    /// Rows on the target by the copy.
    pub rows_copied: u64,
    /// The source's estimate when the copy began; 0 when unknown.
    pub rows_expected: u64,
    /// Bytes read for them.
    pub bytes_copied: u64,
}

/// A guest of the policy.
#[derive(Debug, Serialize)]
pub struct GuestReport {
    /// The name that the policy gives it.
    pub name: String,
    /// Its blake3 digest.
    pub digest: String,
}

/// A running process, or one that ended without a word.
#[derive(Debug, Serialize)]
pub struct ProcessReport {
    /// Its number on its machine.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Seconds since it started.
    pub running_seconds: u64,
    /// Seconds since it was last heard of.
    pub heartbeat_age_seconds: u64,
    /// Whether it holds the job's lock now.
    pub alive: bool,
    /// Seconds since the source committed what was applied last.
    #[serde(skip)]
    applied_age_seconds: Option<u64>,
}

/// What the source answers.
struct SourceAnswer {
    position: Lsn,
    slot: Option<SlotState>,
}

/// Asks both servers. Changes nothing.
///
/// # Errors
/// When the target does not answer: the job's record is there. A source that does not answer is no error.
pub async fn status(prepared: &Prepared) -> Result<Status> {
    let mut target = Session::connect(&prepared.target, "status").await?;
    let record = match is_installed(&mut target).await? {
        true => JobRecord::read(&mut target, prepared.job_id()).await?,
        false => None,
    };
    let Some(record) = record else { return Ok(not_bootstrapped(prepared)) };
    let source = ask_source(prepared, &record.identity.slot).await;
    let process = read_process(&mut target, &record.job_id).await?;
    let tables = read_tables(&mut target, &record.job_id).await?;
    let mut status = not_bootstrapped(prepared);
    status.state = record.state.to_string();
    status.reason = record.reason_kind.as_deref().map(|kind| reason(kind, record.reason.as_deref()));
    status.consistent_lsn = record.consistent_lsn.map(|lsn| lsn.to_string());
    status.applied_lsn = record.applied_lsn.map(|lsn| lsn.to_string());
    status.fingerprint = Some(record.fingerprint.clone());
    status.tables = tables
        .into_iter()
        .map(|table| TableReport {
            name: table.name.to_string(),
            state: if table.state == TableState::Copied { "copied" } else { "copying" },
            rows_copied: table.rows_copied,
            rows_expected: table.rows_expected,
            bytes_copied: table.bytes_copied,
        })
        .collect();
    status.process = process;
    match source {
        Ok(answer) => status.take_source(&record, answer),
        Err(error) => status.source_error = Some(error.to_string()),
    }
    status.advice = advice(&status, &record, prepared);
    Ok(status)
}

fn not_bootstrapped(prepared: &Prepared) -> Status {
    Status {
        job: prepared.job_id().to_owned(),
        state: "NOT_BOOTSTRAPPED".to_owned(),
        reason: None,
        consistent_lsn: None,
        applied_lsn: None,
        source_lsn: None,
        lag_bytes: None,
        lag_seconds: None,
        slot: None,
        source_error: None,
        tables: Vec::new(),
        fingerprint: None,
        guests: prepared.guests().map(|(name, digest)| GuestReport { name, digest }).collect(),
        process: None,
        advice: vec![
            "Start the job with `pgveil bootstrap`; `pgveil check` tells beforehand what is missing.".to_owned(),
        ],
    }
}

async fn ask_source(prepared: &Prepared, slot: &str) -> Result<SourceAnswer> {
    let mut source = Session::connect(&prepared.source, "status").await?;
    Ok(SourceAnswer { position: current_position(&mut source).await?, slot: slot::state(&mut source, slot).await? })
}

fn reason(kind: &str, text: Option<&str>) -> Reason {
    let known = Kind::ALL.iter().find(|known| known.name() == kind);
    Reason { kind: kind.to_owned(), text: text.unwrap_or_default().to_owned(), remedy: known.map(|kind| kind.remedy()) }
}

/// The heartbeat's row, and whether somebody holds the job's advisory lock.
async fn read_process(target: &mut Session, job_id: &str) -> Result<Option<ProcessReport>> {
    let rows = target
        .query(
            "select p.pid, p.host, extract(epoch from now() - p.started_at)::int8 as running, \
             extract(epoch from now() - p.heartbeat_at)::int8 as age, extract(epoch from now() - p.applied_at)::int8 as applied_age, \
             exists (select from pg_catalog.pg_locks l where l.locktype = 'advisory' and l.granted and l.classid = $2::oid \
             and l.objid = (pg_catalog.hashtext($1)::int8 & 4294967295)::oid and l.objsubid = 2 \
             and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())) as alive \
             from pgveil.process p where p.job_id = $1",
            &[Some(job_id), Some(&crate::checkpoint::LOCK_CLASS.to_string())],
        )
        .await?;
    rows.first().map(process).transpose()
}

fn process(row: &Row) -> Result<ProcessReport> {
    let seconds =
        |name| Ok::<_, Error>(row.parse_optional::<i64>(name)?.map(|seconds| u64::try_from(seconds).unwrap_or(0)));
    Ok(ProcessReport {
        pid: row.parse("pid")?,
        host: row.text("host")?.to_owned(),
        running_seconds: seconds("running")?.unwrap_or(0),
        heartbeat_age_seconds: seconds("age")?.unwrap_or(0),
        alive: row.boolean("alive")?,
        applied_age_seconds: seconds("applied_age")?,
    })
}

impl Status {
    fn take_source(&mut self, record: &JobRecord, answer: SourceAnswer) {
        self.source_lsn = Some(answer.position.to_string());
        self.lag_bytes = record.applied_lsn.map(|applied| answer.position.bytes_since(applied));
        self.lag_seconds = match (self.lag_bytes, &self.process) {
            (Some(0), _) => Some(0),
            (Some(_), Some(process)) => process.applied_age_seconds,
            _ => None,
        };
        let name = record.identity.slot.clone();
        self.slot = Some(match answer.slot {
            None => SlotReport {
                name,
                exists: false,
                active: false,
                wal_status: None,
                confirmed_lsn: None,
                retained_bytes: None,
                safe_bytes: None,
            },
            Some(slot) => SlotReport {
                name,
                exists: true,
                active: slot.active_pid.is_some(),
                wal_status: slot.wal_status,
                confirmed_lsn: slot.confirmed_flush.map(|lsn| lsn.to_string()),
                retained_bytes: slot.retained_bytes,
                safe_bytes: slot.safe_bytes,
            },
        });
    }
}

/// What the operator should do, most urgent first; empty when all is well.
fn advice(status: &Status, record: &JobRecord, prepared: &Prepared) -> Vec<String> {
    let mut advice = Vec::new();
    let alive = status.process.as_ref().is_some_and(|process| process.alive);
    if let Some(slot) = &status.slot {
        if !slot.exists && record.slot_created {
            advice.push(format!("Slot {} is gone: changes since {} are lost to this job. `pgveil bootstrap --restart-snapshot` copies anew.", slot.name, status.applied_lsn.as_deref().unwrap_or("the snapshot")));
        } else if slot.wal_status.as_deref() == Some("lost") {
            advice.push(format!("The source removed WAL that slot {} needs. Raise max_slot_wal_keep_size, then `pgveil bootstrap --restart-snapshot`.", slot.name));
        }
        let alarm = prepared.wal_retention_alarm();
        if let Some(retained) = slot.retained_bytes.filter(|retained| alarm > 0 && *retained >= alarm) {
            let (retained, alarm) = (ByteSize::from_bytes(retained), ByteSize::from_bytes(alarm));
            advice.push(format!("Slot {} makes the source keep {retained} of WAL (alarm at {alarm}): let the job catch up, or `pgveil cleanup --yes` if it is given up.", slot.name));
        }
    }
    if let Some(remedy) = status.reason.as_ref().and_then(|reason| reason.remedy) {
        advice.push(remedy.to_owned());
    }
    match record.state {
        JobState::Initializing | JobState::Snapshotting if !alive => {
            advice.push("The bootstrap did not finish. `pgveil bootstrap --restart-snapshot` starts over, `pgveil cleanup --yes` gives up.".to_owned());
        }
        JobState::CatchingUp | JobState::Streaming if !alive => {
            advice.push("No process runs this job. Start it with `pgveil run`.".to_owned());
        }
        _ => {}
    }
    if let Some(process) = status.process.as_ref().filter(|process| process.alive)
        && process.heartbeat_age_seconds > 3 * prepared.heartbeat().as_secs().max(1)
    {
        advice.push(format!(
            "The process {} on {} holds the job, but was last heard of {} s ago: look at its log.",
            process.pid, process.host, process.heartbeat_age_seconds
        ));
    }
    if status.source_error.is_some() {
        advice.push("The source does not answer; its positions and the slot are unknown.".to_owned());
    }
    advice
}
