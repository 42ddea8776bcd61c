//! The guest interface `pgveil:policy` in Rust: the records of `wit/`, field for field.
//!
//! Written by hand rather than generated, because a batch is lowered straight from the host's reused vectors: a generated
//! record would own its lists. Wasmtime compares these types with the component's own when a guest is loaded, so that a
//! difference is refused there and never met by a row.

use wasmtime::component::{ComponentType, Lift, Lower};

/// The one version of the interface that this host speaks.
pub const INTERFACE_VERSION: &str = "0.1.0";

/// The interface that a guest exports.
pub(super) const POLICY_INTERFACE: &str = "pgveil:policy/policy@0.1.0";

/// The interface of types alone, which an export may use and a component therefore imports. It has no functions.
pub(super) const TYPES_INTERFACE: &str = "pgveil:policy/types@0.1.0";

/// `column.states`: a value.
pub(super) const STATE_VALUE: u8 = 0;
/// `column.states`: NULL.
pub(super) const STATE_NULL: u8 = 1;
/// `column.states`: a large value that an UPDATE left alone.
pub(super) const STATE_UNCHANGED: u8 = 2;

/// `types.column-info`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(super) struct ColumnInfo {
    pub name: String,
    #[component(name = "type-name")]
    pub type_name: String,
    #[component(name = "base-type-name")]
    pub base_type_name: String,
    pub category: char,
    #[component(name = "type-oid")]
    pub type_oid: u32,
    pub typmod: i32,
    pub nullable: bool,
    pub identity: bool,
}

/// `types.table-info`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(super) struct TableInfo {
    pub schema: String,
    pub name: String,
    pub columns: Vec<ColumnInfo>,
}

/// `types.binding`. No `Debug`: it holds a derived key.
#[derive(Clone, ComponentType, Lower)]
#[component(record)]
pub(super) struct BindingInfo {
    pub function: String,
    pub table: TableInfo,
    pub inputs: Vec<ColumnInfo>,
    pub outputs: Vec<ColumnInfo>,
    pub arguments: String,
    pub key: Option<Vec<u8>>,
}

/// `types.column` on its way in: lent from the host's vectors.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(super) struct ColumnIn<'a> {
    pub states: &'a [u8],
    pub ends: &'a [u32],
    pub bytes: &'a [u8],
}

/// `types.batch` on its way in.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(super) struct BatchIn<'a> {
    pub rows: u32,
    pub columns: &'a [ColumnIn<'a>],
}

/// `types.column` on its way out: not to be trusted before `check` has seen it.
#[derive(Default, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(super) struct ColumnOut {
    pub states: Vec<u8>,
    pub ends: Vec<u32>,
    pub bytes: Vec<u8>,
}

/// `types.fault-code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "only the engine makes one, of a guest's answer")]
pub(super) enum FaultCode {
    #[component(name = "invalid-input")]
    InvalidInput,
    #[component(name = "unsupported-value")]
    UnsupportedValue,
    #[component(name = "needs-unchanged")]
    NeedsUnchanged,
    #[component(name = "out-of-range")]
    OutOfRange,
    #[component(name = "too-long")]
    TooLong,
    #[component(name = "internal")]
    Internal,
}

impl FaultCode {
    /// The code as the WIT spells it.
    pub(super) fn name(self) -> &'static str {
        match self {
            FaultCode::InvalidInput => "invalid-input",
            FaultCode::UnsupportedValue => "unsupported-value",
            FaultCode::NeedsUnchanged => "needs-unchanged",
            FaultCode::OutOfRange => "out-of-range",
            FaultCode::TooLong => "too-long",
            FaultCode::Internal => "internal",
        }
    }
}

/// `types.fault`.
#[derive(Clone, Copy, Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct Fault {
    pub code: FaultCode,
    pub row: u32,
    pub column: u32,
}

/// `policy.function-kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
pub enum FunctionKind {
    /// New values for one or more columns.
    #[component(name = "mask")]
    Mask,
    /// Keep the row or drop it.
    #[component(name = "filter")]
    Filter,
}

/// `policy.accepted-type`: what an input column must be.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(variant)]
pub enum AcceptedType {
    /// Any type at all.
    #[component(name = "any")]
    Any,
    /// A type by the name of its base type, such as `uuid`.
    #[component(name = "named")]
    Named(String),
    /// A category of `pg_type.typcategory`, such as `S`.
    #[component(name = "category")]
    Category(char),
}

mod promises {
    #![expect(missing_docs, reason = "the macro takes no documentation; `wit/policy.wit` has it")]

    wasmtime::component::flags! {
        Guarantees {
            #[component(name = "deterministic")]
            const DETERMINISTIC;
            #[component(name = "injective")]
            const INJECTIVE;
            #[component(name = "null-preserving")]
            const NULL_PRESERVING;
            #[component(name = "type-preserving")]
            const TYPE_PRESERVING;
        }
    }
}

pub use promises::Guarantees;

/// `policy.arity`: how many columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub struct Arity {
    /// At least so many.
    #[component(name = "at-least")]
    pub at_least: u32,
    /// At most so many, where there is a limit.
    #[component(name = "at-most")]
    pub at_most: Option<u32>,
}

impl Arity {
    /// Whether so many columns are within.
    #[must_use]
    pub fn admits(self, count: usize) -> bool {
        count >= self.at_least as usize && self.at_most.is_none_or(|most| count <= most as usize)
    }
}

/// `policy.key-use`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
pub enum KeyUse {
    /// A policy that names a key is refused.
    #[component(name = "none")]
    None,
    /// A key is taken where the policy gives one.
    #[component(name = "optional")]
    Optional,
    /// The function cannot be bound without one.
    #[component(name = "required")]
    Required,
}

/// `policy.example`: one call with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub struct Example {
    /// The arguments, a JSON object.
    pub arguments: String,
    /// One value per input column.
    pub inputs: Vec<Option<String>>,
    /// One value per output column; for a filter, `keep` or `drop`.
    pub outputs: Vec<Option<String>>,
}

/// `policy.function-info`: a function as its guest describes it.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub struct FunctionInfo {
    /// The name that a policy writes after the guest's.
    pub name: String,
    /// Mask or filter.
    pub kind: FunctionKind,
    /// What it does, in Markdown.
    pub doc: String,
    /// JSON Schema of the arguments.
    #[component(name = "argument-schema")]
    pub argument_schema: String,
    /// What an input column must be: one of these.
    pub accepts: Vec<AcceptedType>,
    /// How many input columns.
    pub inputs: Arity,
    /// How many output columns.
    pub outputs: Arity,
    /// Whether it uses a key.
    pub key: KeyUse,
    /// What holds whatever the arguments are.
    pub guarantees: Guarantees,
    /// A call with its outcome.
    pub example: Example,
}
