//! `partial`: the ends stay, the middle goes.

use pgveil_guest::{Context, Function, Guarantees, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Arguments {
    /// How many characters stay at the start.
    first: usize,
    /// How many characters stay at the end.
    last: usize,
    /// How many characters must be hidden at least; a shorter value is hidden whole.
    #[schemars(range(min = 1))]
    hidden: usize,
    /// The character that is written instead.
    with: char,
    /// Write exactly so many of them, so that the length does not show. By default one for each hidden character.
    #[schemars(range(min = 1, max = 100))]
    width: Option<usize>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { first: 0, last: 4, hidden: 4, with: '*', width: None }
    }
}

struct Partial {
    arguments: Arguments,
}

impl ValueMask for Partial {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if arguments.hidden == 0 {
            return Err(
                "arguments: `hidden` is 0, so that a value could pass as it is; it must be 1 at least".to_owned()
            );
        }
        if let Some(width) = arguments.width {
            if !(1..=100).contains(&width) {
                return Err(format!("arguments: `width` is {width}, it must lie between 1 and 100"));
            }
            let longest = arguments.first.saturating_add(width).saturating_add(arguments.last);
            if let Some(limit) = context.character_limit(0).filter(|&limit| longest > limit) {
                return Err(format!("arguments: up to {longest} characters are written, the column holds {limit}"));
            }
        }
        Ok(Self { arguments })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let Arguments { first, last, hidden, with, width } = self.arguments;
        let length = value.chars().count();
        let shown = first.saturating_add(last);
        let (first, last) = if length < shown.saturating_add(hidden) { (0, 0) } else { (first, last) };
        if length > 0 {
            out.push_str(start(value, first));
            out.fill(with, width.unwrap_or(length - first - last));
            out.push_str(&value[start(value, length - last).len()..]);
        }
        Ok(())
    }
}

/// The first characters of a value.
fn start(value: &str, characters: usize) -> &str {
    value.char_indices().nth(characters).map_or(value, |(end, _)| &value[..end])
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Partial>("partial")
        .doc(
            "Keeps the first and last characters and hides the rest.\n\nIt hides what is in the middle, not whose it is: where few values \
             share their ends, they still tell. A value too short to hide enough of it is hidden whole; an empty one stays empty.",
        )
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"first": 2, "last": 4}"#, ["DE89370400440532013000"], ["DE****************3000"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::{Value, json};
    use proptest::prelude::*;

    fn partial(arguments: Value) -> Harness {
        Harness::of(crate::functions(), "partial").arguments(arguments)
    }

    #[test]
    fn values_by_length() {
        let partial = partial(json!({"first": 1, "last": 2, "hidden": 2}));
        for (value, masked) in [("", ""), ("a", "*"), ("abcd", "****"), ("abcde", "a**de"), ("日本語です", "日**です")]
        {
            assert_eq!(partial.one(value).as_deref(), Ok(masked));
        }
    }

    #[test]
    fn a_width_hides_the_length() {
        let partial = partial(json!({"last": 1, "hidden": 1, "width": 3, "with": "•"}));
        assert_eq!(partial.one("ab").as_deref(), Ok("•••b"));
        assert_eq!(partial.one("abcdefgh").as_deref(), Ok("•••h"));
        assert!(partial.column("varchar(3)").refusal().is_some());
    }

    #[test]
    fn arguments_that_hide_nothing_are_refused() {
        assert!(partial(json!({"hidden": 0})).refusal().is_some());
        assert!(partial(json!({"width": 0})).refusal().is_some());
        assert!(partial(json!({"with": "ab"})).refusal().is_some());
    }

    proptest! {
        #[test]
        fn at_least_so_many_characters_are_hidden(value: String, first in 0..5_usize, last in 0..5_usize, hidden in 1..5_usize) {
            let partial = partial(json!({"first": first, "last": last, "hidden": hidden, "with": "\u{1}"}));
            let Ok(masked) = partial.one(&value) else { panic!("refused") };
            let length = value.chars().count();
            prop_assert_eq!(masked.chars().count(), length);
            let count = masked.chars().filter(|&character| character == '\u{1}').count();
            prop_assert!(count >= hidden.min(length), "{count} hidden");
        }
    }
}
