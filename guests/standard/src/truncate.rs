//! `truncate`: only the start of the value.

use pgveil_guest::{Context, Function, Guarantees, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How many characters stay.
    length: usize,
}

struct Truncate {
    length: usize,
}

impl ValueMask for Truncate {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        match context.character_limit(0) {
            Some(limit) if arguments.length >= limit => Err(format!(
                "arguments: `length` is {}, and the column holds {limit} characters, so that nothing would be cut",
                arguments.length
            )),
            _ => Ok(Self { length: arguments.length }),
        }
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        out.push_str(value);
        out.truncate(self.length);
        Ok(())
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Truncate>("truncate")
        .doc(
            "Keeps the first characters of a value.\n\nA value that is no longer than that stays as it is: it suits codes whose start is \
             public, such as postcodes, and no names.",
        )
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"length": 2}"#, ["10115"], ["10"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::json;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        let truncate = Harness::of(crate::functions(), "truncate").arguments(json!({"length": 2}));
        assert_eq!(truncate.one("日本語").as_deref(), Ok("日本"));
        truncate.verify([Some("日本語"), Some("a"), Some(""), None]);
        assert!(truncate.column("varchar(2)").refusal().is_some_and(|text| text.contains("nothing would be cut")));
    }
}
