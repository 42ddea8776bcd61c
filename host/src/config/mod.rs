//! The files people write: the job file and the policy file.
//!
//! [`load_job`], [`load_policy`] and [`load`] read them into types whose every part knows its line, collecting **all** errors
//! of a file before giving up ([`Diagnostics`]). What is read here is right in itself; whether it fits the guests and the
//! two servers is checked by those who know them, and they report through the same [`Diagnostic`].
//!
//! This folder knows nothing of PostgreSQL connections, guests or rows, and does no input or output but reading these files
//! and the environment.

mod canonical;
mod diagnostic;
mod job;
mod job_reader;
mod keyword;
mod load;
mod name;
mod policy;
mod policy_check;
mod policy_reader;
mod read;
mod redact;
mod schema;
mod secret;
mod settings;
mod span;
mod suggest;
mod units;
mod yaml;

pub use canonical::FingerprintInputs;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use job::{
    Identity, Job, Limits, PolicyReference, RetentionAction, Safety, SchemaMode, Source, Target, TargetSchema,
};
pub use load::{Configuration, FILE_BYTES_MAX, Loaded, load, load_job, load_policy, parse_job, parse_policy};
pub use name::{NAME_BYTES_MAX, NameError, TableName, quote_ident, quote_literal};
pub use policy::{
    Binding, ColumnPolicy, Decision, Digest, FunctionName, Guest, GuestSource, Key, Policy, Rest, TablePolicy,
};
pub use schema::{job_schema, policy_schema};
pub use secret::{ConnectionUrl, KEY_BYTES_MIN, KeyCheckValue, KeyMaterial, SecretError};
pub use span::{SourceFile, Span, Spanned};
pub use suggest::nearest;
pub use units::{ByteSize, format_duration, parse_duration};
