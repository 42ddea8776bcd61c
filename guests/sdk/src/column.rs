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

    /// The same column, as if it held text of any length: for strings inside its values.
    #[must_use]
    pub fn as_text(&self) -> Self {
        let text = || "text".to_owned();
        Self { type_name: text(), base_type_name: text(), category: 'S', type_oid: 25, typmod: -1, ..self.clone() }
    }

    /// The same column, as if it held one element of its arrays. `None` where it holds no arrays.
    ///
    /// What category an element's type has is known for built-in types only; others count as user-defined.
    #[must_use]
    pub fn as_element(&self) -> Option<Self> {
        let element = self.base_type_name.strip_prefix('_').filter(|_| self.category == 'A')?;
        let category = match element {
            "text" | "varchar" | "bpchar" | "name" | "citext" => 'S',
            "int2" | "int4" | "int8" | "numeric" | "float4" | "float8" | "money" | "oid" => 'N',
            "date" | "time" | "timetz" | "timestamp" | "timestamptz" => 'D',
            "bool" => 'B',
            "interval" => 'T',
            "inet" | "cidr" => 'I',
            _ => 'U',
        };
        let name = || element.to_owned();
        Some(Self { type_name: name(), base_type_name: name(), category, type_oid: 0, ..self.clone() })
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
