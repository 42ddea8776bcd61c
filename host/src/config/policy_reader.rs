//! Reads the policy file into [`Policy`], and checks all that can be checked without guests and databases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::diagnostic::Diagnostic;
use super::job_reader::{parse_table_name, read_path, read_variable};
use super::name::{NAME_BYTES_MAX, TableName};
use super::policy::{
    Binding, ColumnPolicy, Decision, Digest, FunctionName, Guest, GuestSource, Key, Policy, Rest, TablePolicy,
};
use super::policy_check;
use super::read::{Cursor, Fields, Reader, code};
use super::span::Spanned;
use super::suggest::nearest;
use super::yaml::{Kind, Node};

pub(super) const POLICY_KEYS: &[&str] = &["version", "guests", "keys", "tables"];
pub(super) const TABLE_KEYS: &[&str] = &["keep", "columns", "rest", "acknowledge"];
pub(super) const KEY_KEYS: &[&str] = &["env"];
pub(super) const GUEST_KEYS: &[&str] = &["builtin", "path", "blake3"];
pub(super) const MASK_KEYS: &[&str] = &["mask", "columns", "outputs", "key", "domain"];
pub(super) const FILTER_KEYS: &[&str] = &["filter", "columns", "key", "domain"];

/// The only version of the file's form there is.
const VERSION: u64 = 1;

/// Reads the whole file. `None` after an error was reported; the caller looks at the diagnostics either way.
pub(super) fn read(reader: &mut Reader, top: &Cursor<'_>) -> Option<Policy> {
    let fields = reader.mapping(top, POLICY_KEYS)?;
    if let Some(at) = reader.required(&fields, "version", "`version: 1`") {
        reader.setting(Some(at), VERSION, Some((VERSION, VERSION)));
    }
    let mut broken = BTreeSet::new();
    let guests =
        fields.section("guests").map(|at| read_named(reader, &at, &mut broken, read_guest)).unwrap_or_default();
    let keys = fields.section("keys").map(|at| read_named(reader, &at, &mut broken, read_key)).unwrap_or_default();
    let tables = reader.required(&fields, "tables", "`tables:` with the tables of the job");
    let tables = tables.and_then(|at| read_tables(reader, &at)).unwrap_or_default();
    let policy = Policy { file: Arc::clone(&reader.file), version: 1, guests, keys, tables };
    policy_check::check(reader, &policy, &broken);
    Some(policy)
}

/// Reads a mapping of names to something. Names whose entry is wrong are collected in `broken`.
fn read_named<T>(
    reader: &mut Reader,
    at: &Cursor<'_>,
    broken: &mut BTreeSet<String>,
    read: impl Fn(&mut Reader, &Spanned<String>, &Cursor<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut all = BTreeMap::new();
    for (name, at) in reader.entries(at).unwrap_or_default() {
        let allowed = |each: char| each.is_ascii_alphanumeric() || matches!(each, '_' | '-');
        if name.is_empty() || !name.chars().all(allowed) {
            let message = format!("{} is not a name: letters, digits, `_` and `-` are allowed", code(name));
            reader.diagnostics.push(Diagnostic::error(&reader.file, at.path.as_str(), message).at(name.span));
            continue;
        }
        match read(reader, name, &at) {
            Some(value) => drop(all.insert(name.value.clone(), value)),
            None => drop(broken.insert(name.value.clone())),
        }
    }
    all
}

fn read_guest(reader: &mut Reader, name: &Spanned<String>, at: &Cursor<'_>) -> Option<Guest> {
    let fields = reader.mapping(at, GUEST_KEYS)?;
    let builtin = fields.get("builtin").map(|at| reader.text(&at));
    let path = fields.get("path").map(|at| read_path(reader, &at));
    let digest = fields.get("blake3").map(|at| read_digest(reader, &at));
    let source = match (builtin, path) {
        (Some(builtin), None) => {
            if digest.is_some() {
                let message = "a builtin guest is part of the program and takes no `blake3`";
                reader.error_with(at, message, "remove `blake3`");
            }
            GuestSource::Builtin(builtin?)
        }
        (None, Some(path)) => {
            if digest.is_none() {
                let message = format!("the guest {} is not pinned: any component at its path is run", code(name));
                let warning = Diagnostic::warning(&reader.file, at.path.as_str(), message).at(name.span);
                reader.diagnostics.push(warning.remedy("add `blake3: …`, the digest of the component's file"));
            }
            // A digest that is wrong must not count as none.
            GuestSource::File { path: path?, blake3: digest.map_or(Some(None), |digest| digest.map(Some))? }
        }
        (Some(_), Some(_)) => {
            reader.error_with(at, "a guest has either `builtin` or `path`, not both", "remove one of them");
            return None;
        }
        (None, None) => {
            reader.error_with(at, "a guest needs `builtin` or `path`", "for example `{ builtin: standard }`");
            return None;
        }
    };
    Some(Guest { name: name.clone(), source })
}

fn read_digest(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<Digest>> {
    let digest = at.scalar().and_then(Digest::parse);
    if digest.is_none() {
        reader.error_with(at, "`blake3` must be 64 hexadecimal digits", "`b3sum FILE` prints them");
    }
    digest.map(|digest| Spanned::new(digest, at.span))
}

fn read_key(reader: &mut Reader, name: &Spanned<String>, at: &Cursor<'_>) -> Option<Key> {
    let fields = reader.mapping(at, KEY_KEYS)?;
    let at = reader.required(&fields, "env", "`env: NAME`, the environment variable with the key")?;
    Some(Key { name: name.clone(), env: read_variable(reader, &at)? })
}

fn read_tables(reader: &mut Reader, at: &Cursor<'_>) -> Option<BTreeMap<TableName, TablePolicy>> {
    let mut tables: BTreeMap<TableName, TablePolicy> = BTreeMap::new();
    for (name, at) in reader.entries(at)? {
        let table = parse_table_name(reader, name, &at.path);
        let Some(policy) = read_table(reader, table.as_ref(), &at) else { continue };
        // `public.users` and `public."users"` are different texts for the same table.
        match tables.get(&policy.table.value) {
            Some(first) => {
                let message = format!("{} is written twice", code(&policy.table.to_string()));
                let error = Diagnostic::error(&reader.file, at.path.as_str(), message).at(name.span);
                reader.diagnostics.push(error.related(first.table.span, "first here").remedy("join the two entries"));
            }
            None => drop(tables.insert(policy.table.value.clone(), policy)),
        }
    }
    if tables.is_empty() && !reader.diagnostics.has_errors() {
        reader.error_with(at, "`tables` is empty", "name the tables of the job");
    }
    Some(tables)
}

/// Reads one table, also when its name is wrong, so that its other errors are found too.
fn read_table(reader: &mut Reader, table: Option<&Spanned<TableName>>, at: &Cursor<'_>) -> Option<TablePolicy> {
    let fields = reader.mapping(at, TABLE_KEYS)?;
    let keep = fields.get("keep").map(|at| read_filters(reader, &at)).unwrap_or_default();
    let mut columns = BTreeMap::new();
    if let Some(at) = fields.section("columns") {
        for (name, at) in reader.entries(&at).unwrap_or_default() {
            check_column_name(reader, name, &at.path);
            if let Some(decision) = read_decision(reader, name, &at) {
                let column = ColumnPolicy { column: name.clone(), decision, span: at.span };
                columns.insert(name.value.clone(), column);
            }
        }
    }
    let words = [("deny", Rest::Deny), ("pass", Rest::Pass), ("null", Rest::Null)];
    let rest = fields.get("rest");
    let rest = rest.and_then(|at| Some(Spanned::new(reader.word(&at, &words)?, at.span)));
    let acknowledge = fields.section("acknowledge").and_then(|at| reader.texts(&at)).unwrap_or_default();
    let table = table?.clone();
    let rest = rest.unwrap_or(Spanned::new(Rest::Deny, table.span));
    Some(TablePolicy { table, keep, columns, rest, acknowledge })
}

/// `keep`: one filter, or a list of them. Written but empty is an error: a filter that is forgotten lets every row through.
fn read_filters(reader: &mut Reader, at: &Cursor<'_>) -> Vec<Binding> {
    let filters = match &at.node.kind {
        Kind::Sequence(_) => reader.items(at).unwrap_or_default(),
        Kind::Mapping(_) => vec![at.clone()],
        Kind::Scalar { .. } => Vec::new(),
    };
    if filters.is_empty() {
        reader.expected(at, "a filter such as `{ filter: guest/function, columns: [id] }`, or a list of them");
    }
    filters.iter().filter_map(|at| read_binding(reader, at, "filter", FILTER_KEYS, None)).collect()
}

fn read_decision(reader: &mut Reader, column: &Spanned<String>, at: &Cursor<'_>) -> Option<Decision> {
    if let Kind::Mapping(_) = at.node.kind {
        return read_binding(reader, at, "mask", MASK_KEYS, Some(column)).map(Decision::Mask);
    }
    match at.scalar() {
        Some("pass") => return Some(Decision::Pass),
        Some("null") => return Some(Decision::Null),
        _ => {}
    }
    let allowed = "`pass`, `\"null\"` or a mask such as `{ mask: guest/function }`";
    let message = format!("column {} must be decided as {allowed}, found {}", code(column), at.found());
    match at.scalar().and_then(|written| nearest(written, ["pass", "null"])) {
        Some(near) => reader.error_with(at, message, format!("did you mean {}?", code(near))),
        None => reader.error(at, message),
    }
    None
}

/// Reads a mask (which stands at a column) or a filter (which does not).
fn read_binding(
    reader: &mut Reader,
    at: &Cursor<'_>,
    kind: &str,
    keys: &[&str],
    column: Option<&Spanned<String>>,
) -> Option<Binding> {
    // Keys that are not ours are arguments, so the mapping is read with free keys and sorted here.
    let entries = reader.entries(at)?;
    let (own, free): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| keys.contains(&key.value.as_str()));
    let fields = Fields::new(at, own);
    let function = reader.required(&fields, kind, &format!("`{kind}: guest/function`"));
    let function = function.and_then(|at| read_function(reader, &at));
    let outputs = match (column, fields.get("outputs")) {
        (Some(column), None) => vec![column.clone()],
        (Some(_), Some(at)) => read_columns(reader, &at),
        (None, _) => Vec::new(),
    };
    let columns = match (column, fields.get("columns")) {
        (_, Some(at)) => read_columns(reader, &at),
        (Some(_), None) => outputs.clone(),
        (None, None) => {
            reader.required(&fields, "columns", "`columns: […]`, the columns that the filter may see");
            Vec::new()
        }
    };
    let key = fields.get("key").and_then(|at| reader.text(&at));
    let domain = fields.get("domain").and_then(|at| reader.text(&at));
    let mut arguments = Map::new();
    let mut argument_spans = BTreeMap::new();
    for (name, at) in free {
        argument_spans.insert(name.value.clone(), name.span);
        match to_json(at.node) {
            Ok(value) => drop(arguments.insert(name.value.clone(), value)),
            Err(message) => reader.error(&at, message),
        }
    }
    Some(Binding { function: function?, columns, outputs, key, domain, arguments, argument_spans })
}

fn read_function(reader: &mut Reader, at: &Cursor<'_>) -> Option<Spanned<FunctionName>> {
    let text = reader.text(at)?;
    let parts = text.split_once('/').filter(|(guest, function)| !guest.is_empty() && !function.is_empty());
    match parts {
        Some((guest, function)) if !function.contains('/') => {
            let name = FunctionName { guest: guest.to_owned(), function: function.to_owned() };
            Some(Spanned::new(name, text.span))
        }
        _ => {
            reader.expected(at, "`guest/function`");
            None
        }
    }
}

/// A list of columns, which must not be empty.
fn read_columns(reader: &mut Reader, at: &Cursor<'_>) -> Vec<Spanned<String>> {
    let Some(columns) = reader.texts(at) else { return Vec::new() };
    if columns.is_empty() {
        reader.error(at, "the list of columns is empty");
    }
    for column in &columns {
        check_column_name(reader, column, &at.path);
    }
    columns
}

fn check_column_name(reader: &mut Reader, name: &Spanned<String>, path: &str) {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        let message = format!("{} cannot be a column: a name has 1 to {NAME_BYTES_MAX} bytes and no NUL", code(name));
        reader.diagnostics.push(Diagnostic::error(&reader.file, path, message).at(name.span));
    }
}

/// An argument as JSON, by the core schema of YAML 1.2: only what stands without quotes can be other than a text.
fn to_json(node: &Node) -> Result<Value, String> {
    match &node.kind {
        Kind::Scalar { text, plain: false } => Ok(Value::String(text.clone())),
        Kind::Scalar { text, plain: true } => plain_to_json(text),
        Kind::Sequence(items) => items.iter().map(to_json).collect::<Result<_, _>>().map(Value::Array),
        Kind::Mapping(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                if object.insert(key.value.clone(), to_json(value)?).is_some() {
                    return Err(format!("{} is written twice in this argument", code(key)));
                }
            }
            Ok(Value::Object(object))
        }
    }
}

fn plain_to_json(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let looks_numeric = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !looks_numeric {
        return Ok(Value::String(text.to_owned()));
    }
    if unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number to one reader of YAML, octal to another, a postcode to its author.
        return Err(format!("a number with a leading zero is ambiguous: write {} in quotes", code(text)));
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.trim_start_matches('+');
        let number = number.parse::<i64>().map(Number::from).or_else(|_| number.parse::<u64>().map(Number::from));
        return number
            .map(Value::Number)
            .map_err(|_| format!("{} does not fit 64 bits: write it in quotes", code(text)));
    }
    match text.parse::<f64>().ok().map(Number::from_f64) {
        Some(Some(number)) => Ok(Value::Number(number)),
        Some(None) => Err(format!("{} is out of range: write it in quotes", code(text))),
        // A date, a version, a range: a text to every reader of YAML.
        None => Ok(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
#[path = "policy_reader_tests.rs"]
mod tests;
