//! `phone`: another number of the same country and length.

use std::cell::RefCell;

use pgveil_guest::{Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::digits::{read_digits, write_digits};
use crate::permute::Numerals;

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Invalid {
    /// The job stops.
    #[default]
    Refuse,
    /// Every letter and digit becomes an `x`; different values may then become one.
    Redact,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// What becomes of a value that is no telephone number, such as `ask Ada`.
    invalid: Invalid,
}

struct Phone {
    numerals: Numerals,
    invalid: Invalid,
    scratch: RefCell<Vec<u8>>,
}

impl ValueMask for Phone {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let numerals = Numerals::new(&context.key("phone")?, 10)?;
        Ok(Self { numerals, invalid: arguments.invalid, scratch: RefCell::default() })
    }

    fn guarantees(&self) -> Guarantees {
        if self.invalid == Invalid::Refuse { Guarantees::INJECTIVE } else { Guarantees::empty() }
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        if !is_phone(value) {
            return match self.invalid {
                Invalid::Refuse => Err(Fault::UNSUPPORTED_VALUE),
                Invalid::Redact => {
                    value
                        .chars()
                        .for_each(|character| out.push(if character.is_alphanumeric() { 'x' } else { character }));
                    Ok(())
                }
            };
        }
        let mut digits = self.scratch.borrow_mut();
        read_digits(value, &mut digits)?;
        let (kept, is_american) = kept_digits(value, &digits);
        let subscriber = &mut digits[kept..];
        // Walking until the number is again of the class that it was in keeps the bijection within that class.
        let class = class(subscriber, is_american);
        loop {
            self.numerals.apply(subscriber)?;
            if self::class(subscriber, is_american) == class {
                break;
            }
        }
        write_digits(value, &digits, out);
        Ok(())
    }
}

/// Whether a value is written as telephone numbers are: digits and their signs, and an extension.
fn is_phone(value: &str) -> bool {
    let number = value.split(['x', 'X', 'e', 'E']).next().unwrap_or_default();
    let extension = value[number.len()..].to_ascii_lowercase();
    let extension = extension.trim_start_matches("ext").trim_start_matches('x');
    let proper =
        |text: &str, signs: &str| text.chars().all(|character| character.is_ascii_digit() || signs.contains(character));
    proper(number, " +-./()\u{a0}") && proper(extension, " .:#")
}

/// How many digits stay, and whether the number is of the North American plan: the international prefix with the calling code, or the
/// zeros that a national number begins with.
fn kept_digits(value: &str, digits: &[u8]) -> (usize, bool) {
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    let prefix = match (value.trim_start().starts_with(['+', '(']) && value.contains('+'), zeros) {
        (true, _) => 0,
        (false, 2) => 2,
        (false, _) => return (zeros, false),
    };
    let code = calling_code_length(&digits[prefix..]);
    let after = prefix + code;
    let is_american = code == 1 && digits.get(prefix) == Some(&1);
    // `+49 (0)30`: the zero is not dialled, and stays.
    let zeros = digits[after..].iter().take_while(|&&digit| digit == 0).count();
    (after + zeros, is_american)
}

/// The length of the calling code that digits begin with (ITU-T E.164, list of assigned codes): 1 and 7 stand alone, the zones of two
/// digits are listed, all others have three.
fn calling_code_length(digits: &[u8]) -> usize {
    const TWO: [u8; 44] = [
        20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57, 58, 60, 61,
        62, 63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98,
    ];
    let length = match digits {
        [1 | 7, ..] => 1,
        [tens, ones, ..] if TWO.contains(&(tens * 10 + ones)) => 2,
        _ => 3,
    };
    length.min(digits.len())
}

/// What of a subscriber's number must not change: whether it begins with 0, and in North America whether area code and exchange are possible, which
/// means that neither begins with 0 or 1.
fn class(digits: &[u8], is_american: bool) -> (bool, bool) {
    let is_possible = !is_american || digits.len() < 10 || digits[0] >= 2 && digits[3] >= 2;
    (digits.first() == Some(&0), is_possible)
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Phone>("phone")
        .doc(
            "Replaces a telephone number by another of the same country, length and layout.\n\nThe calling code stays, and so do \
             spaces and signs; the rest is encrypted digit by digit (FF1), so different numbers stay different. A valid \
             number of E.164 stays one.",
        )
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example("{}", ["+49 (0)30 901820"], ["+49 (0)73 845725"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Guarantees, Harness};
    use proptest::prelude::*;

    fn phone() -> Harness {
        Harness::of(crate::functions(), "phone")
    }

    #[test]
    fn country_layout_and_validity_stay() {
        for (value, kept) in [
            ("+1 (212) 555-0100", "+1 ("),
            ("+49 30 901820", "+49 "),
            ("0049 30 901820", "0049 "),
            ("+49 (0)30 901820", "+49 (0)"),
            ("030 901820", "0"),
            ("+358 9 1234567", "+358 "),
            ("5550100", ""),
            ("+81-3-1234-5678 ext. 12", "+81-"),
        ] {
            let Ok(masked) = phone().one(value) else { panic!("refused: {value}") };
            assert!(masked.starts_with(kept) && masked != value && masked.len() == value.len(), "{value} -> {masked}");
            let next = masked[kept.len()..].chars().find(char::is_ascii_digit);
            assert!(next.is_some_and(|digit| digit != '0'), "{masked}");
        }
    }

    #[test]
    fn american_area_codes_and_exchanges_stay_possible() {
        for number in 0..200 {
            let Ok(masked) = phone().one(&format!("+1212555{number:04}")) else { panic!("refused") };
            assert!(masked.as_bytes()[2] >= b'2' && masked.as_bytes()[5] >= b'2', "{masked}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_or_redacted() {
        assert_eq!(phone().one("ask Ada"), Err(Fault::UNSUPPORTED_VALUE));
        assert_eq!(phone().one("٣٤٥"), Err(Fault::UNSUPPORTED_VALUE));
        let redact = phone().arguments(json!({"invalid": "redact"}));
        assert_eq!(redact.one("ask Ada, 7").as_deref(), Ok("xxx xxx, x"));
        assert!(!redact.guarantees().contains(Guarantees::INJECTIVE));
        assert!(phone().guarantees().contains(Guarantees::INJECTIVE));
    }

    proptest! {
        #[test]
        fn promises_hold(values in prop::collection::vec("[+]?[0-9 ()-]{0,20}", 1..20)) {
            phone().verify(values.iter().map(String::as_str).map(Some).chain([None]));
        }
    }

    #[test]
    fn all_numbers_of_a_length_stay_apart() {
        let numbers: Vec<String> = (0..10_000).map(|number| format!("+49{number:04}")).collect();
        phone().verify(numbers.iter().map(String::as_str));
    }
}
