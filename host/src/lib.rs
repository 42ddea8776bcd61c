//! pgveil.

pub mod config;
