//! pgveil copies chosen tables from a source PostgreSQL to a target PostgreSQL and keeps them in step. Every row, of
//! snapshot and stream, passes through sandboxed WebAssembly components that mask and filter it.
//!
//! # Layout
//!
//! `main → pipeline → {source, veil, apply} → {row, checkpoint} → {error, limits}`; see ARCHITECTURE.md.

pub mod checkpoint;
pub mod error;
pub mod limits;
pub mod relation;
pub mod row;
pub mod window;
