//! Names of tables as SQL writes them, and the quoting of names and literals for statements.
//!
//! The rules are those of the PostgreSQL manual, "4.1.1. Identifiers and Key Words": an unquoted name is folded to lower
//! case (ASCII letters only, as the server does under UTF-8), a quoted one is taken as it stands with `""` for a quote.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use thiserror::Error;

use super::keyword::needs_quotes;
use super::read::escape;

/// The longest name PostgreSQL keeps, in bytes (`NAMEDATALEN - 1`). The server would cut a longer one silently; here it is
/// refused, because the cut name might be another table's.
pub const NAME_BYTES_MAX: usize = 63;

/// A schema-qualified table name, unquoted and exact: two are equal when they name the same table.
///
/// [`Display`](fmt::Display) writes it back as SQL with quotes where they are needed, and [`FromStr`] reads that again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The schema's exact name.
    pub schema: String,
    /// The table's exact name.
    pub name: String,
}

impl TableName {
    /// Names a table by its exact schema and name, as the catalogue holds them.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }

    /// The name for a statement, both parts always quoted.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote_ident(&self.schema), quote_ident(&self.name))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", quote_if_needed(&self.schema), quote_if_needed(&self.name))
    }
}

/// Why a text is not a table name. The wording completes "`TEXT` is not a table name: …".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing was written.
    #[error("it is empty")]
    Empty,
    /// No schema: `search_path` is empty in every session, so there is no default to look in.
    #[error("it has no schema; write `{0}`")]
    Unqualified(String),
    /// A database name, or a dot in a name that is not quoted.
    #[error("it has more than a schema and a name; a name with a dot in it must be in double quotes")]
    TooManyParts,
    /// `""`, or nothing before or after a dot.
    #[error("a part of it is empty")]
    EmptyPart,
    /// An opening quote without its closing one.
    #[error("a double quote is not closed")]
    Unclosed,
    /// A character that an unquoted name cannot hold.
    #[error("`{}` is not allowed in an unquoted name; put the name in double quotes", escape(*.0).collect::<String>())]
    Character(char),
    /// Longer than [`NAME_BYTES_MAX`].
    #[error("a part of it has {0} bytes; PostgreSQL keeps {NAME_BYTES_MAX}")]
    TooLong(usize),
    /// A NUL character, which no PostgreSQL name can hold.
    #[error("it holds a NUL character")]
    Nul,
}

impl FromStr for TableName {
    type Err = NameError;

    /// Reads `schema.name`, each part quoted or not, with blanks allowed around the dot as in SQL.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let text = text.trim_matches(is_blank);
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        let (first, rest) = take_part(text)?;
        let rest = rest.trim_start_matches(is_blank);
        if rest.is_empty() {
            return Err(NameError::Unqualified(TableName::new("public", first).to_string()));
        }
        let Some(rest) = rest.strip_prefix('.') else { return Err(unexpected(rest)) };
        let (second, rest) = take_part(rest.trim_start_matches(is_blank))?;
        let rest = rest.trim_start_matches(is_blank);
        match rest.chars().next() {
            None => Ok(TableName::new(first, second)),
            Some('.') => Err(NameError::TooManyParts),
            Some(_) => Err(unexpected(rest)),
        }
    }
}

/// Quotes a name for a statement, always: `"a""b"`.
#[must_use]
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text as a literal for a statement. Right whatever `standard_conforming_strings` says: a text with a backslash
/// is written as `E'…'`.
#[must_use]
pub fn quote_literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

/// Takes one part off the front: the exact name, and what follows it.
fn take_part(text: &str) -> Result<(String, &str), NameError> {
    let (part, rest) = match text.strip_prefix('"') {
        Some(quoted) => take_quoted(quoted)?,
        None => take_plain(text)?,
    };
    if part.is_empty() {
        return Err(NameError::EmptyPart);
    }
    if part.contains('\0') {
        return Err(NameError::Nul);
    }
    if part.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong(part.len()));
    }
    Ok((part, rest))
}

fn take_quoted(text: &str) -> Result<(String, &str), NameError> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"').ok_or(NameError::Unclosed)?;
        part.push_str(before);
        let Some(again) = after.strip_prefix('"') else { return Ok((part, after)) };
        part.push('"');
        rest = again;
    }
}

fn take_plain(text: &str) -> Result<(String, &str), NameError> {
    let end = text.find(|character| !may_continue(character)).unwrap_or(text.len());
    let (part, rest) = text.split_at(end);
    match part.chars().next() {
        Some(first) if !may_start(first) => Err(NameError::Character(first)),
        None if !rest.is_empty() && !rest.starts_with('.') => Err(unexpected(rest)),
        _ => Ok((part.to_ascii_lowercase(), rest)),
    }
}

fn unexpected(rest: &str) -> NameError {
    rest.chars().next().map_or(NameError::EmptyPart, NameError::Character)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn may_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
}

fn may_continue(character: char) -> bool {
    may_start(character) || character.is_ascii_digit() || character == '$'
}

fn quote_if_needed(name: &str) -> Cow<'_, str> {
    if needs_quotes(name) { Cow::Owned(quote_ident(name)) } else { Cow::Borrowed(name) }
}

impl JsonSchema for TableName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TableName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A table as SQL writes it: `public.users`, `\"Shop\".\"order\"`.",
            "pattern": r#"^\s*("([^"]|"")+"|[^\s".]+)\s*\.\s*("([^"]|"")+"|[^\s".]+)\s*$"#,
        })
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
