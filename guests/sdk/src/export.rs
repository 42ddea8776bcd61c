//! The component's exports. Only the [`guest!`](crate::guest) macro names what is here.

use std::marker::PhantomData;
use std::sync::Once;

use crate::batch::{BoundFilter, BoundMask};
use crate::bindings::exports::pgveil::policy::policy::{
    Filter as FilterHandle, FunctionInfo, Guarantees, Guest, GuestFilter, GuestMask, Mask as MaskHandle,
};
use crate::bindings::pgveil::policy::types::{Batch, Binding, Column, Fault};
use crate::{Context, Function};

/// A list of functions.
pub trait Library: 'static {
    /// The functions, in the order in which documentation lists them.
    fn functions() -> Vec<Function>;
}

/// A component that offers a library.
pub struct Component<L>(PhantomData<L>);

impl<L: Library> Guest for Component<L> {
    type Mask = Mask<L>;
    type Filter = Filter<L>;

    fn describe() -> Vec<FunctionInfo> {
        silence_panics();
        L::functions().into_iter().map(Function::into_info).collect()
    }
}

/// A bound mask.
pub struct Mask<L>(Box<dyn BoundMask>, PhantomData<L>);

impl<L: Library> GuestMask for Mask<L> {
    fn bind(binding: Binding) -> Result<MaskHandle, String> {
        silence_panics();
        let function = find(L::functions(), &binding.function)?;
        let bound = function.open_mask(Context::new(binding)?)?;
        Ok(MaskHandle::new(Self(bound, PhantomData)))
    }

    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn apply(&self, rows: Batch) -> Result<Vec<Column>, Fault> {
        self.0.apply(&rows)
    }
}

/// A bound filter.
pub struct Filter<L>(Box<dyn BoundFilter>, PhantomData<L>);

impl<L: Library> GuestFilter for Filter<L> {
    fn bind(binding: Binding) -> Result<FilterHandle, String> {
        silence_panics();
        let function = find(L::functions(), &binding.function)?;
        let bound = function.open_filter(Context::new(binding)?)?;
        Ok(FilterHandle::new(Self(bound, PhantomData)))
    }

    fn keep(&self, rows: Batch) -> Result<Vec<u8>, Fault> {
        self.0.keep(&rows)
    }
}

/// The function of that name.
pub(crate) fn find(functions: Vec<Function>, name: &str) -> Result<Function, String> {
    let names: Vec<_> = functions.iter().map(|function| function.name().to_owned()).collect();
    let unknown = || format!("there is no function {name:?}; there are {}", names.join(", "));
    functions.into_iter().find(|function| function.name() == name).ok_or_else(unknown)
}

/// Makes a panic a plain trap. The standard hook would format the message, which may quote a value, and write it
/// to standard error, which a guest built for WASI has.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_arch = "wasm32")]
        std::panic::set_hook(Box::new(|_| core::arch::wasm32::unreachable()));
    });
}
