//! Naming one mask in the arguments of another.

use pgveil_guest::serde_json::Value;
use pgveil_guest::{ColumnInfo, Context, Inner};
use schemars::JsonSchema;
use serde::Deserialize;

/// A mask of this library that is applied to parts of a value.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InnerMask {
    /// Its name: `email`.
    mask: String,
    /// Its arguments.
    #[serde(default)]
    arguments: serde_json::Map<String, Value>,
}

impl InnerMask {
    /// Opens it for parts of the values of a column.
    pub(crate) fn open(self, context: &Context, part: ColumnInfo) -> Result<Inner, String> {
        let functions = crate::functions();
        let function = functions.iter().find(|function| function.name() == self.mask);
        let function = function.ok_or_else(|| format!("arguments: there is no mask {:?} here", self.mask))?;
        let opened = function.open_inner(&Value::Object(self.arguments).to_string(), context, part);
        opened.map_err(|error| format!("{}: {error}", self.mask))
    }
}
