//! The source: reading, and nothing else.

pub mod schema;
