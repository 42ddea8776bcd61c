//! A row of named values, as row masks and filters see it.

use crate::batch::{Cell, Cells};
use crate::value::FromText;
use crate::{ColumnInfo, Fault, Outcome};

/// The granted values of one row. NULL is `None`; unchanged values never get here.
pub struct Row<'batch> {
    pub(crate) columns: &'batch [ColumnInfo],
    pub(crate) cells: &'batch [Cells<'batch>],
    pub(crate) row: usize,
}

impl<'batch> Row<'batch> {
    /// How many columns are granted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether none is granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value of the column at a position of the policy's order.
    ///
    /// # Errors
    /// [`Fault::INTERNAL`] where no such column is granted: the function should have refused the binding.
    pub fn at(&self, position: usize) -> Outcome<Option<&'batch str>> {
        let cells = self.cells.get(position).ok_or(Fault::INTERNAL)?;
        match cells.cell(self.row)? {
            Cell::Value(text) => Ok(Some(text)),
            Cell::Null => Ok(None),
            Cell::Unchanged => Err(Fault::NEEDS_UNCHANGED.in_column(position)),
        }
    }

    /// The value of the column with this name.
    ///
    /// # Errors
    /// As for [`at`](Self::at). Functions that look up many rows resolve the name once, by [`Context::input`](crate::Context::input).
    pub fn get(&self, name: &str) -> Outcome<Option<&'batch str>> {
        let position = self.columns.iter().position(|column| column.name == name).ok_or(Fault::INTERNAL)?;
        self.at(position)
    }

    /// The typed value of the column at a position.
    ///
    /// # Errors
    /// As for [`at`](Self::at), and [`Fault::INVALID_INPUT`] where the value is not of that type.
    pub fn read<T: FromText<'batch>>(&self, position: usize) -> Outcome<Option<T>> {
        let Some(text) = self.at(position)? else { return Ok(None) };
        T::from_text(text).map(Some).ok_or(Fault::INVALID_INPUT.in_column(position))
    }
}
