//! The tests on real PostgreSQL clusters. One binary: it links once.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]
#![expect(unreachable_pub, reason = "modules of one binary: `pub` says what a module offers the others")]

mod bootstrap;
mod check;
mod continuity;
mod docs;
mod drift;
mod faults;
mod feedback;
mod hostile;
mod identity;
mod leak;
mod masking;
mod names;
mod policies;
mod scenario;
mod schema;
mod session;
mod support;
mod tidy;
mod transactions;
mod values;
