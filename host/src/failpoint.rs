//! Steps at which tests make the process die or fail. Without the feature `failpoints` this is nothing at all.
//!
//! `PGVEIL_FAIL=7:crash` ends the process without a word at the seventh step of its life; `7:error` makes that step
//! return an error; `7:lost` one that counts as a lost connection, which is tried again. A test loops over n until a
//! run has fewer than n steps (it then ends well), so that every step has failed once.

use crate::error::Result;

/// Where a step lies. For the reader of the code; steps of all kinds are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A window was veiled and is about to be applied.
    Guest,
    /// A statement is about to be sent.
    Statement,
    /// The checkpoint is about to be moved.
    Checkpoint,
    /// A transaction's end was sent, its answer has not been read.
    Commit,
    /// The walsender is about to hear what is durable.
    Acknowledge,
    /// A snapshot chunk is about to be recorded.
    Chunk,
    /// Something about the slot or the job's record is about to change.
    Bootstrap,
}

/// A step is reached.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn reach(_: Point) -> Result<()> {
    Ok(())
}

/// A step is reached.
#[cfg(feature = "failpoints")]
pub fn reach(point: Point) -> Result<()> {
    use crate::error::{Error, Kind};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static REACHED: AtomicU64 = AtomicU64::new(0);
    static CHOSEN: OnceLock<Option<(u64, String)>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let written = std::env::var("PGVEIL_FAIL").ok()?;
        let (step, how) = written.split_once(':')?;
        Some((step.parse().ok()?, how.to_owned()))
    });
    let Some((step, how)) = chosen else { return Ok(()) };
    if REACHED.fetch_add(1, Ordering::Relaxed) + 1 != *step {
        return Ok(());
    }
    let place = format!("failpoint {point:?}");
    match how.as_str() {
        "crash" => std::process::abort(),
        "lost" => Err(Error::new(Kind::ConnectionLost, place)),
        _ => Err(Error::new(Kind::Internal, place)),
    }
}
