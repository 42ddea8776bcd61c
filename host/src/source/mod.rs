//! The source: reading, and nothing else but the slot.

pub(crate) mod builder;
pub(crate) mod feedback;
pub mod schema;
pub mod stream;
pub mod tables;
