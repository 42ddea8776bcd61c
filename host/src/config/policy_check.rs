//! Checks of a policy that need neither guests nor databases: names that must be declared, columns decided twice.

use std::collections::{BTreeMap, BTreeSet};

use super::diagnostic::Diagnostic;
use super::policy::{Binding, Decision, Policy, TablePolicy};
use super::read::{Reader, code, join};
use super::span::{Span, Spanned};
use super::suggest::nearest;

/// Reports all that is wrong. `broken` are names of guests and keys whose declarations were reported already: that they are
/// missing from the policy is no news.
pub(super) fn check(reader: &mut Reader, policy: &Policy, broken: &BTreeSet<String>) {
    let mut used = Used::default();
    for table in policy.tables.values() {
        let path = join("tables", &table.table.to_string());
        for (position, filter) in table.keep.iter().enumerate() {
            check_names(reader, policy, broken, filter, &format!("{path}.keep[{position}]"));
            used.add(filter);
        }
        for column in table.columns.values() {
            if let Decision::Mask(mask) = &column.decision {
                let path = join(&format!("{path}.columns"), &column.column);
                check_names(reader, policy, broken, mask, &path);
                used.add(mask);
                check_outputs(reader, mask, &column.column, &path);
            }
        }
        check_decided_once(reader, table, &path);
        check_acknowledged(reader, table, &path);
    }
    // Where the tables have errors, what they use is not known.
    if !reader.diagnostics.has_errors() {
        warn_unused(reader, policy, &used);
    }
}

/// Names that bindings refer to.
#[derive(Default)]
struct Used {
    guests: BTreeSet<String>,
    keys: BTreeSet<String>,
}

impl Used {
    fn add(&mut self, binding: &Binding) {
        self.guests.insert(binding.function.guest.clone());
        self.keys.extend(binding.key.as_ref().map(|key| key.value.clone()));
    }
}

fn check_names(reader: &mut Reader, policy: &Policy, broken: &BTreeSet<String>, binding: &Binding, path: &str) {
    let guest = &binding.function.guest;
    if !policy.guests.contains_key(guest) && !broken.contains(guest) {
        let written = Spanned::new(guest.clone(), binding.function.span);
        undeclared(reader, "guest", "guests", &written, path, policy.guests.keys());
    }
    if let Some(key) = &binding.key
        && !policy.keys.contains_key(&key.value)
        && !broken.contains(&key.value)
    {
        undeclared(reader, "key", "keys", key, path, policy.keys.keys());
    }
    if let (Some(domain), None) = (&binding.domain, &binding.key) {
        let error = Diagnostic::error(&reader.file, path, "`domain` has no meaning without `key`").at(domain.span);
        reader.diagnostics.push(error.remedy("add `key`, or remove `domain`"));
    }
}

fn undeclared<'a>(
    reader: &mut Reader,
    kind: &str,
    section: &str,
    name: &Spanned<String>,
    path: &str,
    declared: impl Iterator<Item = &'a String>,
) {
    let error = Diagnostic::error(&reader.file, path, format!("there is no {kind} {}", code(name))).at(name.span);
    let remedy = match nearest(name, declared.map(String::as_str)) {
        Some(near) => format!("did you mean {}?", code(near)),
        None => format!("declare it under `{section}`"),
    };
    reader.diagnostics.push(error.remedy(remedy));
}

/// A mask stands at one of the columns it writes.
fn check_outputs(reader: &mut Reader, mask: &Binding, column: &Spanned<String>, path: &str) {
    if !mask.outputs.is_empty() && !mask.outputs.contains(column) {
        let message = format!("the mask stands at column {} but does not write it", code(column));
        let span = mask.outputs.first().map_or(column.span, |output| output.span);
        let error = Diagnostic::error(&reader.file, format!("{path}.outputs"), message).at(span);
        reader.diagnostics.push(error.remedy(format!("list {} in `outputs`", code(column))));
    }
}

/// No column has two decisions: its own entry and a place among another mask's outputs, or two such places.
fn check_decided_once(reader: &mut Reader, table: &TablePolicy, path: &str) {
    let mut decided: BTreeMap<&str, Span> =
        table.columns.values().map(|each| (each.column.value.as_str(), each.column.span)).collect();
    for column in table.columns.values() {
        let Decision::Mask(mask) = &column.decision else { continue };
        for output in mask.outputs.iter().filter(|output| **output != column.column) {
            let Some(first) = decided.insert(&output.value, output.span) else { continue };
            let message = format!("column {} is decided twice", code(output));
            let field = format!("{}.outputs", join(&format!("{path}.columns"), &column.column));
            let error = Diagnostic::error(&reader.file, field, message).at(output.span).related(first, "also here");
            reader.diagnostics.push(error.remedy("keep one of the two decisions"));
        }
    }
}

/// What is acknowledged must be passed, else the list says something that is not so.
fn check_acknowledged(reader: &mut Reader, table: &TablePolicy, path: &str) {
    for column in &table.acknowledge {
        let Some(decided) = table.columns.get(&column.value) else { continue };
        if !matches!(decided.decision, Decision::Pass) {
            let message = format!("column {} is acknowledged as passed, but it is not passed", code(column));
            let warning = Diagnostic::warning(&reader.file, format!("{path}.acknowledge"), message).at(column.span);
            reader
                .diagnostics
                .push(warning.related(decided.column.span, "decided here").remedy("remove it from `acknowledge`"));
        }
    }
}

fn warn_unused(reader: &mut Reader, policy: &Policy, used: &Used) {
    let guests = policy.guests.values().map(|guest| ("guest", "guests", &guest.name, &used.guests));
    let keys = policy.keys.values().map(|key| ("key", "keys", &key.name, &used.keys));
    for (kind, section, name, used) in guests.chain(keys) {
        if !used.contains(&name.value) {
            let message = format!("the {kind} {} is not used", code(name));
            let warning = Diagnostic::warning(&reader.file, format!("{section}.{}", name.value), message).at(name.span);
            reader.diagnostics.push(warning.remedy("remove it, or name it where it should be used"));
        }
    }
}
