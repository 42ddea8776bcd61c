//! Reads the replication stream into windows, and answers the walsender whatever happens behind it.
//!
//! ```text
//! walsender ──▶ decode ──▶ window ──(byte budget, queue)──▶ veil ──▶ apply
//!     ▲                                                             │
//!     └── status update, on a timer of its own ◀── durable position ┘
//! ```
//!
//! # Back-pressure
//! A window goes on as soon as there is room behind it and nothing more to read, so a quiet stream has no delay and a
//! busy one makes large batches. While there is no room the socket is not read, yet the timer still runs: a stalled
//! target never costs the connection.
//!
//! # Progress tracking
//! A keepalive carries the position up to which the walsender has read the log. Every transaction that committed
//! before it has been sent already, so with no transaction open the position may be checkpointed, in order behind
//! what was sent. Without that an idle job would hold back the source's WAL for ever.

use std::sync::Arc;

use pgveil_wire::lsn::Lsn;
use pgveil_wire::pgoutput::{Message, OldTuple};
use pgveil_wire::replication::ServerMessage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::checkpoint::DurableLsn;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::postgres::Replication;
use crate::row::Image;
use crate::stop::Stop;
use crate::window::{Operation, RawWindow, RowRef};

use super::builder::WindowBuilder;
use super::feedback::Feedback;
use super::tables::StreamTables;

/// The reader of one replication connection.
pub struct StreamReader {
    replication: Replication,
    tables: StreamTables,
    builder: WindowBuilder,
    feedback: Feedback,
    transaction: Transaction,
    /// Every transaction whose commit record lies before this is applied already.
    start: Lsn,
    /// The furthest position that was handed on.
    reached: Lsn,
    advanced_at: Instant,
    heard_at: Instant,
}

/// Where the stream stands between Begin and Commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open {
        xid: u32,
        final_lsn: Lsn,
    },
    /// Sent again by the server although it is applied.
    Skipped,
}

impl StreamReader {
    /// Takes over a connection on which START_REPLICATION has succeeded at `start`, the checkpoint.
    #[must_use]
    pub fn new(
        replication: Replication,
        tables: StreamTables,
        start: Lsn,
        durable: watch::Receiver<Option<DurableLsn>>,
    ) -> StreamReader {
        StreamReader {
            replication,
            tables,
            builder: WindowBuilder::default(),
            feedback: Feedback::new(durable),
            transaction: Transaction::None,
            start,
            reached: start,
            advanced_at: Instant::now(),
            heard_at: Instant::now(),
        }
    }

    /// Reads until somebody asks to stop, the stream fails, or nobody takes windows any more.
    ///
    /// A fault of the stream's content travels in its window, behind all that came before it; only a fault of the
    /// connection is returned.
    pub async fn run(mut self, windows: mpsc::Sender<RawWindow>, budget: Arc<Semaphore>, mut stop: Stop) -> Result<()> {
        let mut ended = false;
        // Nothing is taken yet: this is all there will ever be.
        let budget_whole = u32::try_from(budget.available_permits()).unwrap_or(u32::MAX);
        loop {
            tokio::select! {
                // In this order: what is already in the socket's buffer comes before handing on, which makes batches.
                biased;
                () = stop.wait() => break,
                () = self.feedback.due() => {
                    let reading = !ended && !self.builder.is_full();
                    self.check_alive(reading)?;
                    self.feedback.send(&mut self.replication).await?;
                }
                message = self.replication.next(), if !ended && !self.builder.is_full() => {
                    let message = message?;
                    self.heard_at = Instant::now();
                    if let Err(error) = self.accept(&message) {
                        self.builder.fail(self.locate(error));
                    }
                }
                room = admission(&budget, budget_whole, &windows, self.builder.bytes()), if !self.builder.is_empty() => {
                    let Some((permit, slot)) = room else { break };
                    let mut window = self.builder.take()?;
                    window.budget = Some(permit);
                    // Behind a fault nothing may be read; feedback goes on until the job stops this reader.
                    ended |= window.fault.is_some();
                    slot.send(window);
                }
            }
        }
        self.feedback.send(&mut self.replication).await?;
        self.replication.end().await
    }

    /// A walsender that says nothing, not even when asked, is gone. While the socket is not read it cannot be judged.
    fn check_alive(&mut self, reading: bool) -> Result<()> {
        if !reading {
            self.heard_at = Instant::now();
        }
        if self.heard_at.elapsed() < limits::SILENCE_MAX {
            return Ok(());
        }
        let silence = limits::SILENCE_MAX.as_secs();
        Err(Error::new(Kind::ConnectionLost, format!("source: the walsender has been silent for {silence} s")))
    }

    fn accept(&mut self, body: &bytes::Bytes) -> Result<()> {
        match ServerMessage::parse(body)? {
            ServerMessage::XLogData(data) => self.decode(&data.payload),
            ServerMessage::PrimaryKeepalive(keepalive) => {
                if keepalive.reply_requested {
                    self.feedback.hurry();
                }
                self.feedback.received(keepalive.wal_end);
                self.advance(keepalive.wal_end);
                Ok(())
            }
        }
    }

    /// Notes a position before which nothing is pending. Far from any commit it waits, so that an idle source does
    /// not cause a write on the target for every keepalive.
    fn advance(&mut self, lsn: Lsn) {
        let due = self.feedback.is_hurried() || self.advanced_at.elapsed() >= limits::IDLE_ADVANCE;
        if self.transaction == Transaction::None && lsn > self.reached && due {
            self.reached = lsn;
            self.advanced_at = Instant::now();
            self.builder.operation(Operation::Advance { lsn });
        }
    }

    fn decode(&mut self, payload: &bytes::Bytes) -> Result<()> {
        match Message::parse(payload)? {
            Message::Begin(begin) => {
                if self.transaction != Transaction::None {
                    return Err(Error::new(Kind::Protocol, "a transaction begins inside another"));
                }
                if begin.final_lsn < self.start {
                    self.transaction = Transaction::Skipped;
                    return Ok(());
                }
                self.transaction = Transaction::Open { xid: begin.xid, final_lsn: begin.final_lsn };
                self.builder.operation(Operation::Begin {
                    xid: begin.xid,
                    final_lsn: begin.final_lsn,
                    commit_time: begin.commit_time,
                });
            }
            Message::Commit(commit) => match std::mem::replace(&mut self.transaction, Transaction::None) {
                Transaction::Open { final_lsn, .. } if final_lsn == commit.commit_lsn => {
                    self.reached = self.reached.max(commit.end_lsn);
                    self.feedback.received(commit.end_lsn);
                    self.builder.operation(Operation::Commit { end_lsn: commit.end_lsn });
                }
                Transaction::Skipped => {}
                Transaction::Open { .. } | Transaction::None => {
                    return Err(Error::new(Kind::Protocol, "a commit that belongs to no begin"));
                }
            },
            Message::Relation(relation) => self.tables.relation(&relation)?,
            Message::Insert(insert) => {
                if let Some(new) = self.row(insert.relation_id, Image::Row, &insert.new)? {
                    self.builder.operation(Operation::Insert { new });
                }
            }
            Message::Update(update) => {
                let old = update.old.as_ref().map(|old| self.old_row(update.relation_id, old)).transpose()?.flatten();
                if let Some(new) = self.row(update.relation_id, Image::Row, &update.new)? {
                    self.builder.operation(Operation::Update { old, new });
                }
            }
            Message::Delete(delete) => {
                if let Some(old) = self.old_row(delete.relation_id, &delete.old)? {
                    self.builder.operation(Operation::Delete { old });
                }
            }
            Message::Truncate(truncate) => {
                for relation_id in &truncate.relation_ids {
                    self.tables.current(*relation_id)?;
                }
                if self.open()? {
                    self.builder.operation(Operation::Truncate {
                        relation_ids: truncate.relation_ids,
                        cascade: truncate.cascade,
                        restart_identity: truncate.restart_identity,
                    });
                }
            }
            // Where a transaction came from and what an application noted beside it changes no row. Types are
            // carried by text: their names are of no use.
            Message::Origin(_) | Message::Type(_) | Message::LogicalMessage(_) => {}
        }
        Ok(())
    }

    /// Whether changes are to be taken: false inside a transaction that is applied already.
    fn open(&self) -> Result<bool> {
        match self.transaction {
            Transaction::Open { .. } => Ok(true),
            Transaction::Skipped => Ok(false),
            Transaction::None => Err(Error::new(Kind::Protocol, "a change outside of a transaction")),
        }
    }

    fn row(&mut self, relation_id: u32, image: Image, tuple: &pgveil_wire::tuple::Tuple) -> Result<Option<RowRef>> {
        if !self.open()? {
            return Ok(None);
        }
        let table = self.tables.current(relation_id)?;
        self.builder.row(table, image, tuple).map(Some)
    }

    fn old_row(&mut self, relation_id: u32, old: &OldTuple) -> Result<Option<RowRef>> {
        match old {
            OldTuple::Key(tuple) => self.row(relation_id, Image::Key, tuple),
            OldTuple::Full(tuple) => self.row(relation_id, Image::Row, tuple),
        }
    }

    fn locate(&self, error: Error) -> Error {
        match self.transaction {
            Transaction::Open { xid, final_lsn } => {
                error.within(format!("source: transaction {xid} that commits at {final_lsn}"))
            }
            Transaction::None | Transaction::Skipped => error.within(format!("source: stream after {}", self.reached)),
        }
    }
}

/// A share of the budget and a place in the queue; `None` when nobody takes windows any more. Cancel-safe.
async fn admission<'a>(
    budget: &Arc<Semaphore>,
    budget_whole: u32,
    windows: &'a mpsc::Sender<RawWindow>,
    bytes: usize,
) -> Option<(OwnedSemaphorePermit, mpsc::Permit<'a, RawWindow>)> {
    // A single row may be larger than the whole budget: it then travels alone.
    let share = kibibytes(bytes).min(budget_whole);
    let permit = budget.clone().acquire_many_owned(share).await.ok()?;
    let slot = windows.reserve().await.ok()?;
    Some((permit, slot))
}

/// The unit of the byte budget: tokio's semaphores count in `u32`.
#[must_use]
pub fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row larger than `limits.max_inflight` would else wait for room that there never is.
    #[tokio::test]
    async fn a_window_larger_than_the_budget_is_admitted_alone() {
        let budget = Arc::new(Semaphore::new(4));
        let (windows, _received) = mpsc::channel(2);
        let held = admission(&budget, 4, &windows, 1 << 20).await;
        assert!(held.is_some());
        assert_eq!(budget.available_permits(), 0);
    }
}
