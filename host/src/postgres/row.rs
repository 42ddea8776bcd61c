//! A row of a result, in PostgreSQL's text output.

use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use pgveil_wire::backend::{DataRow, RowDescription};

use super::endpoint::Side;
use crate::error::{Error, Kind, Result};

/// The names of a result's columns, shared by its rows.
pub(super) struct Columns {
    side: Side,
    names: Vec<String>,
}

impl Columns {
    pub(super) fn new(side: Side, description: RowDescription) -> Columns {
        Columns { side, names: description.fields.into_iter().map(|field| field.name).collect() }
    }
}

/// A row of a result. It may hold values of the user's tables, so it has no `Debug`, and its errors name the column only.
///
/// ```compile_fail
/// fn needs_debug<T: std::fmt::Debug>() {}
/// needs_debug::<pgveil::postgres::Row>();
/// ```
#[derive(Clone)]
pub struct Row {
    columns: Arc<Columns>,
    values: Vec<Option<Bytes>>,
}

impl Row {
    /// Reads a DataRow. Its values are checked to be UTF-8, as `client_encoding` promises.
    pub(super) fn read(columns: &Arc<Columns>, body: &Bytes) -> Result<Row> {
        let row = DataRow::parse(body, columns.names.len()).map_err(|error| Error::from(error).within(columns.side))?;
        let values: Vec<_> = row.iter().collect();
        let row = Row { columns: Arc::clone(columns), values };
        for (value, name) in row.values.iter().zip(&columns.names) {
            if value.as_ref().is_some_and(|value| std::str::from_utf8(value).is_err()) {
                return Err(row.fault(name, "not UTF-8"));
            }
        }
        Ok(row)
    }

    /// The number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no column at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of the column at a position, counted from zero; `None` for NULL and beyond the last column.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<&str> {
        self.values.get(position)?.as_deref().and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The value of a column, `None` for NULL.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if the result has no such column.
    pub fn optional(&self, name: &str) -> Result<Option<&str>> {
        let position = self.columns.names.iter().position(|column| column == name);
        position.map(|position| self.get(position)).ok_or_else(|| self.fault(name, "not in the result"))
    }

    /// The value of a column that is never NULL.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if it is NULL or the result has no such column.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.optional(name)?.ok_or_else(|| self.fault(name, "NULL"))
    }

    /// The value of a column, read as a number or another type that is written as PostgreSQL writes it.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if it is NULL, not of that type, or not in the result. The value is not told.
    pub fn parse<T: FromStr>(&self, name: &str) -> Result<T> {
        self.text(name)?.parse().map_err(|_| self.fault(name, "not of the type that is due"))
    }

    /// As [`parse`](Row::parse), `None` for NULL.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if it is not of that type or not in the result.
    pub fn parse_optional<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let fault = |_| self.fault(name, "not of the type that is due");
        self.optional(name)?.map(|value| value.parse().map_err(fault)).transpose()
    }

    /// A `boolean` column.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if it is neither `t` nor `f`, or not in the result.
    pub fn boolean(&self, name: &str) -> Result<bool> {
        match self.text(name)? {
            "t" => Ok(true),
            "f" => Ok(false),
            _ => Err(self.fault(name, "not a boolean")),
        }
    }

    fn fault(&self, column: &str, what: &str) -> Error {
        Error::new(Kind::Protocol, format!("{}: result column {column}: {what}", self.columns.side))
    }
}
