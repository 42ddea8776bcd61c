//! Values as types: what PostgreSQL's text output means, without a library's limits.
//!
//! Every reader is exact. Numbers keep their digits, dates reach as far as PostgreSQL's own (4713 BC to 5874897 AD) and know `infinity`, arrays keep their
//! bounds, their NULLs and their elements' text. What a reader does not understand it refuses; it never guesses.

mod array;
mod bytes;
mod date;
mod decimal;
mod json;
mod timestamp;
mod uuid;

pub use array::{Array, Element};
pub use bytes::Bytes;
pub use date::{Date, Day};
pub use decimal::{Decimal, Number};
pub use json::Json;
pub use timestamp::{Moment, Timestamp};
pub use uuid::Uuid;

use crate::{Fault, Outcome};

/// A type that can be read from PostgreSQL's text output.
pub trait FromText<'text>: Sized {
    /// The value; `None` where the text is not one of this type.
    fn from_text(text: &'text str) -> Option<Self>;
}

/// Reads a value.
///
/// # Errors
/// [`Fault::INVALID_INPUT`] where the text is not a value of that type.
pub fn read<'text, T: FromText<'text>>(text: &'text str) -> Outcome<T> {
    T::from_text(text).ok_or(Fault::INVALID_INPUT)
}

impl<'text> FromText<'text> for &'text str {
    fn from_text(text: &'text str) -> Option<Self> {
        Some(text)
    }
}

impl FromText<'_> for i64 {
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// `boolout`: `t` or `f`.
impl FromText<'_> for bool {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "t" => Some(true),
            "f" => Some(false),
            _ => None,
        }
    }
}

/// `float8out` at `extra_float_digits=3`: the shortest text that reads back as the same bits.
impl FromText<'_> for f64 {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            // Rust also reads `inf` and `nan`, which PostgreSQL never writes.
            _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte)) => text.parse().ok(),
            _ => None,
        }
    }
}
