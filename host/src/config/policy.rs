//! The policy file: for every column of every table, what happens to it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::name::TableName;
use super::span::{SourceFile, Span, Spanned};

/// A policy file as it was read and checked in itself. Whether its guests have its functions, and its tables its columns,
/// has yet to be seen.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename = "PgveilPolicy", deny_unknown_fields)]
pub struct Policy {
    /// The file, for later errors to point at.
    #[schemars(skip)]
    pub file: Arc<SourceFile>,
    /// The version of the file's form: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The components, by the name that functions are called with.
    #[schemars(with = "Option<BTreeMap<String, Guest>>")]
    pub guests: BTreeMap<String, Guest>,
    /// The keys, by the name that bindings give.
    #[schemars(with = "Option<BTreeMap<String, Key>>")]
    pub keys: BTreeMap<String, Key>,
    /// The tables, as SQL writes their names.
    #[schemars(with = "BTreeMap<String, TablePolicy>")]
    pub tables: BTreeMap<TableName, TablePolicy>,
}

/// One entry of `guests`.
#[derive(Debug, Clone)]
pub struct Guest {
    /// The name it was given.
    pub name: Spanned<String>,
    /// Where the component comes from.
    pub source: GuestSource,
}

/// Where a component comes from.
#[derive(Debug, Clone)]
pub enum GuestSource {
    /// Embedded in the program: `{ builtin: standard }`.
    Builtin(Spanned<String>),
    /// A file: `{ path: …, blake3: … }`.
    File {
        /// The file, resolved against the directory of the policy file.
        path: Spanned<PathBuf>,
        /// The only digest that is accepted. Without it any component at that path is run, which is warned of.
        blake3: Option<Spanned<Digest>>,
    },
}

/// The blake3 digest of a component, written as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// One entry of `keys`.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Key {
    /// The name it was given. It is part of what a guest's key is derived from.
    #[schemars(skip)]
    pub name: Spanned<String>,
    /// The environment variable that holds it: hex or base64, at least 32 bytes.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub env: Spanned<String>,
}

/// One entry of `tables`.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TablePolicy {
    /// The table.
    #[schemars(skip)]
    pub table: Spanned<TableName>,
    /// The filters; a row is kept when all of them keep it. One may be written without the list.
    #[schemars(schema_with = "super::schema::filters")]
    pub keep: Vec<Binding>,
    /// What happens to each column, by its exact name.
    #[schemars(with = "Option<BTreeMap<String, Decision>>")]
    pub columns: BTreeMap<String, ColumnPolicy>,
    /// What happens to the columns not named.
    #[schemars(schema_with = "super::schema::rest")]
    pub rest: Spanned<Rest>,
    /// Columns that look personal and are passed on purpose: `check` no longer warns of them.
    #[schemars(with = "Option<Vec<String>>")]
    pub acknowledge: Vec<Spanned<String>>,
}

/// One entry of a table's `columns`.
#[derive(Debug, Clone)]
pub struct ColumnPolicy {
    /// The column's exact name.
    pub column: Spanned<String>,
    /// What happens to it.
    pub decision: Decision,
    /// Where the decision was written.
    pub span: Span,
}

/// What happens to a column.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each column of a policy: thousands at most, and none on a row's way"
)]
pub enum Decision {
    /// Copied as it is.
    Pass,
    /// Replaced by NULL.
    Null,
    /// Computed by a mask.
    Mask(Binding),
}

/// A mask or filter with all that is bound to it for one table.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The function, `guest/function`.
    pub function: Spanned<FunctionName>,
    /// The columns that the guest is granted, in this order. For a mask that names none: its outputs.
    pub columns: Vec<Spanned<String>>,
    /// The columns that a mask writes, in this order: what `outputs` lists, else the column it stands at. Empty for a filter.
    pub outputs: Vec<Spanned<String>>,
    /// The name of the key, if the function is given one.
    pub key: Option<Spanned<String>>,
    /// The domain that the guest's key is derived for. Bindings that share key and domain mask alike.
    pub domain: Option<Spanned<String>>,
    /// All other entries, for the function, as JSON.
    pub arguments: Map<String, Value>,
    /// Where each argument's key was written.
    pub argument_spans: BTreeMap<String, Span>,
}

/// `guest/function`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionName {
    /// A name of `guests`.
    pub guest: String,
    /// A name that the guest describes.
    pub function: String,
}

/// What happens to the columns that a table's policy does not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rest {
    /// The job refuses to start, and stops when one appears.
    #[default]
    Deny,
    /// They are copied as they are.
    Pass,
    /// They are replaced by NULL.
    Null,
}

impl TablePolicy {
    /// Every column the policy names as decided: own entries and outputs of masks.
    pub fn decided(&self) -> impl Iterator<Item = &str> {
        let outputs = self.columns.values().filter_map(|column| match &column.decision {
            Decision::Mask(binding) => Some(binding.outputs.iter().map(|output| output.value.as_str())),
            Decision::Pass | Decision::Null => None,
        });
        let own = self.columns.values().filter(|column| !matches!(column.decision, Decision::Mask(_)));
        own.map(|column| column.column.value.as_str()).chain(outputs.flatten())
    }

    /// Every mask of the table.
    pub fn masks(&self) -> impl Iterator<Item = &Binding> {
        self.columns.values().filter_map(|column| match &column.decision {
            Decision::Mask(binding) => Some(binding),
            Decision::Pass | Decision::Null => None,
        })
    }

    /// Every binding of the table: filters first, then masks.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.keep.iter().chain(self.masks())
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.guest, self.function)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl Digest {
    /// The digest of a component's bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }
}

impl JsonSchema for Guest {
    fn schema_name() -> Cow<'static, str> {
        "Guest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        super::schema::guest()
    }
}

impl JsonSchema for Decision {
    fn schema_name() -> Cow<'static, str> {
        "Decision".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        super::schema::decision()
    }
}

impl JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-fA-F]{64}$" })
    }
}
