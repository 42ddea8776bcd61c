//! SIGTERM and Ctrl-C as a wish to stop.

use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Kind, Result};
use crate::stop::{self, Stop};

/// The exit codes that shells give a process ended by these signals: 128 and the signal's number.
const TERMINATED: i32 = 143;
const INTERRUPTED: i32 = 130;

/// Hears SIGTERM and SIGINT. The first asks everybody to stop; a second one ends the process at once.
pub(super) fn stop_on_signals() -> Result<Stop> {
    let broken = |error| Error::new(Kind::Internal, "signal handlers").because(error);
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let (stopper, stop) = stop::channel();
    tokio::spawn(async move {
        loop {
            let code = tokio::select! {
                _ = terminate.recv() => TERMINATED,
                _ = interrupt.recv() => INTERRUPTED,
            };
            if stopper.listen().requested() {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a second signal asks for just that; the target rolls back what is open"
                )]
                std::process::exit(code);
            }
            tracing::info!("stopping; a second signal ends the process at once");
            stopper.stop();
        }
    });
    Ok(stop)
}
