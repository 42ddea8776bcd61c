//! Bytes in, messages out. One binary: linking is the slow part.
#![expect(clippy::expect_used, reason = "a test says what it expected")]

mod backend;
mod copy_text;
mod hostile;
mod pgoutput;
mod render;
mod replication;
