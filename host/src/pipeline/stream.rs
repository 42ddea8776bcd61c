//! Streams: from the checkpoint on, until somebody asks to stop or something halts the job.
//!
//! ```text
//! reader ──▶ (raw windows) ──▶ feeder ──▶ (windows being veiled, in order) ──▶ applier ──▶ target
//!    ▲                                                                            replies ◀──┘
//!    └────────────────────────── control: what is durable ◀── progress ◀────────────┘
//! ```
//!
//! One attempt is one set of connections. When one of the parts fails, the others end too; a transient failure begins
//! another attempt from the checkpoint, anything else halts the job with its reason recorded.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pgveil_wire::lsn::Lsn;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::apply::{Applier, Progress, Replies};
use crate::checkpoint::{Claim, Durability, DurableLsn, JobRecord, JobState};
use crate::config::quote_literal;
use crate::error::{Error, Kind, Result};
use crate::failpoint::{self, Point};
use crate::limits;
use crate::observe::heartbeat::Vitals;
use crate::postgres::{Endpoint, Session};
use crate::relation::Table;
use crate::source::slot;
use crate::source::stream::{StreamReader, kibibytes};
use crate::source::tables::StreamTables;
use crate::stop::{self, Stop, Stopper};
use crate::veil::{VeilPool, VeiledWindow};

use super::backoff::Backoff;

/// How long a part may take to finish what it has begun once the job stops. What has not committed by then rolls back.
const DRAIN: Duration = Duration::from_secs(10);

/// The same for answers to statements, some of which an applier that failed never sent.
const DRAIN_AFTER_ERROR: Duration = Duration::from_secs(1);

/// Everything that streaming needs, prepared and checked.
pub struct Stream {
    /// The job's id.
    pub job_id: String,
    /// Where changes come from.
    pub source: Arc<Endpoint>,
    /// Where they go.
    pub target: Arc<Endpoint>,
    /// The publication's name.
    pub publication: String,
    /// The slot's name.
    pub slot: String,
    /// The tables, in every shape that the stream may announce.
    pub tables: Vec<Arc<Table>>,
    /// The tables, by the source's oid, that the policy filters.
    pub filtered: HashSet<u32>,
    /// Who masks.
    pub pool: Arc<VeilPool>,
    /// The fingerprint of policy, guests and keys.
    pub fingerprint: String,
    /// What may be on its way between the source's socket and the target's answers.
    pub inflight_bytes: u64,
    /// The waits between attempts.
    pub reconnect: (Duration, Duration),
    /// What the heartbeat reports.
    pub vitals: Arc<Vitals>,
    /// Stop when everything up to here is applied.
    pub until: Option<Lsn>,
}

impl Stream {
    /// Streams until asked to stop. Transient failures are tried again; anything else is recorded and returned.
    pub async fn run(&self, mut stop: Stop) -> Result<()> {
        let mut backoff = Backoff::new(self.reconnect.0, self.reconnect.1);
        let mut held_lock = false;
        loop {
            let began = Instant::now();
            let error = match self.attempt(stop.clone(), &mut held_lock).await {
                Ok(()) => return Ok(()),
                Err(error) if stop.requested() && error.is_transient() => return Ok(()),
                Err(error) if error.is_transient() => error,
                // Our own former session may live on until the server notices that its connection is gone.
                Err(error) if error.kind() == Kind::JobLocked && held_lock => error,
                Err(error) => {
                    self.record_halt(&error).await;
                    return Err(error);
                }
            };
            if !backoff.wait(&error, began.elapsed(), &mut stop).await {
                return Ok(());
            }
        }
    }

    /// The reason stays in the job's record, so that `status` and the next start can tell it.
    async fn record_halt(&self, error: &Error) {
        let recorded = async {
            let mut target = Session::connect(&self.target, "halt").await?;
            JobRecord::halt(&mut target, &self.job_id, error).await
        };
        if let Err(unrecorded) = recorded.await {
            tracing::error!(error = %unrecorded, "the reason of the halt could not be recorded");
        }
    }

    async fn attempt(&self, stop: Stop, held_lock: &mut bool) -> Result<()> {
        let mut control = Session::connect(&self.target, "control").await?;
        control.batch(NOTICE_LOSS).await?;
        Claim::lock(&mut control, &self.job_id).await?;
        *held_lock = true;
        let record = self.record(&mut control).await?;
        let mut replication = Session::connect_replication(&self.source, "stream").await?;
        let found = slot::identify(&mut replication, &self.publication, &self.slot).await?;
        let mut source = Session::connect(&self.source, "watch").await?;
        slot::verify_continuity(&record, slot::state(&mut source, &self.slot).await?.as_ref(), &found)?;
        let behind = current_position(&mut source).await?;
        drop(source);

        let claim = Claim::take(&mut control, &self.job_id).await?;
        let start = claim.applied_lsn;
        JobRecord::set_state(&mut control, &self.job_id, JobState::CatchingUp).await?;
        let (progress_sender, progress) = watch::channel(Progress::default());
        let target = Session::connect(&self.target, "apply").await?;
        let filtered = |table: &Table| self.filtered.contains(&table.relation_id);
        let (applier, replies) = Applier::new(target, &self.tables, filtered, claim, progress_sender).await?;
        let replication = replication.copy_both(&self.start_command(start)).await?;
        tracing::info!(from = %start, slot = self.slot, "streaming");

        let (durable_sender, durable) = watch::channel(None);
        let reader = StreamReader::new(replication, StreamTables::new(self.tables.iter().cloned()), start, durable);
        let (ender, _) = stop::channel();
        let parts = self.spawn(reader, applier, replies, &ender);
        let control = Control {
            stream: self,
            session: control,
            durability: Durability::new(&self.job_id),
            durable: durable_sender,
            progress,
            behind,
            start,
        };
        parts.supervise(control, &ender, stop).await
    }

    /// The job's record, if it allows streaming under this policy.
    async fn record(&self, control: &mut Session) -> Result<JobRecord> {
        let place = || format!("job {}", self.job_id);
        let record = JobRecord::read(control, &self.job_id)
            .await?
            .ok_or_else(|| Error::new(Kind::NotReady, format!("{}: it was never bootstrapped", place())))?;
        match record.state {
            JobState::Initializing | JobState::Snapshotting => {
                Err(Error::new(Kind::NotReady, format!("{}: its bootstrap did not finish ({})", place(), record.state)))
            }
            JobState::ResyncRequired => {
                let reason = record.reason.clone().unwrap_or_default();
                let kind = Kind::ALL
                    .iter()
                    .copied()
                    .find(|kind| Some(kind.name()) == record.reason_kind.as_deref())
                    .unwrap_or(Kind::SlotLost);
                Err(Error::new(kind, format!("{}: it is in state {}: {reason}", place(), record.state)))
            }
            _ if record.fingerprint != self.fingerprint => Err(Error::new(Kind::FingerprintChanged, place())),
            _ => Ok(record),
        }
    }

    /// Version 1 of the protocol: whole transactions in commit order, no streaming of open ones, no two-phase.
    fn start_command(&self, start: Lsn) -> String {
        format!(
            "START_REPLICATION SLOT \"{}\" LOGICAL {start} (proto_version '1', publication_names {})",
            self.slot,
            // A list of identifiers inside a string: quoted twice.
            quote_literal(&format!("\"{}\"", self.publication.replace('"', "\"\"")))
        )
    }

    fn spawn(&self, reader: StreamReader, mut applier: Applier, replies: Replies, ender: &Stopper) -> Parts {
        let budget = Arc::new(Semaphore::new(kibibytes(self.inflight_bytes as usize) as usize));
        let (raw_sender, mut raw) = mpsc::channel(WINDOWS_AHEAD);
        let (veiled_sender, mut veiled) = mpsc::channel(WINDOWS_AHEAD);
        let pool = self.pool.clone();
        tokio::spawn(async move {
            // Work begins in order and is awaited in order, so the order stays whoever finishes first.
            while let Some(window) = raw.recv().await {
                if veiled_sender.send(pool.window(window)).await.is_err() {
                    break;
                }
            }
        });
        let applying = async move {
            while let Some(pending) = veiled.recv().await {
                let window: VeiledWindow = pending.await?;
                failpoint::reach(Point::Guest)?;
                applier.window(window).await?;
            }
            Ok(())
        };
        Parts {
            reader: part(ender, reader.run(raw_sender, budget, ender.listen())),
            applier: part(ender, applying),
            replies: part(ender, replies.run()),
        }
    }
}

/// A task whose end, good or bad, ends the attempt.
fn part(ender: &Stopper, work: impl Future<Output = Result<()>> + Send + 'static) -> JoinHandle<Result<()>> {
    let ender = ender.clone();
    tokio::spawn(async move {
        let ended = work.await;
        ender.stop();
        ended
    })
}

/// Lets the target's server notice within half a minute that a connection is gone, and with it give back locks.
pub(crate) const NOTICE_LOSS: &str =
    "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3";

/// Windows that may wait between two parts. The byte budget bounds their size; this, how many small ones.
const WINDOWS_AHEAD: usize = 16;

/// Where the source's WAL is now. Everything that has committed there lies before it.
pub async fn current_position(source: &mut Session) -> Result<Lsn> {
    let rows = source.query("select pg_catalog.pg_current_wal_flush_lsn() as position", &[]).await?;
    rows.first().ok_or_else(|| Error::new(Kind::Protocol, "source: no position"))?.parse("position")
}

/// The running parts of one attempt.
struct Parts {
    reader: JoinHandle<Result<()>>,
    applier: JoinHandle<Result<()>>,
    replies: JoinHandle<Result<()>>,
}

impl Parts {
    /// Waits for the end, whoever brings it, and finds the error that began it.
    async fn supervise(self, mut control: Control<'_>, ender: &Stopper, mut stop: Stop) -> Result<()> {
        let mut ended = ender.listen();
        let watched = tokio::select! {
            () = stop.wait() => Ok(()),
            () = ended.wait() => Ok(()),
            ended = control.run() => ended,
        };
        // The reader hears it and closes its queue; what is behind it empties, each part after the one before.
        ender.stop();
        let reader = drain(self.reader, DRAIN).await;
        let applier = drain(self.applier, DRAIN).await;
        let replies = drain(self.replies, if applier.is_ok() { DRAIN } else { DRAIN_AFTER_ERROR }).await;
        // What the server refused comes before what followed from it.
        replies.and(applier).and(reader).and(watched)
    }
}

/// The result of a part, or none if it does not end in time: it is cut off then, and its transaction rolls back.
async fn drain(mut part: JoinHandle<Result<()>>, at_most: Duration) -> Result<()> {
    match timeout(at_most, &mut part).await {
        // The panic's text is not looked at: it may quote a value.
        Ok(ended) => ended.unwrap_or_else(|_| Err(Error::new(Kind::Internal, "a part of the stream panicked"))),
        Err(_) => {
            part.abort();
            Ok(())
        }
    }
}

/// Looks after an attempt: what is durable, which state the job is in, when it has reached its end.
struct Control<'a> {
    stream: &'a Stream,
    session: Session,
    durability: Durability,
    durable: watch::Sender<Option<DurableLsn>>,
    progress: watch::Receiver<Progress>,
    /// The source's position at start: the state is CATCHING_UP until it is applied.
    behind: Lsn,
    start: Lsn,
}

impl Control<'_> {
    /// Ends, without error, once everything up to `until` is applied.
    async fn run(&mut self) -> Result<()> {
        let mut catching_up = true;
        // The checkpoint itself is durable, so the slot may hear of it at once.
        self.poll().await?;
        loop {
            let applied = self.progress.borrow_and_update().applied.unwrap_or(self.start);
            self.stream.vitals.received(applied);
            if catching_up && applied >= self.behind {
                catching_up = false;
                JobRecord::set_state(&mut self.session, &self.stream.job_id, JobState::Streaming).await?;
                tracing::info!(at = %applied, "caught up with the source's position at start");
            }
            if self.stream.until.is_some_and(|until| applied >= until) {
                return Ok(());
            }
            if self.durable.borrow().map(DurableLsn::lsn) < Some(applied) {
                self.poll().await?;
                tokio::time::sleep(limits::DURABLE_POLL).await;
            } else if self.progress.changed().await.is_err() {
                // The reading half has ended; the supervisor hears of it by itself.
                std::future::pending::<()>().await;
            }
        }
    }

    async fn poll(&mut self) -> Result<()> {
        if let Some(durable) = self.durability.poll(&mut self.session).await? {
            self.durable.send_replace(Some(durable));
        }
        Ok(())
    }
}
