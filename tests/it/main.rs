//! The tests on real PostgreSQL clusters. One binary: it links once.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

mod faults;
mod identity;
mod names;
mod scenario;
mod support;
mod tidy;
mod transactions;
mod values;
