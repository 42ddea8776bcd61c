//! A function with its description: what `describe` tells and `bind` opens.

use crate::batch::{BoundFilter, BoundMask};
use crate::bindings::exports::pgveil::policy::policy::{AcceptedType, Arity, Example, FunctionInfo, FunctionKind};
use crate::{ColumnInfo, Context, Guarantees, KeyUse};
use schemars::JsonSchema;

/// What a column must be for a function to accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Any type.
    Any,
    /// Text-like types: `text`, `varchar`, `char(n)`, `citext`, and domains over them.
    Strings,
    /// All types of a category, by `pg_type.typcategory`.
    Category(char),
    /// One type, by `pg_type.typname`, and domains over it.
    Named(&'static str),
}

impl Accepts {
    fn into_wire(self) -> AcceptedType {
        match self {
            Self::Any => AcceptedType::Any,
            Self::Strings => AcceptedType::Category('S'),
            Self::Category(category) => AcceptedType::Category(category),
            Self::Named(name) => AcceptedType::Named(name.to_owned()),
        }
    }
}

pub(crate) type OpenMask = Box<dyn Fn(Context, Guarantees) -> Result<Box<dyn BoundMask>, String>>;
pub(crate) type OpenFilter = Box<dyn Fn(Context) -> Result<Box<dyn BoundFilter>, String>>;

/// How a function is opened once a binding is admitted.
pub(crate) enum Open {
    Mask(OpenMask),
    Filter(OpenFilter),
}

/// A mask or filter, its description included.
///
/// A new one accepts strings, uses no key and promises to be deterministic; a mask of one value also to preserve NULL. Whatever differs is
/// said by the methods below.
pub struct Function {
    info: FunctionInfo,
    open: Open,
    /// Writes the JSON Schema of the arguments; only a description needs it.
    schema: fn() -> String,
}

impl Function {
    pub(crate) fn new<A: JsonSchema>(name: &str, kind: FunctionKind, open: Open) -> Self {
        let (outputs, guarantees) = match kind {
            FunctionKind::Mask => (1, Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING),
            FunctionKind::Filter => (0, Guarantees::DETERMINISTIC),
        };
        let info = FunctionInfo {
            name: name.to_owned(),
            kind,
            doc: String::new(),
            argument_schema: String::new(),
            accepts: vec![Accepts::Strings.into_wire()],
            inputs: Arity { at_least: 1, at_most: (kind == FunctionKind::Mask).then_some(1) },
            outputs: Arity { at_least: outputs, at_most: Some(outputs) },
            key: KeyUse::None,
            guarantees,
            example: Example { arguments: "{}".to_owned(), inputs: Vec::new(), outputs: Vec::new() },
        };
        Self { info, open, schema: || schemars::schema_for!(A).as_value().to_string() }
    }

    /// What it does, in Markdown; the first line stands alone in lists.
    #[must_use]
    pub fn doc(mut self, doc: &str) -> Self {
        doc.clone_into(&mut self.info.doc);
        self
    }

    /// Which columns it accepts, instead of strings.
    #[must_use]
    pub fn accepts(mut self, accepts: &[Accepts]) -> Self {
        self.info.accepts = accepts.iter().copied().map(Accepts::into_wire).collect();
        self
    }

    /// What it promises, whatever its arguments are, instead of the promises that it starts with.
    #[must_use]
    pub fn guarantees(mut self, guarantees: Guarantees) -> Self {
        self.info.guarantees = guarantees;
        self
    }

    /// Whether it uses a key.
    #[must_use]
    pub fn key(mut self, key: KeyUse) -> Self {
        self.info.key = key;
        self
    }

    /// How many input columns it takes, where that is not one.
    #[must_use]
    pub fn inputs(mut self, at_least: u32, at_most: Option<u32>) -> Self {
        self.info.inputs = Arity { at_least, at_most };
        self
    }

    /// How many output columns it writes, where that is not one.
    #[must_use]
    pub fn outputs(mut self, at_least: u32, at_most: Option<u32>) -> Self {
        self.info.outputs = Arity { at_least, at_most };
        self
    }

    /// A call with its outcome, which tests repeat; under the example key 00 01 … 1f where the function uses one. A filter's outcome is
    /// `keep` or `drop`.
    #[must_use]
    pub fn example<'a, I, O>(
        mut self,
        arguments: &str,
        inputs: impl IntoIterator<Item = I>,
        outputs: impl IntoIterator<Item = O>,
    ) -> Self
    where
        I: Into<Option<&'a str>>,
        O: Into<Option<&'a str>>,
    {
        self.info.example = Example {
            arguments: arguments.to_owned(),
            inputs: inputs.into_iter().map(|value| value.into().map(str::to_owned)).collect(),
            outputs: outputs.into_iter().map(|value| value.into().map(str::to_owned)).collect(),
        };
        self
    }

    /// The name that a policy writes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn info(&self) -> &FunctionInfo {
        &self.info
    }

    pub(crate) fn uses_key(&self) -> bool {
        self.info.key != KeyUse::None
    }

    pub(crate) fn into_info(self) -> FunctionInfo {
        FunctionInfo { argument_schema: (self.schema)(), ..self.info }
    }

    pub(crate) fn open_mask(&self, context: Context) -> Result<Box<dyn BoundMask>, String> {
        self.admit(&context)?;
        match &self.open {
            Open::Mask(open) => open(context, self.info.guarantees),
            Open::Filter(_) => Err(format!("{} is a filter, not a mask", self.info.name)),
        }
    }

    pub(crate) fn open_filter(&self, context: Context) -> Result<Box<dyn BoundFilter>, String> {
        self.admit(&context)?;
        match &self.open {
            Open::Filter(open) => open(context),
            Open::Mask(_) => Err(format!("{} is a mask, not a filter", self.info.name)),
        }
    }

    /// Refuses a binding that the description rules out.
    fn admit(&self, context: &Context) -> Result<(), String> {
        within("input", context.inputs().len(), &self.info.inputs)?;
        within("output", context.outputs().len(), &self.info.outputs)?;
        for column in context.inputs() {
            if !self.info.accepts.iter().any(|accepted| admits(accepted, column)) {
                return Err(format!("it does not accept column {:?} of type {}", column.name, column.type_name));
            }
        }
        match self.info.key {
            KeyUse::Required if !context.has_key() => Err("it needs a key: add `key: NAME`".to_owned()),
            KeyUse::None if context.has_key() => Err("it has no use for a key: leave `key` out".to_owned()),
            _ => Ok(()),
        }
    }
}

fn within(what: &str, count: usize, arity: &Arity) -> Result<(), String> {
    let at_least = arity.at_least as usize;
    let at_most = arity.at_most.map_or(usize::MAX, |most| most as usize);
    if (at_least..=at_most).contains(&count) {
        return Ok(());
    }
    let wanted = match arity.at_most {
        Some(most) if most == arity.at_least => format!("{most}"),
        Some(most) => format!("{at_least} to {most}"),
        None => format!("at least {at_least}"),
    };
    Err(format!("it takes {wanted} {what} column(s), the policy names {count}"))
}

fn admits(accepted: &AcceptedType, column: &ColumnInfo) -> bool {
    match accepted {
        AcceptedType::Any => true,
        AcceptedType::Named(name) => *name == column.base_type_name,
        AcceptedType::Category(category) => *category == column.category,
    }
}
