//! The job file: one source, one publication, one slot, one target, one policy.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::name::TableName;
use super::settings::{Setting, settings};
use super::span::{SourceFile, Spanned};
use super::units::ByteSize;

/// A job file as it was read and checked in itself. Nothing of it has been compared with a server or a guest yet.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename = "PgveilJob", deny_unknown_fields)]
pub struct Job {
    /// The file, for later errors to point at.
    #[schemars(skip)]
    pub file: Arc<SourceFile>,
    /// Who the job is.
    pub job: Identity,
    /// Where rows come from.
    pub source: Source,
    /// Where rows go.
    pub target: Target,
    /// The tables, which must be exactly those of the publication and those of the policy.
    #[schemars(length(min = 1))]
    pub tables: Vec<Spanned<TableName>>,
    /// The policy file.
    pub policy: PolicyReference,
    /// How the target gets its tables.
    #[schemars(default, with = "Option<TargetSchema>")]
    pub schema: TargetSchema,
    /// What bounds memory, parallelism and guests.
    #[schemars(with = "Option<Limits>")]
    pub limits: Limits,
    /// What guards the source and the promise.
    #[schemars(with = "Option<Safety>")]
    pub safety: Safety,
}

/// The section `job`.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Identity {
    /// Names the job in the target's job tables and in logs: lower-case letters, digits, `_` and `-`, at most 63.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9_-]{0,62}$"))]
    pub id: Spanned<String>,
}

/// The section `source`.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Source {
    /// The environment variable that holds the connection URL.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub url_env: Spanned<String>,
    /// The publication, by its exact name.
    #[schemars(length(min = 1, max = 63))]
    pub publication: Spanned<String>,
    /// Whether `bootstrap` may create the publication when it is missing; otherwise it must be there. Default: false.
    #[schemars(with = "Option<bool>")]
    pub create_publication: bool,
    /// The replication slot: lower-case letters, digits and `_`, at most 63 (as the server demands).
    #[schemars(regex(pattern = r"^[a-z0-9_]{1,63}$"))]
    pub slot: Spanned<String>,
}

/// The section `target`.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Target {
    /// The environment variable that holds the connection URL.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub url_env: Spanned<String>,
}

/// The entry `policy`: a path, or `{ file, locked }`.
#[derive(Debug, Clone)]
pub struct PolicyReference {
    /// The policy file, resolved against the directory of the job file.
    pub file: Spanned<PathBuf>,
    /// Whether the policy's lock file must agree before anything starts. Default: false.
    pub locked: bool,
}

/// The section `schema`.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TargetSchema {
    /// How the target gets its tables. Default: `pg_dump`.
    #[schemars(with = "Option<SchemaMode>")]
    pub mode: SchemaMode,
    /// The `pg_dump` program, where it is not the one that `PATH` finds. It must be as new as the source's server.
    #[schemars(with = "Option<String>")]
    pub pg_dump: Option<Spanned<PathBuf>>,
}

/// How the target gets its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum SchemaMode {
    /// Copied from the source by `pg_dump` under the exported snapshot.
    #[default]
    PgDump,
    /// Already there; the columns are checked.
    Existing,
}

settings! {
    /// The section `limits`: what bounds memory, parallelism and guests.
    pub struct Limits;
    /// Rows held in memory between source and target, all stages together. Reading stops while it is used up.
    memory_budget: ByteSize = ByteSize::from_mib(128), ByteSize::from_mib(16) => ByteSize::from_gib(64);
    /// Bytes read from the stream and not yet applied. A part of `memory_budget`.
    max_inflight: ByteSize = ByteSize::from_mib(16), ByteSize::from_mib(1) => ByteSize::from_gib(16);
    /// Bytes of one row of the snapshot, as text. A larger one stops the job: it could not be held within the budget.
    max_row: ByteSize = ByteSize::from_mib(8), ByteSize::from_kib(64) => ByteSize::from_gib(1);
    /// Rows that cross into a guest in one call, at most.
    batch_rows: u64 = 4096, 1 => 65_536;
    /// Bytes that cross into a guest in one call, at most; a single row may exceed it.
    batch_bytes: ByteSize = ByteSize::from_mib(1), ByteSize::from_kib(4) => ByteSize::from_mib(64);
    /// Sessions that copy tables at the same time.
    copy_workers: u64 = 2, 1 => 64;
    /// Bytes of a table that one copy session takes at a time, and that are recorded as finished together.
    copy_chunk: ByteSize = ByteSize::from_mib(64), ByteSize::from_mib(1) => ByteSize::from_gib(64);
    /// Threads that run guests.
    guest_workers: u64 = 2, 1 => 64;
    /// Memory of one guest instance.
    guest_memory: ByteSize = ByteSize::from_mib(64), ByteSize::from_mib(1) => ByteSize::from_gib(4);
    /// Fuel of one guest call, whatever its rows.
    fuel_base: u64 = 10_000_000, 0 => 1_000_000_000_000;
    /// Fuel of one guest call for each of its rows.
    fuel_per_row: u64 = 1_000_000, 1_000 => 1_000_000_000_000;
    /// Bytes a guest may answer for each byte it was given.
    output_factor: u64 = 16, 1 => 1_024;
    /// Bytes a guest may answer in one call besides.
    output_extra: ByteSize = ByteSize::from_mib(1), ByteSize::from_kib(1) => ByteSize::from_mib(64);
    /// Time after which a guest call is ended, whatever its fuel. A backstop: fuel is what should end it.
    guest_deadline: Duration = Duration::from_secs(10), Duration::from_millis(100) => Duration::from_secs(600);
}

settings! {
    /// The section `safety`: what guards the source and the promise.
    pub struct Safety;
    /// Whether a host that is not loopback must be reached over verified TLS.
    require_tls: bool = true;
    /// Write-ahead log that the slot makes the source keep, from which on the job alarms. 0 is never.
    wal_retention_alarm: ByteSize = ByteSize::from_gib(1), ByteSize::from_bytes(0) => ByteSize::from_gib(1 << 20);
    /// What the alarm does: `warn` shows it in `status`. To pause the job is not offered yet.
    wal_retention_action: RetentionAction = RetentionAction::Warn;
    /// How often a running job writes that it lives.
    heartbeat: Duration = Duration::from_secs(10), Duration::from_secs(1) => Duration::from_secs(3_600);
    /// Pause before the first attempt to connect again after a transient failure; it doubles with each.
    reconnect_first: Duration = Duration::from_millis(500), Duration::from_millis(10) => Duration::from_secs(60);
    /// The longest pause between two attempts to connect again.
    reconnect_longest: Duration = Duration::from_secs(30), Duration::from_millis(10) => Duration::from_secs(3_600);
    /// Share of the guest calls, in percent, that are run again in a fresh instance, split and shuffled, and compared.
    audit_percent: f64 = 1.0, 0.0 => 100.0;
}

/// What `safety.wal_retention_action` may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum RetentionAction {
    /// Show it in `status`.
    Warn,
}

impl Setting for RetentionAction {
    const EXPECTED: &'static str = "`warn`";

    fn read(text: &str) -> Option<Self> {
        (text == "warn").then_some(Self::Warn)
    }

    fn show(&self) -> String {
        "warn".to_owned()
    }

    fn schema() -> Schema {
        json_schema!({ "enum": ["warn"] })
    }
}

impl JsonSchema for PolicyReference {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PolicyReference".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The policy file, relative to this file.",
            "anyOf": [
                { "type": "string", "minLength": 1 },
                {
                    "type": "object",
                    "properties": {
                        "file": { "type": "string", "minLength": 1, "description": "The policy file, relative to this file." },
                        "locked": {
                            "const": false,
                            "default": false,
                            "description": "Whether the policy's lock file must agree before anything starts. Not offered yet.",
                        },
                    },
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
