//! What an operator sees of a running job besides its data: logs.

pub mod log;
