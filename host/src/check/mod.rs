//! `pgveil check`: every prerequisite on both servers, the tables, the policy, the tools. It looks and says; nothing is made or
//! changed anywhere, and every session it uses is read only.
//!
//! One file for each group of findings. Each group turns facts, read in a statement or two, into findings.

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::config::{SchemaMode, TableName};
use crate::error::{Error, Kind, Result};
use crate::postgres::{Endpoint, Row, Session, TlsState};
use crate::schema::HiddenColumns;
use crate::source::schema::read_tables;

mod finding;
mod policy;
mod publication;
mod source;
mod tables;
mod target;
mod text;
mod tools;

pub use finding::{Finding, Grade, Report};

/// The versions that are supported, as major numbers.
const VERSIONS: std::ops::RangeInclusive<u32> = 15..=18;

/// What the files say, as far as the servers are asked about it.
pub struct Plan<'a> {
    /// `job.id`.
    pub job_id: &'a str,
    /// `source.publication`.
    pub publication: &'a str,
    /// Whether bootstrap may make the publication.
    pub create_publication: bool,
    /// `source.slot`.
    pub slot: &'a str,
    /// `tables`.
    pub tables: &'a [TableName],
    /// `schema.mode`.
    pub schema_mode: SchemaMode,
    /// `schema.pg_dump`.
    pub pg_dump: Option<&'a Path>,
    /// `limits.copy_workers`.
    pub copy_workers: i64,
    /// `safety.wal_retention_alarm` in bytes; 0 is never.
    pub wal_retention_alarm: u64,
    /// `safety.require_tls`.
    pub require_tls: bool,
    /// The columns that the policy does not pass as they are.
    pub hidden: &'a HiddenColumns,
    /// The tables that the policy filters.
    pub filtered: &'a BTreeSet<TableName>,
}

/// Looks at everything. `planned` are the findings of the policy's plan (guests, keys, undecided columns), which need no
/// server; they go into the report as they are.
///
/// What keeps one group from being looked at is a finding itself, and the other groups are still looked at.
///
/// # Errors
/// Only what makes the whole check impossible: a session that breaks, an answer outside the protocol.
pub async fn run(
    plan: &Plan<'_>,
    source: (&Endpoint, &mut Session),
    target: (&Endpoint, &mut Session),
    planned: Vec<Finding>,
) -> Result<Report> {
    let ((source_endpoint, source), (target_endpoint, target)) = (source, target);
    for session in [&mut *source, &mut *target] {
        session.batch("SET default_transaction_read_only = on; SET jit = off").await?;
    }
    let source_facts = source::read(source, plan.slot).await?;
    let target_facts = target::read(target).await?;
    let running = target::owns_slot(target, &target_facts, plan).await?;

    let mut findings = vec![tls("source-tls", source_endpoint, source, plan)];
    findings.extend(source::findings(source, &source_facts, plan, running));
    let catalog = match read_tables(source, plan.publication).await {
        Ok(catalog) => Some(catalog),
        Err(error) if error.kind() == Kind::Preflight => None,
        Err(error) => return Err(error),
    };
    match &catalog {
        None => findings.push(publication::missing(plan)),
        Some(catalog) => {
            findings.extend(publication::findings(catalog, plan));
            findings.extend(tables::findings(catalog, plan));
        }
    }
    findings.extend(planned);
    findings.extend(catalog.iter().flat_map(|catalog| policy::findings(catalog, plan)));
    findings.push(tls("target-tls", target_endpoint, target, plan));
    findings.extend(target::server(target, &target_facts, &source_facts));
    if let Some(catalog) = &catalog {
        findings.extend(target::tables(source, target, &target_facts, catalog, plan, running).await?);
    }
    findings.extend(tools::findings(plan, source.server_version()).await);
    Ok(Report { findings })
}

fn server_version(id: &'static str, subject: &str, session: &Session) -> Finding {
    let version = session.server_version();
    let message = format!("PostgreSQL {}.{}", version / 10_000, version % 10_000);
    match version / 10_000 {
        major if VERSIONS.contains(&major) => Finding::pass(id, subject, message),
        major if major < *VERSIONS.start() => {
            let remedy = format!("Upgrade it to {} at least.", VERSIONS.start());
            Finding::fail(id, subject, format!("{message} is older than what is supported"), remedy)
        }
        _ => Finding::warn(id, subject, format!("{message} is newer than what was tested"), "Try it on a copy first."),
    }
}

/// A pooler in transaction mode hands statements to changing backends: locks and prepared statements of a session get lost.
fn pooler(id: &'static str, subject: &str, backend: u32, session: &Session) -> Option<Finding> {
    (session.backend_pid() != backend).then(|| {
        let message = "something between us and PostgreSQL answers for it, probably a pooler";
        Finding::warn(
            id,
            subject,
            message,
            "Point the URL at PostgreSQL itself: locks and prepared statements belong to a session.",
        )
    })
}

/// TLS as it came out, whatever was asked for.
fn tls(id: &'static str, endpoint: &Endpoint, session: &Session, plan: &Plan<'_>) -> Finding {
    let side = endpoint.side().to_string();
    let host = endpoint.host();
    let local = host.starts_with('/')
        || host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let (safe, message) = match session.tls() {
        TlsState::Verified(_) => (true, "encrypted, and the certificate was verified"),
        TlsState::Encrypted(_) => (local, "encrypted, but nobody verified whose certificate it is"),
        TlsState::None => (local, "not encrypted"),
    };
    let remedy = "Use sslmode=verify-full in the URL.";
    match (safe, plan.require_tls) {
        (true, _) if local => Finding::pass(id, side, format!("{message}; it is on this machine")),
        (true, _) => Finding::pass(id, side, message),
        (false, true) => Finding::fail(id, side, message, remedy),
        (false, false) => Finding::warn(id, side, message, remedy),
    }
}

/// Reads the one row of facts. Only the place of a fault is kept: serde's message may quote what it read.
fn decode<T: DeserializeOwned>(row: Option<&Row>, side: &str) -> Result<T> {
    let text = row.map(|row| row.text("facts")).transpose()?.unwrap_or_default();
    serde_json::from_str(text).map_err(|error| {
        Error::new(Kind::Protocol, format!("{side}: the catalogue's answer, character {}", error.column()))
    })
}

/// Names for a message, the first few of many.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len().checked_sub(SHOWN).filter(|rest| *rest > 0) {
        Some(rest) => format!("{} and {rest} more", names[..SHOWN].join(", ")),
        None => names.join(", "),
    }
}

/// A size for a person.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.iter().find(|(_, shift)| bytes >> shift > 0);
    unit.map_or_else(|| format!("{bytes} bytes"), |(name, shift)| format!("{} {name}", bytes >> shift))
}
