//! Worker threads that run guests, used by snapshot and stream alike.
//!
//! Work begins in the order in which it is submitted and each submission has an answer of its own; who awaits the answers in the
//! order of submission has the order of the source back, whoever finishes first.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::plan::Veil;
use super::transform::WorkerInstances;
use super::{VeiledBatch, VeiledWindow};
use crate::error::{Error, Kind, Result};
use crate::row::RawBatch;
use crate::window::RawWindow;

/// Batches that wait for a worker. Far more than windows and copy sessions submit ahead; who reaches it has lost count of its
/// budget, and is refused rather than let grow.
const QUEUE_MAX: usize = 4096;

type Task = Box<dyn FnOnce(&Veil, &mut WorkerInstances) + Send>;

/// A fixed number of threads, each with instances of its own.
///
/// Whoever submits holds a share of the memory budget for each batch, and has waited for it before: that bounds the queue in
/// practice. The threads end when the pool is dropped and the queue is empty.
pub struct VeilPool {
    queue: SyncSender<Task>,
    veil: Arc<Veil>,
}

impl VeilPool {
    /// Starts the threads. Guests start when their first batch comes.
    ///
    /// # Errors
    /// [`Kind::Internal`] when a thread cannot be started.
    pub fn new(veil: Arc<Veil>, workers: usize) -> Result<VeilPool> {
        let (queue, tasks) = sync_channel::<Task>(QUEUE_MAX);
        let tasks = Arc::new(Mutex::new(tasks));
        for number in 0..workers.max(1) {
            let (veil, tasks) = (Arc::clone(&veil), Arc::clone(&tasks));
            std::thread::Builder::new()
                .name(format!("guest-{number}"))
                .spawn(move || work(&veil, &tasks))
                .map_err(|error| Error::new(Kind::Internal, "starting a guest worker").because(error))?;
        }
        Ok(VeilPool { queue, veil })
    }

    /// The job's masking that this pool runs.
    #[must_use]
    pub fn veil(&self) -> &Arc<Veil> {
        &self.veil
    }

    /// Hands over a batch. Work on it begins at once, awaited or not.
    pub fn submit(&self, batch: RawBatch) -> Pending<VeiledBatch> {
        self.send(move |veil, instances| veil.veil_batch(instances, batch))
    }

    /// Hands over a window. Its operations keep their order.
    pub fn window(&self, window: RawWindow) -> Pending<VeiledWindow> {
        self.send(move |veil, instances| veil.veil_window(instances, window))
    }

    fn send<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Veil, &mut WorkerInstances) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (answer, pending) = oneshot::channel();
        let task: Task = Box::new(move |veil, instances| {
            let done = catch_unwind(AssertUnwindSafe(|| run(veil, instances)));
            let done = done.unwrap_or_else(|_| {
                // What the instances were doing is not known: they are thrown away with it.
                *instances = WorkerInstances::default();
                Err(Error::new(Kind::Internal, "a guest worker panicked"))
            });
            // Nobody waits any more when the job is stopping.
            let _ = answer.send(done);
        });
        match self.queue.try_send(task) {
            Ok(()) => Pending::waiting(pending),
            Err(TrySendError::Full(_)) => Pending::refused("the guests' queue is full"),
            Err(TrySendError::Disconnected(_)) => Pending::refused("no guest worker is left"),
        }
    }
}

/// An answer to come.
pub struct Pending<T>(std::result::Result<oneshot::Receiver<Result<T>>, &'static str>);

impl<T> Pending<T> {
    fn waiting(answer: oneshot::Receiver<Result<T>>) -> Self {
        Pending(Ok(answer))
    }

    fn refused(why: &'static str) -> Self {
        Pending(Err(why))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.0 {
            Err(why) => Poll::Ready(Err(Error::new(Kind::Internal, *why))),
            Ok(answer) => Pin::new(answer)
                .poll(context)
                .map(|answer| answer.unwrap_or_else(|_| Err(Error::new(Kind::Internal, "a guest worker is gone")))),
        }
    }
}

fn work(veil: &Veil, tasks: &Mutex<Receiver<Task>>) {
    let mut instances = WorkerInstances::default();
    loop {
        // The lock is held while waiting: one worker waits for work, the others for the lock. Never while working.
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match task {
            Ok(task) => task(veil, &mut instances),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{SourceFile, TableName, parse_policy};
    use crate::relation::{ReplicaIdentity, Table};
    use crate::veil::VeilParts;

    fn pool(workers: usize) -> VeilPool {
        let text = "version: 1\ntables: { public.t: { rest: pass } }\n".to_owned();
        let policy = parse_policy(SourceFile { path: "policy.yaml".into(), text });
        let policy = policy.unwrap_or_else(|errors| panic!("{errors}")).value;
        let table = Table {
            name: TableName::new("public", "t"),
            relation_id: 1,
            replica_identity: ReplicaIdentity::Nothing,
            columns: Vec::new(),
        };
        let (guests, keys) = (BTreeMap::new(), BTreeMap::new());
        let parts =
            VeilParts { policy: &policy, tables: &[Arc::new(table)], guests: &guests, keys: &keys, audit_percent: 0.0 };
        VeilPool::new(Arc::new(Veil::compile(&parts).unwrap()), workers).unwrap()
    }

    #[tokio::test]
    async fn a_panic_fails_its_task_and_the_worker_goes_on() {
        let pool = pool(1);
        let panicking = pool.send(|_, _| -> Result<u8> { panic!("a fault in the host") });
        let after = pool.send(|_, _| Ok(7));
        assert_eq!(panicking.await.unwrap_err().kind(), Kind::Internal);
        assert_eq!(after.await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_rather_than_grows() {
        let pool = pool(1);
        let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
        let first = pool.send(move |_, _| Ok(held.recv().is_ok()));
        let mut waiting: Vec<Pending<()>> = (0..=QUEUE_MAX + 1).map(|_| pool.send(|_, _| Ok(()))).collect();
        let last = waiting.pop().unwrap();
        assert_eq!(last.await.unwrap_err().kind(), Kind::Internal);
        release.send(()).unwrap();
        assert!(first.await.unwrap());
    }

    #[tokio::test]
    async fn what_is_queued_is_answered_when_the_pool_is_dropped() {
        let pool = pool(2);
        let pending: Vec<Pending<usize>> = (0..20).map(|number| pool.send(move |_, _| Ok(number))).collect();
        drop(pool);
        for (number, pending) in pending.into_iter().enumerate() {
            assert_eq!(pending.await.unwrap(), number);
        }
    }
}
