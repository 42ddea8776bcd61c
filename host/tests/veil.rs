//! The veil from outside: components go in, rows go through, and nothing that a guest does lets one out unmasked.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "veil/admission.rs"]
mod admission;
#[path = "veil/hostile.rs"]
mod hostile;
#[path = "veil/plans.rs"]
mod plans;
#[path = "veil/rows.rs"]
mod rows;
#[path = "veil/same_output.rs"]
mod same_output;
#[path = "veil/support.rs"]
mod support;
