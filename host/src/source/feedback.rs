//! Tells the walsender what is durable on the target, on a timer of its own.
//!
//! All three positions of the status update are the durable one: PostgreSQL moves the slot by "flushed", and reads a
//! zero there as the written position. Only a [`DurableLsn`] can be reported, and only `checkpoint.rs` makes one.

use std::time::SystemTime;

use bytes::BytesMut;
use pgveil_wire::lsn::Lsn;
use pgveil_wire::replication::StandbyStatusUpdate;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::checkpoint::DurableLsn;
use crate::error::Result;
use crate::failpoint::{self, Point};
use crate::limits;
use crate::postgres::Replication;

/// The timer and what it reports.
pub(super) struct Feedback {
    durable: watch::Receiver<Option<DurableLsn>>,
    received: Lsn,
    due_at: Instant,
    hurried: bool,
}

impl Feedback {
    pub(super) fn new(durable: watch::Receiver<Option<DurableLsn>>) -> Feedback {
        Feedback { durable, received: Lsn::ZERO, due_at: Instant::now(), hurried: true }
    }

    /// Resolves when a status update is due: by the timer, or as soon as more has become durable. Cancel-safe.
    pub(super) async fn due(&mut self) {
        tokio::select! {
            () = sleep_until(self.due_at) => {}
            changed = self.durable.changed() => {
                if changed.is_err() {
                    // The job ends; until it has, the timer alone goes on.
                    sleep_until(self.due_at).await;
                }
            }
        }
    }

    /// The walsender asked for an answer.
    pub(super) fn hurry(&mut self) {
        self.due_at = Instant::now();
        self.hurried = true;
    }

    /// Whether the walsender waits to hear how far we are, as it does before it shuts down.
    pub(super) fn is_hurried(&self) -> bool {
        self.hurried
    }

    /// The stream has come this far.
    pub(super) fn received(&mut self, lsn: Lsn) {
        self.received = self.received.max(lsn);
    }

    /// Sends a status update, and asks for a keepalive in return when all that came is durable: a quiet walsender so
    /// proves that it lives, and tells the position to which an idle slot may advance.
    pub(super) async fn send(&mut self, replication: &mut Replication) -> Result<()> {
        self.due_at = Instant::now() + limits::FEEDBACK_INTERVAL;
        self.hurried = false;
        failpoint::reach(Point::Acknowledge)?;
        let durable = (*self.durable.borrow_and_update()).map_or(Lsn::ZERO, DurableLsn::lsn);
        let update = StandbyStatusUpdate {
            written: durable,
            flushed: durable,
            applied: durable,
            client_time: SystemTime::now().into(),
            reply_requested: self.received <= durable,
        };
        let mut message = BytesMut::with_capacity(64);
        update.encode(&mut message);
        replication.send_status(&message).await
    }
}
