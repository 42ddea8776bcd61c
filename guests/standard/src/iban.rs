//! `iban`: another account of the same country.

use std::cell::RefCell;

use pgveil_guest::{Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::permute::Numerals;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// How many characters behind the check digits stay: those of the bank, whose number differs by country.
    #[schemars(range(min = 0, max = 12))]
    bank: usize,
}

struct Iban {
    digits: Numerals,
    letters: Numerals,
    bank: usize,
    scratch: RefCell<(Vec<u8>, Vec<u8>)>,
}

impl ValueMask for Iban {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if arguments.bank > 12 {
            return Err(format!("arguments: `bank` is {}, it must be 12 at most", arguments.bank));
        }
        let key = context.key("iban")?;
        let (digits, letters) = (Numerals::new(&key.derive("digits"), 10)?, Numerals::new(&key.derive("letters"), 26)?);
        Ok(Self { digits, letters, bank: arguments.bank, scratch: RefCell::default() })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        if value.is_empty() {
            return Ok(());
        }
        let (plain, numerals) = &mut *self.scratch.borrow_mut();
        plain.clear();
        plain.extend(value.bytes().filter(|&byte| byte != b' ').map(|byte| byte.to_ascii_uppercase()));
        // ISO 13616: country, check digits, 11 to 30 characters.
        let proper = (15..=34).contains(&plain.len())
            && plain.iter().all(u8::is_ascii_alphanumeric)
            && plain[..2].iter().all(u8::is_ascii_uppercase);
        if !proper || check_digits(plain) != plain[2..4] {
            return Err(Fault::UNSUPPORTED_VALUE);
        }
        let account = (4 + self.bank).min(plain.len());
        apply(&self.digits, &mut plain[account..], b'0'..=b'9', numerals)?;
        apply(&self.letters, &mut plain[account..], b'A'..=b'Z', numerals)?;
        let check = check_digits(plain);
        plain[2..4].copy_from_slice(&check);
        let mut masked = plain.iter();
        for byte in value.bytes() {
            out.push(if byte == b' ' { ' ' } else { masked.next().map_or('0', |&byte| char::from(byte)) });
        }
        Ok(())
    }
}

/// Replaces the characters of one class, so that an account's layout of letters and digits stays.
fn apply(numerals: &Numerals, text: &mut [u8], class: std::ops::RangeInclusive<u8>, scratch: &mut Vec<u8>) -> Outcome {
    scratch.clear();
    scratch.extend(text.iter().filter(|byte| class.contains(byte)).map(|byte| byte - class.start()));
    numerals.apply(scratch)?;
    let places = text.iter_mut().filter(|byte| class.contains(byte));
    places.zip(scratch).for_each(|(place, numeral)| *place = class.start() + *numeral);
    Ok(())
}

/// The check digits that belong to an account: 98 less the number modulo 97, country and `00` moved to the end (ISO 7064, MOD 97-10).
fn check_digits(iban: &[u8]) -> [u8; 2] {
    let moved = iban[4..].iter().chain(&iban[..2]).chain(b"00");
    let remainder = moved.fold(0_u32, |number, &byte| match byte {
        b'0'..=b'9' => (number * 10 + u32::from(byte - b'0')) % 97,
        _ => (number * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    let check = 98 - remainder;
    [b'0' + (check / 10) as u8, b'0' + (check % 10) as u8]
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Iban>("iban")
        .doc(
            "Replaces an IBAN by another of the same country, length and layout.\n\nThe check digits are valid, letters stay letters, and \
             different accounts stay different; lower case becomes upper. What is no valid IBAN stops the job; an empty string stays \
             empty.",
        )
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example("{}", ["DE89 3704 0044 0532 0130 00"], ["DE73 9807 4601 2547 5898 08"])
}

#[cfg(test)]
mod tests {
    use super::check_digits;
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Harness};
    use proptest::prelude::*;

    fn iban() -> Harness {
        Harness::of(crate::functions(), "iban")
    }

    #[test]
    fn examples_of_the_registry_stay_valid() {
        for value in [
            "DE89 3704 0044 0532 0130 00",
            "GB29NWBK60161331926819",
            "NO9386011117947",
            "MT84MALT011000012345MTLCAST001S",
        ] {
            let Ok(masked) = iban().one(value) else { panic!("refused: {value}") };
            let plain: Vec<u8> = masked.bytes().filter(|&byte| byte != b' ').collect();
            assert_eq!(check_digits(&plain), plain[2..4], "{masked}");
            assert!(masked[..2] == value[..2] && masked != value && masked.len() == value.len(), "{masked}");
        }
    }

    #[test]
    fn the_bank_stays_on_request() {
        let masked = iban().arguments(json!({"bank": 4})).one("GB29NWBK60161331926819");
        assert!(masked.is_ok_and(|masked| &masked[4..8] == "NWBK"));
    }

    #[test]
    fn what_is_no_iban_is_refused() {
        for value in ["DE88370400440532013000", "DE89", "n/a", "ÄE89370400440532013000"] {
            assert_eq!(iban().one(value), Err(Fault::UNSUPPORTED_VALUE), "{value}");
        }
    }

    proptest! {
        #[test]
        fn accounts_stay_apart(accounts in prop::collection::btree_set("[0-9]{18}", 1..20)) {
            let with_check = |account: &String| {
                let mut iban = format!("DE00{account}").into_bytes();
                let check = check_digits(&iban);
                iban[2..4].copy_from_slice(&check);
                String::from_utf8(iban).unwrap_or_default()
            };
            let values: Vec<String> = accounts.iter().map(with_check).collect();
            iban().verify(values.iter().map(String::as_str).map(Some).chain([None]));
            let Ok(masked) = iban().run(values.iter().map(String::as_str)) else { panic!("refused") };
            let distinct: std::collections::BTreeSet<_> = masked.iter().collect();
            prop_assert_eq!(distinct.len(), values.len());
        }
    }
}
