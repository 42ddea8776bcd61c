//! `json`: masks inside a document, the rest of its text as it was.

use std::collections::BTreeMap;

use pgveil_guest::value::{Json, read};
use pgveil_guest::{Accepts, Context, Fault, Function, Guarantees, Inner, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::inner::InnerMask;
use crate::json_path::{Path, Place};

/// Documents nest no deeper: as many levels as PostgreSQL's parser and serde_json take.
const DEPTH_MAX: usize = 120;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A mask for each path: `{"$.user.email": {"mask": "email"}}`. A path names all strings and numbers below it. Where several paths name
    /// a value, the longest counts.
    #[serde(default)]
    paths: BTreeMap<String, InnerMask>,
    /// The mask for all strings that no path names; without it they stay as they are.
    strings: Option<InnerMask>,
}

struct Document {
    paths: Vec<(Path, Inner)>,
    strings: Option<Inner>,
}

impl ValueMask for Document {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let part = context.inputs().first().ok_or("it reads one column")?.as_text();
        if arguments.paths.is_empty() && arguments.strings.is_none() {
            return Err("arguments: neither `paths` nor `strings` is given, so that nothing would be masked".to_owned());
        }
        let mut paths: Vec<_> = arguments.paths.into_iter().collect();
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        let open = |(path, mask): (String, InnerMask)| Ok((Path::parse(&path)?, mask.open(context, part.clone())?));
        let paths = paths.into_iter().map(open).collect::<Result<_, String>>()?;
        Ok(Self { paths, strings: arguments.strings.map(|mask| mask.open(context, part.clone())).transpose()? })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        // Read as JSON first: the walk below may then trust its shape.
        let text = read::<Json<'_>>(value)?.text();
        let mut walk = Walk { document: self, text, position: 0, place: Vec::new() };
        walk.value(out)
    }
}

/// A walk over a document that is known to be JSON.
struct Walk<'a> {
    document: &'a Document,
    text: &'a str,
    position: usize,
    place: Vec<Place>,
}

impl Walk<'_> {
    /// Writes one value with what surrounds it.
    fn value(&mut self, out: &mut Out) -> Outcome {
        self.space(out);
        match self.peek() {
            Some(b'{') => self.container(out, b'}', true),
            Some(b'[') => self.container(out, b']', false),
            Some(b'"') => self.string(out),
            Some(_) => self.bare(out),
            None => Err(Fault::INVALID_INPUT),
        }?;
        self.space(out);
        Ok(())
    }

    fn container(&mut self, out: &mut Out, end: u8, keyed: bool) -> Outcome {
        if self.place.len() >= DEPTH_MAX {
            return Err(Fault::UNSUPPORTED_VALUE);
        }
        self.copy(1, out)?;
        self.space(out);
        for index in 0.. {
            if self.peek() == Some(end) {
                break;
            }
            let place = if keyed { self.key(out)? } else { Place::Index(index) };
            self.place.push(place);
            self.value(out)?;
            self.place.pop();
            if self.peek() == Some(b',') {
                self.copy(1, out)?;
            }
        }
        self.copy(1, out)
    }

    /// Copies a key and its colon.
    fn key(&mut self, out: &mut Out) -> Outcome<Place> {
        self.space(out);
        let length = self.string_length()?;
        let key = unescape(&self.text[self.position..self.position + length])?;
        self.copy(length, out)?;
        self.space(out);
        self.copy(1, out)?;
        Ok(Place::Key(key))
    }

    fn string(&mut self, out: &mut Out) -> Outcome {
        let length = self.string_length()?;
        let Some(inner) = self.path().or(self.document.strings.as_ref()) else { return self.copy(length, out) };
        let value = unescape(&self.text[self.position..self.position + length])?;
        inner.mask(&value, |masked| write_string(masked, out))?;
        self.position += length;
        Ok(())
    }

    /// A number, true, false or null. Of these only numbers are masked, and stay numbers where the mask writes one.
    fn bare(&mut self, out: &mut Out) -> Outcome {
        let rest = &self.text[self.position..];
        let length = rest.find([',', '}', ']', ' ', '\n', '\t', '\r']).unwrap_or(rest.len());
        let is_number = rest.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let Some(inner) = self.path().filter(|_| is_number) else { return self.copy(length, out) };
        inner.mask(&rest[..length], |masked| match masked {
            Some(text) if is_json_number(text) => {
                out.push_str(text);
                Ok(())
            }
            other => write_string(other, out),
        })?;
        self.position += length;
        Ok(())
    }

    /// The mask whose path names this place.
    fn path(&self) -> Option<&'_ Inner> {
        self.document.paths.iter().find(|(path, _)| path.covers(&self.place)).map(|(_, inner)| inner)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn space(&mut self, out: &mut Out) {
        let rest = &self.text[self.position..];
        let length = rest.len() - rest.trim_start_matches([' ', '\n', '\t', '\r']).len();
        out.push_str(&rest[..length]);
        self.position += length;
    }

    fn copy(&mut self, length: usize, out: &mut Out) -> Outcome {
        let end = self.position + length;
        out.push_str(self.text.get(self.position..end).ok_or(Fault::INVALID_INPUT)?);
        self.position = end;
        Ok(())
    }

    /// The length of the string that begins here, quotes included.
    fn string_length(&self) -> Outcome<usize> {
        let mut escaped = false;
        for (offset, byte) in self.text[self.position..].bytes().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => return Ok(offset + 1),
                _ => {}
            }
        }
        Err(Fault::INVALID_INPUT)
    }
}

fn unescape(quoted: &str) -> Outcome<String> {
    pgveil_guest::serde_json::from_str(quoted).map_err(|_| Fault::INVALID_INPUT)
}

/// Writes a string, or JSON's null.
fn write_string(text: Option<&str>, out: &mut Out) -> Outcome {
    let Some(text) = text else {
        out.push_str("null");
        return Ok(());
    };
    out.push_str(&pgveil_guest::serde_json::to_string(text).map_err(|_| Fault::INTERNAL)?);
    Ok(())
}

fn is_json_number(text: &str) -> bool {
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_number && read::<Json<'_>>(text).is_ok()
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Document>("json")
        .doc(
            "Masks strings and numbers inside a JSON document by other masks.\n\nPaths name them; keys, order, spaces, numbers and all other text \
             stay byte for byte. Under the same key a string masks as it would in a column of its own.",
        )
        .accepts(&[Accepts::Named("jsonb"), Accepts::Named("json"), Accepts::Strings])
        .key(KeyUse::Optional)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(
            r#"{"paths": {"$.name": {"mask": "redact"}}}"#,
            [r#"{"id": 9007199254740993, "name": "Ada"}"#],
            [r#"{"id": 9007199254740993, "name": "[redacted]"}"#],
        )
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::{Value, json};
    use pgveil_guest::{Fault, Harness};

    fn document(arguments: Value) -> Harness {
        Harness::of(crate::functions(), "json").column("jsonb").arguments(arguments)
    }

    fn fixed(text: &str) -> Value {
        json!({"mask": "constant", "arguments": {"value": text}})
    }

    #[test]
    fn all_but_the_masked_stays_byte_for_byte() {
        let text = "{ \"n\":1e400 ,\"a\\u00e9\": [\"x\", {\"y\" : \"é\\\"\"}, null, true],\n\"z\":\"keep\"}";
        let masked = document(json!({"paths": {"$['aé']": fixed("*")}})).one(text);
        assert_eq!(
            masked.as_deref(),
            Ok("{ \"n\":1e400 ,\"a\\u00e9\": [\"*\", {\"y\" : \"*\"}, null, true],\n\"z\":\"keep\"}")
        );
        let strings = document(json!({"strings": fixed("\"\n")})).one("[\"a\", 1, \"b\"]");
        assert_eq!(strings.as_deref(), Ok("[\"\\\"\\n\", 1, \"\\\"\\n\"]"));
    }

    #[test]
    fn the_longest_path_counts_and_numbers_stay_numbers() {
        let arguments = json!({"paths": {"$.a": fixed("wide"), "$.a.b": fixed("7"), "$.a.list[1]": fixed("second")}});
        let masked = document(arguments).one(r#"{"a": {"b": 1, "c": 2, "list": ["x", "y"]}}"#);
        assert_eq!(masked.as_deref(), Ok(r#"{"a": {"b": 7, "c": "wide", "list": ["wide", "second"]}}"#));
    }

    #[test]
    fn scalars_and_empty_containers() {
        let all = document(json!({"strings": fixed("*")}));
        for (value, masked) in
            [("null", "null"), ("\"FIRST\"", "\"*\""), ("[]", "[]"), ("{}", "{}"), ("[[], {}]", "[[], {}]")]
        {
            assert_eq!(all.one(value).as_deref(), Ok(masked));
        }
        all.verify([Some("\"a\""), Some("null"), None, Some("[1, \"b\"]")]);
        assert_eq!(all.one("{\"a\""), Err(Fault::INVALID_INPUT));
        assert!(all.one(&format!("{}{}", "[".repeat(130), "]".repeat(130))).is_err());
    }

    #[test]
    fn a_string_masks_as_in_a_column_of_its_own() {
        let inside = document(json!({"paths": {"$": {"mask": "hash"}}})).one("\"Ada\"");
        let alone = Harness::of(crate::functions(), "hash").one("Ada");
        assert_eq!(inside, alone.map(|text| format!("\"{text}\"")));
    }

    #[test]
    fn arguments_that_mask_nothing_or_nowhere_are_refused() {
        assert!(document(json!({})).refusal().is_some_and(|text| text.contains("nothing would be masked")));
        assert!(document(json!({"paths": {"name": fixed("")}})).refusal().is_some_and(|text| text.contains("no path")));
    }
}
