//! Values with and without their backslash sequences.

use bytes::BufMut;

use crate::error::{Result, WireError, WireErrorKind};

/// Bytes that are looked at together; the compiler turns the test of a whole chunk into vector instructions.
const CHUNK: usize = 32;

/// Appends a field's value to `output`: `\b \f \n \r \t \v`, `\` and one to three octal digits, `\x` and one or two
/// hexadecimal digits, and a backslash before any other byte stands for that byte.
///
/// A field that is NULL is not a value: see [`Field::is_null`](super::Field::is_null).
///
/// # Errors
/// [`WireErrorKind::DanglingEscape`] for a backslash at the end. `output` then holds a part of the value.
pub fn unescape_into(field: &[u8], output: &mut Vec<u8>) -> Result<()> {
    output.reserve(field.len());
    let mut rest = field;
    while let Some(backslash) = memchr::memchr(b'\\', rest) {
        let (plain, sequence) = rest.split_at(backslash);
        output.extend_from_slice(plain);
        let (byte, length) = sequence_value(sequence)
            .ok_or(WireError::new(field.len() - sequence.len(), WireErrorKind::DanglingEscape))?;
        output.push(byte);
        rest = sequence.get(length..).unwrap_or_default();
    }
    output.extend_from_slice(rest);
    Ok(())
}

/// The byte that the sequence at the start of `sequence` stands for, and its length; `None` if nothing follows the backslash.
fn sequence_value(sequence: &[u8]) -> Option<(u8, usize)> {
    let after = sequence.get(1..)?;
    Some(match *after.first()? {
        b'b' => (0x08, 2),
        b'f' => (0x0C, 2),
        b'n' => (b'\n', 2),
        b'r' => (b'\r', 2),
        b't' => (b'\t', 2),
        b'v' => (0x0B, 2),
        b'0'..=b'7' => {
            let (value, digits) = number(after, 8, 3);
            (value, 1 + digits)
        }
        b'x' => match number(after.get(1..)?, 16, 2) {
            // As the server reads it: without digits the `x` is itself.
            (_, 0) => (b'x', 2),
            (value, digits) => (value, 2 + digits),
        },
        other => (other, 2),
    })
}

/// Value of the leading digits, at most `max` of them, and how many there are. Octal values above 255 lose their highest bit,
/// as they do in the server.
fn number(text: &[u8], radix: u32, max: usize) -> (u8, usize) {
    let digits = text.iter().take(max).map_while(|byte| char::from(*byte).to_digit(radix));
    let (value, count) = digits.fold((0_u32, 0), |(value, count), digit| (value * radix + digit, count + 1));
    ((value & 0xFF) as u8, count)
}

/// Appends `value` to `output` as a field, escaping what the server itself escapes: backslash and the control characters
/// with a letter (`\b \t \n \v \f \r`).
pub fn escape_into(value: &[u8], output: &mut impl BufMut) {
    let mut rest = value;
    while let Some(special) = find_special(rest) {
        let (plain, sequence) = rest.split_at(special);
        output.put_slice(plain);
        if let Some((byte, after)) = sequence.split_first() {
            output.put_slice(&[b'\\', letter(*byte)]);
            rest = after;
        }
    }
    output.put_slice(rest);
}

/// What follows the backslash for a byte that [`is_special`].
const fn letter(byte: u8) -> u8 {
    match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0B => b'v',
        0x0C => b'f',
        b'\r' => b'r',
        other => other,
    }
}

/// Backslash, or one of the six control characters from backspace to carriage return.
const fn is_special(byte: u8) -> bool {
    byte == b'\\' || byte.wrapping_sub(0x08) < 6
}

/// Place of the first special byte. Seven needles are too many for `memchr`; whole chunks are tested without a branch instead.
fn find_special(bytes: &[u8]) -> Option<usize> {
    let (chunks, _) = bytes.as_chunks::<CHUNK>();
    let clean =
        chunks.iter().take_while(|chunk| !chunk.iter().fold(false, |any, byte| any | is_special(*byte))).count();
    let start = clean * CHUNK;
    let rest = bytes.get(start..)?;
    rest.iter().position(|byte| is_special(*byte)).map(|place| start + place)
}
