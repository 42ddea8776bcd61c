//! A stretch of the stream: operations in commit order, their rows grouped into one batch a table.
//!
//! Small transactions still make large batches: rows of many transactions share a batch, and the order of operations
//! and the transaction boundaries are kept beside it. A huge transaction spans many windows.

use pgveil_wire::lsn::Lsn;
use pgveil_wire::timestamp::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::Error;
use crate::row::RawBatch;

/// A row of one of the window's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef {
    /// The position in the window's list of batches.
    pub batch: u32,
    /// The row in that batch.
    pub row: u32,
}

/// One step of the stream, in source order.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A transaction begins.
    Begin {
        /// The source's transaction id, for messages only.
        xid: u32,
        /// The LSN of its commit record.
        final_lsn: Lsn,
        /// When it committed at the source.
        commit_time: Timestamp,
    },
    /// A row was inserted.
    Insert {
        /// The new row.
        new: RowRef,
    },
    /// A row was updated.
    Update {
        /// The old key or old row, when `pgoutput` sent one.
        old: Option<RowRef>,
        /// The new row; out-of-line values that did not change are marked so.
        new: RowRef,
    },
    /// A row was deleted.
    Delete {
        /// The old key or old row.
        old: RowRef,
    },
    /// Tables were emptied by one TRUNCATE.
    Truncate {
        /// The relations by the source's oid, in the order of the message.
        relation_ids: Vec<u32>,
        /// `CASCADE` was given.
        cascade: bool,
        /// `RESTART IDENTITY` was given.
        restart_identity: bool,
    },
    /// The transaction is whole.
    Commit {
        /// The LSN just after the commit record: the only position that a checkpoint ever holds.
        end_lsn: Lsn,
    },
    /// No transaction is open and the source is at this position: nothing up to it concerns the job.
    Advance {
        /// The walsender's position.
        lsn: Lsn,
    },
}

/// A window as the source made it. Its rows are not masked.
pub struct RawWindow {
    /// What happened, in order.
    pub operations: Vec<Operation>,
    /// The rows, one batch for each table and image.
    pub batches: Vec<RawBatch>,
    /// Why the stream ends behind the last operation: everything before it may still be applied, nothing after.
    pub fault: Option<Error>,
    /// The window's share of the memory budget, given back when it is dropped.
    pub budget: Option<OwnedSemaphorePermit>,
}
