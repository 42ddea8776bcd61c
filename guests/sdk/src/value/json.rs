//! `json` and `jsonb`, raw: whatever is not masked stays as it was written, numbers included.

use super::FromText;

/// A JSON document as text. It has been checked to be JSON; nothing has been reformatted.
#[derive(Clone, Copy)]
pub struct Json<'text> {
    text: &'text str,
}

impl<'text> FromText<'text> for Json<'text> {
    fn from_text(text: &'text str) -> Option<Self> {
        // `IgnoredAny` walks the document without building it, and never turns a number into a float.
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        Some(Self { text })
    }
}

impl<'text> Json<'text> {
    /// The document's text.
    #[must_use]
    pub fn text(&self) -> &'text str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_keep_their_text() {
        for text in ["null", "\"FIRST\"", "{\"n\": 9007199254740993}", "[1e400, 0.10]"] {
            assert_eq!(Json::from_text(text).map(|json| json.text()), Some(text));
        }
        assert!(Json::from_text("{").is_none());
        assert!(Json::from_text("").is_none());
    }
}
