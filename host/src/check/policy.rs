//! What the policy means for the tables' own rules: constraints, defaults and generated columns.
//!
//! Whether guests accept columns and keys is the plan's to say (`veil/`); it hands its findings in.

use std::collections::BTreeSet;

use super::{Finding, Plan, list};
use crate::config::SchemaMode;
use crate::source::schema::{ColumnDefault, GeneratedKind, SourceCatalog, SourceTable};

pub(super) fn findings(catalog: &SourceCatalog, plan: &Plan<'_>) -> Vec<Finding> {
    let nothing = BTreeSet::new();
    catalog
        .tables
        .iter()
        .flat_map(|table| judge(table, plan.hidden.get(&table.table.name).unwrap_or(&nothing), plan))
        .collect()
}

fn judge(table: &SourceTable, hidden: &BTreeSet<String>, plan: &Plan<'_>) -> Vec<Finding> {
    let subject = format!("table {}", table.table.name);
    let masked =
        |columns: &[String]| -> Vec<String> { columns.iter().filter(|name| hidden.contains(*name)).cloned().collect() };
    let mut found = Vec::new();
    for column in &table.generated {
        let inputs = masked(&column.inputs);
        if !inputs.is_empty() {
            let kind = if column.kind == GeneratedKind::Stored { "stored" } else { "virtual" };
            let message =
                format!("{kind} column {} is computed anew on the target, from masked {}", column.name, list(&inputs));
            found.push(Finding::pass("policy-generated", &subject, message));
        }
        if column.unique && !inputs.is_empty() {
            let message =
                format!("generated column {} is unique and computed from masked {}", column.name, list(&inputs));
            let remedy = "Use injective masks whose outputs stay distinct under the column's expression.";
            found.push(Finding::warn("policy-unique-expression", &subject, message, remedy));
        }
    }
    for index in &table.unique_indexes {
        let inner = masked(&index.inner_columns);
        if !inner.is_empty() {
            let message = format!(
                "unique index {} computes with masked {}: rows that differ may become equal",
                index.name,
                list(&inner)
            );
            let remedy = "Make sure that masked values stay distinct under the index's expression and predicate.";
            found.push(Finding::warn("policy-unique-expression", &subject, message, remedy));
        }
    }
    for rule in &table.checks {
        let inputs = masked(&rule.columns);
        if !inputs.is_empty() {
            let message = format!(
                "constraint {} tests masked {}: the target refuses a masked value that does not fit",
                rule.name,
                list(&inputs)
            );
            let remedy = "Choose masks that keep the constraint, or drop it on the target.";
            found.push(Finding::warn("policy-check-constraint", &subject, message, remedy));
        }
    }
    for key in &table.foreign_keys {
        let own = masked(&key.columns);
        let other = plan.hidden.get(&key.referenced);
        let other =
            key.referenced_columns.iter().filter(|name| other.is_some_and(|hidden| hidden.contains(*name))).count();
        let remedy = "Mask both ends by the same function with the same key and domain.";
        if key.inside && own.is_empty() && other > 0 {
            let message = format!("foreign key {}: what it points at is masked, its own columns are not", key.name);
            found.push(Finding::fail("policy-foreign-key", &subject, message, remedy));
        } else if key.inside && !own.is_empty() && other == 0 {
            // Right if they all become NULL, wrong otherwise.
            let message = format!("foreign key {}: its columns are masked, what it points at is not", key.name);
            found.push(Finding::warn("policy-foreign-key", &subject, message, remedy));
        }
    }
    if plan.schema_mode == SchemaMode::PgDump {
        let literal = table.table.columns.iter().zip(&table.column_facts);
        let literal =
            literal.filter(|(column, facts)| facts.default == ColumnDefault::Literal && hidden.contains(&column.name));
        let literal: Vec<_> = literal.map(|(column, _)| column.name.clone()).collect();
        if !literal.is_empty() {
            let message =
                format!("the defaults of masked columns hold literals and are not copied: {}", list(&literal));
            found.push(Finding::warn(
                "policy-default",
                &subject,
                message,
                "Set defaults on the target if they are wanted there.",
            ));
        }
    }
    found
}
