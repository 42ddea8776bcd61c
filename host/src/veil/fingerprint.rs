//! The fingerprint: a blake3 hash of all that decides an output.
//!
//! Two runs with equal fingerprints mask alike. It covers each guest's digest, functions, arguments, granted and written columns
//! with their types, and the check values of keys; not the layout of the policy file, nor limits, workers or batch sizes, which
//! decide nothing.

use std::fmt;

use super::abi::INTERFACE_VERSION;
use crate::config::{FingerprintInputs, TablePolicy};
use crate::relation::Table;

/// Never to be changed: every running job would believe that its policy changed.
const TABLE_CONTEXT: &str = "pgveil 2026-11 table fingerprint v1";
const JOB_CONTEXT: &str = "pgveil 2026-11 job fingerprint v1";

/// A fingerprint of a table or of a job. It may be shown and stored: neither keys nor values are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of one table: its policy in canonical form, and its columns with their types.
    pub(super) fn of_table(policy: &TablePolicy, table: &Table, inputs: &impl FingerprintInputs) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key(TABLE_CONTEXT);
        let mut part = |text: &str| {
            // The length first, so that no two lists of parts run together to the same bytes.
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        part(INTERFACE_VERSION);
        part(&policy.canonical(inputs));
        for column in &table.columns {
            // Types by name, not by oid: the same policy on another cluster masks alike.
            let identity = if column.identity { "identity" } else { "" };
            let null = if column.not_null { "not null" } else { "" };
            let modifier = column.type_modifier.to_string();
            for text in [&column.name, &column.type_name, &column.base_type_name, &modifier] {
                part(text);
            }
            part(identity);
            part(null);
        }
        Fingerprint(*hasher.finalize().as_bytes())
    }

    /// Of a whole job: of its tables, in whatever order.
    pub(super) fn of_job(tables: impl IntoIterator<Item = Fingerprint>) -> Fingerprint {
        let mut tables: Vec<Fingerprint> = tables.into_iter().collect();
        tables.sort_unstable();
        let mut hasher = blake3::Hasher::new_derive_key(JOB_CONTEXT);
        for table in &tables {
            hasher.update(&table.0);
        }
        Fingerprint(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
