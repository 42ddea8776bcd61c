//! The schema knows exactly the keys that the readers know.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::job::{Limits, Safety};
use super::super::{job_reader, policy_reader};
use super::*;

fn keys(schema: &Value, pointer: &str) -> BTreeSet<String> {
    let object = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in {schema:#}"));
    object["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn schema_and_readers_know_the_same_keys() {
    let job = job_schema().to_value();
    let policy = policy_schema().to_value();
    for (schema, pointer, known) in [
        (&job, "", job_reader::JOB_KEYS),
        (&job, "/$defs/Identity", job_reader::IDENTITY_KEYS),
        (&job, "/$defs/Source", job_reader::SOURCE_KEYS),
        (&job, "/$defs/Target", job_reader::TARGET_KEYS),
        (&job, "/$defs/TargetSchema", job_reader::SCHEMA_KEYS),
        (&job, "/$defs/Limits", Limits::KEYS),
        (&job, "/$defs/Safety", Safety::KEYS),
        (&policy, "", policy_reader::POLICY_KEYS),
        (&policy, "/$defs/Guest", policy_reader::GUEST_KEYS),
        (&policy, "/$defs/Key", policy_reader::KEY_KEYS),
        (&policy, "/$defs/TablePolicy", policy_reader::TABLE_KEYS),
        (&policy, "/$defs/Decision/anyOf/1", policy_reader::MASK_KEYS),
        (&policy, "/$defs/TablePolicy/properties/keep/anyOf/0", policy_reader::FILTER_KEYS),
    ] {
        let known: BTreeSet<String> = known.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(keys(schema, pointer), known, "{pointer}");
    }
}

#[test]
fn what_must_be_written_is_required() {
    let required = |schema: Schema| {
        let mut required: Vec<String> = serde_json::from_value(schema.to_value()["required"].clone()).unwrap();
        required.sort();
        required
    };
    assert_eq!(required(job_schema()), ["job", "policy", "source", "tables", "target"]);
    assert_eq!(required(policy_schema()), ["tables", "version"]);
}

#[test]
fn settings_carry_their_description_default_and_range() {
    let schema = job_schema().to_value();
    insta::assert_json_snapshot!(schema.pointer("/$defs/Limits/properties/copy_workers"), @r#"
    {
      "type": "integer",
      "description": "Sessions that copy tables at the same time. From 1 to 64.",
      "default": 2
    }
    "#);
    insta::assert_json_snapshot!(schema.pointer("/$defs/Limits/properties/max_row"), @r#"
    {
      "type": [
        "string",
        "integer"
      ],
      "pattern": "^[0-9]+ *(B|KiB|MiB|GiB|TiB)?$",
      "description": "Bytes of one row of the snapshot, as text. A larger one stops the job: it could not be held within the budget. From 64KiB to 1GiB.",
      "default": "8MiB"
    }
    "#);
}
