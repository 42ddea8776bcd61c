//! `bytea`, in the hex form that pgveil's sessions pin.

use super::FromText;
use crate::Out;

/// A `bytea`, still in its hex digits; bytes are decoded as they are asked for.
#[derive(Clone, Copy)]
pub struct Bytes<'text> {
    digits: &'text [u8],
}

impl<'text> FromText<'text> for Bytes<'text> {
    fn from_text(text: &'text str) -> Option<Self> {
        let digits = text.strip_prefix("\\x")?.as_bytes();
        let proper = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        proper.then_some(Self { digits })
    }
}

impl Bytes<'_> {
    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.digits.len() / 2
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.digits.is_empty()
    }

    /// The bytes, one after another.
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        self.digits.chunks_exact(2).map(move |pair| digit(pair[0]) << 4 | digit(pair[1]))
    }

    /// Writes bytes as `bytea`.
    pub fn write(bytes: impl IntoIterator<Item = u8>, out: &mut Out) {
        out.push_str("\\x");
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive() {
        let read = Bytes::from_text("\\xdeadBEEF00").map(|bytes| bytes.iter().collect::<Vec<_>>());
        assert_eq!(read, Some(vec![0xde, 0xad, 0xbe, 0xef, 0]));
        let mut out = Out::new(None, 1, 0);
        Bytes::write([0xde, 0, 0x0f], &mut out);
        assert_eq!(out.written(), "\\xde000f");
    }

    #[test]
    fn the_escape_form_and_broken_digits_are_refused() {
        for text in ["", "abc", "\\x1", "\\xzz", "\\\\x00"] {
            assert!(Bytes::from_text(text).is_none(), "{text:?}");
        }
    }
}
