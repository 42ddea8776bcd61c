//! What decides a table's output, in a form that does not depend on how the file is written: the input of the fingerprint.

use serde_json::{Map, Value, json};

use super::policy::{Binding, ColumnPolicy, Decision, Digest, Rest, TablePolicy};
use super::secret::KeyCheckValue;

/// What the fingerprint needs besides the policy file: the components as they were loaded and the keys as they were found.
pub trait FingerprintInputs {
    /// The digest of the component behind a guest's name.
    fn guest_digest(&self, guest: &str) -> Digest;

    /// The check value of the material behind a key's name.
    fn key_check_value(&self, key: &str) -> KeyCheckValue;
}

impl TablePolicy {
    /// The table's decisions as one line of JSON: the same for the same output, however the file is ordered, commented or
    /// spaced, and whatever name a guest was given; different when a component, function, argument, column, key or domain is.
    ///
    /// Neither a key nor a value of a row is in it. Hash it with blake3 for the fingerprint. What it says is frozen: a new
    /// form would make every running job believe that its policy changed.
    #[must_use]
    pub fn canonical(&self, inputs: &impl FingerprintInputs) -> String {
        let mut filters: Vec<Value> = self.keep.iter().map(|filter| canonical_binding(filter, inputs)).collect();
        // All filters must keep a row, so their order decides nothing.
        filters.sort_by_cached_key(Value::to_string);
        let columns: Map<String, Value> = self
            .columns
            .values()
            .map(|column| (column.column.value.clone(), canonical_column(column, inputs)))
            .collect();
        let rest = match self.rest.value {
            Rest::Deny => "deny",
            Rest::Pass => "pass",
            Rest::Null => "null",
        };
        sorted(json!({
            "form": 1,
            "schema": self.table.schema,
            "table": self.table.name,
            "keep": filters,
            "columns": columns,
            "rest": rest,
        }))
        .to_string()
    }
}

fn canonical_column(column: &ColumnPolicy, inputs: &impl FingerprintInputs) -> Value {
    match &column.decision {
        Decision::Pass => "pass".into(),
        Decision::Null => "null".into(),
        Decision::Mask(mask) => canonical_binding(mask, inputs),
    }
}

fn canonical_binding(binding: &Binding, inputs: &impl FingerprintInputs) -> Value {
    let names = |columns: &[super::Spanned<String>]| columns.iter().map(|each| each.value.clone()).collect::<Vec<_>>();
    let key = binding.key.as_ref().map(|key| {
        json!({
            "name": key.value,
            "check": inputs.key_check_value(&key.value).to_string(),
            "domain": binding.domain.as_ref().map_or("", |domain| domain.value.as_str()),
        })
    });
    sorted(json!({
        "guest": inputs.guest_digest(&binding.function.guest).to_string(),
        "function": binding.function.function,
        "columns": names(&binding.columns),
        "outputs": names(&binding.outputs),
        "key": key,
        "arguments": binding.arguments,
    }))
}

/// Sorts the keys of every object, at every depth.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(object) => {
            let mut entries: Vec<(String, Value)> =
                object.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            Value::Object(entries.into_iter().collect())
        }
        scalar => scalar,
    }
}
