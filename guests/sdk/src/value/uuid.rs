//! `uuid`.

use std::fmt;

use super::FromText;

/// A `uuid`, as its 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Uuid(pub u128);

impl FromText<'_> for Uuid {
    fn from_text(text: &str) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        let mut bits: u128 = 0;
        for (position, byte) in text.bytes().enumerate() {
            match (position, byte) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return None,
                _ => bits = bits << 4 | u128::from(char::from(byte).to_digit(16)?),
            }
        }
        Some(Self(bits))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, bits: u32| self.0 >> shift & ((1 << bits) - 1);
        write!(
            out,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 32),
            part(80, 16),
            part(64, 16),
            part(48, 16),
            part(0, 48)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_and_other_forms_are_refused() {
        let text = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert_eq!(Uuid::from_text(text).map(|uuid| uuid.to_string()).as_deref(), Some(text));
        for text in [
            "",
            "0f8fad5bd9cb469fa16570867728950e",
            "0f8fad5b-d9cb-469f-a165-70867728950g",
            "0f8fad5b-d9cb-469f-a165_70867728950e",
        ] {
            assert!(Uuid::from_text(text).is_none(), "{text:?}");
        }
    }
}
