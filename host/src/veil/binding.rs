//! One binding over one batch: lend the granted columns, call, check.

use super::abi::{BatchIn, BindingInfo, ColumnIn, ColumnOut, Fault, FunctionKind, Guarantees};
use super::check::{self, OutputRule};
use super::input::{Inputs, Source};
use super::instance::{Bound, CallError, Instance};
use crate::error::{Error, Kind, Result};
use crate::relation::Table;

/// A mask or filter of one table, decided before the first row.
pub(super) struct BindingPlan {
    /// The place among the job's guests.
    pub guest: usize,
    /// The place among the guest's bindings.
    pub bound: Bound,
    /// The columns that are granted, in the policy's order.
    pub inputs: Vec<usize>,
    /// The columns that are written, in the policy's order; empty for a filter.
    pub outputs: Vec<usize>,
    /// What each output must satisfy.
    pub rules: Vec<OutputRule>,
    /// Whether it runs over old keys: it writes an identity column, and by plan reads identity columns only.
    pub on_keys: bool,
    /// `guest acme@9f2c…: function full-name`.
    pub place: String,
}

/// A binding as an instance is told of it.
pub(super) struct BindingSpec {
    /// Mask or filter.
    pub kind: FunctionKind,
    /// What the guest is told.
    pub info: BindingInfo,
    /// What it promised when the plan was made.
    pub guarantees: Guarantees,
}

impl BindingPlan {
    /// Only a mask of one input and one output can pass `unchanged` on: what it wrote before is what it would write again.
    pub(super) fn passes_unchanged(&self) -> bool {
        self.inputs.len() == 1 && self.outputs.len() == 1
    }

    /// Masks a batch: one column for each output, checked.
    ///
    /// # Errors
    /// Of the guest's kinds, or because an input value is not there. The instance is gone then.
    pub(super) fn mask(
        &self,
        instance: Instance,
        source: &Source<'_>,
        inputs: &mut Inputs,
    ) -> Result<(Instance, Vec<ColumnOut>)> {
        let table = source.raw.table();
        self.fill(source, inputs)?;
        let lent = self.lend(inputs);
        let called = instance.apply(self.bound, batch(source, &lent)?);
        let (instance, columns) = called.map_err(|error| self.refuse(error, source.rows(), table))?;
        if columns.len() != self.outputs.len() {
            let text = format!("{} columns for {} outputs", columns.len(), self.outputs.len());
            return Err(Error::new(Kind::GuestOutput, text).within(&self.place));
        }
        let allowed = instance.output_bytes_max(lent.iter().map(|column| column.bytes.len()).sum());
        if columns.iter().map(|column| column.bytes.len()).sum::<usize>() > allowed {
            return Err(Error::new(Kind::GuestOutput, format!("more than {allowed} bytes")).within(&self.place));
        }
        let one_input = self.passes_unchanged().then(|| inputs.column(self.inputs[0], false));
        for ((out, rule), position) in columns.iter().zip(&self.rules).zip(&self.outputs) {
            check::output(out, source.rows(), rule, one_input).map_err(|error| {
                error.within(format!("column {}", table.columns[*position].name)).within(&self.place)
            })?;
        }
        Ok((instance, columns))
    }

    /// Filters a batch: one byte a row, 1 to keep it.
    ///
    /// # Errors
    /// As for [`mask`](Self::mask).
    pub(super) fn keep(
        &self,
        instance: Instance,
        source: &Source<'_>,
        inputs: &mut Inputs,
    ) -> Result<(Instance, Vec<u8>)> {
        self.fill(source, inputs)?;
        let lent = self.lend(inputs);
        let called = instance.keep(self.bound, batch(source, &lent)?);
        let (instance, kept) = called.map_err(|error| self.refuse(error, source.rows(), source.raw.table()))?;
        check::keep(&kept, source.rows()).map_err(|error| error.within(&self.place))?;
        Ok((instance, kept))
    }

    fn fill(&self, source: &Source<'_>, inputs: &mut Inputs) -> Result<()> {
        let resolve = !self.passes_unchanged();
        self.inputs
            .iter()
            .try_for_each(|position| inputs.fill(source, *position, resolve))
            .map_err(|error| error.within(&self.place))
    }

    fn lend<'a>(&self, inputs: &'a Inputs) -> Vec<ColumnIn<'a>> {
        let resolve = !self.passes_unchanged();
        self.inputs.iter().map(|position| inputs.column(*position, resolve).lend()).collect()
    }

    /// Puts names to a failed call.
    fn refuse(&self, error: CallError, rows: usize, table: &Table) -> Error {
        match error {
            CallError::Failed(error) => error.within(&self.place),
            CallError::Fault(fault) => self.fault(fault, rows, table).within(&self.place),
        }
    }

    /// A fault names its row only if the batch has that row, and its column only if it was granted: both numbers are the guest's.
    fn fault(&self, fault: Fault, rows: usize, table: &Table) -> Error {
        let position = usize::try_from(fault.column).ok().and_then(|input| self.inputs.get(input));
        let row = if (fault.row as usize) < rows { format!(", row {} of the batch", fault.row) } else { String::new() };
        let error = Error::new(Kind::GuestFault, format!("fault {}{row}", fault.code.name()));
        match position {
            Some(position) => error.within(format!("column {}", table.columns[*position].name)),
            None => error,
        }
    }
}

fn batch<'a>(source: &Source<'_>, columns: &'a [ColumnIn<'a>]) -> Result<BatchIn<'a>> {
    let rows = u32::try_from(source.rows());
    let rows = rows.map_err(|_| Error::new(Kind::SourceData, "a batch of more than 2^32 rows"))?;
    Ok(BatchIn { rows, columns })
}
