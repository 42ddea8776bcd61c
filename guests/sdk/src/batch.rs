//! The loops: batches in, columns out. The same code runs in WebAssembly and in tests.

use std::borrow::Cow;

use crate::bindings::pgveil::policy::types::{Batch, Column, Fault as WireFault};
use crate::out::{NULL, UNCHANGED, VALUE};
use crate::{ColumnInfo, Context, Fault, Guarantees, Out, Outcome, Outputs, Row};

/// A mask that is bound, whatever its kind.
pub(crate) trait BoundMask {
    fn guarantees(&self) -> Guarantees;
    /// What it does to one value; `None` where it masks rows.
    fn answer(&self) -> Option<&dyn AnswerValue>;
    fn apply(&self, batch: &Batch) -> Result<Vec<Column>, WireFault>;
}

/// A filter that is bound.
pub(crate) trait BoundFilter {
    fn keep(&self, batch: &Batch) -> Result<Vec<u8>, WireFault>;
}

/// What a loop over one column calls for each row.
pub(crate) trait AnswerValue {
    fn guarantees(&self) -> Guarantees;
    fn mask(&self, value: &str, out: &mut Out) -> Outcome;
    fn null(&self, out: &mut Out) -> Outcome;
}

/// What a loop over several columns calls for each row.
pub(crate) trait AnswerRow {
    const KEEPS_NULL: bool;
    fn guarantees(&self) -> Guarantees;
    fn mask(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome;
}

/// What the loop of a filter calls for each row.
pub(crate) trait AnswerKeep {
    fn keep(&self, row: &Row<'_>) -> Outcome<bool>;
}

/// One value of a batch.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'batch> {
    Value(&'batch str),
    Null,
    Unchanged,
}

/// One column of a batch, its text checked once.
pub(crate) struct Cells<'batch> {
    states: &'batch [u8],
    ends: Cow<'batch, [u32]>,
    text: Cow<'batch, str>,
    blank_padded: bool,
}

impl<'batch> Cells<'batch> {
    fn new(column: &'batch Column, info: &ColumnInfo, rows: usize) -> Outcome<Self> {
        let text = std::str::from_utf8(&column.bytes).map_err(|_| Fault::INVALID_INPUT)?;
        if column.states.len() != rows || column.ends.len() != rows {
            return Err(Fault::INTERNAL);
        }
        let mut cells = Self {
            states: &column.states,
            ends: Cow::Borrowed(&column.ends),
            text: Cow::Borrowed(text),
            blank_padded: info.is_blank_padded(),
        };
        if info.ignores_case() {
            cells.fold_case()?;
        }
        Ok(cells)
    }

    /// Makes all text lower case, value by value: a letter may become longer or shorter.
    fn fold_case(&mut self) -> Outcome {
        if self.text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
            return Ok(());
        }
        let (mut folded, mut ends, mut start) = (String::with_capacity(self.text.len()), Vec::new(), 0);
        for &end in self.ends.iter() {
            let text = self.text.get(start..end as usize).ok_or(Fault::INVALID_INPUT)?;
            folded.push_str(&text.to_lowercase());
            ends.push(u32::try_from(folded.len()).map_err(|_| Fault::TOO_LONG)?);
            start = end as usize;
        }
        (self.text, self.ends) = (Cow::Owned(folded), Cow::Owned(ends));
        Ok(())
    }

    /// The columns of a batch.
    fn all(batch: &'batch Batch, inputs: &[ColumnInfo]) -> Result<Vec<Self>, WireFault> {
        if batch.columns.len() != inputs.len() {
            return Err(Fault::INTERNAL.at_row(0));
        }
        let pairs = batch.columns.iter().zip(inputs).enumerate();
        pairs
            .map(|(position, (column, info))| {
                Self::new(column, info, batch.rows as usize).map_err(|fault| fault.in_column(position))
            })
            .collect::<Outcome<_>>()
            .map_err(|fault| fault.at_row(0))
    }

    /// The value of a row.
    pub(crate) fn cell(&self, row: usize) -> Outcome<Cell<'_>> {
        match self.states.get(row) {
            Some(&VALUE) => {
                let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
                let text = self.text.get(start..self.ends[row] as usize).ok_or(Fault::INVALID_INPUT)?;
                Ok(Cell::Value(if self.blank_padded { text.trim_end_matches(' ') } else { text }))
            }
            Some(&NULL) => Ok(Cell::Null),
            Some(&UNCHANGED) => Ok(Cell::Unchanged),
            _ => Err(Fault::INTERNAL),
        }
    }
}

/// A mask of one value, bound to its column.
pub(crate) struct BoundValue<M> {
    pub(crate) mask: M,
    pub(crate) guarantees: Guarantees,
    pub(crate) input: ColumnInfo,
    pub(crate) output: ColumnInfo,
}

impl<M: AnswerValue + 'static> BoundMask for BoundValue<M> {
    fn guarantees(&self) -> Guarantees {
        self.guarantees | self.mask.guarantees()
    }

    fn answer(&self) -> Option<&dyn AnswerValue> {
        Some(&self.mask)
    }

    fn apply(&self, batch: &Batch) -> Result<Vec<Column>, WireFault> {
        let columns = Cells::all(batch, std::slice::from_ref(&self.input))?;
        let Some(cells) = columns.first() else { return Err(Fault::INTERNAL.at_row(0)) };
        let rows = batch.rows as usize;
        let mut out = Out::new(Some(&self.output), rows, cells.text.len());
        for row in 0..rows {
            self.one(cells, row, &mut out).map_err(|fault| fault.at_row(row))?;
        }
        Ok(vec![out.into_column()])
    }
}

impl<M: AnswerValue> BoundValue<M> {
    fn one(&self, cells: &Cells<'_>, row: usize, out: &mut Out) -> Outcome {
        match cells.cell(row)? {
            Cell::Value(text) => self.mask.mask(text, out)?,
            Cell::Null => self.mask.null(out)?,
            Cell::Unchanged => return out.finish_as(UNCHANGED),
        }
        out.finish()
    }
}

/// A mask of a row, bound to its columns.
pub(crate) struct BoundRow<M> {
    pub(crate) mask: M,
    pub(crate) guarantees: Guarantees,
    pub(crate) context: Context,
    /// For each output, the input of the same name, whose NULL it keeps.
    own_inputs: Vec<Option<usize>>,
}

impl<M: AnswerRow> BoundRow<M> {
    pub(crate) fn new(mask: M, guarantees: Guarantees, context: Context) -> Self {
        let own_input = |output: &ColumnInfo| context.inputs().iter().position(|input| input.name == output.name);
        let own_inputs = context.outputs().iter().map(|output| own_input(output).filter(|_| M::KEEPS_NULL)).collect();
        Self { mask, guarantees, context, own_inputs }
    }

    fn one(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome {
        if let Some(position) = first_unchanged(row)? {
            if row.len() != 1 || out.len() != 1 {
                return Err(Fault::NEEDS_UNCHANGED.in_column(position));
            }
            return out.column(0)?.finish_as(UNCHANGED);
        }
        let is_null =
            |own: &Option<usize>| own.map_or(Ok(false), |position| row.at(position).map(|value| value.is_none()));
        let mut all_null = true;
        for own in &self.own_inputs {
            all_null &= is_null(own)?;
        }
        if !all_null {
            self.mask.mask(row, out)?;
        }
        for (column, own) in out.iter_mut().zip(&self.own_inputs) {
            if is_null(own)? {
                column.null();
            }
            column.finish()?;
        }
        Ok(())
    }
}

impl<M: AnswerRow> BoundMask for BoundRow<M> {
    fn guarantees(&self) -> Guarantees {
        self.guarantees | self.mask.guarantees()
    }

    fn answer(&self) -> Option<&dyn AnswerValue> {
        None
    }

    fn apply(&self, batch: &Batch) -> Result<Vec<Column>, WireFault> {
        let inputs = self.context.inputs();
        let cells = Cells::all(batch, inputs)?;
        let rows = batch.rows as usize;
        let bytes = cells.iter().map(|cells| cells.text.len()).max().unwrap_or(0);
        let columns = self.context.outputs().iter().map(|column| Out::new(Some(column), rows, bytes)).collect();
        let mut out = Outputs::new(columns);
        for row in 0..rows {
            let view = Row { columns: inputs, cells: &cells, row };
            self.one(&view, &mut out).map_err(|fault| fault.at_row(row))?;
        }
        Ok(out.into_columns())
    }
}

/// A filter, bound to its columns.
pub(crate) struct BoundKeep<F> {
    pub(crate) filter: F,
    pub(crate) context: Context,
}

impl<F: AnswerKeep> BoundFilter for BoundKeep<F> {
    fn keep(&self, batch: &Batch) -> Result<Vec<u8>, WireFault> {
        let inputs = self.context.inputs();
        let cells = Cells::all(batch, inputs)?;
        let answer = |row| {
            let view = Row { columns: inputs, cells: &cells, row };
            self.filter.keep(&view).map(u8::from).map_err(|fault| fault.at_row(row))
        };
        (0..batch.rows as usize).map(answer).collect()
    }
}

/// The first column of a row that came as unchanged.
fn first_unchanged(row: &Row<'_>) -> Outcome<Option<usize>> {
    for (position, cells) in row.cells.iter().enumerate() {
        if matches!(cells.cell(row.row)?, Cell::Unchanged) {
            return Ok(Some(position));
        }
    }
    Ok(None)
}
