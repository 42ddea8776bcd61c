//! Who runs what, and what ends it: the commands' work, without the command line.

mod backoff;
pub mod bootstrap;
mod changes;
pub mod cleanup;
pub mod copy;
pub mod masking;
pub mod prepare;
pub mod resume;
pub mod status;
pub mod stream;
