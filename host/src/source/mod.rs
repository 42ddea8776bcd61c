//! The source: reading, and nothing else but the slot.

pub(crate) mod builder;
pub(crate) mod feedback;
pub mod schema;
pub mod shape;
pub mod slot;
pub mod snapshot;
pub mod stream;
pub mod tables;
