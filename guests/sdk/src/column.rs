//! What a column's description says about the values it may hold.

use crate::ColumnInfo;

/// The header of a `varlena`, which PostgreSQL counts into the type modifier of `varchar(n)` and `char(n)`.
const TYPMOD_HEADER: i32 = 4;

impl ColumnInfo {
    /// The most characters that a value may have: n of `varchar(n)` and `char(n)`, and of domains over them.
    #[must_use]
    pub fn character_limit(&self) -> Option<usize> {
        let counted = matches!(self.base_type_name.as_str(), "varchar" | "bpchar");
        (counted && self.typmod >= TYPMOD_HEADER).then(|| usize::try_from(self.typmod - TYPMOD_HEADER).ok()).flatten()
    }

    /// Whether trailing spaces mean nothing: PostgreSQL pads `char(n)` with them and compares without them. A function
    /// is handed such values without the padding, so that equal keys mask alike.
    #[must_use]
    pub fn is_blank_padded(&self) -> bool {
        self.base_type_name == "bpchar"
    }

    /// Whether upper and lower case mean the same, as in `citext`. A function is handed such values in lower case, so that equal
    /// keys mask alike.
    #[must_use]
    pub fn ignores_case(&self) -> bool {
        self.base_type_name == "citext"
    }

    /// Whether the type is text-like: `text`, `varchar`, `char(n)`, `citext`, and domains over them.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.category == 'S'
    }
}
