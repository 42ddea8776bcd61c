//! What a function knows when it is bound: columns, key, names.

use crate::bindings::pgveil::policy::types::Binding;
use crate::{ColumnInfo, Fault, Key, Outcome, Random, TableInfo};

/// What pgveil told when it bound a function to a table. Nothing here is row data.
#[derive(Clone)]
pub struct Context {
    binding: Binding,
    key: Option<Key>,
}

impl Context {
    /// Takes a binding apart. A key that is not 32 bytes is refused: it would not be one of pgveil's.
    pub(crate) fn new(mut binding: Binding) -> Result<Self, String> {
        let key = match binding.key.take() {
            None => None,
            Some(bytes) => {
                let bytes = <[u8; 32]>::try_from(bytes.as_slice())
                    .map_err(|_| format!("a key has 32 bytes, this one has {}", bytes.len()))?;
                Some(Key::new(bytes))
            }
        };
        Ok(Self { binding, key })
    }

    /// The name under which the policy calls the function.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.binding.function
    }

    /// The table whose rows will come.
    #[must_use]
    pub fn table(&self) -> &TableInfo {
        &self.binding.table
    }

    /// The columns granted, in the policy's order.
    #[must_use]
    pub fn inputs(&self) -> &[ColumnInfo] {
        &self.binding.inputs
    }

    /// The columns written, in the policy's order; empty for a filter.
    #[must_use]
    pub fn outputs(&self) -> &[ColumnInfo] {
        &self.binding.outputs
    }

    /// The most characters that the output column at this position holds; no limit where the type has none.
    #[must_use]
    pub fn character_limit(&self, output: usize) -> Option<usize> {
        self.outputs().get(output).and_then(ColumnInfo::character_limit)
    }

    /// The position of a granted column.
    ///
    /// # Errors
    /// The policy grants no column of that name; the text says which it grants.
    pub fn input(&self, name: &str) -> Result<usize, String> {
        self.inputs().iter().position(|column| column.name == name).ok_or_else(|| {
            let granted: Vec<_> = self.inputs().iter().map(|column| column.name.as_str()).collect();
            format!("it needs the column {name:?}; granted are {granted:?}")
        })
    }

    /// The same table and key, for a function that masks a part of the values.
    pub(crate) fn for_part(&self, function: &str, arguments: &str, part: ColumnInfo, keyed: bool) -> Self {
        let table = self.binding.table.clone();
        let (function, arguments) = (function.to_owned(), arguments.to_owned());
        let (inputs, outputs) = (vec![part.clone()], vec![part]);
        let binding = Binding { function, table, inputs, outputs, arguments, key: None };
        Self { binding, key: self.key.clone().filter(|_| keyed) }
    }

    /// The policy's arguments, as JSON text.
    pub(crate) fn arguments(&self) -> &str {
        &self.binding.arguments
    }

    /// Whether the policy gives a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// A key for one purpose, such as the function's name. Two functions that name the same purpose, under one key, make the same
    /// choices for the same value; all others are unrelated.
    ///
    /// # Errors
    /// The policy gives no key.
    pub fn key(&self, purpose: &str) -> Result<Key, String> {
        self.key.as_ref().map(|key| key.derive(purpose)).ok_or_else(|| "it needs a key: add `key: NAME`".to_owned())
    }

    /// A keyed hash of a value, for plain functions. What is bound once should hold a [`Key`] instead.
    ///
    /// # Errors
    /// There is no key; a function that calls this declares [`KeyUse::Required`](crate::KeyUse::Required).
    pub fn hash(&self, value: &str) -> Outcome<[u8; 32]> {
        let key = self.key.as_ref().ok_or(Fault::INTERNAL)?;
        Ok(key.derive(self.function()).hash(value.as_bytes()))
    }

    /// A random stream that depends on key and value alone, for plain functions.
    ///
    /// # Errors
    /// As for [`hash`](Self::hash).
    pub fn random<'value>(&self, value: &'value str) -> Outcome<Random<'value>> {
        let key = self.key.as_ref().ok_or(Fault::INTERNAL)?;
        Ok(key.derive(self.function()).random(value.as_bytes()))
    }
}
