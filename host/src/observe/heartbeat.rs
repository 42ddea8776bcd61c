//! The running process's sign of life, in `pgveil.process` of the target: what `status` shows of it.
//!
//! It has a session of its own, so that it beats while everything else waits; a beat that fails is only logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgveil_wire::lsn::Lsn;
use tokio::task::JoinHandle;

use crate::error::Result;
use crate::postgres::{Endpoint, Session};

/// What the process's other parts tell the heartbeat. All positions only ever grow.
#[derive(Debug, Default)]
pub struct Vitals {
    received: AtomicU64,
    applied_at: AtomicU64,
}

impl Vitals {
    /// The stream was read up to here.
    pub fn received(&self, lsn: Lsn) {
        self.received.fetch_max(lsn.0, Ordering::Relaxed);
    }

    /// A transaction was applied that the source committed at this time.
    pub fn applied(&self, committed_at: SystemTime) {
        let since = committed_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.applied_at.store(u64::try_from(since.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Beats until it is dropped.
pub struct Heartbeat {
    target: Arc<Endpoint>,
    job_id: String,
    task: JoinHandle<()>,
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Heartbeat {
    /// Begins to beat for a job whose record exists.
    #[must_use]
    pub fn start(target: Arc<Endpoint>, job_id: String, interval: Duration, vitals: Arc<Vitals>) -> Heartbeat {
        let task = tokio::spawn(beat_for_ever(Arc::clone(&target), job_id.clone(), interval, vitals));
        Heartbeat { target, job_id, task }
    }

    /// Stops, and takes the sign of life away: the process ended in good order. If that fails, the last beat shows when.
    pub async fn end(self) {
        self.task.abort();
        let removed = async {
            let mut session = Session::connect(&self.target, "heartbeat").await?;
            session.execute("delete from pgveil.process where job_id = $1", &[Some(&self.job_id)]).await
        };
        if let Err(error) = removed.await {
            tracing::debug!(%error, "the heartbeat's row stays");
        }
    }
}

async fn beat_for_ever(target: Arc<Endpoint>, job_id: String, interval: Duration, vitals: Arc<Vitals>) {
    let mut session = None;
    let started = SystemTime::now();
    loop {
        match beat(&mut session, &target, &job_id, started, &vitals).await {
            Ok(()) => {}
            Err(error) => {
                session = None;
                tracing::warn!(%error, "the heartbeat could not be written");
            }
        }
        tokio::time::sleep(interval).await;
    }
}

async fn beat(
    session: &mut Option<Session>,
    target: &Endpoint,
    job_id: &str,
    started: SystemTime,
    vitals: &Vitals,
) -> Result<()> {
    let session = match session {
        Some(session) => session,
        empty => empty.insert(Session::connect(target, "heartbeat").await?),
    };
    let pid = std::process::id().to_string();
    let running = started.elapsed().unwrap_or_default().as_secs_f64().to_string();
    let received = Some(vitals.received.load(Ordering::Relaxed)).filter(|lsn| *lsn > 0).map(|lsn| Lsn(lsn).to_string());
    let applied_at = Some(vitals.applied_at.load(Ordering::Relaxed)).filter(|at| *at > 0).map(|at| at.to_string());
    // Times by the target's clock, which `status` compares them with.
    session
        .execute(
            "insert into pgveil.process (job_id, pid, host, started_at, heartbeat_at, received_lsn, applied_at) \
             select $1, $2::int4, $3, now() - $4::float8 * interval '1 second', now(), $5::pg_lsn, \
             timestamptz 'epoch' + $6::int8 * interval '1 microsecond' \
             on conflict (job_id) do update set pid = excluded.pid, host = excluded.host, started_at = excluded.started_at, \
             heartbeat_at = excluded.heartbeat_at, received_lsn = excluded.received_lsn, applied_at = excluded.applied_at",
            &[Some(job_id), Some(&pid), Some(&host_name()), Some(&running), received.as_deref(), applied_at.as_deref()],
        )
        .await
        .map(|_| ())
}

/// The machine's name as far as the system tells it.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_else(|_| "unknown".to_owned())
}
