//! sans-IO.
