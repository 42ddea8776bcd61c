//! `date-truncate`: the start of the year, quarter, month, day or hour.

use pgveil_guest::value::Day;
use pgveil_guest::{Context, Fault, Function, Guarantees, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::calendar::{TYPES, Time, is_date};

const MICROSECONDS_PER_HOUR: i64 = 3_600_000_000;

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    /// 1 January.
    Year,
    /// The first day of January, April, July or October.
    Quarter,
    /// The first day of the month.
    Month,
    /// Midnight; a `date` would stay as it is and is refused.
    Day,
    /// The full hour; for timestamps only.
    Hour,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What a value goes back to the start of.
    to: Unit,
}

struct DateTruncate {
    unit: Unit,
    is_date: bool,
}

impl ValueMask for DateTruncate {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let is_date = context.inputs().iter().try_fold(true, |all, column| is_date(column).map(|date| all && date))?;
        if is_date && matches!(arguments.to, Unit::Day | Unit::Hour) {
            return Err("arguments: a date has no hours to take away; `to` must be month, quarter or year".to_owned());
        }
        Ok(Self { unit: arguments.to, is_date })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let time = Time::read(value, self.is_date)?;
        let Some(day) = time.day() else { return time.write(out) };
        let first = match self.unit {
            Unit::Year => Day { month: 1, day: 1, ..day },
            Unit::Quarter => Day { month: (day.month - 1) / 3 * 3 + 1, day: 1, ..day },
            Unit::Month => Day { day: 1, ..day },
            Unit::Day | Unit::Hour => day,
        };
        let time = match time {
            Time::Moment(moment) => {
                let kept = if self.unit == Unit::Hour {
                    moment.time_of_day() % MICROSECONDS_PER_HOUR
                } else {
                    moment.time_of_day()
                };
                Time::Moment(moment.plus(-kept).ok_or(Fault::OUT_OF_RANGE)?)
            }
            other => other,
        };
        time.plus_days(first.number() - day.number())?.write(out)
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<DateTruncate>("date-truncate")
        .doc(
            "Takes a date or timestamp back to the start of its year, quarter, month, day or hour.\n\nThe calendar is that of UTC. `infinity` \
             stays.",
        )
        .accepts(&TYPES)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"to": "month"}"#, ["1815-12-10"], ["1815-12-01"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::json;

    fn truncate(sql_type: &str, unit: &str) -> Harness {
        Harness::of(crate::functions(), "date-truncate").column(sql_type).arguments(json!({ "to": unit }))
    }

    #[test]
    fn starts_of_units() {
        for (sql_type, unit, value, start) in [
            ("date", "year", "2024-02-29", "2024-01-01"),
            ("date", "quarter", "2024-12-31", "2024-10-01"),
            ("date", "month", "0044-03-15 BC", "0044-03-01 BC"),
            ("date", "month", "infinity", "infinity"),
            ("timestamp", "day", "2024-02-29 23:59:59.5", "2024-02-29 00:00:00"),
            ("timestamptz", "hour", "2024-02-29 23:59:59.5+00", "2024-02-29 23:00:00+00"),
            ("timestamptz", "year", "1999-12-31 23:59:59.999999+00", "1999-01-01 00:00:00+00"),
            ("timestamptz", "year", "-infinity", "-infinity"),
        ] {
            truncate(sql_type, unit).verify([Some(value), None]);
            assert_eq!(truncate(sql_type, unit).one(value).as_deref(), Ok(start), "{unit} of {value}");
        }
    }

    #[test]
    fn what_would_change_nothing_is_refused() {
        assert!(truncate("date", "day").refusal().is_some() && truncate("date", "hour").refusal().is_some());
        assert!(truncate("timestamp", "day").refusal().is_none());
    }
}
