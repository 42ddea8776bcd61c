//! A job with all that it needs and no server has to be asked for: files, URLs, keys and guests.
//!
//! What is wrong with any of these is told before a connection is made.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pgveil_wire::lsn::Lsn;

use crate::check::{self, Finding, Grade, Report};
use crate::config::{Configuration, ConnectionUrl, Diagnostic, Diagnostics, SchemaMode, Severity, TableName};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::observe::heartbeat::Vitals;
use crate::postgres::{Endpoint, Session, Side};
use crate::relation::Table;
use crate::schema::{DumpTool, HiddenColumns, ToolEnvironment};
use crate::source::schema::{SourceCatalog, read_tables};
use crate::source::shape::Decisions;
use crate::source::snapshot::BatchLimits;

use super::masking::{Masking, Materials, restricted};
use super::stream::Stream;

/// The size of a block, unless the server was built in an unusual way; only the length of a chunk depends on it.
const BLOCK_BYTES: u64 = 8192;

/// The snapshot's share of the memory budget: a batch is there up to three times, raw, masked and as text, and the rest is
/// for guests, sockets and the program itself.
const COPY_SHARE: u64 = 8;

/// A job that may connect.
pub struct Prepared {
    configuration: Configuration,
    materials: Materials,
    /// Where rows come from.
    pub source: Arc<Endpoint>,
    /// Where they go.
    pub target: Arc<Endpoint>,
    source_url: ConnectionUrl,
}

impl Prepared {
    /// Reads URLs, keys and guests as the files name them. Blocks while guests are compiled.
    ///
    /// # Errors
    /// [`Kind::Environment`], [`Kind::Url`], and what is wrong with a guest.
    pub fn new(configuration: Configuration) -> Result<Prepared> {
        let job = &configuration.job;
        let (source_url, source) = endpoint(Side::Source, &job.source.url_env.value, job.safety.require_tls)?;
        let (_, target) = endpoint(Side::Target, &job.target.url_env.value, job.safety.require_tls)?;
        let materials = Materials::load(&configuration.policy, job)?;
        Ok(Prepared { source: Arc::new(source), target: Arc::new(target), source_url, materials, configuration })
    }

    /// The job's id.
    #[must_use]
    pub fn job_id(&self) -> &str {
        &self.configuration.job.job.id.value
    }

    /// The publication's name.
    #[must_use]
    pub fn publication(&self) -> &str {
        &self.configuration.job.source.publication.value
    }

    /// Whether the publication may be made when it is missing.
    #[must_use]
    pub fn creates_publication(&self) -> bool {
        self.configuration.job.source.create_publication
    }

    /// The slot's name.
    #[must_use]
    pub fn slot(&self) -> &str {
        &self.configuration.job.source.slot.value
    }

    /// The job's tables, as the file lists them.
    #[must_use]
    pub fn tables(&self) -> Vec<TableName> {
        self.configuration.job.tables.iter().map(|table| table.value.clone()).collect()
    }

    /// How the target gets its tables.
    #[must_use]
    pub fn schema_mode(&self) -> SchemaMode {
        self.configuration.job.schema.mode
    }

    /// The names and digests of the guests.
    pub fn guests(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.materials.digests()
    }

    /// How often the process gives a sign of life.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        self.configuration.job.safety.heartbeat
    }

    /// Bytes of WAL kept for the slot at which `status` raises its voice; 0 is never.
    #[must_use]
    pub fn wal_retention_alarm(&self) -> u64 {
        self.configuration.job.safety.wal_retention_alarm.bytes()
    }

    /// How many sessions copy.
    #[must_use]
    pub fn copy_workers(&self) -> usize {
        usize::try_from(self.configuration.job.limits.copy_workers).unwrap_or(1).max(1)
    }

    /// How many blocks of a table are one chunk.
    #[must_use]
    pub fn chunk_blocks(&self) -> u32 {
        u32::try_from(self.configuration.job.limits.copy_chunk.bytes() / BLOCK_BYTES).unwrap_or(u32::MAX).max(1)
    }

    /// What a batch of the snapshot may hold.
    #[must_use]
    pub fn batch_limits(&self) -> BatchLimits {
        let limits = &self.configuration.job.limits;
        let usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        BatchLimits {
            rows: usize(limits.batch_rows).min(limits::COPY_BATCH_ROWS),
            bytes: usize(limits.batch_bytes.bytes().min(limits::COPY_BATCH_BYTES)),
            row_bytes: usize(limits.max_row.bytes()),
        }
    }

    /// Bytes of raw rows that the copy may have on their way.
    #[must_use]
    pub fn copy_memory(&self) -> usize {
        usize::try_from(self.configuration.job.limits.memory_budget.bytes() / COPY_SHARE).unwrap_or(usize::MAX)
    }

    /// How many threads run guests.
    #[must_use]
    pub fn guest_workers(&self) -> usize {
        usize::try_from(self.configuration.job.limits.guest_workers).unwrap_or(1)
    }

    /// The first and the longest wait between two attempts to connect.
    #[must_use]
    pub fn reconnect(&self) -> (Duration, Duration) {
        let safety = &self.configuration.job.safety;
        (safety.reconnect_first, safety.reconnect_longest)
    }

    /// Finds `pg_dump`.
    ///
    /// # Errors
    /// [`Kind::SchemaTool`].
    pub async fn dump_tool(&self) -> Result<DumpTool> {
        DumpTool::find(self.configuration.job.schema.pg_dump.as_ref().map(|path| path.value.as_path())).await
    }

    /// How `pg_dump` reaches the source.
    #[must_use]
    pub fn tool_environment(&self) -> ToolEnvironment {
        ToolEnvironment::new(&self.source, self.source_url.expose())
    }

    /// Decides every column of the tables.
    ///
    /// # Errors
    /// [`Kind::PolicyFile`], its cause being all that is wrong.
    pub fn masking(&self, tables: &[Arc<Table>]) -> Result<Masking> {
        self.materials.plan(&self.configuration.policy, &self.configuration.job, tables)
    }

    /// The same, with the policy as it was before columns were added to it for `later` shapes of the tables.
    ///
    /// # Errors
    /// As [`masking`](Self::masking).
    pub fn masking_before(&self, earlier: &[Arc<Table>], later: &[Arc<Table>]) -> Result<Masking> {
        let policy = restricted(&self.configuration.policy, earlier, later);
        self.materials.plan(&policy, &self.configuration.job, earlier)
    }

    /// Digests of what the policy decides for a table.
    #[must_use]
    pub fn decisions(&self, table: &Table) -> Decisions {
        self.materials.decisions(&self.configuration.policy, table)
    }

    /// The tables of the job that the catalogue has.
    #[must_use]
    pub fn tables_of(&self, catalog: &SourceCatalog) -> Vec<Arc<Table>> {
        catalog.tables.iter().map(|found| Arc::clone(&found.table)).collect()
    }

    /// The stream of this job.
    ///
    /// # Errors
    /// When the guests' threads cannot be started.
    pub fn stream(
        &self,
        masking: &Masking,
        tables: Vec<Arc<Table>>,
        vitals: Arc<Vitals>,
        until: Option<Lsn>,
    ) -> Result<Stream> {
        let job = &self.configuration.job;
        Ok(Stream {
            job_id: self.job_id().to_owned(),
            source: Arc::clone(&self.source),
            target: Arc::clone(&self.target),
            publication: self.publication().to_owned(),
            slot: self.slot().to_owned(),
            tables,
            filtered: masking.filtered.clone(),
            pool: masking.pool(self.guest_workers())?,
            fingerprint: masking.fingerprint(),
            inflight_bytes: job.limits.max_inflight.bytes(),
            reconnect: self.reconnect(),
            vitals,
            until,
        })
    }

    /// Looks at every prerequisite on both servers, over sessions of its own.
    ///
    /// # Errors
    /// When a server does not answer.
    pub async fn check(&self) -> Result<Report> {
        let mut source = Session::connect(&self.source, "check").await?;
        let mut target = Session::connect(&self.target, "check").await?;
        let job = &self.configuration.job;
        let (hidden, filtered, planned) = self.planned(&mut source).await?;
        let plan = check::Plan {
            job_id: self.job_id(),
            publication: self.publication(),
            create_publication: self.creates_publication(),
            slot: self.slot(),
            tables: &self.tables(),
            schema_mode: self.schema_mode(),
            pg_dump: job.schema.pg_dump.as_ref().map(|path| path.value.as_path()),
            copy_workers: i64::try_from(job.limits.copy_workers).unwrap_or(i64::MAX),
            wal_retention_alarm: self.wal_retention_alarm(),
            require_tls: job.safety.require_tls,
            hidden: &hidden,
            filtered: &filtered,
        };
        check::run(&plan, (&self.source, &mut source), (&self.target, &mut target), planned).await
    }

    /// What the policy makes of the tables that are there, as findings. Without a publication there is nothing to say.
    async fn planned(&self, source: &mut Session) -> Result<(HiddenColumns, BTreeSet<TableName>, Vec<Finding>)> {
        let catalog = match read_tables(source, self.publication()).await {
            Ok(catalog) => catalog,
            Err(error) if error.kind() == Kind::Preflight => return Ok(Default::default()),
            Err(error) => return Err(error),
        };
        match self.masking(&self.tables_of(&catalog)) {
            Ok(masking) => {
                let finding = Finding::pass("policy-plan", "policy", "every column is decided, every function bound");
                Ok((masking.hidden, masking.filtered_names, vec![finding]))
            }
            Err(error) => Ok((HiddenColumns::default(), BTreeSet::default(), refusals(&error))),
        }
    }

    /// Refuses to go on when a check fails, naming the first.
    ///
    /// # Errors
    /// [`Kind::Preflight`], or when a server does not answer.
    pub async fn require_checks(&self) -> Result<()> {
        let report = self.check().await?;
        let failed: Vec<_> = report.findings.iter().filter(|finding| finding.grade == Grade::Fail).collect();
        let Some(first) = failed.first() else { return Ok(()) };
        let more = if failed.len() > 1 { format!(" (and {} more)", failed.len() - 1) } else { String::new() };
        Err(Error::new(Kind::Preflight, format!("{}: {}{more}", first.subject, first.message)))
    }
}

/// A policy that does not fit, as findings: one for each thing that is wrong.
fn refusals(error: &Error) -> Vec<Finding> {
    let found = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Diagnostics>());
    let Some(found) = found else {
        return vec![Finding::fail("policy-plan", "policy", error.to_string(), error.kind().remedy())];
    };
    let finding = |found: &Diagnostic| {
        let subject = if found.field.is_empty() { "policy" } else { found.field.as_str() };
        let remedy = found.remedy.clone().unwrap_or_else(|| error.kind().remedy().to_owned());
        match found.severity {
            Severity::Error => Finding::fail("policy-plan", subject, found.message.clone(), remedy),
            Severity::Warning => Finding::warn("policy-plan", subject, found.message.clone(), remedy),
        }
    };
    found.iter().map(finding).collect()
}

fn endpoint(side: Side, variable: &str, require_tls: bool) -> Result<(ConnectionUrl, Endpoint)> {
    let missing = |error| Error::new(Kind::Environment, side.to_string()).because(error);
    let url = ConnectionUrl::from_env(variable).map_err(missing)?;
    let endpoint = Endpoint::parse(side, url.expose(), require_tls).map_err(|error| error.within(variable))?;
    Ok((url, endpoint))
}
