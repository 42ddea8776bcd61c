//! `date-shift`: all dates of one person moved by the same number of days.

use pgveil_guest::{Accepts, Context, Function, Guarantees, Key, KeyUse, Outcome, Outputs, Row, RowMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::calendar::{Time, is_date};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Arguments {
    /// The most days that a date moves, back or forth; it moves by one at least.
    #[schemars(range(min = 1, max = 36_500))]
    max_days: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { max_days: 365 }
    }
}

struct DateShift {
    key: Key,
    max_days: u32,
    /// For each output, its input and whether that is a `date`.
    dates: Vec<(usize, bool)>,
    /// The inputs that say whose dates they are.
    entity: Vec<usize>,
}

impl RowMask for DateShift {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if !(1..=36_500).contains(&arguments.max_days) {
            return Err(format!("arguments: `max-days` is {}, it must lie between 1 and 36500", arguments.max_days));
        }
        let date = |output: &pgveil_guest::ColumnInfo| Ok((context.input(&output.name)?, is_date(output)?));
        let dates = context.outputs().iter().map(date).collect::<Result<Vec<_>, String>>()?;
        let is_entity = |input: &usize| dates.iter().all(|(date, _)| date != input);
        let entity: Vec<_> = (0..context.inputs().len()).filter(is_entity).collect();
        if entity.is_empty() {
            return Err("it needs a column that says whose dates they are: `columns: [born, person_id]`".to_owned());
        }
        Ok(Self { key: context.key("date-shift")?, max_days: arguments.max_days, dates, entity })
    }

    fn mask(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome {
        let days = self.days(row)?;
        for (output, &(input, is_date)) in self.dates.iter().enumerate() {
            if let Some(value) = row.at(input)? {
                Time::read(value, is_date)?.plus_days(days)?.write(out.column(output)?)?;
            }
        }
        Ok(())
    }
}

impl DateShift {
    /// By how many days the dates of this row's entity move: from 1 to the most, and their negatives.
    fn days(&self, row: &Row<'_>) -> Outcome<i64> {
        let mut joined = Vec::new();
        let values = match self.entity[..] {
            [only] => row.at(only)?.unwrap_or_default().as_bytes(),
            _ => {
                for &position in &self.entity {
                    let value = row.at(position)?;
                    joined.extend_from_slice(&value.map_or(u64::MAX, |value| value.len() as u64).to_le_bytes());
                    joined.extend_from_slice(value.unwrap_or_default().as_bytes());
                }
                &joined
            }
        };
        let drawn = i64::from(self.key.random(values).below(2 * self.max_days));
        let most = i64::from(self.max_days);
        Ok(if drawn < most { drawn + 1 } else { most - 1 - drawn })
    }
}

pub(crate) fn function() -> Function {
    Function::row_mask::<DateShift>("date-shift")
        .doc(
            "Moves all dates of one entity by the same number of days.\n\nGrant it the dates and the column that says whose they are: \
             `columns: [born, hired, person_id]`. Under one key the same person's dates move alike in every table, so the time between them \
             stays. The time of day stays, and so does `infinity`.",
        )
        .accepts(&[Accepts::Named("date"), Accepts::Any])
        .inputs(2, None)
        .outputs(1, None)
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example("{}", ["1815-12-10", "2000-01-01"], ["1816-10-08"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Harness, TestRow};

    fn shift() -> Harness {
        let columns = [("born", "date"), ("seen", "timestamptz"), ("id", "int8")];
        let harness = Harness::of(crate::functions(), "date-shift").inputs(columns);
        harness.outputs([("born", "date"), ("seen", "timestamptz")])
    }

    fn row(born: &str, seen: &str, id: u32) -> TestRow {
        [born, seen, &id.to_string()].map(|value| Some(value.to_owned())).to_vec()
    }

    #[test]
    fn dates_of_one_person_move_together() {
        let rows = [row("2000-01-01", "2000-01-01 12:30:00+00", 1), row("2000-02-01", "2000-01-31 00:00:00+00", 1)];
        shift().verify_rows(&rows);
        let Ok(masked) = shift().run_rows(&rows) else { panic!("refused") };
        let text = |row: usize, column: usize| masked[row][column].clone().unwrap_or_default();
        assert_eq!(text(0, 1), format!("{} 12:30:00+00", text(0, 0)));
        assert_ne!(text(0, 0), "2000-01-01");
    }

    #[test]
    fn nobody_stays_and_nobody_goes_too_far() {
        let rows: Vec<TestRow> = (0..200).map(|id| row("2000-01-04", "infinity", id)).collect();
        let Ok(masked) = shift().arguments(json!({"max-days": 3})).run_rows(&rows) else { panic!("refused") };
        let days: std::collections::BTreeSet<_> = masked.iter().filter_map(|row| row[0].as_deref()).collect();
        let expected = ["2000-01-01", "2000-01-02", "2000-01-03", "2000-01-05", "2000-01-06", "2000-01-07"];
        assert!(days.into_iter().eq(expected));
        assert!(masked.iter().all(|row| row[1].as_deref() == Some("infinity")));
    }

    #[test]
    fn the_edge_of_the_calendar_is_refused_and_null_stays() {
        let edge: Vec<TestRow> = (0..20).map(|id| row("5874897-12-31", "infinity", id)).collect();
        assert_eq!(shift().run_rows(&edge), Err(Fault::OUT_OF_RANGE));
        let null = [vec![None, Some("infinity".to_owned()), None]];
        assert_eq!(shift().run_rows(&null), Ok(vec![vec![None, Some("infinity".to_owned())]]));
    }

    #[test]
    fn an_entity_is_asked_for() {
        let harness = Harness::of(crate::functions(), "date-shift").outputs([("a", "date")]);
        assert!(harness.inputs([("a", "date"), ("b", "text")]).refusal().is_none());
        let columns = [("a", "date"), ("b", "date")];
        let harness = Harness::of(crate::functions(), "date-shift").inputs(columns).outputs(columns);
        assert!(harness.refusal().is_some_and(|text| text.contains("whose dates")));
    }
}
