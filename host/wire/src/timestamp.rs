//! Times as the replication protocol carries them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds between 1970-01-01 and 2000-01-01, both UTC.
const UNIX_TO_POSTGRES_MICROS: i64 = 946_684_800 * 1_000_000;

/// Microseconds since 2000-01-01 00:00 UTC, negative before it (section "Streaming Replication Protocol").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The system clock's time, as a standby status update wants it. A clock outside the range is held at its end.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Microseconds since 1970-01-01 00:00 UTC; held at the end of the range when it does not fit.
    #[must_use]
    pub const fn unix_micros(self) -> i64 {
        self.0.saturating_add(UNIX_TO_POSTGRES_MICROS)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let unix_micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Self(unix_micros.saturating_sub(UNIX_TO_POSTGRES_MICROS))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn counts_from_the_year_2000() {
        let year_2000 = UNIX_EPOCH + Duration::from_secs(946_684_800);
        assert_eq!(Timestamp::from(year_2000), Timestamp(0));
        assert_eq!(Timestamp::from(year_2000 + Duration::from_micros(7)), Timestamp(7));
        assert_eq!(Timestamp::from(UNIX_EPOCH), Timestamp(-UNIX_TO_POSTGRES_MICROS));
        assert_eq!(
            Timestamp::from(UNIX_EPOCH - Duration::from_secs(1)),
            Timestamp(-UNIX_TO_POSTGRES_MICROS - 1_000_000)
        );
        assert_eq!(Timestamp(0).unix_micros(), UNIX_TO_POSTGRES_MICROS);
        assert_eq!(Timestamp(i64::MAX).unix_micros(), i64::MAX);
    }
}
