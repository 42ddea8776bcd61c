//! THE CHECKPOINT IS WRITTEN HERE: the row in the target that says how far the source is applied.
//!
//! It moves inside the transaction that applies the data ([`ADVANCE`]), never outside, and only from the position
//! before it: [`ADVANCE`] raises an error when the row is not where this process left it, so a failed transaction
//! stops all that were sent behind it, and a second process stops itself.
//!
//! Only this module can make a [`DurableLsn`], and the slot is told nothing else:
//!
//! ```compile_fail
//! let forged = pgveil::checkpoint::DurableLsn(pgveil_wire::lsn::Lsn(1));
//! ```

use pgveil_wire::lsn::Lsn;

use crate::error::{Error, Kind, Result};
use crate::postgres::Session;

mod record;
mod tables;

pub use record::{Claim, Identity, JobRecord, JobState};
pub use tables::{
    TableRecord, TableState, delete_tables, finish_table, read_tables, record_chunk, record_tables, set_shape,
};

/// The layout of the `pgveil` schema in the target. Another number there is refused.
pub const FORMAT: i32 = 1;

/// Moves the checkpoint: parameters are the new position, the job, the former position and the epoch.
///
/// `width_bucket` with no buckets raises SQLSTATE 2201G ([`GUARD_SQLSTATE`]), which nothing else here can: a guard
/// that costs one function call and needs no round trip, nor anything installed in the target.
pub const ADVANCE: &str = "update pgveil.checkpoint set applied_lsn = $1::pg_lsn, \
     guard = pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (applied_lsn = $3::pg_lsn and epoch = $4::int8)::int4) \
     where job_id = $2";

/// `invalid_argument_for_width_bucket_function`: a guard of ours did not hold.
pub const GUARD_SQLSTATE: &str = "2201G";

/// What the target keeps of a job. Names, positions and states; never a value of a row.
const INSTALL: &str = "
create schema if not exists pgveil;
create table if not exists pgveil.format (version int4 not null);
create table if not exists pgveil.job (
    job_id text primary key,
    state text not null,
    reason_kind text,
    reason text,
    source_system text not null,
    source_timeline int4 not null,
    source_database text not null,
    publication text not null,
    slot text not null,
    slot_created bool not null default false,
    consistent_lsn pg_lsn,
    fingerprint text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);
create table if not exists pgveil.checkpoint (
    job_id text primary key references pgveil.job on delete cascade,
    epoch int8 not null,
    applied_lsn pg_lsn not null,
    guard int4 not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create table if not exists pgveil.job_table (
    job_id text not null references pgveil.job on delete cascade,
    relation_id oid not null,
    schema_name text not null,
    table_name text not null,
    shape text not null,
    fingerprint text not null,
    state text not null,
    rows_expected int8 not null default 0,
    rows_copied int8 not null default 0,
    bytes_copied int8 not null default 0,
    primary key (job_id, relation_id)
);
create table if not exists pgveil.chunk (
    job_id text not null,
    relation_id oid not null,
    first_block int8 not null,
    end_block int8 not null,
    rows_copied int8 not null,
    primary key (job_id, relation_id, first_block),
    foreign key (job_id, relation_id) references pgveil.job_table on delete cascade
);
create table if not exists pgveil.process (
    job_id text primary key references pgveil.job on delete cascade,
    pid int4 not null,
    host text not null,
    started_at timestamptz not null,
    heartbeat_at timestamptz not null,
    received_lsn pg_lsn,
    applied_at timestamptz
)";

/// A source position up to which the target has everything on disk. Only [`Durability::poll`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurableLsn(Lsn);

impl DurableLsn {
    /// The position, to be told to the slot as flushed.
    #[must_use]
    pub fn lsn(self) -> Lsn {
        self.0
    }
}

/// Makes the `pgveil` schema in the target, or checks that it is of this version.
pub async fn install(target: &mut Session) -> Result<()> {
    // Without the lock, two jobs that begin at once could both create the schema, and one would fail.
    target
        .batch(&format!(
            "begin; select pg_advisory_xact_lock({LOCK_CLASS}, 0); {INSTALL}; insert into pgveil.format \
         select {FORMAT} where not exists (select from pgveil.format); commit"
        ))
        .await
        .map_err(|error| error.within("schema pgveil"))?;
    check_format(target).await
}

/// Whether the `pgveil` schema is there, and of this version.
pub async fn is_installed(target: &mut Session) -> Result<bool> {
    let rows = target.query("select pg_catalog.to_regclass('pgveil.format') is not null", &[]).await?;
    if rows.first().and_then(|row| row.get(0)) != Some("t") {
        return Ok(false);
    }
    check_format(target).await.map(|()| true)
}

async fn check_format(target: &mut Session) -> Result<()> {
    let rows = target.query("select version from pgveil.format", &[]).await?;
    let version: Option<i32> = rows.first().and_then(|row| row.get(0)).and_then(|text| text.parse().ok());
    if version == Some(FORMAT) {
        return Ok(());
    }
    let found = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    Err(Error::new(Kind::NotReady, format!("target: schema pgveil has format {found}, this pgveil needs {FORMAT}")))
}

/// The first half of the advisory lock's key: `pgve` in ASCII. The second is derived from the job's id.
pub(crate) const LOCK_CLASS: i32 = 0x7067_7665;

/// Finds out which applied positions are on the target's disk.
///
/// The apply session commits with `synchronous_commit = off`; what it committed is durable once the target has
/// flushed its WAL past that commit. Both are read from the target itself: the checkpoint row as another session
/// sees it, then the insert position (at or behind that row's commit record), then, until it has passed, the flushed one.
pub struct Durability {
    job_id: String,
    last: Option<Lsn>,
    awaited: Option<(Lsn, Lsn)>,
}

impl Durability {
    /// For one job; nothing is durable yet.
    #[must_use]
    pub fn new(job_id: &str) -> Durability {
        Durability { job_id: job_id.to_owned(), last: None, awaited: None }
    }

    /// Looks once. `Some` when more has become durable since the last look.
    pub async fn poll(&mut self, target: &mut Session) -> Result<Option<DurableLsn>> {
        let rows = target
            .query(
                "select c.applied_lsn, pg_catalog.pg_current_wal_insert_lsn(), pg_catalog.pg_current_wal_flush_lsn() \
                 from pgveil.checkpoint c where c.job_id = $1",
                &[Some(&self.job_id)],
            )
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| Error::new(Kind::CheckpointMoved, format!("job {}: no checkpoint row", self.job_id)))?;
        let (applied, inserted, flushed): (Lsn, Lsn, Lsn) = (
            row.parse("applied_lsn")?,
            row.parse("pg_current_wal_insert_lsn")?,
            row.parse("pg_current_wal_flush_lsn")?,
        );
        let mut durable = None;
        if let Some((position, needed)) = self.awaited
            && flushed >= needed
        {
            self.awaited = None;
            self.last = Some(position);
            durable = Some(DurableLsn(position));
        }
        if self.awaited.is_none() && self.last.is_none_or(|last| applied > last) {
            if flushed >= inserted {
                self.last = Some(applied);
                durable = Some(DurableLsn(applied));
            } else {
                self.awaited = Some((applied, inserted));
            }
        }
        Ok(durable)
    }
}
