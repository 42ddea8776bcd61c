//! The wait between two attempts: it doubles from one failure to the next, and begins anew after a while of success.

use std::time::Duration;

use crate::error::Error;
use crate::stop::Stop;

/// An attempt that lived this long was a success: the next failure is a new one.
const HEALTHY: Duration = Duration::from_secs(60);

/// Doubling waits with an upper bound.
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Waits from `first` on, never longer than `longest`.
    pub(crate) fn new(first: Duration, longest: Duration) -> Backoff {
        let longest = longest.max(first);
        Backoff { first, longest, next: first }
    }

    /// The wait after an attempt that lived for `lived`.
    pub(crate) fn after(&mut self, lived: Duration) -> Duration {
        if lived >= HEALTHY {
            self.next = self.first;
        }
        let wait = self.next;
        self.next = self.next.saturating_mul(2).min(self.longest);
        wait
    }

    /// Tells of a failure that is tried again, and waits. False when somebody asked to stop meanwhile.
    pub(crate) async fn wait(&mut self, error: &Error, lived: Duration, stop: &mut Stop) -> bool {
        let wait = self.after(lived);
        tracing::warn!(kind = error.kind().name(), error = %error, wait_ms = wait.as_millis() as u64, "will connect again");
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = stop.wait() => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_bound_and_begins_anew_after_success() {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(1));
        let waits: Vec<_> = [0, 0, 0, 0, 61].map(|lived| backoff.after(Duration::from_secs(lived)).as_millis()).into();
        assert_eq!(waits, [200, 400, 800, 1000, 200]);
    }
}
