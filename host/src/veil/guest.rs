//! A guest as it is loaded: refused before it is compiled, compiled once a job, asked once what it offers.

use std::sync::Arc;

use wasmtime::component::{Component, InstancePre, Linker};

use super::abi::FunctionInfo;
use super::engine::Sandbox;
use super::inspect::{Refusal, inspect};
use super::instance::{HostState, Instance};
use super::sealed;
use crate::config::Digest;
use crate::error::{Error, Kind, Result};
use crate::limits;

/// Hexadecimal digits of a digest that messages show.
const DIGEST_SHOWN: usize = 12;

/// A component that has been admitted, with what it says it offers.
pub struct Guest {
    name: String,
    digest: Digest,
    sandbox: Sandbox,
    template: InstancePre<HostState>,
    functions: Vec<FunctionInfo>,
}

impl Guest {
    /// Admits a component: size, pinned digest, imports and interface version are checked, then it is compiled, started once and
    /// asked for its functions. Blocks for as long as compiling takes.
    ///
    /// # Errors
    /// [`Kind::GuestRefused`] with the [`Refusal`] as its cause. A trap while starting is a refusal too: no row has been seen.
    pub fn load(sandbox: &Sandbox, name: &str, bytes: &[u8], pinned: Option<Digest>) -> Result<Arc<Guest>> {
        let refused = |refusal| Error::new(Kind::GuestRefused, format!("guest {name}")).because(refusal);
        admit(bytes, pinned).map_err(refused)?;
        let digest = Digest::of(bytes);
        let component = Component::new(sandbox.engine(), bytes).map_err(|_| refused(Refusal::Invalid))?;
        let mut linker = Linker::new(sandbox.engine());
        sealed::define(sandbox.engine(), &component, &mut linker).map_err(refused)?;
        let template = linker.instantiate_pre(&component);
        let template =
            template.map_err(|_| refused(Refusal::Import("a WASI interface of another shape".to_owned())))?;
        let mut guest =
            Guest { name: name.to_owned(), digest, sandbox: sandbox.clone(), template, functions: Vec::new() };
        guest.functions = guest.describe()?;
        Ok(Arc::new(guest))
    }

    /// The name that the policy gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of the component.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What it offers, in its own order.
    #[must_use]
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// One function by its name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&FunctionInfo> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// How messages name it: `guest acme@9f2c0a1b2c3d`.
    #[must_use]
    pub fn place(&self) -> String {
        let digest: String = self.digest.to_string().chars().take(DIGEST_SHOWN).collect();
        format!("guest {}@{digest}", self.name)
    }

    /// A new instance, in a store of its own.
    ///
    /// # Errors
    /// The kind of the trap or limit that stopped it.
    pub(super) fn start(&self) -> Result<Instance> {
        Instance::start(&self.sandbox, &self.template).map_err(|error| error.within(self.place()))
    }

    /// A component that cannot start, or cannot describe itself, is refused, whatever stopped it.
    fn describe(&self) -> Result<Vec<FunctionInfo>> {
        let failed = |step, error: &Error| self.refused(Refusal::Failed { step, how: error.kind().text() });
        let started = Instance::start(&self.sandbox, &self.template);
        let instance = started.map_err(|error| match error.kind() {
            Kind::GuestRefused => error.within(self.place()),
            _ => failed("start", &error),
        })?;
        let functions = instance.describe().map_err(|error| failed("describe", &error))?;
        check_description(&functions).map_err(|refusal| self.refused(refusal))?;
        Ok(functions)
    }

    fn refused(&self, refusal: Refusal) -> Error {
        Error::new(Kind::GuestRefused, self.place()).because(refusal)
    }
}

/// What can be said about the bytes alone.
fn admit(bytes: &[u8], pinned: Option<Digest>) -> std::result::Result<(), Refusal> {
    let size = bytes.len() as u64;
    if size > limits::GUEST_FILE_BYTES_MAX {
        return Err(Refusal::TooLarge { bytes: size, max: limits::GUEST_FILE_BYTES_MAX });
    }
    let digest = Digest::of(bytes);
    if let Some(pinned) = pinned.filter(|pinned| *pinned != digest) {
        return Err(Refusal::OtherDigest { found: digest.to_string(), pinned: pinned.to_string() });
    }
    inspect(bytes)
}

/// A description must be one that policies can name and tools can print.
fn check_description(functions: &[FunctionInfo]) -> std::result::Result<(), Refusal> {
    let refused = |text: String| Err(Refusal::Description(text));
    for (position, function) in functions.iter().enumerate() {
        let name = &function.name;
        if !is_kebab(name) {
            return refused(format!("function {} has a name that is not kebab case", position + 1));
        }
        if functions[..position].iter().any(|earlier| earlier.name == *name) {
            return refused(format!("`{name}` is listed twice"));
        }
        if function.accepts.is_empty() {
            return refused(format!("`{name}` accepts no type"));
        }
        let schema = serde_json::from_str::<serde_json::Value>(&function.argument_schema);
        if !schema.is_ok_and(|schema| schema.is_object()) {
            return refused(format!("the argument schema of `{name}` is not a JSON object"));
        }
    }
    if functions.is_empty() { refused("it lists no function".to_owned()) } else { Ok(()) }
}

fn is_kebab(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(allowed)
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && !name.ends_with('-')
}
