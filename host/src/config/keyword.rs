//! Which names need quotes when they are written as SQL.
//!
//! Source: `src/include/parser/kwlist.h` of PostgreSQL 18, the categories `RESERVED_KEYWORD` and `TYPE_FUNC_NAME_KEYWORD`,
//! which cannot stand as the first part of a table name. The other keywords can. Only what is *shown* depends on this list:
//! statements always quote, see [`quote_ident`](super::quote_ident).

/// Sorted, for the binary search; a test holds the order.
const KEYWORDS: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

/// Whether a name must be quoted to be read back as itself: anything but lower-case ASCII letters, digits and `_`, or a
/// reserved word.
pub(super) fn needs_quotes(name: &str) -> bool {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_');
    !plain || KEYWORDS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn only_what_needs_quotes_gets_them() {
        let quoted: Vec<&str> =
            ["users", "_a1", "order", "with", "int", "Users", "a b", "1a", "a$b", "\u{e9}t\u{e9}", ""]
                .into_iter()
                .filter(|name| needs_quotes(name))
                .collect();
        assert_eq!(quoted, ["order", "with", "Users", "a b", "1a", "a$b", "\u{e9}t\u{e9}", ""]);
    }
}
