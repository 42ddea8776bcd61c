//! Where a function writes: one arena per output column, no allocation per value.

use crate::bindings::pgveil::policy::types::Column;
use crate::{ColumnInfo, Fault, Outcome};

pub(crate) const VALUE: u8 = 0;
pub(crate) const NULL: u8 = 1;
pub(crate) const UNCHANGED: u8 = 2;

/// The output of one value. What is written is appended; what is not written is an empty string.
///
/// It also takes `write!`, by [`std::fmt::Write`]. Where the output column has a length, a longer value is refused with
/// [`Fault::TOO_LONG`] after the function returns, unless the function shortens it by [`truncate`](Self::truncate).
pub struct Out {
    states: Vec<u8>,
    ends: Vec<u32>,
    text: String,
    start: usize,
    state: u8,
    limit: Option<usize>,
}

impl Out {
    /// An empty column of so many rows and about so many bytes.
    pub(crate) fn new(column: Option<&ColumnInfo>, rows: usize, bytes: usize) -> Self {
        Self {
            states: Vec::with_capacity(rows),
            ends: Vec::with_capacity(rows),
            text: String::with_capacity(bytes),
            start: 0,
            state: VALUE,
            limit: column.and_then(ColumnInfo::character_limit),
        }
    }

    /// Appends text.
    pub fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a character.
    pub fn push(&mut self, character: char) {
        self.text.push(character);
    }

    /// Appends the same character several times.
    pub fn fill(&mut self, character: char, count: usize) {
        self.text.extend(std::iter::repeat_n(character, count));
    }

    /// Makes the output NULL, whatever was written.
    pub fn null(&mut self) {
        self.state = NULL;
    }

    /// What has been written for this value so far.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.text[self.start..]
    }

    /// Takes back what has been written for this value.
    pub fn clear(&mut self) {
        self.text.truncate(self.start);
        self.state = VALUE;
    }

    /// The most characters that the column holds; `None` where it has no length.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Cuts what has been written down to so many characters.
    pub fn truncate(&mut self, characters: usize) {
        if let Some((end, _)) = self.written().char_indices().nth(characters) {
            self.text.truncate(self.start + end);
        }
    }

    /// Cuts what has been written down to what the column holds.
    pub fn truncate_to_limit(&mut self) {
        if let Some(limit) = self.limit {
            self.truncate(limit);
        }
    }

    /// Refuses a value that is longer than the column holds.
    pub(crate) fn within_limit(&self) -> Outcome {
        match self.limit {
            Some(limit) if self.written().len() > limit && self.written().chars().count() > limit => {
                Err(Fault::TOO_LONG)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.state == NULL
    }

    /// Ends the value that was being written.
    pub(crate) fn finish(&mut self) -> Outcome {
        if self.state != VALUE {
            self.text.truncate(self.start);
        }
        self.within_limit()?;
        let end = u32::try_from(self.text.len()).map_err(|_| Fault::TOO_LONG)?;
        self.states.push(self.state);
        self.ends.push(end);
        self.start = self.text.len();
        self.state = VALUE;
        Ok(())
    }

    /// Writes a row that is no value.
    pub(crate) fn finish_as(&mut self, state: u8) -> Outcome {
        self.state = state;
        self.finish()
    }

    /// The finished column.
    pub(crate) fn into_column(self) -> Column {
        Column { states: self.states, ends: self.ends, bytes: self.text.into_bytes() }
    }
}

impl std::fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

/// The outputs of one row, in the policy's order.
pub struct Outputs {
    columns: Vec<Out>,
}

impl Outputs {
    pub(crate) fn new(columns: Vec<Out>) -> Self {
        Self { columns }
    }

    /// How many columns the policy wants.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The output at a position of the policy's order.
    ///
    /// # Errors
    /// There is none: the function should have refused the binding.
    pub fn column(&mut self, position: usize) -> Outcome<&mut Out> {
        self.columns.get_mut(position).ok_or(Fault::INTERNAL)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Out> {
        self.columns.iter_mut()
    }

    pub(crate) fn into_columns(self) -> Vec<Column> {
        self.columns.into_iter().map(Out::into_column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_characters_and_touches_only_this_value() -> Outcome {
        let mut out = Out::new(None, 2, 0);
        out.push_str("före");
        out.finish()?;
        out.push_str("日本語");
        out.truncate(2);
        assert_eq!(out.written(), "日本");
        out.truncate(9);
        assert_eq!(out.written(), "日本");
        out.finish()?;
        let column = out.into_column();
        assert_eq!(column.bytes, "före日本".as_bytes());
        assert_eq!(column.ends, [5, 11]);
        Ok(())
    }

    #[test]
    fn null_leaves_no_bytes() -> Outcome {
        let mut out = Out::new(None, 1, 0);
        out.push_str("secret");
        out.null();
        out.finish()?;
        let column = out.into_column();
        assert_eq!((column.states, column.ends, column.bytes), (vec![NULL], vec![0], vec![]));
        Ok(())
    }
}
