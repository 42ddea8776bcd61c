//! The contents of a table at both ends, compared as text through a native copy of the masks.
//!
//! The native copy is written by the test, not taken from the guest: what is compared is not the guest with itself.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    Result,
    database::{self, Database, quote_identifier},
};

/// One source row, by column name.
#[derive(Debug)]
pub struct SourceRow<'a> {
    columns: &'a [String],
    values: &'a [Option<String>],
}

impl SourceRow<'_> {
    /// The text of a column: `None` for NULL, and for a column that the table does not have.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&str> {
        let position = self.columns.iter().position(|name| name == column)?;
        self.values.get(position)?.as_deref()
    }
}

type Mask<'a> = Box<dyn Fn(&SourceRow<'_>) -> Option<String> + 'a>;
type Filter<'a> = Box<dyn Fn(&SourceRow<'_>) -> bool + 'a>;

/// What the target is expected to hold of one table.
pub struct Comparison<'a> {
    table: String,
    masks: Vec<(String, Mask<'a>)>,
    filter: Filter<'a>,
}

impl<'a> Comparison<'a> {
    /// Every row, every column as it is. `table` as SQL writes it, such as `public.users`.
    #[must_use]
    pub fn of(table: &str) -> Self {
        Self { table: table.to_owned(), masks: Vec::new(), filter: Box::new(|_| true) }
    }

    /// This column holds what `mask` makes of the source row.
    #[must_use]
    pub fn mask(mut self, column: &str, mask: impl Fn(&SourceRow<'_>) -> Option<String> + 'a) -> Self {
        self.masks.push((column.to_owned(), Box::new(mask)));
        self
    }

    /// Only the rows that `keeps` approves of.
    #[must_use]
    pub fn keep(mut self, keeps: impl Fn(&SourceRow<'_>) -> bool + 'a) -> Self {
        self.filter = Box::new(keeps);
        self
    }

    /// Compares the two ends as multisets of rows; gives the number of rows at the target.
    ///
    /// # Errors
    /// They differ: the error shows the first rows that are missing and the first that should not be there.
    pub fn check(&self, source: &Database, target: &Database) -> Result<usize> {
        let columns = columns(source, &self.table)?;
        for (column, _) in &self.masks {
            if !columns.contains(column) {
                return Err(format!("{}: no column {column} to mask", self.table).into());
            }
        }
        let list = columns.iter().map(|column| quote_identifier(column)).collect::<Vec<_>>().join(", ");
        // A table without columns has rows all the same.
        let query = format!("SELECT {list} FROM {}", self.table);
        let mut balance: BTreeMap<database::Row, i64> = BTreeMap::new();
        for values in source.rows(&query)? {
            if let Some(expected) = self.expected(&columns, values) {
                *balance.entry(expected).or_default() += 1;
            }
        }
        let actual = target.rows(&query)?;
        let total = actual.len();
        for row in actual {
            *balance.entry(row).or_default() -= 1;
        }
        balance.retain(|_, difference| *difference != 0);
        if balance.is_empty() { Ok(total) } else { Err(self.report(&columns, &balance).into()) }
    }

    fn expected(&self, columns: &[String], values: database::Row) -> Option<database::Row> {
        let row = SourceRow { columns, values: &values };
        if !(self.filter)(&row) {
            return None;
        }
        let masked: Vec<_> = self.masks.iter().map(|(column, mask)| (column, mask(&row))).collect();
        let mut expected = values;
        for (column, value) in masked {
            let place = columns.iter().position(|name| name == column).and_then(|place| expected.get_mut(place));
            *place? = value;
        }
        Some(expected)
    }

    fn report(&self, columns: &[String], balance: &BTreeMap<database::Row, i64>) -> String {
        let mut text =
            format!("{}: source and target differ in {} rows ({})", self.table, balance.len(), columns.join(", "));
        for (title, missing) in [("missing at the target", true), ("should not be at the target", false)] {
            for (row, count) in balance.iter().filter(|(_, count)| (**count > 0) == missing).take(5) {
                let shown: Vec<_> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
                let _ = write!(text, "\n  {title} ({} times): {}", count.abs(), shown.join(" | "));
            }
        }
        text
    }
}

/// The columns of a table in their order, generated ones included.
///
/// # Errors
/// There is no such table.
pub fn columns(database: &Database, table: &str) -> Result<Vec<String>> {
    let table = database::quote_literal(table);
    let rows = database.rows(&format!(
        "SELECT attname FROM pg_attribute WHERE attrelid = {table}::regclass AND attnum > 0 AND NOT attisdropped \
         ORDER BY attnum"
    ))?;
    Ok(rows.into_iter().flatten().flatten().collect())
}
