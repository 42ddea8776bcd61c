//! `numeric`, as digits: no float, no limit, scale kept.

use std::fmt;

use super::FromText;

/// A `numeric` value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Decimal<'text> {
    /// A number.
    Finite(Number<'text>),
    /// `NaN`.
    NotANumber,
    /// `Infinity`.
    Infinity,
    /// `-Infinity`.
    NegativeInfinity,
}

/// A finite `numeric`: its sign and the digits on both sides of the point, as they are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Number<'text> {
    /// Whether it is below zero.
    pub negative: bool,
    /// The digits before the point, at least one.
    pub whole: &'text str,
    /// The digits after the point; their number is the scale. Empty where there is no point.
    pub fraction: &'text str,
}

impl<'text> FromText<'text> for Decimal<'text> {
    fn from_text(text: &'text str) -> Option<Self> {
        match text {
            "NaN" => return Some(Self::NotANumber),
            "Infinity" => return Some(Self::Infinity),
            "-Infinity" => return Some(Self::NegativeInfinity),
            _ => {}
        }
        Number::from_text(text).map(Self::Finite)
    }
}

impl<'text> FromText<'text> for Number<'text> {
    fn from_text(text: &'text str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (digits, ""),
        };
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (!whole.is_empty() && all_digits(whole) && all_digits(fraction)).then_some(Self { negative, whole, fraction })
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let point = if self.fraction.is_empty() { "" } else { "." };
        write!(out, "{sign}{}{point}{}", self.whole, self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_survive_as_they_are() {
        for text in
            ["0", "-0.000", "9007199254740993", "-12.340", "123456789012345678901234567890.000000000000000000000001"]
        {
            assert_eq!(Number::from_text(text).map(|number| number.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn specials_are_values_and_anything_else_is_refused() {
        assert!(Decimal::from_text("NaN") == Some(Decimal::NotANumber));
        assert!(Decimal::from_text("-Infinity") == Some(Decimal::NegativeInfinity));
        for text in ["", "-", ".5", "5.", "1e5", "+1", "1.2.3", "٣", "infinity", " 1"] {
            assert!(Decimal::from_text(text).is_none(), "{text:?}");
        }
    }
}
