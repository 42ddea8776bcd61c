//! The wish to stop, from a signal or a part that failed, heard by every task.

use tokio::sync::watch;

/// Raises the wish to stop.
#[derive(Clone)]
pub struct Stopper(watch::Sender<bool>);

/// Hears it. Cloned freely.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

/// A pair of both ends.
#[must_use]
pub fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Asks everybody to stop. Asking twice is the same.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Another ear.
    #[must_use]
    pub fn listen(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

impl Stop {
    /// Whether somebody asked already.
    #[must_use]
    pub fn requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody asks. Cancel-safe. A [`Stopper`] that is gone counts as asking: nobody could stop us later.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
