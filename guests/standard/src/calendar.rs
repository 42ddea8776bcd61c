//! What the masks of dates share: one type for `date`, `timestamp` and `timestamptz`.

use std::fmt::Write;

use pgveil_guest::value::{Date, Day, Moment, Timestamp, read};
use pgveil_guest::{Accepts, ColumnInfo, Fault, Out, Outcome};

/// The types that the masks of dates accept.
pub(crate) const TYPES: [Accepts; 3] =
    [Accepts::Named("date"), Accepts::Named("timestamp"), Accepts::Named("timestamptz")];

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// A value of one of those types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// `infinity` and `-infinity`: no date, so there is nothing in them to hide.
    Infinite(&'static str),
    Day(Day),
    Moment(Moment),
}

impl Time {
    /// Reads a value of a column.
    pub(crate) fn read(value: &str, is_date: bool) -> Outcome<Self> {
        if is_date {
            return Ok(match read(value)? {
                Date::Finite(day) => Self::Day(day),
                Date::Infinity => Self::Infinite("infinity"),
                Date::NegativeInfinity => Self::Infinite("-infinity"),
            });
        }
        Ok(match read(value)? {
            Timestamp::Finite(moment) => Self::Moment(moment),
            Timestamp::Infinity => Self::Infinite("infinity"),
            Timestamp::NegativeInfinity => Self::Infinite("-infinity"),
        })
    }

    /// The day that it lies in; `None` for infinity.
    pub(crate) fn day(self) -> Option<Day> {
        match self {
            Self::Infinite(_) => None,
            Self::Day(day) => Some(day),
            Self::Moment(moment) => moment.day(),
        }
    }

    /// So many days later, at the same time of day. Infinity stays.
    pub(crate) fn plus_days(self, days: i64) -> Outcome<Self> {
        match self {
            Self::Infinite(_) => Ok(self),
            Self::Day(day) => Day::from_number(day.number() + days).map(Self::Day).ok_or(Fault::OUT_OF_RANGE),
            Self::Moment(moment) => {
                let microseconds = days.checked_mul(MICROSECONDS_PER_DAY).ok_or(Fault::OUT_OF_RANGE)?;
                moment.plus(microseconds).map(Self::Moment).ok_or(Fault::OUT_OF_RANGE)
            }
        }
    }

    /// Writes it as PostgreSQL does.
    pub(crate) fn write(self, out: &mut Out) -> Outcome {
        match self {
            Self::Infinite(text) => out.write_str(text),
            Self::Day(day) => write!(out, "{day}"),
            Self::Moment(moment) => write!(out, "{moment}"),
        }
        .map_err(|_| Fault::INTERNAL)
    }
}

/// Whether a column holds days, `false` where it holds moments; an error where it holds neither.
pub(crate) fn is_date(column: &ColumnInfo) -> Result<bool, String> {
    match column.base_type_name.as_str() {
        "date" => Ok(true),
        "timestamp" | "timestamptz" => Ok(false),
        other => Err(format!("column {:?} is of type {other}; it must be date, timestamp or timestamptz", column.name)),
    }
}
