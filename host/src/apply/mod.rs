//! The target: one target transaction per source transaction.

pub mod schema;
