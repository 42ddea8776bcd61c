//! Which columns the policy changes: what the schema step must not tell of them depends on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Decision, Policy, Rest, TableName, TablePolicy};
use crate::source::schema::SourceCatalog;

/// The columns whose values the policy does not pass as they are, by table.
pub type HiddenColumns = BTreeMap<TableName, BTreeSet<String>>;

/// Which columns of the catalogue's tables the policy does not pass. A table or column that it does not decide on counts as
/// hidden: what was not decided is not shown.
#[must_use]
pub fn hidden_columns(policy: &Policy, catalog: &SourceCatalog) -> HiddenColumns {
    let of = |name: &TableName, columns: &mut dyn Iterator<Item = &str>| {
        let policy = policy.tables.get(name);
        columns.filter(|column| !policy.is_some_and(|policy| passes(policy, column))).map(str::to_owned).collect()
    };
    let tables = catalog.tables.iter().map(|found| &found.table);
    tables
        .map(|table| {
            (table.name.clone(), of(&table.name, &mut table.columns.iter().map(|column| column.name.as_str())))
        })
        .collect()
}

/// The tables that the policy filters.
#[must_use]
pub fn filtered_tables(policy: &Policy) -> BTreeSet<TableName> {
    policy.tables.iter().filter(|(_, table)| !table.keep.is_empty()).map(|(name, _)| name.clone()).collect()
}

fn passes(policy: &TablePolicy, column: &str) -> bool {
    if policy.masks().any(|mask| mask.outputs.iter().any(|output| output.value == column)) {
        return false;
    }
    match policy.columns.get(column) {
        Some(own) => matches!(own.decision, Decision::Pass),
        None => policy.rest.value == Rest::Pass,
    }
}
