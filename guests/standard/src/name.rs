//! `name`: another person's name.

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

struct Name {
    key: Key,
    locale: Locale,
    first: Words,
    last: Words,
}

impl ValueMask for Name {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let locale = arguments.locale;
        // Half the column for each, less the space between.
        let room = context.character_limit(0).map(|limit| limit.saturating_sub(1) / 2);
        let (first, last) = (locale.first_names().at_most(room), locale.last_names().at_most(room));
        Ok(Self { key: context.key("name")?, locale, first, last })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        if value.is_empty() {
            return Ok(());
        }
        let mut random = self.key.random(value.as_bytes());
        let (first, last) = (self.first.pick(&mut random), self.last.pick(&mut random));
        let names = if self.locale == Locale::Ja { [last, first] } else { [first, last] };
        out.push_str(names[0]);
        out.push(' ');
        out.push_str(names[1]);
        out.truncate_to_limit();
        Ok(())
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Name>("name")
        .doc(
            "Replaces a person's name by another.\n\nFirst and last name of the locale, chosen by key and value: the same person \
             gets the same name everywhere, and others may share it. An empty string stays empty.",
        )
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"locale": "fr"}"#, ["Ada Lovelace"], ["Liliane Dias"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::json;

    #[test]
    fn names_fit_their_column_in_every_locale() {
        for locale in ["en", "de", "fr", "es", "ja"] {
            for sql_type in ["text", "varchar(12)", "varchar(5)", "varchar(1)"] {
                let name =
                    Harness::of(crate::functions(), "name").column(sql_type).arguments(json!({ "locale": locale }));
                name.verify([Some("Ada Lovelace"), Some("Zoë"), Some(""), None, Some("山田 太郎")]);
            }
        }
    }

    #[test]
    fn many_people_get_many_names() {
        let values: Vec<String> = (0..1000).map(|number| format!("person {number}")).collect();
        let Ok(masked) = Harness::of(crate::functions(), "name").run(values.iter().map(String::as_str)) else {
            panic!("refused")
        };
        let distinct: std::collections::HashSet<_> = masked.iter().collect();
        assert!(distinct.len() > 950, "{}", distinct.len());
    }
}
