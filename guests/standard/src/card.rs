//! `card`: another payment card's number of the same issuer.

use std::cell::RefCell;

use pgveil_guest::{Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::digits::{read_digits, write_digits};
use crate::permute::Numerals;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// How many digits of the issuer's number stay: 6 or 8 is usual.
    #[schemars(range(min = 0, max = 8))]
    issuer: usize,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { issuer: 6 }
    }
}

struct Card {
    numerals: Numerals,
    issuer: usize,
    scratch: RefCell<Vec<u8>>,
}

impl ValueMask for Card {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if arguments.issuer > 8 {
            return Err(format!("arguments: `issuer` is {}, it must be 8 at most", arguments.issuer));
        }
        let numerals = Numerals::new(&context.key("card")?, 10)?;
        Ok(Self { numerals, issuer: arguments.issuer, scratch: RefCell::default() })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        if value.is_empty() {
            return Ok(());
        }
        if !value.bytes().all(|byte| byte.is_ascii_digit() || b" -".contains(&byte)) {
            return Err(Fault::UNSUPPORTED_VALUE);
        }
        let mut digits = self.scratch.borrow_mut();
        read_digits(value, &mut digits)?;
        // ISO/IEC 7812: up to 19 digits; below 12 nothing much would be left to mask.
        if !(12..=19).contains(&digits.len()) {
            return Err(Fault::UNSUPPORTED_VALUE);
        }
        let last = digits.len() - 1;
        // How far the check digit is off, 0 for a valid number, stays: so an invalid number stays invalid, and none collide.
        let off = (digits[last] + 10 - check_digit(&digits[..last])) % 10;
        self.numerals.apply(&mut digits[self.issuer..last])?;
        digits[last] = (check_digit(&digits[..last]) + off) % 10;
        write_digits(value, &digits, out);
        Ok(())
    }
}

/// Luhn's check digit for the digits before it (ISO/IEC 7812-1, annex B).
fn check_digit(digits: &[u8]) -> u8 {
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let weigh =
        |(position, &digit): (usize, &u8)| u32::from(if position.is_multiple_of(2) { doubled(digit) } else { digit });
    let sum: u32 = digits.iter().rev().enumerate().map(weigh).sum();
    (10 - (sum % 10) as u8) % 10
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Card>("card")
        .doc(
            "Replaces a payment card's number by another of the same issuer, length and layout.\n\nA valid check digit (Luhn) stays valid, \
             and different numbers stay different. What is no card number stops the job; an empty string stays empty.",
        )
        .key(KeyUse::Required)
        .guarantees(Guarantees::all())
        .example("{}", ["4111 1111 1111 1111"], ["4111 1167 0867 1591"])
}

#[cfg(test)]
mod tests {
    use super::check_digit;
    use pgveil_guest::{Fault, Harness};
    use proptest::prelude::*;

    fn card() -> Harness {
        Harness::of(crate::functions(), "card")
    }

    fn is_valid(number: &str) -> bool {
        let digits: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect();
        digits.split_last().is_some_and(|(last, rest)| check_digit(rest) == *last)
    }

    #[test]
    fn known_numbers_are_valid_and_stay_so() {
        for number in ["4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "6011000990139424"] {
            let Ok(masked) = card().one(number) else { panic!("refused") };
            assert!(is_valid(number) && is_valid(&masked), "{masked}");
            assert!(masked[..6] == number[..6] && masked != number, "{masked}");
        }
        assert!(card().one("4111111111111112").is_ok_and(|masked| !is_valid(&masked)));
    }

    #[test]
    fn what_is_no_card_number_is_refused() {
        for value in ["4111", "n/a", "4111 1111 1111 1111 x"] {
            assert_eq!(card().one(value), Err(Fault::UNSUPPORTED_VALUE));
        }
    }

    proptest! {
        #[test]
        fn promises_hold(values in prop::collection::vec("[0-9]{12,19}", 1..20)) {
            card().verify(values.iter().map(String::as_str).map(Some).chain([None, Some("")]));
        }
    }
}
