//! pgveil copies chosen tables from a source PostgreSQL to a target PostgreSQL and keeps them in step. Every row, of
//! snapshot and stream, passes through sandboxed WebAssembly components that mask and filter it.
//!
//! # Layout
//!
//! `main → pipeline → {source, veil, apply} → {row, checkpoint} → {error, limits}`; see ARCHITECTURE.md.

pub mod apply;
pub mod check;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod error;
pub mod failpoint;
pub mod limits;
pub mod observe;
pub mod pipeline;
pub mod postgres;
pub mod relation;
pub mod row;
pub mod schema;
pub mod source;
pub mod stop;
pub mod veil;
pub mod window;
