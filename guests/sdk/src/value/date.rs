//! `date`, as a day number: PostgreSQL's whole range, with `infinity` and years before Christ.

use std::fmt;

use super::FromText;

/// A `date` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Date {
    /// A day of the calendar.
    Finite(Day),
    /// `infinity`, later than all days.
    Infinity,
    /// `-infinity`, earlier than all days.
    NegativeInfinity,
}

/// A day of the proleptic Gregorian calendar.
///
/// Years are counted as astronomers do: 1 BC is 0. PostgreSQL's days reach from 4713 BC to 5874897 AD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    /// The year; 0 is 1 BC.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
}

/// The first and last days that `date` holds, as day numbers: 4714-11-24 BC and 5874897-12-31.
const RANGE: std::ops::RangeInclusive<i64> = -2_440_588..=2_145_042_905;

impl Day {
    /// The day with this number; `None` where `date` does not reach. Day 0 is 1970-01-01.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        if !RANGE.contains(&number) {
            return None;
        }
        // Howard Hinnant's `civil_from_days`: the era of 400 years, then the year that starts in March.
        let shifted = number + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Some(Self { year: i32::try_from(year).ok()?, month: u8::try_from(month).ok()?, day: u8::try_from(day).ok()? })
    }

    /// The number of this day, counted from 1970-01-01.
    #[must_use]
    pub fn number(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// How many days its month has.
    #[must_use]
    pub fn days_in_month(self) -> u8 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Reads `YYYY-MM-DD`, without the era.
    pub(crate) fn from_digits(text: &str, before_christ: bool) -> Option<Self> {
        let (rest, day) = text.rsplit_once('-')?;
        let (year, month) = rest.rsplit_once('-')?;
        let whole = |text: &str, least: usize| {
            (text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<i32>().ok())?
        };
        let year = whole(year, 4).filter(|&year| year >= 1)?;
        let year = if before_christ { 1 - year } else { year };
        let two = |text: &str| {
            if text.len() == 2 { whole(text, 2).and_then(|number| u8::try_from(number).ok()) } else { None }
        };
        let read = Self { year, month: two(month)?, day: two(day)? };
        let proper = (1..=12).contains(&read.month) && (1..=read.days_in_month()).contains(&read.day);
        (proper && RANGE.contains(&read.number())).then_some(read)
    }
}

impl FromText<'_> for Date {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "infinity" => return Some(Self::Infinity),
            "-infinity" => return Some(Self::NegativeInfinity),
            _ => {}
        }
        let (digits, before_christ) = split_era(text);
        Day::from_digits(digits, before_christ).map(Self::Finite)
    }
}

/// The text without ` BC`, and whether it had that.
pub(crate) fn split_era(text: &str) -> (&str, bool) {
    match text.strip_suffix(" BC") {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

impl Day {
    /// Writes `YYYY-MM-DD`, without the era, and says whether it needs ` BC` behind.
    pub(crate) fn write_digits(self, out: &mut dyn fmt::Write) -> Result<bool, fmt::Error> {
        let before_christ = self.year <= 0;
        let year = if before_christ { 1 - self.year } else { self.year };
        write!(out, "{year:04}-{:02}-{:02}", self.month, self.day)?;
        Ok(before_christ)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before_christ = self.write_digits(out)?;
        out.write_str(if before_christ { " BC" } else { "" })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(day) => day.fmt(out),
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
            "1970-01-01",
            "2000-02-29",
            "0001-01-01",
            "0001-12-31 BC",
            "4714-11-24 BC",
            "5874897-12-31",
            "infinity",
            "-infinity",
        ];
        for text in texts {
            assert_eq!(Date::from_text(text).map(|date| date.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn day_numbers_run_without_gaps() {
        for start in [-2_440_588, -800_000, -150, 0, 11_000, 2_145_042_857] {
            let mut last: Option<Day> = None;
            for number in start..start + 49 {
                let Some(day) = Day::from_number(number) else { panic!("no day {number}") };
                assert_eq!(day.number(), number);
                assert!(last.is_none_or(|last| last < day));
                last = Some(day);
            }
        }
        assert_eq!(Day::from_number(-2_440_589), None);
        assert_eq!(Day::from_number(2_145_042_906), None);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        let texts = [
            "",
            "2001-02-29",
            "2001-13-01",
            "2001-00-10",
            "01-01-01",
            "0000-01-01",
            "2001-1-1",
            "2001-01-01 AD",
            "5874898-01-01",
            "Infinity",
        ];
        for text in texts {
            assert_eq!(Date::from_text(text), None, "{text:?}");
        }
    }
}
