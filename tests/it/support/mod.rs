//! What several test files share: a masked job, native copies of its masks, writers under load, replayable chance.

pub mod native;
pub mod people;
pub mod random;
pub mod record;
pub mod writers;

use std::time::Duration;

/// Waits, where the moment itself is what is tested: a fault at a random time, a stall of a given length.
#[expect(clippy::disallowed_methods, reason = "a fault at some moment is made of waiting for it")]
pub fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// Rounds of a loop: few in `make test`, many in `make soak`, or as many as `PGVEIL_ROUNDS` says.
pub fn rounds(short: usize, soak: usize) -> usize {
    let chosen = std::env::var("PGVEIL_ROUNDS").ok().and_then(|text| text.parse().ok());
    chosen.unwrap_or(if std::env::var_os("PGVEIL_SOAK").is_some() { soak } else { short })
}
