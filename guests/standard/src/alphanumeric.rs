//! `alphanumeric`: other characters of an alphabet in the same places.

use std::cell::RefCell;

use pgveil_guest::{Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::permute::Numerals;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// The characters that are replaced, each by one of them: 2 to 64, all different. Others stay where they are, but a letter or digit that is
    /// not in the alphabet stops the job.
    #[schemars(length(min = 2, max = 64))]
    alphabet: String,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".to_owned() }
    }
}

struct Alphanumeric {
    alphabet: Vec<char>,
    numerals: Numerals,
    scratch: RefCell<Vec<u8>>,
}

impl ValueMask for Alphanumeric {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let alphabet: Vec<char> = arguments.alphabet.chars().collect();
        let repeated =
            alphabet.iter().enumerate().find(|(position, character)| alphabet[..*position].contains(character));
        if let Some((_, character)) = repeated {
            return Err(format!("arguments: `alphabet` holds {character:?} twice"));
        }
        let mixed = alphabet.iter().any(|letter| letter.is_uppercase());
        if mixed && context.inputs().iter().any(pgveil_guest::ColumnInfo::ignores_case) {
            return Err("arguments: the column ignores case, so `alphabet` must be in lower case".to_owned());
        }
        let radix = u8::try_from(alphabet.len()).ok().filter(|radix| (2..=64).contains(radix));
        let radix = radix.ok_or("arguments: `alphabet` must have 2 to 64 characters")?;
        let numerals = Numerals::new(&context.key("alphanumeric")?, radix)?;
        Ok(Self { alphabet, numerals, scratch: RefCell::default() })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let mut numerals = self.scratch.borrow_mut();
        numerals.clear();
        for character in value.chars() {
            match self.alphabet.iter().position(|&letter| letter == character) {
                Some(numeral) => numerals.push(numeral as u8),
                None if character.is_alphanumeric() => return Err(Fault::UNSUPPORTED_VALUE),
                None => {}
            }
        }
        self.numerals.apply(&mut numerals)?;
        let mut masked = numerals.iter();
        for character in value.chars() {
            let replaced = self.alphabet.contains(&character).then(|| masked.next()).flatten();
            out.push(replaced.map_or(character, |&numeral| self.alphabet[usize::from(numeral)]));
        }
        Ok(())
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Alphanumeric>("alphanumeric")
        .doc(
            "Replaces letters and digits by others of an alphabet and keeps everything else in place.\n\nFormat-preserving encryption (FF1 \
             with AES-256): different values stay different, so it may mask keys.",
        )
        .key(KeyUse::Required)
        .guarantees(Guarantees::all())
        .example(r#"{"alphabet": "0123456789ABCDEF"}"#, ["00-1B-44-11-3A-B7"], ["01-95-5B-AF-E2-93"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Harness};
    use proptest::prelude::*;

    fn alphanumeric(alphabet: &str) -> Harness {
        Harness::of(crate::functions(), "alphanumeric").arguments(json!({ "alphabet": alphabet }))
    }

    #[test]
    fn alphabets_are_checked_and_nothing_slips_past_them() {
        assert!(alphanumeric("a").refusal().is_some() && alphanumeric("aba").refusal().is_some());
        assert!(alphanumeric("aB").column("citext").refusal().is_some_and(|text| text.contains("lower case")));
        assert_eq!(alphanumeric("abc").one("abd"), Err(Fault::UNSUPPORTED_VALUE));
        assert_eq!(Harness::of(crate::functions(), "alphanumeric").one("é"), Err(Fault::UNSUPPORTED_VALUE));
    }

    proptest! {
        #[test]
        fn promises_hold(values in prop::collection::vec("[A-Za-z0-9 -]{0,80}", 1..10)) {
            Harness::of(crate::functions(), "alphanumeric").verify(values.iter().map(String::as_str).map(Some).chain([None]));
        }

        #[test]
        fn any_alphabet_keeps_values_apart(values in prop::collection::vec("[αβγ]{1,12}", 1..12)) {
            alphanumeric("αβγ").verify(values.iter().map(String::as_str));
        }
    }
}
