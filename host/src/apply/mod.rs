//! Writes veiled rows to the target: one target transaction for each source transaction, the checkpoint inside it.
//!
//! Nothing here sees a row that was not veiled: [`Applier`] takes a `VeiledWindow` and nothing else.

mod applier;
mod array;
mod change;
pub(crate) mod copy;
mod replies;
mod run;
pub mod schema;
mod statement;
mod statements;
mod table;

pub use applier::Applier;
pub use replies::{Progress, Replies};
