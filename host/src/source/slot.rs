//! The replication slot: the only thing that is made on the source, and the proof that nothing was missed.
//!
//! Section "Streaming Replication Protocol" of the PostgreSQL manual for the commands, `pg_replication_slots` for what
//! a slot says of itself. A slot is dropped only when the job's record says that it is this job's.

use std::time::Duration;

use pgveil_wire::lsn::Lsn;

use crate::checkpoint::{Identity, JobRecord};
use crate::config::quote_ident;
use crate::error::{Error, Kind, Result};
use crate::postgres::{Endpoint, Row, Session};

/// How long making the slot may take before the operator is told what it waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the operator is told again.
const REMINDER: Duration = Duration::from_secs(10);

/// How long a drop waits for a walsender that still holds the slot, as after a connection that was just closed.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(15);

/// The output plugin: the server's own.
const PLUGIN: &str = "pgoutput";

/// A slot that was just made, and the snapshot that it starts from.
pub struct NewSlot {
    /// The session whose next command, or end, ends the exported snapshot.
    pub session: Session,
    /// Where the stream begins: all before it is in the snapshot, nothing after it is.
    pub consistent_lsn: Lsn,
    /// What `SET TRANSACTION SNAPSHOT` and `pg_dump --snapshot` take.
    pub snapshot: String,
}

/// What `pg_replication_slots` says of one slot. Positions may be NULL while a slot is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotState {
    /// The output plugin; `None` for a physical slot.
    pub plugin: Option<String>,
    /// The database the slot decodes.
    pub database: Option<String>,
    /// The walsender that holds it.
    pub active_pid: Option<i32>,
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub wal_status: Option<String>,
    /// Why the server invalidated it (`invalidation_reason` since 17, `conflicting` in 16).
    pub invalidation: Option<String>,
    /// Up to where the consumer has confirmed.
    pub confirmed_flush: Option<Lsn>,
    /// From where on the server keeps WAL for it.
    pub restart: Option<Lsn>,
    /// Bytes of WAL that are kept for it.
    pub retained_bytes: Option<u64>,
    /// Bytes that may still be written before the slot is in danger of being lost; `None` without a limit.
    pub safe_bytes: Option<u64>,
}

/// Who the source is: the job's identity as the server gives it now. The session is one of `connect_replication`.
///
/// # Errors
/// Those of the connection.
pub async fn identify(replication: &mut Session, publication: &str, slot: &str) -> Result<Identity> {
    let rows = replication.batch("IDENTIFY_SYSTEM").await?;
    let row = rows.first().ok_or_else(|| Error::new(Kind::Protocol, "source: IDENTIFY_SYSTEM gave no row"))?;
    Ok(Identity {
        system: row.text("systemid")?.to_owned(),
        timeline: row.parse("timeline")?,
        database: row.text("dbname")?.to_owned(),
        publication: publication.to_owned(),
        slot: slot.to_owned(),
    })
}

/// Makes the slot and exports its snapshot.
///
/// The server waits until every transaction that was writing when it began has ended; after two seconds `notice` is
/// told which ones, and again from time to time. Dropping the future leaves the wait running on the server:
/// use [`Session::cancel`] of `session` first.
///
/// # Errors
/// [`Kind::Preflight`] when a slot of that name is there already: it is not this job's.
pub async fn create(
    mut session: Session,
    observer: &Endpoint,
    slot: &str,
    notice: &(dyn Fn(String) + Sync),
) -> Result<NewSlot> {
    let pid = session.backend_pid();
    let command = format!("CREATE_REPLICATION_SLOT {} LOGICAL {PLUGIN} (SNAPSHOT 'export')", quote_ident(slot));
    let made = tokio::select! {
        made = session.batch(&command) => made,
        never = explain_wait(observer, pid, notice) => match never {},
    };
    let rows = made.map_err(|error| error.within(format_args!("slot {slot}")))?;
    let row = rows.first().ok_or_else(|| Error::new(Kind::Protocol, "source: CREATE_REPLICATION_SLOT gave no row"))?;
    let (consistent_lsn, snapshot) = (row.parse("consistent_point")?, row.text("snapshot_name")?.to_owned());
    Ok(NewSlot { session, consistent_lsn, snapshot })
}

/// Tells, until it is dropped, what the backend `pid` waits for.
async fn explain_wait(observer: &Endpoint, pid: u32, notice: &(dyn Fn(String) + Sync)) -> std::convert::Infallible {
    tokio::time::sleep(PATIENCE).await;
    let mut session = Session::connect(observer, "observer").await.ok();
    loop {
        let blockers = match &mut session {
            Some(session) => blockers(session, pid).await.unwrap_or_default(),
            None => Vec::new(),
        };
        notice(if blockers.is_empty() {
            "waiting for the source to make the slot".to_owned()
        } else {
            format!("the slot can be made once older transactions end: the source waits for {}", blockers.join(", "))
        });
        tokio::time::sleep(REMINDER).await;
    }
}

/// The transactions that block the backend `pid`, in words. Age and state are NULL without `pg_read_all_stats`.
async fn blockers(session: &mut Session, pid: u32) -> Result<Vec<String>> {
    let pid = pid.to_string();
    let rows = session
        .query(
            "select b.pid, a.state, extract(epoch from pg_catalog.clock_timestamp() - a.xact_start)::int8 as age \
             from pg_catalog.unnest(pg_catalog.pg_blocking_pids($1::int4)) b(pid) left join pg_catalog.pg_stat_activity a on a.pid = b.pid",
            &[Some(&pid)],
        )
        .await?;
    rows.iter().map(describe_blocker).collect()
}

fn describe_blocker(row: &Row) -> Result<String> {
    let pid: u32 = row.parse("pid")?;
    if pid == 0 {
        return Ok("a prepared transaction (see pg_prepared_xacts)".to_owned());
    }
    let age = row.parse_optional::<i64>("age")?.map(|seconds| format!("open for {seconds} s"));
    let details: Vec<String> = row.optional("state")?.map(str::to_owned).into_iter().chain(age).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    Ok(format!("the transaction of pid {pid}{details}"))
}

/// What the source knows of the slot; `None` when there is none of that name.
///
/// # Errors
/// Those of the connection.
pub async fn state(source: &mut Session, slot: &str) -> Result<Option<SlotState>> {
    let invalidation = match source.server_version() {
        170_000.. => "s.invalidation_reason",
        160_000.. => "case when s.conflicting then 'conflicting' end",
        _ => "null::text",
    };
    let rows = source
        .query(
            &format!(
                "select s.plugin, s.database, s.active_pid, s.wal_status, {invalidation} as invalidation, \
                 s.confirmed_flush_lsn, s.restart_lsn, s.safe_wal_size, \
                 case when pg_catalog.pg_is_in_recovery() then null \
                 else greatest(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn), 0)::int8 end as retained \
                 from pg_catalog.pg_replication_slots s where s.slot_name = $1"
            ),
            &[Some(slot)],
        )
        .await?;
    rows.first().map(SlotState::from_row).transpose()
}

impl SlotState {
    fn from_row(row: &Row) -> Result<SlotState> {
        Ok(SlotState {
            plugin: row.optional("plugin")?.map(str::to_owned),
            database: row.optional("database")?.map(str::to_owned),
            active_pid: row.parse_optional("active_pid")?,
            wal_status: row.optional("wal_status")?.map(str::to_owned),
            invalidation: row.optional("invalidation")?.map(str::to_owned),
            confirmed_flush: row.parse_optional("confirmed_flush_lsn")?,
            restart: row.parse_optional("restart_lsn")?,
            retained_bytes: row.parse_optional("retained")?,
            safe_bytes: row.parse_optional::<i64>("safe_wal_size")?.map(|bytes| u64::try_from(bytes).unwrap_or(0)),
        })
    }

    /// Whether the WAL that the slot needs is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.wal_status.as_deref() == Some("lost") || self.invalidation.is_some()
    }

    /// Whether it is a slot as this job makes it, in this database: one of another kind only has its name.
    #[must_use]
    pub fn fits(&self, database: &str) -> bool {
        self.plugin.as_deref() == Some(PLUGIN) && self.database.as_deref() == Some(database)
    }
}

/// Whether the stream can go on from the checkpoint without a gap: same source, same slot, and the slot not ahead.
///
/// # Errors
/// [`Kind::SourceChanged`], [`Kind::SlotMissing`], [`Kind::SlotLost`] or [`Kind::SlotAdvanced`], each naming what differs;
/// [`Kind::NotReady`] when the job has no checkpoint yet.
pub fn verify_continuity(record: &JobRecord, slot: Option<&SlotState>, identity: &Identity) -> Result<()> {
    let name = &record.identity.slot;
    let place = |what: String| format!("source: slot {name}: {what}");
    let applied = record
        .applied_lsn
        .ok_or_else(|| Error::new(Kind::NotReady, format!("job {}: no checkpoint yet", record.job_id)))?;
    verify_identity(&record.identity, identity)?;
    let Some(slot) = slot else { return Err(Error::new(Kind::SlotMissing, format!("source: slot {name}"))) };
    if !slot.fits(&identity.database) {
        let (plugin, database) = (slot.plugin.as_deref().unwrap_or("none"), slot.database.as_deref().unwrap_or("none"));
        return Err(Error::new(Kind::SourceChanged, place(format!("it has plugin {plugin} and database {database}"))));
    }
    if slot.is_lost() {
        let reason = slot.invalidation.as_deref().unwrap_or("wal_status lost");
        return Err(Error::new(Kind::SlotLost, place(reason.to_owned())));
    }
    let Some(confirmed) = slot.confirmed_flush else {
        return Err(Error::new(Kind::SlotMissing, place("it has no position: it was never finished".to_owned())));
    };
    if confirmed > applied {
        return Err(Error::new(
            Kind::SlotAdvanced,
            place(format!("it is at {confirmed}, the checkpoint at {applied}")),
        ));
    }
    match record.consistent_lsn {
        Some(consistent) if confirmed < consistent => Err(Error::new(
            Kind::SourceChanged,
            place(format!("it is at {confirmed}, before this job's snapshot at {consistent}")),
        )),
        _ => Ok(()),
    }
}

/// Compares all that ties a job to its source.
///
/// # Errors
/// [`Kind::SourceChanged`] naming what differs, with both.
pub fn verify_identity(recorded: &Identity, found: &Identity) -> Result<()> {
    let pairs = [
        ("system identifier", &recorded.system, &found.system),
        ("timeline", &recorded.timeline.to_string(), &found.timeline.to_string()),
        ("database", &recorded.database, &found.database),
        ("publication", &recorded.publication, &found.publication),
        ("slot", &recorded.slot, &found.slot),
    ];
    match pairs.iter().find(|(_, recorded, found)| recorded != found) {
        Some((what, recorded, found)) => {
            Err(Error::new(Kind::SourceChanged, format!("source: {what} is {found}, the job's is {recorded}")))
        }
        None => Ok(()),
    }
}

/// Drops the slot of this job. `Ok(false)` when there is none. `identity` is what the job's record says.
///
/// # Errors
/// [`Kind::SourceChanged`] when the server, or the slot of that name, is not the recorded one: nothing is dropped.
/// [`Kind::SlotActive`] when a walsender keeps it.
pub async fn drop_owned(source: &Endpoint, identity: &Identity) -> Result<bool> {
    let mut replication = Session::connect_replication(source, "identify").await?;
    let found = identify(&mut replication, &identity.publication, &identity.slot).await?;
    // A promoted standby carries on the same slots, so the timeline does not matter here.
    verify_identity(&Identity { timeline: identity.timeline, ..found }, identity)
        .map_err(|error| error.within("the slot was not dropped"))?;
    let mut session = Session::connect(source, "cleanup").await?;
    let deadline = tokio::time::Instant::now() + RELEASE_TIMEOUT;
    loop {
        let Some(slot) = state(&mut session, &identity.slot).await? else { return Ok(false) };
        if !slot.fits(&identity.database) {
            return Err(Error::new(
                Kind::SourceChanged,
                format!("source: slot {} is not the one this job made; it was not dropped", identity.slot),
            ));
        }
        match session.query("select pg_catalog.pg_drop_replication_slot($1)", &[Some(&identity.slot)]).await {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == Kind::SlotActive && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => {
                let holder = slot.active_pid.map(|pid| format!(" is held by pid {pid}")).unwrap_or_default();
                return Err(error.within(format_args!("slot {}{holder}", identity.slot)));
            }
        }
    }
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
