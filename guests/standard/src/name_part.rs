//! `first-name` and `last-name`: half of another person's name.

use pgveil_guest::{Context, Function, Guarantees, Key, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::words::{Locale, Words};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// Whose names.
    locale: Locale,
}

/// A mask that chooses a word for a value.
struct Part {
    key: Key,
    words: Words,
}

impl Part {
    fn new(words: Words, purpose: &str, context: &Context) -> Result<Self, String> {
        Ok(Self { key: context.key(purpose)?, words: words.at_most(context.character_limit(0)) })
    }

    fn write(&self, value: &str, out: &mut Out) {
        if !value.is_empty() {
            out.push_str(self.words.pick(&mut self.key.random(value.as_bytes())));
            out.truncate_to_limit();
        }
    }
}

struct FirstName(Part);
struct LastName(Part);

impl ValueMask for FirstName {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        Part::new(arguments.locale.first_names(), "first-name", context).map(Self)
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        self.0.write(value, out);
        Ok(())
    }
}

impl ValueMask for LastName {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        Part::new(arguments.locale.last_names(), "last-name", context).map(Self)
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        self.0.write(value, out);
        Ok(())
    }
}

fn described(function: Function, doc: &str) -> Function {
    let guarantees = Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING;
    function.doc(doc).key(KeyUse::Required).guarantees(guarantees)
}

pub(crate) fn first_name() -> Function {
    let doc =
        "Replaces a first name by another of the locale, chosen by key and value.\n\nAn empty string stays empty.";
    described(Function::value_mask::<FirstName>("first-name"), doc).example("{}", ["Ada"], ["Cordell"])
}

pub(crate) fn last_name() -> Function {
    let doc =
        "Replaces a family name by another of the locale, chosen by key and value.\n\nAn empty string stays empty.";
    described(Function::value_mask::<LastName>("last-name"), doc).example(
        r#"{"locale": "de"}"#,
        ["Lovelace"],
        ["Seidel"],
    )
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::json;

    #[test]
    fn names_fit_their_column() {
        for function in ["first-name", "last-name"] {
            for locale in ["en", "de", "fr", "es", "ja"] {
                for sql_type in ["text", "varchar(4)", "varchar(1)"] {
                    let harness = Harness::of(crate::functions(), function).column(sql_type);
                    harness.arguments(json!({ "locale": locale })).verify([Some("Ada"), Some(""), None, Some("Zoë")]);
                }
            }
        }
    }
}
