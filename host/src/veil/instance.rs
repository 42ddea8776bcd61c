//! One running guest: a store with its limits, and the masks and filters bound in it.
//!
//! An instance that failed is never entered again. The types hold that: [`bind`](Instance::bind), [`apply`](Instance::apply)
//! and [`keep`](Instance::keep) take the instance and give it back only when all went well.

use wasmtime::component::{ComponentExportIndex, Func, Instance as ComponentInstance, InstancePre, ResourceAny};
use wasmtime::{ResourceLimiter, Store, Trap};

use super::abi::{BatchIn, BindingInfo, ColumnOut, Fault, FunctionInfo, FunctionKind, Guarantees, POLICY_INTERFACE};
use super::engine::{GuestLimits, Sandbox};
use super::inspect::Refusal;
use super::sealed::SealedCall;
use crate::error::{Error, Kind, Result};

/// Table elements of an instance, eight bytes each. A large Rust program has a few thousand.
const TABLE_ELEMENTS_MAX: usize = 1 << 20;

/// Core instances, memories and tables of one store. `cargo component` makes four, with one memory.
const PARTS_MAX: usize = 64;

/// Handles that are alive at once: the bindings of a job, and what a guest makes of its own. The engine keeps each in host memory.
const HANDLES_MAX: usize = 4096;

/// Bytes that a guest may hand to the host in one call besides a batch's output: the description, a panic message on its way to
/// nowhere.
const HOST_BYTES: usize = 1024 * 1024;

/// Calls at load and at bind are given the fuel of this many rows.
const START_ROWS: usize = 1000;

/// What the store holds for the host.
pub(super) struct HostState {
    memory_bytes: usize,
    memory_bytes_max: usize,
    table_elements: usize,
    sealed_calls: u32,
    discarded_bytes: u64,
}

impl HostState {
    /// Counts a call into the sealed WASI and tells how many this guest call has made.
    pub(super) fn count_sealed_call(&mut self) -> u32 {
        self.sealed_calls = self.sealed_calls.saturating_add(1);
        self.sealed_calls
    }

    /// Counts output that is thrown away.
    pub(super) fn discard(&mut self, bytes: u64) {
        self.discarded_bytes = self.discarded_bytes.saturating_add(bytes);
    }
}

/// The guest asked for more memory than it may have. An error rather than a refusal: a refused `memory.grow` lets the guest go on.
#[derive(Debug, thiserror::Error)]
#[error("the limit is {max} bytes")]
struct MemoryLimit {
    max: usize,
}

impl ResourceLimiter for HostState {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // The sum over all memories of the store: an instance may have several.
        let total = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if total > self.memory_bytes_max {
            return Err(MemoryLimit { max: self.memory_bytes_max }.into());
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.table_elements = self.table_elements.saturating_add(desired.saturating_sub(current));
        if self.table_elements > TABLE_ELEMENTS_MAX {
            return Err(MemoryLimit { max: TABLE_ELEMENTS_MAX * size_of::<usize>() }.into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}

/// The functions of the interface, looked up by name once.
struct Exports {
    describe: Func,
    mask_bind: Func,
    mask_guarantees: Func,
    mask_apply: Func,
    filter_bind: Func,
    filter_keep: Func,
}

/// A mask or filter that is bound in an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound(pub usize);

/// A running guest.
pub(super) struct Instance {
    limits: GuestLimits,
    store: Store<HostState>,
    exports: Exports,
    bound: Vec<ResourceAny>,
}

/// Why `bind` said no, in the guest's words. All bindings of an instance are bound before its first row, so no row can be in it.
#[derive(Debug, thiserror::Error)]
#[error("the guest says: {0}")]
pub(super) struct BindRefusal(pub String);

/// Why a call over a batch gave nothing.
pub(super) enum CallError {
    /// The guest refused a row. Its numbers are not to be trusted.
    Fault(Fault),
    /// It trapped, ran out of something, or returned what cannot be lifted.
    Failed(Error),
}

impl From<&wasmtime::Error> for CallError {
    fn from(error: &wasmtime::Error) -> CallError {
        CallError::Failed(failure(error))
    }
}

/// The instance again, and what it answered.
pub(super) type Called<T> = std::result::Result<(Instance, T), CallError>;

type BindReturn = (std::result::Result<ResourceAny, String>,);
type ApplyReturn = (std::result::Result<Vec<ColumnOut>, Fault>,);
type KeepReturn = (std::result::Result<Vec<u8>, Fault>,);

impl Instance {
    /// Makes an instance in a store of its own.
    ///
    /// # Errors
    /// The kind of trap or limit; [`Kind::GuestRefused`] when an export is missing or has another type.
    pub(super) fn start(sandbox: &Sandbox, template: &InstancePre<HostState>) -> Result<Instance> {
        let limits = *sandbox.limits();
        let mut store = new_store(sandbox)?;
        let instance = template.instantiate(&mut store).map_err(|error| failure(&error).within("starting"))?;
        let exports = Exports::find(&mut store, &instance);
        let exports = exports.map_err(|refusal| Error::new(Kind::GuestRefused, "").because(refusal))?;
        Ok(Instance { limits, store, exports, bound: Vec::new() })
    }

    /// Asks the guest what it offers.
    ///
    /// # Errors
    /// The kind of trap or limit.
    pub(super) fn describe(mut self) -> Result<Vec<FunctionInfo>> {
        arm(&mut self.store, &self.limits, START_ROWS, HOST_BYTES)?;
        let describe = self.exports.describe.typed::<(), (Vec<FunctionInfo>,)>(&self.store);
        let described = describe.and_then(|describe| describe.call(&mut self.store, ()));
        described.map(|(functions,)| functions).map_err(|error| failure(&error).within("describe"))
    }

    /// Binds a function and tells what this binding guarantees (nothing, for a filter).
    ///
    /// # Errors
    /// [`Kind::GuestBind`] when the guest refuses the binding, else the kind of trap or limit.
    pub(super) fn bind(mut self, kind: FunctionKind, binding: &BindingInfo) -> Result<(Instance, Bound, Guarantees)> {
        arm(&mut self.store, &self.limits, START_ROWS, HOST_BYTES)?;
        let bind = match kind {
            FunctionKind::Mask => self.exports.mask_bind,
            FunctionKind::Filter => self.exports.filter_bind,
        };
        let bind = bind.typed::<(BindingInfo,), BindReturn>(&self.store).map_err(|error| failure(&error))?;
        let (answer,) =
            bind.call(&mut self.store, (binding.clone(),)).map_err(|error| failure(&error).within("bind"))?;
        let handle = answer.map_err(|text| Error::new(Kind::GuestBind, "").because(BindRefusal(printable(&text))))?;
        let guarantees = match kind {
            FunctionKind::Filter => Guarantees::default(),
            FunctionKind::Mask => {
                let ask = self.exports.mask_guarantees.typed::<(ResourceAny,), (Guarantees,)>(&self.store);
                let asked = ask.and_then(|ask| ask.call(&mut self.store, (handle,)));
                asked.map(|(guarantees,)| guarantees).map_err(|error| failure(&error).within("guarantees"))?
            }
        };
        self.bound.push(handle);
        let bound = Bound(self.bound.len() - 1);
        Ok((self, bound, guarantees))
    }

    /// Calls a mask over a batch. The columns that come back are not checked yet.
    ///
    /// # Errors
    /// A fault, the kind of trap or limit, or [`Kind::GuestOutput`] for what cannot be lifted.
    pub(super) fn apply(mut self, bound: Bound, batch: BatchIn<'_>) -> Called<Vec<ColumnOut>> {
        self.arm_for(&batch).map_err(CallError::Failed)?;
        let apply = self.exports.mask_apply.typed::<(ResourceAny, BatchIn<'_>), ApplyReturn>(&self.store);
        let answer = apply.and_then(|apply| apply.call(&mut self.store, (self.bound[bound.0], batch)));
        let (answer,) = answer.map_err(|error| CallError::from(&error))?;
        let columns = answer.map_err(CallError::Fault)?;
        Ok((self, columns))
    }

    /// Calls a filter over a batch. The answer is not checked yet.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub(super) fn keep(mut self, bound: Bound, batch: BatchIn<'_>) -> Called<Vec<u8>> {
        self.arm_for(&batch).map_err(CallError::Failed)?;
        let keep = self.exports.filter_keep.typed::<(ResourceAny, BatchIn<'_>), KeepReturn>(&self.store);
        let answer = keep.and_then(|keep| keep.call(&mut self.store, (self.bound[bound.0], batch)));
        let (answer,) = answer.map_err(|error| CallError::from(&error))?;
        let kept = answer.map_err(CallError::Fault)?;
        Ok((self, kept))
    }

    /// The bytes that a call over so many bytes may return.
    pub(super) fn output_bytes_max(&self, input_bytes: usize) -> usize {
        self.limits.output_bytes(input_bytes)
    }

    fn arm_for(&mut self, batch: &BatchIn<'_>) -> Result<()> {
        let rows = batch.rows as usize;
        let input_bytes = batch.columns.iter().map(|column| column.bytes.len()).sum();
        // States and offsets take five bytes a row and column; a mask has few outputs, and each must be within this.
        let frame = rows.saturating_mul(5).saturating_mul(batch.columns.len().max(8));
        let output = self.limits.output_bytes(input_bytes).saturating_add(frame).saturating_add(HOST_BYTES);
        arm(&mut self.store, &self.limits, rows, output)
    }
}

impl Exports {
    fn find(store: &mut Store<HostState>, instance: &ComponentInstance) -> std::result::Result<Exports, Refusal> {
        let policy = instance.get_export_index(&mut *store, None, POLICY_INTERFACE).ok_or(Refusal::NoPolicy)?;
        let mut find = |name: &str| find_func(store, instance, &policy, name);
        let exports = Exports {
            describe: find("describe")?,
            mask_bind: find("[static]mask.bind")?,
            mask_guarantees: find("[method]mask.guarantees")?,
            mask_apply: find("[method]mask.apply")?,
            filter_bind: find("[static]filter.bind")?,
            filter_keep: find("[method]filter.keep")?,
        };
        exports.check_types(store)?;
        Ok(exports)
    }

    /// Compares every type with `wit/` before anything is called.
    fn check_types(&self, store: &Store<HostState>) -> std::result::Result<(), Refusal> {
        let checks = [
            ("describe", self.describe.typed::<(), (Vec<FunctionInfo>,)>(store).is_ok()),
            ("mask.bind", self.mask_bind.typed::<(BindingInfo,), BindReturn>(store).is_ok()),
            ("mask.guarantees", self.mask_guarantees.typed::<(ResourceAny,), (Guarantees,)>(store).is_ok()),
            ("mask.apply", self.mask_apply.typed::<(ResourceAny, BatchIn<'_>), ApplyReturn>(store).is_ok()),
            ("filter.bind", self.filter_bind.typed::<(BindingInfo,), BindReturn>(store).is_ok()),
            ("filter.keep", self.filter_keep.typed::<(ResourceAny, BatchIn<'_>), KeepReturn>(store).is_ok()),
        ];
        match checks.iter().find(|(_, agrees)| !agrees) {
            Some((name, _)) => Err(Refusal::ExportType((*name).to_owned())),
            None => Ok(()),
        }
    }
}

fn find_func(
    store: &mut Store<HostState>,
    instance: &ComponentInstance,
    policy: &ComponentExportIndex,
    name: &str,
) -> std::result::Result<Func, Refusal> {
    let index = instance.get_export_index(&mut *store, Some(policy), name);
    let func = index.and_then(|index| instance.get_func(&mut *store, index));
    func.ok_or_else(|| Refusal::ExportType(name.to_owned()))
}

/// A store with every limit set, for one instance and no more: what an instance leaves behind goes with its store.
pub(super) fn new_store(sandbox: &Sandbox) -> Result<Store<HostState>> {
    let limits = sandbox.limits();
    let state = HostState {
        memory_bytes: 0,
        memory_bytes_max: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
        table_elements: 0,
        sealed_calls: 0,
        discarded_bytes: 0,
    };
    let mut store = Store::new(sandbox.engine(), state);
    store.limiter(|state| state);
    store.set_max_component_handles(HANDLES_MAX);
    arm(&mut store, limits, START_ROWS, HOST_BYTES)?;
    Ok(store)
}

/// Sets every limit of the next call anew. What the last call left over is not trusted: fuel burnt before a trap is not charged.
fn arm(store: &mut Store<HostState>, limits: &GuestLimits, rows: usize, host_bytes: usize) -> Result<()> {
    store.set_fuel(limits.fuel(rows)).map_err(|_| Error::new(Kind::Internal, "setting a guest's fuel"))?;
    store.set_epoch_deadline(limits.deadline_ticks());
    store.set_hostcall_fuel(host_bytes);
    store.data_mut().sealed_calls = 0;
    Ok(())
}

/// The kind of a failed call. No text of the guest is in it: a trap's name is the engine's, the rest is dropped.
fn failure(error: &wasmtime::Error) -> Error {
    if let Some(limit) = error.downcast_ref::<MemoryLimit>() {
        return Error::new(Kind::GuestMemory, "").because(MemoryLimit { max: limit.max });
    }
    if let Some(call) = error.downcast_ref::<SealedCall>() {
        return Error::new(Kind::GuestTrap, "").because(SealedCall(call.0.clone()));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Error::new(Kind::GuestFuel, ""),
        Some(Trap::Interrupt) => Error::new(Kind::GuestDeadline, ""),
        Some(trap) => Error::new(Kind::GuestTrap, "").because(*trap),
        // Not a trap: the engine could not lift what the guest returned, or the guest ran into a limit of the engine's tables.
        None => Error::new(Kind::GuestOutput, "lifting what the guest returned"),
    }
}

/// The guest's words to a policy's author: one line, of a sensible length, nothing that a terminal would act on.
fn printable(text: &str) -> String {
    const CHARACTERS_MAX: usize = 500;
    text.chars().take(CHARACTERS_MAX).map(|each| if each.is_control() { ' ' } else { each }).collect()
}
