//! `since`: rows of a window of time.

use pgveil_guest::{Context, Function, Guarantees, Outcome, Row, RowFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::calendar::{TYPES, is_date};
use crate::compare::Order;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The first moment that stays, as PostgreSQL writes the column's type: `2024-01-01`, or `2024-01-01 00:00:00+00`.
    from: String,
    /// The first moment that no longer does; without it the window has no end.
    before: Option<String>,
    /// Whether rows without a time stay.
    #[serde(default)]
    nulls: bool,
}

struct Since {
    arguments: Arguments,
    order: Order,
}

impl RowFilter for Since {
    type Arguments = Arguments;

    fn bind(mut arguments: Arguments, context: &Context) -> Result<Self, String> {
        let column = context.inputs().first().ok_or("it reads one column")?;
        let is_date = is_date(column)?;
        let order = Order::of(column);
        for bound in [Some(&mut arguments.from), arguments.before.as_mut()].into_iter().flatten() {
            // A day stands for its first moment.
            if !is_date && !bound.contains(' ') && !bound.contains("infinity") {
                bound.push_str(" 00:00:00");
            }
            order.compare(bound, bound).map_err(|_| {
                format!(
                    "arguments: {bound:?} is no value of type {}: write 2024-01-31, or 2024-01-31 12:00:00+00",
                    column.type_name
                )
            })?;
        }
        Ok(Self { arguments, order })
    }

    fn keep(&self, row: &Row<'_>) -> Outcome<bool> {
        let Some(value) = row.at(0)? else { return Ok(self.arguments.nulls) };
        let began = self.order.compare(value, &self.arguments.from)?.is_ge();
        let ended = match &self.arguments.before {
            Some(before) => self.order.compare(value, before)?.is_ge(),
            None => false,
        };
        Ok(began && !ended)
    }
}

pub(crate) fn function() -> Function {
    Function::row_filter::<Since>("since")
        .doc(
            "Keeps the rows of a window of time.\n\nThe window is written in the policy and does not move: a guest has no clock, and a row that \
             stayed must not fall out by itself.",
        )
        .accepts(&TYPES)
        .inputs(1, Some(1))
        .guarantees(Guarantees::DETERMINISTIC)
        .example(r#"{"from": "1815-01-01"}"#, ["1815-12-10"], ["keep"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::{Value, json};

    fn kept(sql_type: &str, arguments: Value, value: Option<&str>) -> bool {
        let harness = Harness::of(crate::functions(), "since").column(sql_type).arguments(arguments);
        harness.keep_rows(&[vec![value.map(str::to_owned)]]).is_ok_and(|kept| kept == [true])
    }

    #[test]
    fn windows_hold_their_start_and_not_their_end() {
        let window = || json!({"from": "2024-01-01", "before": "2025-01-01"});
        for (sql_type, value, stays) in [
            ("date", "2023-12-31", false),
            ("date", "2024-01-01", true),
            ("date", "2025-01-01", false),
            ("date", "infinity", false),
            ("timestamptz", "2023-12-31 23:59:59.999999+00", false),
            ("timestamptz", "2024-01-01 00:00:00+00", true),
            ("timestamp", "2024-12-31 23:59:59.999999", true),
        ] {
            assert_eq!(kept(sql_type, window(), Some(value)), stays, "{value}");
        }
        assert!(kept("date", json!({"from": "2024-01-01"}), Some("infinity")));
    }

    #[test]
    fn rows_without_a_time_stay_on_request() {
        assert!(!kept("date", json!({"from": "2024-01-01"}), None));
        assert!(kept("date", json!({"from": "2024-01-01", "nulls": true}), None));
    }

    #[test]
    fn bounds_are_checked_when_bound() {
        let refusal = |from: &str| {
            Harness::of(crate::functions(), "since").column("date").arguments(json!({ "from": from })).refusal()
        };
        assert!(refusal("last year").is_some_and(|text| text.contains("no value of type date")));
    }
}
