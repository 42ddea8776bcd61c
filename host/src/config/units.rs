//! Sizes and durations with their units, as the job file writes them.

use std::fmt;
use std::time::Duration;

/// A number of bytes, written as `512KiB`, `128MiB`, `1GiB`, or a bare number of bytes.
///
/// Only powers of 1024 are offered, so that `128MB` is never read as something a little smaller than was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;
const GIBIBYTE: u64 = 1 << 30;
const TEBIBYTE: u64 = 1 << 40;

/// Largest first: the first that divides a size is the one it is shown in.
const SIZE_UNITS: [(&str, u64); 5] =
    [("TiB", TEBIBYTE), ("GiB", GIBIBYTE), ("MiB", MEBIBYTE), ("KiB", KIBIBYTE), ("B", 1)];

/// Largest first, in milliseconds.
const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

impl ByteSize {
    /// That many bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// That many KiB.
    #[must_use]
    pub const fn from_kib(count: u64) -> Self {
        Self(count * KIBIBYTE)
    }

    /// That many MiB.
    #[must_use]
    pub const fn from_mib(count: u64) -> Self {
        Self(count * MEBIBYTE)
    }

    /// That many GiB.
    #[must_use]
    pub const fn from_gib(count: u64) -> Self {
        Self(count * GIBIBYTE)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Reads a size. `None` when it is none, or does not fit 64 bits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (count, unit) = split_number(text)?;
        let factor = if unit.is_empty() { 1 } else { unit_of(&SIZE_UNITS, unit)? };
        count.checked_mul(factor).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_units(formatter, self.0, &SIZE_UNITS)
    }
}

/// Reads a duration: `500ms`, `10s`, `5min`, `2h`, `7d`, or `0`. A number other than 0 needs its unit. `None` when it is none.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (count, unit) = split_number(text)?;
    if unit.is_empty() && count == 0 {
        return Some(Duration::ZERO);
    }
    count.checked_mul(unit_of(&DURATION_UNITS, unit)?).map(Duration::from_millis)
}

/// Shows a duration in the largest unit that divides it, in the form that [`parse_duration`] reads.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    struct Shown(u64);
    impl fmt::Display for Shown {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_in_units(formatter, self.0, &DURATION_UNITS)
        }
    }
    Shown(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).to_string()
}

/// Splits `128 MiB` into number and unit, with blanks between them allowed.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit.trim_start_matches(' ')))
}

fn unit_of(units: &[(&str, u64)], wanted: &str) -> Option<u64> {
    units.iter().find(|(unit, _)| *unit == wanted).map(|(_, factor)| *factor)
}

fn write_in_units(formatter: &mut fmt::Formatter<'_>, count: u64, units: &[(&str, u64)]) -> fmt::Result {
    if count == 0 {
        return formatter.write_str("0");
    }
    for (unit, factor) in units {
        if count.is_multiple_of(*factor) {
            return write!(formatter, "{}{unit}", count / factor);
        }
    }
    write!(formatter, "{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        let shown: Vec<String> = ["0", "17", "1B", "1024", "128MiB", "128 MiB", "1536KiB", "2TiB"]
            .iter()
            .map(|text| {
                format!("{text} -> {}", ByteSize::parse(text).map_or("none".to_owned(), |size| size.to_string()))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @"
        0 -> 0
        17 -> 17B
        1B -> 1B
        1024 -> 1KiB
        128MiB -> 128MiB
        128 MiB -> 128MiB
        1536KiB -> 1536KiB
        2TiB -> 2TiB
        ");
        for wrong in
            ["", "MiB", "-1MiB", "1.5GiB", "128MB", "128M", "1 k", "99999999999999999999", "18446744073709551615KiB"]
        {
            assert_eq!(ByteSize::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_read_and_shown() {
        for (text, milliseconds, shown) in [
            ("0", 0, "0"),
            ("500ms", 500, "500ms"),
            ("10s", 10_000, "10s"),
            ("90s", 90_000, "90s"),
            ("5min", 300_000, "5min"),
            ("120min", 7_200_000, "2h"),
            ("7d", 604_800_000, "7d"),
        ] {
            let duration = parse_duration(text);
            assert_eq!(duration, Some(Duration::from_millis(milliseconds)), "{text}");
            assert_eq!(format_duration(Duration::from_millis(milliseconds)), shown);
        }
        for wrong in ["", "10", "s", "1m", "-5s", "1.5s", "1 hour", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }
}
