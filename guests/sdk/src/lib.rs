//! Write masks and filters for pgveil as plain Rust functions.
//!
//! A guest is a list of functions. This is a whole one:
//!
//! ```
//! use pgveil_guest::{Context, Function, Out, Outcome, guest};
//!
//! fn shout(value: &str, _: &Context, out: &mut Out) -> Outcome {
//!     out.push_str(&value.to_uppercase());
//!     Ok(())
//! }
//!
//! guest![Function::value("shout", shout).doc("Writes a value in capitals.").example("{}", ["ada"], ["ADA"])];
//! # fn main() {}
//! ```
//!
//! - One value in, one out: [`Function::value`] for a plain function, [`ValueMask`] where there are arguments or a key to prepare.
//! - Several columns: [`Function::row`], or [`RowMask`].
//! - Keep or drop: [`Function::filter`], or [`RowFilter`].
//! - Typed values: [`value`]. Keyed hashes and random choices: [`Key`].
//! - Tests without WebAssembly: [`Harness`], which calls the very code that pgveil calls, batch by batch.
//!
//! NULL passes by without a call and unchanged large values likewise, so a function sees values only. What a function
//! cannot answer it refuses with a [`Fault`], which has a code and never a text; pgveil then stops the job. A panic does the
//! same, and its message goes nowhere.

#[doc(hidden)]
pub mod bindings {
    //! What `wit-bindgen` makes of `wit/`. Not part of this crate's interface.
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({
        path: "../../wit",
        world: "guest",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "pgveil_guest::bindings",
    });
}

mod answer;
mod batch;
mod column;
mod context;
#[doc(hidden)]
pub mod export;
mod fault;
mod function;
#[cfg(not(target_arch = "wasm32"))]
mod harness;
mod inner;
mod key;
mod mask;
mod open;
mod out;
mod row;
pub mod value;

pub use bindings::exports::pgveil::policy::policy::{Guarantees, KeyUse};
pub use bindings::pgveil::policy::types::{ColumnInfo, TableInfo};
pub use context::Context;
pub use fault::{Fault, Outcome};
pub use function::{Accepts, Function};
#[cfg(not(target_arch = "wasm32"))]
pub use harness::{Harness, TestRow};
pub use inner::Inner;
pub use key::{Key, Random};
pub use mask::{NoArguments, RowFilter, RowMask, ValueMask};
pub use out::{Out, Outputs};
pub use row::Row;
pub use schemars;
pub use serde;
pub use serde_json;

/// Makes a guest of the functions listed: `guest![Function::value(…), Function::row(…)]`.
///
/// It defines `pub fn functions() -> Vec<Function>`, for tests to open them by name, and, on WebAssembly, the component's exports.
#[macro_export]
macro_rules! guest {
    ($($function:expr),+ $(,)?) => {
        /// The functions of this guest, in the order in which it describes them.
        pub fn functions() -> ::std::vec::Vec<$crate::Function> {
            ::std::vec![$($function),+]
        }

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Listed;
            impl $crate::export::Library for Listed {
                fn functions() -> ::std::vec::Vec<$crate::Function> {
                    functions()
                }
            }
            type Component = $crate::export::Component<Listed>;
            $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}

#[cfg(test)]
mod tests;
