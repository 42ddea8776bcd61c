//! `timestamp` and `timestamptz`, as microseconds: PostgreSQL's whole range, with `infinity`.

use std::fmt;

use super::FromText;
use super::date::{Day, split_era};

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// A `timestamp` or `timestamptz` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamp {
    /// A moment.
    Finite(Moment),
    /// `infinity`, later than all moments.
    Infinity,
    /// `-infinity`, earlier than all moments.
    NegativeInfinity,
}

/// A moment to the microsecond. pgveil's sessions run in UTC, so a `timestamptz` ends in `+00`; any other offset is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Microseconds since 2000-01-01 00:00:00, as PostgreSQL itself counts; from 1970 the last of them would not fit.
    pub microseconds: i64,
    /// Whether it is a `timestamptz`.
    pub zoned: bool,
}

/// The microseconds that `timestamp` holds: 4714-11-24 BC, up to but not including 294277-01-01.
const RANGE: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// 2000-01-01 as a day number.
const EPOCH: i64 = 10_957;

impl Moment {
    /// The moment so many microseconds later; `None` where `timestamp` does not reach.
    #[must_use]
    pub fn plus(self, microseconds: i64) -> Option<Self> {
        let microseconds = self.microseconds.checked_add(microseconds).filter(|moment| RANGE.contains(moment))?;
        Some(Self { microseconds, ..self })
    }

    /// The day that it lies in.
    #[must_use]
    pub fn day(self) -> Option<Day> {
        Day::from_number(self.microseconds.div_euclid(MICROSECONDS_PER_DAY) + EPOCH)
    }

    /// The microseconds since that day began.
    #[must_use]
    pub fn time_of_day(self) -> i64 {
        self.microseconds.rem_euclid(MICROSECONDS_PER_DAY)
    }
}

impl FromText<'_> for Timestamp {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "infinity" => return Some(Self::Infinity),
            "-infinity" => return Some(Self::NegativeInfinity),
            _ => {}
        }
        let (digits, before_christ) = split_era(text);
        let (digits, zoned) = match digits.strip_suffix("+00") {
            Some(rest) => (rest, true),
            None => (digits, false),
        };
        let (day, time) = digits.split_once(' ')?;
        let day = Day::from_digits(day, before_christ)?;
        let microseconds =
            (day.number() - EPOCH).checked_mul(MICROSECONDS_PER_DAY)?.checked_add(time_from_text(time)?)?;
        RANGE.contains(&microseconds).then_some(Self::Finite(Moment { microseconds, zoned }))
    }
}

/// Reads `HH:MM:SS` with up to six digits of a second's fraction.
fn time_from_text(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let two = |range: std::ops::Range<usize>, bound: i64| {
        let digits = clock.get(range)?;
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())??;
        (number < bound).then_some(number)
    };
    let proper = clock.len() == 8
        && clock.as_bytes()[2] == b':'
        && clock.as_bytes()[5] == b':'
        && fraction.len() <= 6
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !proper {
        return None;
    }
    let seconds = (two(0..2, 24)? * 60 + two(3..5, 60)?) * 60 + two(6..8, 60)?;
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
    Some(seconds * 1_000_000 + fraction.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before_christ = self.day().ok_or(fmt::Error)?.write_digits(out)?;
        let time = self.time_of_day();
        let (seconds, microseconds) = (time / 1_000_000, time % 1_000_000);
        write!(out, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        if microseconds != 0 {
            // As PostgreSQL: no zeros at the end.
            let (mut digits, mut width) = (microseconds, 6);
            while digits % 10 == 0 {
                digits /= 10;
                width -= 1;
            }
            write!(out, ".{digits:0width$}")?;
        }
        out.write_str(if self.zoned { "+00" } else { "" })?;
        out.write_str(if before_christ { " BC" } else { "" })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(moment) => moment.fmt(out),
            Self::Infinity => out.write_str("infinity"),
            Self::NegativeInfinity => out.write_str("-infinity"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_over_the_whole_range() {
        let texts = [
            "1970-01-01 00:00:00",
            "2024-02-29 23:59:59.999999+00",
            "294276-12-31 23:59:59.999999+00",
            "4714-11-24 00:00:00+00 BC",
            "0044-03-15 12:00:00.5 BC",
            "1969-12-31 23:59:59.000001",
            "infinity",
            "-infinity",
        ];
        for text in texts {
            assert_eq!(Timestamp::from_text(text).map(|moment| moment.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn moments_can_be_moved_within_the_range_only() {
        let Some(Timestamp::Finite(last)) = Timestamp::from_text("294276-12-31 23:59:59.999999+00") else { panic!() };
        assert_eq!(last.plus(1), None);
        assert_eq!(
            last.plus(-MICROSECONDS_PER_DAY).map(|moment| moment.to_string()).as_deref(),
            Some("294276-12-30 23:59:59.999999+00")
        );
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        let texts = [
            "",
            "2024-01-01",
            "2024-01-01 24:00:00",
            "2024-01-01 00:00:00+01",
            "2024-01-01T00:00:00",
            "2024-01-01 00:00:00.",
            "2024-01-01 0:00:00",
            "294277-01-01 00:00:00",
            "2024-01-01 00:00:00.1234567",
        ];
        for text in texts {
            assert_eq!(Timestamp::from_text(text), None, "{text:?}");
        }
    }
}
