//! `digits`: other digits in the same places.

use std::cell::RefCell;

use pgveil_guest::{Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::permute::Numerals;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Arguments {
    /// How many digits stay at the start.
    first: usize,
    /// How many digits stay at the end.
    last: usize,
}

struct Digits {
    numerals: Numerals,
    arguments: Arguments,
    /// The digits of the value at hand; kept, so that none is allocated per value.
    scratch: RefCell<Vec<u8>>,
}

impl ValueMask for Digits {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let numerals = Numerals::new(&context.key("digits")?, 10)?;
        Ok(Self { numerals, arguments, scratch: RefCell::default() })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let mut digits = self.scratch.borrow_mut();
        read_digits(value, &mut digits)?;
        let Arguments { first, last } = self.arguments;
        // What would stay whole is masked whole instead.
        let (first, last) = if digits.len() <= first.saturating_add(last) { (0, 0) } else { (first, last) };
        let end = digits.len() - last;
        self.numerals.apply(&mut digits[first..end])?;
        write_digits(value, &digits, out);
        Ok(())
    }
}

/// Takes the digits out of a value. Digits of other scripts are refused: they would pass as they are.
pub(crate) fn read_digits(value: &str, digits: &mut Vec<u8>) -> Outcome {
    digits.clear();
    for character in value.chars() {
        match character {
            '0'..='9' => digits.push(character as u8 - b'0'),
            _ if character.is_numeric() => return Err(Fault::UNSUPPORTED_VALUE),
            _ => {}
        }
    }
    Ok(())
}

/// Writes a value with other digits.
pub(crate) fn write_digits(value: &str, digits: &[u8], out: &mut Out) {
    let mut digits = digits.iter();
    for character in value.chars() {
        match character {
            '0'..='9' => out.push(char::from(b'0' + digits.next().copied().unwrap_or(0))),
            other => out.push(other),
        }
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Digits>("digits")
        .doc(
            "Replaces digits by others and keeps everything else in place.\n\nFormat-preserving encryption (FF1 with AES-256): different \
             values stay different, so it may mask keys. Letters and signs pass as they are. Few digits have few values: a \
             column of four-digit numbers is a secret only as long as nobody sees many pairs.",
        )
        .key(KeyUse::Required)
        .guarantees(
            Guarantees::DETERMINISTIC | Guarantees::INJECTIVE | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING,
        )
        .example(r#"{"last": 2}"#, ["AB-1234-5678"], ["AB-5624-0978"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Harness};
    use proptest::prelude::*;

    fn digits(first: usize, last: usize) -> Harness {
        Harness::of(crate::functions(), "digits").arguments(json!({"first": first, "last": last}))
    }

    #[test]
    fn all_short_numbers_stay_apart() {
        let numbers: Vec<String> = (0..1000).map(|number| format!("{number:03}")).collect();
        digits(0, 0).verify(numbers.iter().map(String::as_str));
        digits(1, 1).verify(numbers.iter().map(String::as_str));
        let shorter: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        digits(1, 1).verify(shorter.iter().map(String::as_str));
    }

    #[test]
    fn a_value_that_would_stay_whole_is_masked_whole() {
        assert_ne!(digits(2, 2).one("1234").as_deref(), Ok("1234"));
        let Ok(masked) = digits(2, 2).one("12 3456 78") else { panic!("refused") };
        assert!(masked.starts_with("12 ") && masked.ends_with(" 78") && masked != "12 3456 78");
    }

    #[test]
    fn digits_of_other_scripts_do_not_slip_through() {
        assert_eq!(digits(0, 0).one("٣٤"), Err(Fault::UNSUPPORTED_VALUE));
    }

    proptest! {
        #[test]
        fn promises_hold(values in prop::collection::vec("[0-9]{0,90}|[-a-z0-9 é]{0,20}", 1..12)) {
            digits(0, 0).verify(values.iter().map(String::as_str).map(Some).chain([None]));
        }

        #[test]
        fn everything_else_stays_in_place(value in "[-a-z0-9 日]{0,30}") {
            let Ok(masked) = digits(0, 0).one(&value) else { panic!("refused") };
            let shape = |text: &str| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
            prop_assert_eq!(shape(&masked), shape(&value));
        }
    }
}
