//! Reads the target's answers behind the applier's back, in the order in which statements were sent.

use std::sync::Arc;

use pgveil_wire::lsn::Lsn;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use crate::checkpoint::GUARD_SQLSTATE;
use crate::error::{Error, Kind, Result};
use crate::postgres::{PipelineReader, Reply, Side};

/// What an answer belongs to. Sent before the statement itself goes out.
pub(super) enum Expectation {
    /// A statement; its CommandComplete takes it off.
    Statement(Sent),
    /// A transaction's end; ReadyForQuery takes it off, and only then is the transaction committed.
    Commit(Lsn),
    /// All of a window is answered: its memory goes back to the budget.
    Window(Option<OwnedSemaphorePermit>),
}

/// What a statement was for, in names.
pub(super) struct Sent {
    pub(super) purpose: Purpose,
    /// The table as the policy writes it; empty for the checkpoint.
    pub(super) table: Arc<str>,
    pub(super) xid: u32,
    pub(super) final_lsn: Lsn,
    /// The rows that the server must count, where the statement cannot see to it itself.
    pub(super) rows: Option<u64>,
}

/// Why a statement was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Insert,
    Update,
    /// An update of a filtered table that carries an unchanged value: the row has to be there already.
    UpdateKept,
    Delete,
    Truncate,
    Checkpoint,
}

/// How far the target is, as answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The end of the last committed transaction. Not yet durable.
    pub applied: Option<Lsn>,
    /// Transactions committed by this process.
    pub transactions: u64,
}

/// The reading half.
pub struct Replies {
    reader: PipelineReader,
    expectations: mpsc::UnboundedReceiver<Expectation>,
    progress: watch::Sender<Progress>,
}

impl Replies {
    pub(super) fn new(
        reader: PipelineReader,
        expectations: mpsc::UnboundedReceiver<Expectation>,
        progress: watch::Sender<Progress>,
    ) -> Replies {
        Replies { reader, expectations, progress }
    }

    /// Reads until the applier is gone and every answer is in, or one of them is an error. The server has rolled that
    /// transaction back, and the checkpoint's guard stops each one behind it.
    pub async fn run(mut self) -> Result<()> {
        while let Some(expectation) = self.expectations.recv().await {
            match expectation {
                Expectation::Window(budget) => drop(budget),
                Expectation::Statement(sent) => self.statement(&sent).await?,
                Expectation::Commit(lsn) => self.commit(lsn).await?,
            }
        }
        Ok(())
    }

    async fn statement(&mut self, sent: &Sent) -> Result<()> {
        loop {
            match self.reader.next().await? {
                Reply::Command { rows } if sent.rows.is_none_or(|expected| expected == rows) => return Ok(()),
                Reply::Command { .. } => return Err(Error::new(Kind::CheckpointMoved, sent.place())),
                Reply::Error(error) => return Err(sent.failed(&error)),
                Reply::Ready(_) => return Err(Error::new(Kind::Protocol, sent.place())),
                Reply::ParseComplete
                | Reply::BindComplete
                | Reply::CloseComplete
                | Reply::Row(_)
                | Reply::CopyInReady => {}
            }
        }
    }

    async fn commit(&mut self, lsn: Lsn) -> Result<()> {
        loop {
            match self.reader.next().await? {
                Reply::Ready(_) => break,
                // A constraint that is checked at commit fails here.
                Reply::Error(error) => {
                    return Err(Error::from_server(Side::Target, &error)
                        .within(format!("commit of the transaction that ends at {lsn}")));
                }
                Reply::CloseComplete => {}
                _ => {
                    return Err(Error::new(
                        Kind::Protocol,
                        format!("target: commit of the transaction that ends at {lsn}"),
                    ));
                }
            }
        }
        self.progress.send_modify(|progress| {
            progress.applied = Some(lsn);
            progress.transactions += 1;
        });
        Ok(())
    }
}

impl Sent {
    fn place(&self) -> String {
        let what = match self.purpose {
            Purpose::Insert => "insert",
            Purpose::Update | Purpose::UpdateKept => "update",
            Purpose::Delete => "delete",
            Purpose::Truncate => "truncate",
            Purpose::Checkpoint => return "target: checkpoint".to_owned(),
        };
        format!(
            "target: transaction {} of the source that commits at {}: {what} of table {}",
            self.xid, self.final_lsn, self.table
        )
    }

    fn failed(&self, error: &crate::postgres::ServerError) -> Error {
        if error.sqlstate.as_str() == GUARD_SQLSTATE {
            let kind = match self.purpose {
                Purpose::Update | Purpose::Delete => Kind::RowMissing,
                Purpose::UpdateKept => Kind::UnchangedNeeded,
                Purpose::Checkpoint => Kind::CheckpointMoved,
                Purpose::Insert | Purpose::Truncate => Kind::TargetRefused,
            };
            return Error::new(kind, self.place());
        }
        Error::from_server(Side::Target, error).within(self.place())
    }
}
