//! Bounded waiting. A test never sleeps for a guessed time: it asks until the answer is there, or fails saying for what.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::Result;

/// Time between two probes: short beside anything that is waited for, long beside the cost of a query.
const PAUSE: Duration = Duration::from_millis(20);

/// For what a busy machine does in a second: far above it, so that reaching this means "never".
pub const LONG: Duration = Duration::from_secs(60);

/// Asks `probe` until it gives a value.
///
/// # Errors
/// `limit` has passed (the error names `what`), or the probe itself failed.
#[expect(clippy::disallowed_methods, reason = "the one place of the tests that sleeps: between two probes")]
pub fn until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(value) = probe()? {
            return Ok(value);
        }
        if started.elapsed() >= limit {
            return Err(format!("waited {} s in vain for: {what}", limit.as_secs_f32()).into());
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_the_value_or_names_what_never_came() {
        let mut calls = 0;
        let third = until("a third call", LONG, || {
            calls += 1;
            Ok((calls == 3).then_some(calls))
        });
        assert_eq!(third.unwrap(), 3);
        let never = until::<()>("godot", Duration::ZERO, || Ok(None)).unwrap_err().to_string();
        assert_eq!(never, "waited 0 s in vain for: godot");
    }
}
