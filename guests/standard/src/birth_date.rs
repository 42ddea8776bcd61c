//! `birth-date`: another day in the same band of years.

use pgveil_guest::value::Day;
use pgveil_guest::{Context, Fault, Function, Guarantees, Key, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::calendar::{TYPES, Time, is_date};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// How many years a band has: 1 keeps the year, 10 the decade. Bands begin at years that it divides.
    #[schemars(range(min = 1, max = 100))]
    years: i32,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { years: 1 }
    }
}

struct BirthDate {
    key: Key,
    years: i32,
    is_date: bool,
}

impl ValueMask for BirthDate {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if !(1..=100).contains(&arguments.years) {
            return Err(format!("arguments: `years` is {}, it must lie between 1 and 100", arguments.years));
        }
        let is_date = context.inputs().iter().try_fold(true, |all, column| is_date(column).map(|date| all && date))?;
        Ok(Self { key: context.key("birth-date")?, years: arguments.years, is_date })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let time = Time::read(value, self.is_date)?;
        let Some(day) = time.day() else { return time.write(out) };
        let year = day.year.div_euclid(self.years) * self.years;
        let [first, next] = [year, year + self.years].map(|year| Day { year, month: 1, day: 1 }.number());
        // The day alone decides, so that a date and a timestamp of it move alike.
        let mut random = self.key.random(value.get(..10).unwrap_or(value).as_bytes());
        let days = u32::try_from(next - first).map_err(|_| Fault::INTERNAL)?;
        let drawn = first + i64::from(random.below(days));
        time.plus_days(drawn - day.number())?.write(out)
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<BirthDate>("birth-date")
        .doc(
            "Replaces a date of birth by another of the same year, or of the same band of years.\n\nSo the age stays right within a band. \
             A time of day stays, and so does `infinity`.",
        )
        .accepts(&TYPES)
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"years": 5}"#, ["1815-12-10"], ["1815-04-26"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::json;
    use pgveil_guest::value::Day;
    use proptest::prelude::*;

    fn birth_date(years: i32) -> Harness {
        Harness::of(crate::functions(), "birth-date").column("date").arguments(json!({ "years": years }))
    }

    #[test]
    fn specials_stay_and_arguments_are_checked() {
        birth_date(1).verify([Some("infinity"), Some("-infinity"), None, Some("2000-02-29")]);
        assert_eq!(birth_date(1).one("infinity").as_deref(), Ok("infinity"));
        assert!(birth_date(0).refusal().is_some() && birth_date(101).refusal().is_some());
    }

    proptest! {
        #[test]
        fn the_band_stays(number in -1_000_000_i64..1_000_000, years in 1..100_i32) {
            let Some(day) = Day::from_number(number) else { panic!() };
            let Ok(masked) = birth_date(years).one(&day.to_string()) else { panic!("refused") };
            let Ok(pgveil_guest::value::Date::Finite(masked)) = pgveil_guest::value::read(&masked) else { panic!("no date") };
            prop_assert_eq!(masked.year.div_euclid(years), day.year.div_euclid(years));
        }
    }
}
