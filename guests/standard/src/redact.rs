//! `redact`: a mark in place of the value.

use pgveil_guest::{Context, Function, Guarantees, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// The mark. It is cut where the column is shorter.
    mark: String,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { mark: "[redacted]".to_owned() }
    }
}

struct Redact {
    mark: String,
}

impl ValueMask for Redact {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let limit = context.character_limit(0).unwrap_or(usize::MAX);
        Ok(Self { mark: arguments.mark.chars().take(limit).collect() })
    }

    fn mask(&self, _: &str, out: &mut Out) -> Outcome {
        out.push_str(&self.mark);
        Ok(())
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Redact>("redact")
        .doc(
            "Replaces a value by a mark.\n\nNothing of the value is left, its length included; only that there was one. An empty \
             string is marked too, NULL stays NULL.",
        )
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example("{}", ["anything"], ["[redacted]"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::json;

    #[test]
    fn marks_are_cut_to_the_column() {
        let redact = Harness::of(crate::functions(), "redact").arguments(json!({"mark": "秘密です"}));
        assert_eq!(redact.one("x"), Ok("秘密です".to_owned()));
        assert_eq!(redact.column("varchar(2)").one("x"), Ok("秘密".to_owned()));
    }

    #[test]
    fn only_null_stays() {
        let redact = Harness::of(crate::functions(), "redact");
        redact.verify([Some("a"), Some(""), None]);
        assert_eq!(redact.run([Some(""), None]), Ok(vec![Some("[redacted]".to_owned()), None]));
    }
}
