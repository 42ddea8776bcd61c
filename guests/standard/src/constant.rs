//! `constant`: the same value for every row, in any type.

use pgveil_guest::{Accepts, Context, Function, Guarantees, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The value, as PostgreSQL writes the column's type in text: `0`, `1970-01-01`, `{}`.
    value: String,
    /// Whether NULL becomes the value too, so that not even presence shows.
    #[serde(default)]
    nulls: bool,
}

struct Constant {
    arguments: Arguments,
}

impl ValueMask for Constant {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let length = arguments.value.chars().count();
        match context.character_limit(0) {
            Some(limit) if length > limit => {
                Err(format!("arguments: `value` has {length} characters, the column holds {limit}"))
            }
            _ => Ok(Self { arguments }),
        }
    }

    fn guarantees(&self) -> Guarantees {
        if self.arguments.nulls { Guarantees::empty() } else { Guarantees::NULL_PRESERVING }
    }

    fn mask(&self, _: &str, out: &mut Out) -> Outcome {
        out.push_str(&self.arguments.value);
        Ok(())
    }

    fn null(&self, out: &mut Out) -> Outcome {
        if self.arguments.nulls {
            out.push_str(&self.arguments.value);
        } else {
            out.null();
        }
        Ok(())
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Constant>("constant")
        .doc(
            "Replaces every value by one and the same.\n\nThe column's type is any; that the value is one of it only the target can \
             tell, and refuses the first row otherwise.",
        )
        .accepts(&[Accepts::Any])
        .guarantees(Guarantees::DETERMINISTIC)
        .example(r#"{"value": "0"}"#, ["42"], ["0"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Guarantees, Harness};

    #[test]
    fn null_is_replaced_on_request_only() {
        let constant = |nulls: bool| {
            Harness::of(crate::functions(), "constant").column("int4").arguments(json!({"value": "7", "nulls": nulls}))
        };
        constant(false).verify([Some("1"), None]);
        assert_eq!(constant(false).run([Some("1"), None]), Ok(vec![Some("7".to_owned()), None]));
        assert_eq!(constant(true).run([Some("1"), None]), Ok(vec![Some("7".to_owned()); 2]));
        assert!(!constant(true).guarantees().contains(Guarantees::NULL_PRESERVING));
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused_when_bound() {
        let harness =
            Harness::of(crate::functions(), "constant").column("varchar(2)").arguments(json!({"value": "abc"}));
        assert!(harness.refusal().is_some_and(|text| text.contains("3 characters")));
        assert!(Harness::of(crate::functions(), "constant").refusal().is_some_and(|text| text.contains("value")));
    }
}
