//! `sample`: a keyed percentage of the rows.

use pgveil_guest::{Accepts, Context, Function, Guarantees, Key, KeyUse, Outcome, Row, RowFilter};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How many rows of a hundred stay; fractions count.
    #[schemars(range(min = 0, max = 100))]
    percent: f64,
}

struct Sample {
    key: Key,
    /// Rows whose number, of 64 bits, lies below this stay.
    threshold: u128,
}

impl RowFilter for Sample {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if !(0.0..=100.0).contains(&arguments.percent) {
            return Err(format!("arguments: `percent` is {}, it must lie between 0 and 100", arguments.percent));
        }
        // In millionths of a percent: whole numbers, so that no machine rounds otherwise.
        let millionths = (arguments.percent * 1e6).round() as u128;
        Ok(Self { key: context.key("sample")?, threshold: (millionths << 64) / 100_000_000 })
    }

    fn keep(&self, row: &Row<'_>) -> Outcome<bool> {
        if let (1, Some(value)) = (row.len(), row.at(0)?) {
            return Ok(self.stays(value.as_bytes()));
        }
        let mut joined = Vec::new();
        for position in 0..row.len() {
            let value = row.at(position)?;
            // Lengths keep ("ab", "c") and ("a", "bc") apart; NULL is no length.
            joined.extend_from_slice(&value.map_or(u64::MAX, |value| value.len() as u64).to_le_bytes());
            joined.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
        Ok(self.stays(&joined))
    }
}

impl Sample {
    fn stays(&self, values: &[u8]) -> bool {
        u128::from(self.key.random(values).bits()) < self.threshold
    }
}

pub(crate) fn function() -> Function {
    Function::row_filter::<Sample>("sample")
        .doc(
            "Keeps a percentage of the rows, chosen by key and values.\n\nGranted a person's id in every table that carries it, under \
             one key, it keeps the same people everywhere, so foreign keys among the kept rows hold. A larger percentage keeps all \
             that a smaller one does.",
        )
        .accepts(&[Accepts::Any])
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC)
        .example(r#"{"percent": 50}"#, ["42"], ["keep"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Harness, TestRow};

    fn sample(percent: f64) -> Harness {
        Harness::of(crate::functions(), "sample").column("int8").arguments(json!({ "percent": percent }))
    }

    fn ids() -> Vec<TestRow> {
        (0..10_000).map(|id| vec![Some(id.to_string())]).collect()
    }

    #[test]
    fn so_many_rows_stay_and_more_percent_keep_more_of_the_same() {
        let mut smaller = vec![false; 10_000];
        for (percent, range) in
            [(0.0, 0..=0), (0.5, 30..=70), (10.0, 900..=1100), (50.0, 4800..=5200), (100.0, 10_000..=10_000)]
        {
            let Ok(kept) = sample(percent).keep_rows(&ids()) else { panic!("refused") };
            let count = kept.iter().filter(|&&kept| kept).count();
            assert!(range.contains(&count), "{percent} % kept {count}");
            assert!(smaller.iter().zip(&kept).all(|(before, now)| !before || *now));
            smaller = kept;
        }
    }

    #[test]
    fn columns_are_told_apart() {
        let harness = sample(50.0).inputs([("a", "text"), ("b", "text")]);
        let rows: Vec<TestRow> = (0..64).map(|n| vec![Some("x".repeat(n)), Some("x".repeat(64 - n))]).collect();
        let Ok(kept) = harness.keep_rows(&rows) else { panic!("refused") };
        assert!(kept.contains(&true) && kept.contains(&false));
        assert!(harness.keep_rows(&[vec![None, None]]).is_ok());
    }

    #[test]
    fn percentages_outside_are_refused() {
        assert!(sample(100.1).refusal().is_some() && sample(-1.0).refusal().is_some());
    }
}
