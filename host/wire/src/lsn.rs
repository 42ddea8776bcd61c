//! Log sequence numbers: byte positions in the write-ahead log.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A position in the write-ahead log, in bytes since the cluster was made. Ordered as the number it is, not as its text.
///
/// Written as PostgreSQL writes type `pg_lsn`: both halves in hexadecimal, `16/B374D848` (section "`pg_lsn` Type").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// `0/0`, which PostgreSQL calls invalid: no record starts there, so it stands for "nothing yet".
    pub const ZERO: Self = Self(0);

    /// Bytes of log from `earlier` to this position; zero when this position is not after it.
    #[must_use]
    pub const fn bytes_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl fmt::Debug for Lsn {
    /// As it is displayed: nobody reads a position as one decimal number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Text that is not a log position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a log position: write it as two hexadecimal numbers of at most eight digits, like 16/B374D848")]
pub struct ParseLsnError;

impl FromStr for Lsn {
    type Err = ParseLsnError;

    /// Reads what `pg_lsn` reads: one to eight hexadecimal digits, a slash, one to eight hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ParseLsnError> {
        let (high, low) = text.split_once('/').ok_or(ParseLsnError)?;
        Ok(Self(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

fn half(digits: &str) -> Result<u32, ParseLsnError> {
    // `from_str_radix` alone would accept a leading plus sign.
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(ParseLsnError);
    }
    u32::from_str_radix(digits, 16).map_err(|_| ParseLsnError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_as_pg_lsn_does() {
        for (text, number) in [
            ("0/0", 0),
            ("0/FFFFFFFF", 0xFFFF_FFFF),
            ("1/0", 0x1_0000_0000),
            ("16/B374D848", 0x16_B374_D848),
            ("FFFFFFFF/FFFFFFFF", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Lsn(number)));
            assert_eq!(Lsn(number).to_string(), text);
        }
        assert_eq!("16/b374d848".parse(), Ok(Lsn(0x16_B374_D848)));
        assert_eq!("00000001/0000000A".parse(), Ok(Lsn(0x1_0000_000A)));
    }

    #[test]
    fn refuses_what_pg_lsn_refuses() {
        for text in
            ["", "/", "1/", "/1", "1", "1/2/3", "+1/2", "1/-2", "g/0", "123456789/0", "0/123456789", " 1/2", "1/2 "]
        {
            assert_eq!(text.parse::<Lsn>(), Err(ParseLsnError), "{text}");
        }
    }

    #[test]
    fn orders_by_number_across_the_four_gigabyte_line() {
        let before: Lsn = "0/FFFFFFFF".parse().unwrap_or_default();
        let after: Lsn = "1/0".parse().unwrap_or_default();
        assert!(before < after && before.to_string() < after.to_string());
        let nine: Lsn = "9/0".parse().unwrap_or_default();
        let sixteen: Lsn = "10/0".parse().unwrap_or_default();
        assert!(nine < sixteen && nine.to_string() > sixteen.to_string(), "text order would be wrong here");
        assert_eq!(after.bytes_since(before), 1);
        assert_eq!(before.bytes_since(after), 0);
    }
}
