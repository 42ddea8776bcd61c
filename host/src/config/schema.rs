//! JSON Schemas of both files for editors, from the types that are read.

use schemars::{Schema, SchemaGenerator, json_schema, schema_for};

use super::job::Job;
use super::policy::Policy;

/// The JSON Schema of the job file.
#[must_use]
pub fn job_schema() -> Schema {
    schema_for!(Job)
}

/// The JSON Schema of the policy file.
#[must_use]
pub fn policy_schema() -> Schema {
    schema_for!(Policy)
}

/// Unquoted, `null` is YAML's null; both are read as the word.
pub(super) fn rest(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What happens to the columns not named: the job refuses to start, they are copied, they become NULL.",
        "enum": ["deny", "pass", "null", null],
        "default": "deny",
    })
}

pub(super) fn filters(_: &mut SchemaGenerator) -> Schema {
    let one = binding("filter", &["filter", "columns"]);
    json_schema!({
        "description": "The filters; a row is kept when all of them keep it.",
        "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }],
    })
}

pub(super) fn decision() -> Schema {
    json_schema!({
        "description": "What happens to the column.",
        "anyOf": [{ "enum": ["pass", "null", null] }, binding("mask", &["mask"])],
    })
}

pub(super) fn guest() -> Schema {
    json_schema!({
        "description": "A component: embedded in the program, or a file pinned by its digest.",
        "type": "object",
        "properties": {
            "builtin": { "type": "string", "description": "A component embedded in the program: `standard`." },
            "path": { "type": "string", "minLength": 1, "description": "The component's file, relative to this file." },
            "blake3": {
                "type": "string",
                "pattern": "^[0-9a-fA-F]{64}$",
                "description": "The only digest of the file that is accepted.",
            },
        },
        "oneOf": [{ "required": ["builtin"] }, { "required": ["path"] }],
        "additionalProperties": false,
    })
}

/// A mask or filter; entries that are not listed are its arguments.
fn binding(kind: &str, required: &[&str]) -> Schema {
    let columns = |description: &str| {
        json_schema!({
            "type": "array",
            "items": { "type": "string", "minLength": 1 },
            "minItems": 1,
            "uniqueItems": true,
            "description": description,
        })
    };
    let mut properties = serde_json::Map::new();
    let function = json_schema!({ "type": "string", "pattern": "^[^/]+/[^/]+$", "description": "The function, `guest/function`." });
    properties.insert(kind.to_owned(), function.into());
    properties.insert("columns".to_owned(), columns("The columns that the function may see.").into());
    if kind == "mask" {
        properties.insert(
            "outputs".to_owned(),
            columns("The columns that the mask writes; else the one it stands at.").into(),
        );
    }
    for (name, description) in [
        ("key", "A name of `keys`."),
        ("domain", "What the key is derived for. Bindings that share key and domain mask alike."),
    ] {
        properties.insert(
            name.to_owned(),
            json_schema!({ "type": "string", "minLength": 1, "description": description }).into(),
        );
    }
    json_schema!({ "type": "object", "properties": properties, "required": required, "additionalProperties": true })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
