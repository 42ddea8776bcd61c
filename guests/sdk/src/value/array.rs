//! Arrays, as `array_out` writes them: bounds, NULLs, nesting and quotes kept.

use super::FromText;
use crate::{Fault, Out, Outcome};

/// An array of any type but those few whose elements are not set apart by a comma (`box`).
///
/// Its shape, which is bounds and braces, is copied; only elements change.
#[derive(Clone, Copy)]
pub struct Array<'text> {
    text: &'text str,
}

/// An element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'array> {
    /// NULL: the bare word.
    Null,
    /// A value, its quotes and backslashes taken off.
    Value(&'array str),
}

impl<'text> FromText<'text> for Array<'text> {
    fn from_text(text: &'text str) -> Option<Self> {
        let array = Self { text };
        let mut scratch = String::new();
        array.walk(&mut scratch, &mut |_| Ok(())).ok()?;
        Some(array)
    }
}

/// A piece of an array's text.
enum Piece<'array> {
    /// Bounds, braces and commas, as they are.
    Shape(&'array str),
    /// An element.
    Element(Element<'array>),
}

impl Array<'_> {
    /// Calls `each` for every element, in storage order.
    ///
    /// # Errors
    /// What `each` refuses.
    pub fn for_each(&self, mut each: impl FnMut(Element<'_>) -> Outcome) -> Outcome {
        let mut scratch = String::new();
        self.walk(&mut scratch, &mut |piece| match piece {
            Piece::Shape(_) => Ok(()),
            Piece::Element(element) => each(element),
        })
    }

    /// Writes the array anew with every element that is not NULL masked; bounds, shape and NULLs stay. `mask` writes the new element into the
    /// string that it is given, which is empty.
    ///
    /// # Errors
    /// What `mask` refuses.
    pub fn write_masked(&self, out: &mut Out, mut mask: impl FnMut(&str, &mut String) -> Outcome) -> Outcome {
        let (mut scratch, mut masked) = (String::new(), String::new());
        self.walk(&mut scratch, &mut |piece| {
            match piece {
                Piece::Shape(text) => out.push_str(text),
                Piece::Element(Element::Null) => out.push_str("NULL"),
                Piece::Element(Element::Value(value)) => {
                    masked.clear();
                    mask(value, &mut masked)?;
                    write_element(&masked, out);
                }
            }
            Ok(())
        })
    }

    /// Reads the text piece by piece.
    fn walk(&self, scratch: &mut String, each: &mut dyn FnMut(Piece<'_>) -> Outcome) -> Outcome {
        let body = self.text.find('{').ok_or(Fault::INVALID_INPUT)?;
        let bounds = &self.text[..body];
        let proper_bounds = bounds.is_empty()
            || bounds.ends_with('=') && bounds.bytes().all(|byte| byte.is_ascii_digit() || b"[]:=-+".contains(&byte));
        if !proper_bounds {
            return Err(Fault::INVALID_INPUT);
        }
        each(Piece::Shape(bounds))?;
        let mut rest = &self.text[body..];
        let mut depth = 0_usize;
        // Whether an element may come next: after `{` or `,`, and not after `}` or another element. After `,` it must.
        let mut expects = true;
        let mut after_comma = false;
        while let Some(first) = rest.bytes().next() {
            match first {
                b'{' if expects => depth += 1,
                b'}' if depth > 0 && !after_comma => {
                    depth -= 1;
                    expects = false;
                }
                b',' if depth > 0 && !expects => expects = true,
                _ if expects && depth > 0 => {
                    rest = element(rest, scratch, each)?;
                    (expects, after_comma) = (false, false);
                    continue;
                }
                _ => return Err(Fault::INVALID_INPUT),
            }
            after_comma = first == b',';
            each(Piece::Shape(&rest[..1]))?;
            rest = &rest[1..];
            if depth == 0 && !rest.is_empty() {
                return Err(Fault::INVALID_INPUT);
            }
        }
        if depth == 0 { Ok(()) } else { Err(Fault::INVALID_INPUT) }
    }
}

/// Reads one element and returns what follows it.
fn element<'text>(
    text: &'text str,
    scratch: &mut String,
    each: &mut dyn FnMut(Piece<'_>) -> Outcome,
) -> Outcome<&'text str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', '}']).ok_or(Fault::INVALID_INPUT)?;
        let bare = &text[..end];
        if bare.is_empty() || bare.contains(['"', '\\', '{']) {
            return Err(Fault::INVALID_INPUT);
        }
        let value = if bare.eq_ignore_ascii_case("null") { Element::Null } else { Element::Value(bare) };
        each(Piece::Element(value))?;
        return Ok(&text[end..]);
    };
    scratch.clear();
    let mut characters = quoted.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => {
                each(Piece::Element(Element::Value(scratch)))?;
                return Ok(&quoted[position + 1..]);
            }
            '\\' => scratch.push(characters.next().ok_or(Fault::INVALID_INPUT)?.1),
            other => scratch.push(other),
        }
    }
    Err(Fault::INVALID_INPUT)
}

/// Writes an element as `array_out` does: quoted where it would otherwise be read as something else.
fn write_element(value: &str, out: &mut Out) {
    let is_special = |character: char| {
        matches!(character, '"' | '\\' | '{' | '}' | ',' | ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
    };
    if !value.is_empty() && !value.eq_ignore_ascii_case("null") && !value.contains(is_special) {
        return out.push_str(value);
    }
    out.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> Option<String> {
        let array = Array::from_text(text)?;
        let mut out = Out::new(None, 1, 0);
        let same = |value: &str, masked: &mut String| {
            masked.push_str(value);
            Ok(())
        };
        array.write_masked(&mut out, same).ok()?;
        Some(out.written().to_owned())
    }

    #[test]
    fn shapes_bounds_nulls_and_quotes_survive() {
        let texts = [
            "{}",
            "{1,2}",
            "[0:1]={7,8}",
            "[-2:0]={1,NULL,3}",
            "[0:0][5:6]={{1,2}}",
            "{{NULL},{NULL}}",
            "{NULL,\"NULL\",\"\",\"a b\",\"{x}\"}",
            "{\"{\\\"a\\\": [1, 2]}\",\"back\\\\slash\"}",
            "{日本,\"日 本\"}",
        ];
        for text in texts {
            assert_eq!(rewritten(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn null_the_word_null_and_the_empty_string_are_three_things() -> Outcome {
        let array = Array::from_text("{NULL,\"NULL\",\"\"}").ok_or(Fault::INVALID_INPUT)?;
        let mut seen = Vec::new();
        array.for_each(|element| {
            seen.push(match element {
                Element::Null => None,
                Element::Value(value) => Some(value.to_owned()),
            });
            Ok(())
        })?;
        assert_eq!(seen, [None, Some("NULL".to_owned()), Some(String::new())]);
        Ok(())
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for text in
            ["", "1", "{", "{1", "{1}}", "{1,}", "{,1}", "{\"a}", "{1}x", "[0:1]{1}", "x={1}", "{\"a\\", "{a\"b}"]
        {
            assert_eq!(rewritten(text), None, "{text:?}");
        }
    }
}
