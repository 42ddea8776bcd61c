//! The snapshot's copy: chunks of all tables, largest first, by several workers at once.
//!
//! A worker reads a chunk in batches, has each batch masked, and sends it on to the target. The three overlap: while one
//! batch is written the next is in the guests and the one after is read. The order of rows within a chunk stays.
//! A chunk's rows and its record are one transaction on the target.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::apply::copy::{copy_statement, write_copy_rows};
use crate::checkpoint::{finish_table, record_chunk};
use crate::error::{Error, Kind, Result};
use crate::observe::progress::Progress;
use crate::postgres::{CopyIn, Endpoint, Session};
use crate::relation::Table;
use crate::source::snapshot::{BatchLimits, Chunk, ChunkReader, CopySession, Extent, chunks};
use crate::veil::{Pending, VeilPool, VeiledBatch};

/// Batches of one worker between reader and writer. Two keep both busy; more would only hold memory.
const BATCHES_AHEAD: usize = 2;

/// One permit of the memory budget stands for so many bytes, for a semaphore counts in 32 bits.
const BUDGET_UNIT: usize = 1024;

/// What the workers of one copy share.
pub struct Copy {
    /// The job's id, for the chunks' records.
    pub job_id: String,
    /// The tables, in the order that chunks number them.
    pub tables: Vec<Arc<Table>>,
    /// Where rows go.
    pub target: Arc<Endpoint>,
    /// Who masks them.
    pub pool: Arc<VeilPool>,
    /// Who is told of them.
    pub progress: Arc<Progress>,
    /// What a batch may hold.
    pub batch: BatchLimits,
    /// Bytes of rows that may be on their way, all workers together.
    pub memory_bytes: usize,
}

/// A copy under way.
struct Work {
    copy: Copy,
    queue: Mutex<VecDeque<Chunk>>,
    /// How many chunks of each table are not in yet.
    open: Vec<AtomicUsize>,
    budget: Arc<Semaphore>,
    budget_units: usize,
}

/// A batch that is being masked, and its share of the memory budget.
struct InGuests {
    veiled: Pending<VeiledBatch>,
    rows: u64,
    bytes: u64,
    _share: OwnedSemaphorePermit,
}

impl Copy {
    /// Copies all tables, with as many workers as there are sessions. The first failure ends all of them.
    ///
    /// Cancel-safe in that nothing half done stays: dropping it ends all sessions, and with them the open transactions.
    ///
    /// # Errors
    /// Whatever a worker met, with its table.
    pub async fn run(self, sessions: Vec<CopySession>, extents: &[Extent], chunk_blocks: u32) -> Result<()> {
        let cut: Vec<Vec<Chunk>> =
            extents.iter().enumerate().map(|(table, extent)| chunks(table, *extent, chunk_blocks).collect()).collect();
        let open = cut.iter().map(|chunks| AtomicUsize::new(chunks.len())).collect();
        let mut order: Vec<usize> = (0..cut.len()).collect();
        // The largest first: a large table begun last would keep one worker busy alone.
        order.sort_by_key(|table| std::cmp::Reverse(extents.get(*table).map_or(0, |extent| extent.blocks)));
        let queue = order.into_iter().flat_map(|table| cut.get(table).cloned().unwrap_or_default()).collect();
        let budget_units = (self.memory_bytes / BUDGET_UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let work = Arc::new(Work {
            copy: self,
            queue: Mutex::new(queue),
            open,
            budget: Arc::new(Semaphore::new(budget_units)),
            budget_units,
        });
        let mut workers = JoinSet::new();
        for session in sessions {
            workers.spawn(Arc::clone(&work).copy_chunks(session));
        }
        while let Some(finished) = workers.join_next().await {
            // Leaving drops the set, which ends the other workers at once.
            finished.map_err(|error| Error::new(Kind::Internal, "copy worker").because(error))??;
        }
        Ok(())
    }
}

impl Work {
    /// One worker: chunk after chunk until none is left.
    async fn copy_chunks(self: Arc<Self>, mut source: CopySession) -> Result<()> {
        let mut target = open_target(&self.copy.target).await?;
        while let Some(chunk) = self.next_chunk() {
            let Some(table) = self.copy.tables.get(chunk.table) else { continue };
            self.copy_chunk(&mut source, &mut target, table, &chunk)
                .await
                .map_err(|error| error.within(format_args!("table {}", table.name)))?;
        }
        source.close().await
    }

    fn next_chunk(&self) -> Option<Chunk> {
        self.queue.lock().ok()?.pop_front()
    }

    async fn copy_chunk(
        &self,
        source: &mut CopySession,
        target: &mut Session,
        table: &Arc<Table>,
        chunk: &Chunk,
    ) -> Result<()> {
        target.batch("begin").await?;
        let mut reader = source.read(table, chunk, self.copy.batch).await?;
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let copy_in = target.copy_in(&copy_statement(table)).await?;
        let ((), (rows, bytes)) = tokio::try_join!(
            self.read_batches(&mut reader, sender),
            self.write_batches(copy_in, receiver, chunk.table)
        )?;
        record_chunk(target, &self.copy.job_id, table.relation_id, chunk.blocks(), rows, bytes).await?;
        target.batch("commit").await?;
        let last = self.open.get(chunk.table).is_some_and(|open| open.fetch_sub(1, Ordering::AcqRel) == 1);
        if last {
            finish_table(target, &self.copy.job_id, table.relation_id).await?;
            self.copy.progress.finish(chunk.table);
        }
        Ok(())
    }

    /// Reads the chunk and hands its batches to the guests.
    async fn read_batches(&self, reader: &mut ChunkReader<'_>, sender: mpsc::Sender<InGuests>) -> Result<()> {
        while let Some(batch) = reader.next().await? {
            let (rows, bytes) = (batch.rows() as u64, batch.text_bytes() as u64);
            // A batch above the whole budget still passes, alone.
            let units = (batch.size() / BUDGET_UNIT + 1).min(self.budget_units);
            let units = u32::try_from(units).unwrap_or(u32::MAX);
            let share = Arc::clone(&self.budget)
                .acquire_many_owned(units)
                .await
                .map_err(|error| Error::new(Kind::Internal, "memory budget").because(error))?;
            let veiled = self.copy.pool.submit(batch);
            if sender.send(InGuests { veiled, rows, bytes, _share: share }).await.is_err() {
                // The writer stopped and has the reason.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes masked batches in the order they were read; gives the rows written and the bytes read.
    async fn write_batches(
        &self,
        mut copy_in: CopyIn<'_>,
        mut receiver: mpsc::Receiver<InGuests>,
        table: usize,
    ) -> Result<(u64, u64)> {
        let (mut written, mut total_bytes) = (0, 0);
        let mut text = Vec::new();
        while let Some(pending) = receiver.recv().await {
            let veiled = pending.veiled.await?;
            text.clear();
            written +=
                write_copy_rows(&veiled, (0..veiled.rows()).filter(|row| veiled.keep(*row) != Some(false)), &mut text)?;
            copy_in.send(&text).await?;
            total_bytes += pending.bytes;
            self.copy.progress.advance(table, pending.rows, pending.bytes);
        }
        let taken = copy_in.finish().await?;
        if taken != written {
            return Err(Error::new(Kind::Internal, format!("the target took {taken} rows of {written}")));
        }
        Ok((written, total_bytes))
    }
}

/// A session that writes chunks. Triggers and foreign keys rest, as in a subscription worker; a chunk's commit need not wait
/// for the disk, for a copy that is not whole is never used, and the record that it is whole does wait.
async fn open_target(target: &Endpoint) -> Result<Session> {
    let mut session = Session::connect(target, "copy").await?;
    session
        .batch("set session_replication_role = replica; set synchronous_commit = off; set row_security = off")
        .await?;
    if session.server_version() >= 170_000 {
        session.batch("set transaction_timeout = 0").await?;
    }
    Ok(session)
}
