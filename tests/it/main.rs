//! The tests on real PostgreSQL clusters. One binary: it links once.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

mod bootstrap;
mod identity;
mod names;
mod scenario;
mod session;
mod tidy;
mod transactions;
mod values;
