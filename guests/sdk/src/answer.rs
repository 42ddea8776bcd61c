//! What the loops call: the traits that authors implement, and plain functions with the context they were bound with.

use crate::batch::{AnswerKeep, AnswerRow, AnswerValue};
use crate::{Context, Guarantees, Out, Outcome, Outputs, Row, RowFilter, RowMask, ValueMask};

impl<M: ValueMask> AnswerValue for M {
    fn guarantees(&self) -> Guarantees {
        ValueMask::guarantees(self)
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        ValueMask::mask(self, value, out)
    }

    fn null(&self, out: &mut Out) -> Outcome {
        ValueMask::null(self, out)
    }
}

impl<M: RowMask> AnswerRow for M {
    const KEEPS_NULL: bool = <M as RowMask>::KEEPS_NULL;

    fn guarantees(&self) -> Guarantees {
        RowMask::guarantees(self)
    }

    fn mask(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome {
        RowMask::mask(self, row, out)
    }
}

impl<F: RowFilter> AnswerKeep for F {
    fn keep(&self, row: &Row<'_>) -> Outcome<bool> {
        RowFilter::keep(self, row)
    }
}

/// A plain function of one value.
pub(crate) struct PlainValue {
    pub(crate) mask: fn(&str, &Context, &mut Out) -> Outcome,
    pub(crate) context: Context,
}

impl AnswerValue for PlainValue {
    fn guarantees(&self) -> Guarantees {
        Guarantees::empty()
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        (self.mask)(value, &self.context, out)
    }

    fn null(&self, out: &mut Out) -> Outcome {
        out.null();
        Ok(())
    }
}

/// A plain function of a row to one column.
pub(crate) struct PlainRow {
    pub(crate) mask: fn(&Row<'_>, &Context, &mut Out) -> Outcome,
    pub(crate) context: Context,
}

impl AnswerRow for PlainRow {
    const KEEPS_NULL: bool = true;

    fn guarantees(&self) -> Guarantees {
        Guarantees::empty()
    }

    fn mask(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome {
        (self.mask)(row, &self.context, out.column(0)?)
    }
}

/// A plain filter.
pub(crate) struct PlainFilter {
    pub(crate) keep: fn(&Row<'_>, &Context) -> Outcome<bool>,
    pub(crate) context: Context,
}

impl AnswerKeep for PlainFilter {
    fn keep(&self, row: &Row<'_>) -> Outcome<bool> {
        (self.keep)(row, &self.context)
    }
}
