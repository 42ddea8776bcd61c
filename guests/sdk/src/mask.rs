//! What a function may be, where a plain `fn` is not enough: something bound once, with arguments, and called for each row.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Context, Guarantees, Out, Outcome, Outputs, Row};

/// The arguments of a function that takes none; any that a policy gives are refused.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// A mask of one value.
pub trait ValueMask: Sized + 'static {
    /// The arguments, read from the policy. `#[serde(deny_unknown_fields)]` catches misspelt ones; their doc comments are what a policy's author
    /// reads.
    type Arguments: DeserializeOwned + JsonSchema;

    /// Opens the mask for one column.
    ///
    /// # Errors
    /// Words for the policy's author: what is wrong, and what would be right.
    fn bind(arguments: Self::Arguments, context: &Context) -> Result<Self, String>;

    /// What this binding guarantees beyond what the function declares for every binding.
    fn guarantees(&self) -> Guarantees {
        Guarantees::empty()
    }

    /// Masks a value.
    ///
    /// # Errors
    /// A refusal, which stops the job.
    fn mask(&self, value: &str, out: &mut Out) -> Outcome;

    /// Answers for NULL: with NULL, unless a function wants otherwise.
    ///
    /// # Errors
    /// As for [`mask`](Self::mask).
    fn null(&self, out: &mut Out) -> Outcome {
        out.null();
        Ok(())
    }
}

/// A mask of several columns, or to several.
pub trait RowMask: Sized + 'static {
    /// As [`ValueMask::Arguments`].
    type Arguments: DeserializeOwned + JsonSchema;

    /// Whether an output column whose own input is NULL stays NULL without asking the function: so unless a function
    /// wants otherwise.
    const KEEPS_NULL: bool = true;

    /// Opens the mask for one table.
    ///
    /// # Errors
    /// As for [`ValueMask::bind`].
    fn bind(arguments: Self::Arguments, context: &Context) -> Result<Self, String>;

    /// As [`ValueMask::guarantees`].
    fn guarantees(&self) -> Guarantees {
        Guarantees::empty()
    }

    /// Masks a row: writes every output.
    ///
    /// # Errors
    /// As for [`ValueMask::mask`].
    fn mask(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome;
}

/// Keeps or drops rows.
pub trait RowFilter: Sized + 'static {
    /// As [`ValueMask::Arguments`].
    type Arguments: DeserializeOwned + JsonSchema;

    /// Opens the filter for one table.
    ///
    /// # Errors
    /// As for [`ValueMask::bind`].
    fn bind(arguments: Self::Arguments, context: &Context) -> Result<Self, String>;

    /// Whether the row stays.
    ///
    /// # Errors
    /// As for [`ValueMask::mask`].
    fn keep(&self, row: &Row<'_>) -> Outcome<bool>;
}
