//! Refusals: a code and a column, never a text.

use crate::bindings::pgveil::policy::types::{Fault as WireFault, FaultCode};

/// What a function gives for one value or row.
pub type Outcome<T = ()> = Result<T, Fault>;

/// A refusal to answer for a row. pgveil stops the job and reports the code, the table and the column.
///
/// There is no text in it, so that no value can be in it either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    code: FaultCode,
    column: u32,
}

impl Fault {
    /// The value is not what its column's type writes.
    pub const INVALID_INPUT: Self = Self::new(FaultCode::InvalidInput);
    /// The value is proper, but the function has no answer for it: an array's shape, a special such as `NaN`.
    pub const UNSUPPORTED_VALUE: Self = Self::new(FaultCode::UnsupportedValue);
    /// The function needs a value that came as unchanged.
    pub const NEEDS_UNCHANGED: Self = Self::new(FaultCode::NeedsUnchanged);
    /// The answer would lie outside what the output column's type holds.
    pub const OUT_OF_RANGE: Self = Self::new(FaultCode::OutOfRange);
    /// The answer would be longer than the output column allows.
    pub const TOO_LONG: Self = Self::new(FaultCode::TooLong);
    /// A defect of the guest itself.
    pub const INTERNAL: Self = Self::new(FaultCode::Internal);

    const fn new(code: FaultCode) -> Self {
        Self { code, column: 0 }
    }

    /// The same refusal, laid to the input column with this position in the binding's order.
    #[must_use]
    pub fn in_column(self, column: usize) -> Self {
        Self { column: u32::try_from(column).unwrap_or(u32::MAX), ..self }
    }

    /// The refusal as it crosses to pgveil.
    pub(crate) fn at_row(self, row: usize) -> WireFault {
        WireFault { code: self.code, row: u32::try_from(row).unwrap_or(u32::MAX), column: self.column }
    }
}

impl From<WireFault> for Fault {
    fn from(wire: WireFault) -> Self {
        Self { code: wire.code, column: wire.column }
    }
}
