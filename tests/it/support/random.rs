//! Chance that can be replayed: the seed is printed, and `PGVEIL_SEED` sets it.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// SplitMix64: small, and good enough to choose moments.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// From `PGVEIL_SEED`, else from the clock; a failed test shows it.
    #[expect(clippy::print_stderr, reason = "a failed test must say how to repeat it")]
    pub fn new() -> Random {
        let chosen = std::env::var("PGVEIL_SEED").ok().and_then(|text| text.parse().ok());
        let seed = chosen
            .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64));
        eprintln!("PGVEIL_SEED={seed} repeats this run's choices");
        Random(seed)
    }

    /// Another generator, for a thread.
    pub fn fork(&mut self) -> Random {
        Random(self.next())
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of a range that is not empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// A length of time, in milliseconds.
    pub fn moment(&mut self, milliseconds: Range<u64>) -> Duration {
        Duration::from_millis(self.within(milliseconds))
    }
}
