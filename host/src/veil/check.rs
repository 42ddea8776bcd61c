//! What a guest returns is not trusted: every claim about it is asserted here before a row goes on.
//!
//! Whole columns are looked at, not cells: a check costs a few passes over bytes that are in the cache already.

use super::abi::{ColumnOut, Guarantees, STATE_NULL, STATE_UNCHANGED, STATE_VALUE};
use super::input::InputColumn;
use crate::error::{Error, Kind, Result};
use crate::relation::Column;

/// What one output column must satisfy, fixed when the table is planned.
#[derive(Debug)]
pub(super) struct OutputRule {
    nullable: bool,
    /// `varchar(n)` and `char(n)`: the characters allowed.
    characters_max: Option<usize>,
    /// Trailing blanks do not count towards the length of `char(n)`.
    blank_padded: bool,
    /// For the one input of a one-to-one mask that declares it: NULL exactly where the input is NULL.
    null_preserving: bool,
}

impl OutputRule {
    pub(super) fn new(column: &Column, guarantees: Guarantees, one_to_one: bool) -> OutputRule {
        let has_length = matches!(column.base_catalog_type.as_str(), "varchar" | "bpchar");
        // atttypmod of these types is the length plus four, the size of a varlena header.
        let length = column.type_modifier.checked_sub(4).and_then(|length| usize::try_from(length).ok());
        OutputRule {
            nullable: !column.not_null,
            characters_max: length.filter(|_| has_length),
            blank_padded: column.base_catalog_type == "bpchar",
            null_preserving: one_to_one && guarantees.contains(Guarantees::NULL_PRESERVING),
        }
    }
}

/// Checks one output column. `input` is the one input of a mask of one input and one output, which alone may pass `unchanged` on.
///
/// # Errors
/// [`Kind::GuestOutput`], naming the first rule that is broken and its row, never a value.
pub(super) fn output(out: &ColumnOut, rows: usize, rule: &OutputRule, input: Option<&InputColumn>) -> Result<()> {
    frame(out, rows)?;
    states(out, rule, input)?;
    text(out)?;
    lengths(out, rule)
}

/// Checks a filter's answer: one byte a row, 0 or 1.
///
/// # Errors
/// [`Kind::GuestOutput`].
pub(super) fn keep(answer: &[u8], rows: usize) -> Result<()> {
    if answer.len() != rows {
        return Err(broken(format!("{} answers for {rows} rows", answer.len())));
    }
    match answer.iter().position(|byte| *byte > 1) {
        Some(row) => Err(broken(format!("row {row}: an answer is neither 0 nor 1"))),
        None => Ok(()),
    }
}

/// Whether the bytes are UTF-8 without NUL, and every end falls between two characters.
pub(super) fn is_text(bytes: &[u8], ends: &[u32]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    memchr::memchr(0, bytes).is_none()
        && (text.is_ascii() || ends.iter().all(|end| text.is_char_boundary(*end as usize)))
}

/// Row count and offsets.
fn frame(out: &ColumnOut, rows: usize) -> Result<()> {
    if out.states.len() != rows || out.ends.len() != rows {
        return Err(broken(format!("{} states and {} ends for {rows} rows", out.states.len(), out.ends.len())));
    }
    if !out.ends.is_sorted() {
        return Err(broken("an end lies before the one before it"));
    }
    if out.ends.last().map_or(0, |end| *end as usize) != out.bytes.len() {
        return Err(broken("the last end is not the number of bytes"));
    }
    Ok(())
}

/// Each state is known and allowed, and only values have bytes.
fn states(out: &ColumnOut, rule: &OutputRule, input: Option<&InputColumn>) -> Result<()> {
    let mut start = 0;
    for (row, (state, end)) in out.states.iter().zip(&out.ends).enumerate() {
        let given = input.map_or(STATE_VALUE, |input| input.states()[row]);
        let fault = match *state {
            state if state > STATE_UNCHANGED => Some("a state that does not exist"),
            STATE_VALUE if given == STATE_UNCHANGED => Some("a value for an input that is unchanged"),
            STATE_VALUE if rule.null_preserving && given == STATE_NULL => {
                Some("a value for NULL, though it preserves NULL")
            }
            STATE_VALUE => None,
            _ if *end != start => Some("bytes for a row that has no value"),
            STATE_NULL if given == STATE_UNCHANGED => Some("NULL for an input that is unchanged"),
            STATE_NULL if !rule.nullable => Some("NULL for a column that is NOT NULL"),
            STATE_NULL if rule.null_preserving && given != STATE_NULL => {
                Some("NULL for a value, though it preserves NULL")
            }
            STATE_NULL => None,
            STATE_UNCHANGED if given != STATE_UNCHANGED => Some("unchanged for an input that is not"),
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(broken(format!("row {row}: {fault}")));
        }
        start = *end;
    }
    Ok(())
}

fn text(out: &ColumnOut) -> Result<()> {
    if is_text(&out.bytes, &out.ends) { Ok(()) } else { Err(broken("a value is not UTF-8 without NUL bytes")) }
}

fn lengths(out: &ColumnOut, rule: &OutputRule) -> Result<()> {
    let Some(max) = rule.characters_max else { return Ok(()) };
    let mut start = 0;
    for (row, end) in out.ends.iter().enumerate() {
        let mut value = &out.bytes[start..*end as usize];
        start = *end as usize;
        // A value of no more bytes than characters allowed need not be counted.
        if value.len() <= max {
            continue;
        }
        if rule.blank_padded {
            value = without_padding(value);
        }
        // Bytes 10xxxxxx continue a character.
        let characters = value.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        if characters > max {
            return Err(broken(format!("row {row}: a value of {characters} characters, {max} fit")));
        }
    }
    Ok(())
}

/// A value without its trailing blanks, which mean nothing in `char(n)`.
pub(super) fn without_padding(value: &[u8]) -> &[u8] {
    &value[..value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)]
}

fn broken(text: impl Into<String>) -> Error {
    Error::new(Kind::GuestOutput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column of the values given, `None` for NULL.
    fn column(values: &[Option<&str>]) -> ColumnOut {
        let mut out = ColumnOut::default();
        for value in values {
            out.states.push(if value.is_some() { STATE_VALUE } else { STATE_NULL });
            out.bytes.extend_from_slice(value.unwrap_or_default().as_bytes());
            out.ends.push(u32::try_from(out.bytes.len()).unwrap_or(u32::MAX));
        }
        out
    }

    fn rule() -> OutputRule {
        OutputRule { nullable: true, characters_max: None, blank_padded: false, null_preserving: false }
    }

    fn said(out: &ColumnOut, rows: usize, rule: &OutputRule) -> String {
        output(out, rows, rule, None).err().map_or_else(|| "passes".to_owned(), |error| error.place().to_owned())
    }

    #[test]
    fn proper_columns_pass() {
        for values in [&[][..], &[None], &[Some("")], &[Some("a"), None, Some("日本"), Some("")]] {
            assert_eq!(said(&column(values), values.len(), &rule()), "passes");
        }
    }

    #[test]
    fn every_rule_is_asserted() {
        type Change = fn(&mut ColumnOut);
        let changes: [(Change, &str); 9] = [
            (|out| out.states.truncate(1), "1 states and 2 ends for 2 rows"),
            (|out| out.ends.truncate(1), "2 states and 1 ends for 2 rows"),
            (|out| out.ends.swap(0, 1), "an end lies before the one before it"),
            (|out| out.bytes.push(b'x'), "the last end is not the number of bytes"),
            (|out| out.states[0] = 3, "row 0: a state that does not exist"),
            (|out| out.states[1] = STATE_NULL, "row 1: bytes for a row that has no value"),
            (|out| out.states[1] = STATE_UNCHANGED, "row 1: bytes for a row that has no value"),
            (|out| out.bytes[0] = 0, "a value is not UTF-8 without NUL bytes"),
            // "é" is two bytes: the end falls between them, and the whole is still UTF-8.
            (|out| out.ends[0] = 1, "a value is not UTF-8 without NUL bytes"),
        ];
        for (change, expected) in changes {
            let mut out = column(&[Some("é"), Some("b")]);
            change(&mut out);
            assert_eq!(said(&out, 2, &rule()), expected);
        }
    }

    #[test]
    fn null_needs_a_nullable_column() {
        let strict = OutputRule { nullable: false, ..rule() };
        assert_eq!(said(&column(&[Some("a"), None]), 2, &strict), "row 1: NULL for a column that is NOT NULL");
    }

    #[test]
    fn lengths_are_counted_in_characters_and_padding_is_free() {
        let of = |blank_padded| OutputRule { characters_max: Some(2), blank_padded, ..rule() };
        for (value, varchar, bpchar) in [
            ("ab", true, true),
            ("äö", true, true),
            ("日本", true, true),
            ("abc", false, false),
            ("äöü", false, false),
            ("ab ", false, true),
            ("a b", false, false),
        ] {
            let out = column(&[Some(value)]);
            assert_eq!(output(&out, 1, &of(false), None).is_ok(), varchar, "varchar(2): {value:?}");
            assert_eq!(output(&out, 1, &of(true), None).is_ok(), bpchar, "char(2): {value:?}");
        }
    }

    #[test]
    fn a_filter_says_yes_or_no_once_a_row() {
        assert!(keep(&[0, 1, 1], 3).is_ok());
        assert!(keep(&[], 0).is_ok());
        for answer in [&[0, 1][..], &[0, 1, 1, 1], &[0, 2, 1], &[0, 255, 1]] {
            assert_eq!(keep(answer, 3).err().map(|error| error.kind()), Some(Kind::GuestOutput), "{answer:?}");
        }
    }
}
