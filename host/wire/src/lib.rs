//! PostgreSQL's streaming replication protocol, `pgoutput` and COPY text, without I/O.
//!
//! Bytes go in, typed messages come out; nothing here opens a socket, sleeps or logs. Chapter and section numbers in the
//! comments are those of the PostgreSQL manual, chapter "Frontend/Backend Protocol".
//!
//! | module | what it reads or writes |
//! | --- | --- |
//! | [`lsn`], [`timestamp`] | the two scalar types that every other module shares |
//! | [`backend`] | frames of protocol 3.0 and the bodies of the messages a client has to understand |
//! | [`replication`] | what a walsender puts into CopyData, and the standby status update it expects back |
//! | [`pgoutput`], [`mod@tuple`] | the logical replication messages of the built-in output plugin, protocol version 1 |
//! | [`copy_text`] | rows of COPY in text format: splitting, unescaping, escaping |
//!
//! Three rules hold in every module:
//!
//! - **No unknown.** A tag, flag or length that the manual does not list is a [`WireError`], never a value to skip.
//! - **No panic.** Whatever the bytes are, a parser returns; all access is checked.
//! - **No row data in words.** Types that hold row data have neither `Debug` nor `Display`, and an error carries a place
//!   and a kind, never bytes of the message.
//!
//! The same lines compile for a type without row data, so that the ones below fail for the reason they name:
//!
//! ```
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::pgoutput::Relation>();
//! ```
//! ```compile_fail,E0277
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::tuple::Tuple>();
//! ```
//! ```compile_fail,E0277
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::tuple::TupleCell<'_>>();
//! ```
//! ```compile_fail,E0277
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::pgoutput::Message>();
//! ```
//! ```compile_fail,E0277
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::backend::Frame>();
//! ```
//! ```compile_fail,E0277
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::backend::DataRow>();
//! ```
//! ```compile_fail,E0277
//! fn needs_debug<T: std::fmt::Debug>() {}
//! needs_debug::<pgveil_wire::replication::XLogData>();
//! ```
#![forbid(unsafe_code)]

pub mod backend;
pub mod copy_text;
mod cursor;
pub mod error;
pub mod lsn;
pub mod pgoutput;
pub mod replication;
pub mod timestamp;
pub mod tuple;

pub use error::{WireError, WireErrorKind};
pub use lsn::Lsn;
pub use timestamp::Timestamp;
