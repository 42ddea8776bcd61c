//! The first start of a job: slot, schema, copy, and then the stream.
//!
//! Every step leaves a trace before it changes anything: the job is recorded before the slot exists, so that whatever
//! happens, `status` can tell how far it came, and `cleanup` or `--restart-snapshot` can take it back. A bootstrap
//! that ends before the copy is whole takes its slot with it.

use std::sync::Arc;

use crate::checkpoint::{self, Claim, JobRecord, TableRecord, TableState, record_tables};
use crate::config::{SchemaMode, quote_ident};
use crate::error::{Error, Kind, Result};
use crate::failpoint::{self, Point};
use crate::observe::heartbeat::{Heartbeat, Vitals};
use crate::observe::progress::{Progress, Style};
use crate::postgres::Session;
use crate::relation::Table;
use crate::schema;
use crate::source::schema::{SourceCatalog, read_tables};
use crate::source::shape;
use crate::source::slot::{self, NewSlot};
use crate::source::snapshot::{CopySession, Extent};
use crate::stop::Stop;

use super::cleanup::{discard, undo};
use super::copy::Copy;
use super::masking::Masking;
use super::prepare::Prepared;
use super::stream::current_position;

/// How a bootstrap is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Give up what an earlier bootstrap did (`--restart-snapshot`).
    pub restart: bool,
    /// End when everything that the source had committed at the start is applied (`--once`).
    pub once: bool,
    /// How progress is told.
    pub style: Style,
}

/// How the part before the stream ended.
enum Copied {
    Whole,
    /// A stop was asked for; nothing of the slot is left.
    Stopped,
}

/// Copies the job's tables and streams their changes until asked to stop.
///
/// # Errors
/// What a step met. Before the copy is whole the slot is dropped again and the reason recorded.
pub async fn bootstrap(prepared: Prepared, options: Options, stop: Stop) -> Result<()> {
    let notice = |text: String| Progress::new(options.style, []).notice(&text);
    let mut control = Session::connect(&prepared.target, "control").await?;
    checkpoint::install(&mut control).await?;
    Claim::lock(&mut control, prepared.job_id()).await?;
    clear_the_way(&mut control, &prepared, options.restart, &notice).await?;

    let mut replication = Session::connect_replication(&prepared.source, "slot").await?;
    let identity = slot::identify(&mut replication, prepared.publication(), prepared.slot()).await?;
    let mut source = Session::connect(&prepared.source, "bootstrap").await?;
    let until = current_position(&mut source).await?;
    prepared.require_checks().await?;
    make_publication(&mut source, &prepared, &notice).await?;
    let catalog = read_tables(&mut source, prepared.publication()).await?;
    let tables = prepared.tables_of(&catalog);
    let masking = prepared.masking(&tables)?;
    if slot::state(&mut source, prepared.slot()).await?.is_some() {
        return Err(Error::new(
            Kind::Preflight,
            format!(
                "source: slot {}: there is one of this name already, and this job did not make it",
                prepared.slot()
            ),
        ));
    }

    failpoint::reach(Point::Bootstrap)?;
    JobRecord::create(&mut control, prepared.job_id(), &identity, &masking.fingerprint()).await?;
    let vitals = Arc::new(Vitals::default());
    let heartbeat = Heartbeat::start(
        Arc::clone(&prepared.target),
        prepared.job_id().to_owned(),
        prepared.heartbeat(),
        Arc::clone(&vitals),
    );
    let snapshot = Snapshot { prepared: &prepared, masking: &masking, catalog: &catalog, style: options.style };
    let running = control.cancel();
    match snapshot.take(source, &mut control, replication, &notice, stop.clone()).await {
        Ok(Copied::Whole) => {}
        Ok(Copied::Stopped) => {
            // An index that is being built would otherwise be built to its end, with the job's lock held.
            let _ = running.send().await;
            take_back(&prepared, &Error::new(Kind::NotReady, "stopped by a signal before the copy was whole"), &notice)
                .await;
            return Ok(());
        }
        Err(error) => {
            take_back(&prepared, &error, &notice).await;
            return Err(error);
        }
    }
    // The stream takes the job's lock on a session of its own.
    Claim::unlock(&mut control).await?;
    control.close().await;
    let stream = prepared.stream(&masking, tables, vitals, options.once.then_some(until))?;
    let ended = stream.run(stop).await;
    heartbeat.end().await;
    ended
}

/// Makes the publication when it is missing and the job file says that it may be made.
async fn make_publication(source: &mut Session, prepared: &Prepared, notice: &(dyn Fn(String) + Sync)) -> Result<()> {
    let name = prepared.publication();
    let rows = source.query("select from pg_catalog.pg_publication where pubname = $1", &[Some(name)]).await?;
    if !rows.is_empty() || !prepared.creates_publication() {
        return Ok(());
    }
    let tables: Vec<String> = prepared.tables().iter().map(|table| format!("only {}", table.quoted())).collect();
    let statement = format!("create publication {} for table {}", quote_ident(name), tables.join(", "));
    source.batch(&statement).await.map_err(|error| error.within(format_args!("publication {name}")))?;
    notice(format!("made publication {name}"));
    Ok(())
}

/// Refuses a job that was begun before, or takes it back when asked to.
async fn clear_the_way(
    control: &mut Session,
    prepared: &Prepared,
    restart: bool,
    notice: &(dyn Fn(String) + Sync),
) -> Result<()> {
    match JobRecord::read(control, prepared.job_id()).await? {
        None => Ok(()),
        Some(record) if restart => discard(control, &prepared.source, &record, notice).await,
        Some(record) => {
            let place = format!("job {}: it was bootstrapped before and is in state {}", record.job_id, record.state);
            Err(Error::new(Kind::NotReady, place))
        }
    }
}

/// The original failure matters more than one in taking back: that one is only told.
async fn take_back(prepared: &Prepared, reason: &Error, notice: &(dyn Fn(String) + Sync)) {
    match undo(prepared, reason).await {
        Ok(true) => notice(format!("the copy is not whole: slot {} was dropped again", prepared.slot())),
        Ok(false) => {}
        Err(error) => {
            tracing::error!(%error, "the slot could not be dropped");
            notice(format!("slot {} could not be dropped ({error}); `pgveil cleanup --yes` drops it", prepared.slot()));
        }
    }
}

/// The part between the job's record and the whole copy.
struct Snapshot<'a> {
    prepared: &'a Prepared,
    masking: &'a Masking,
    catalog: &'a SourceCatalog,
    style: Style,
}

impl Snapshot<'_> {
    /// Makes the slot and fills the target from its snapshot.
    async fn take(
        &self,
        source: Session,
        control: &mut Session,
        replication: Session,
        notice: &(dyn Fn(String) + Sync),
        mut stop: Stop,
    ) -> Result<Copied> {
        let Some(slot) = self.make_slot(control, replication, notice, stop.clone()).await? else {
            return Ok(Copied::Stopped);
        };
        tokio::select! {
            filled = self.fill(source, control, slot, notice) => filled.map(|()| Copied::Whole),
            () = stop.wait() => Ok(Copied::Stopped),
        }
    }

    /// From the exported snapshot to the whole copy.
    async fn fill(
        &self,
        mut source: Session,
        control: &mut Session,
        slot: NewSlot,
        notice: &(dyn Fn(String) + Sync),
    ) -> Result<()> {
        let job_id = self.prepared.job_id();
        JobRecord::slot_made(control, job_id, slot.consistent_lsn).await?;
        failpoint::reach(Point::Bootstrap)?;
        let tables: Vec<Arc<Table>> = self.catalog.tables.iter().map(|found| Arc::clone(&found.table)).collect();
        let mut sessions = self.open_sessions(&slot, &tables).await?;
        self.compare_catalogs(&mut source, &mut sessions).await?;
        let extents = extents(&mut sessions, &tables).await?;

        let schema = self.schema_before(&mut source, control, &slot).await?;
        // Everybody who needs the snapshot has it.
        slot.session.close().await;
        record_tables(control, job_id, &self.records(&tables, &extents)?).await?;
        self.copy(tables, sessions, &extents).await?;
        failpoint::reach(Point::Bootstrap)?;
        self.schema_after(&mut source, control, schema, notice).await?;
        self.analyze(control).await;
        JobRecord::copy_finished(control, job_id).await?;
        failpoint::reach(Point::Bootstrap)
    }

    /// `None` when a stop was asked for meanwhile; the server has then been told to give up.
    async fn make_slot(
        &self,
        control: &mut Session,
        replication: Session,
        notice: &(dyn Fn(String) + Sync),
        mut stop: Stop,
    ) -> Result<Option<NewSlot>> {
        let cancel = replication.cancel();
        let made = tokio::select! {
            made = slot::create(replication, &self.prepared.source, self.prepared.slot(), notice) => made,
            () = stop.wait() => {
                // Without this the server would go on waiting, and make the slot in the end.
                cancel.send().await?;
                return Ok(None);
            }
        };
        if let Err(error) = &made
            && !error.is_transient()
        {
            // The server refused, so there is no slot of ours; one of that name is somebody else's and must never be dropped by
            // this record.
            JobRecord::delete(control, self.prepared.job_id()).await?;
        }
        made.map(Some)
    }

    async fn open_sessions(&self, slot: &NewSlot, tables: &[Arc<Table>]) -> Result<Vec<CopySession>> {
        let mut sessions = Vec::new();
        for _ in 0..self.prepared.copy_workers() {
            sessions.push(CopySession::open(&self.prepared.source, &slot.snapshot, tables).await?);
        }
        Ok(sessions)
    }

    /// The tables must be in the snapshot, and now that they are locked, what they were when the policy was compared with them.
    async fn compare_catalogs(&self, source: &mut Session, sessions: &mut [CopySession]) -> Result<()> {
        let now = read_tables(source, self.prepared.publication()).await?;
        same_tables(self.catalog, &now)?;
        if let Some(session) = sessions.first_mut() {
            same_tables(self.catalog, &read_tables(session.session(), self.prepared.publication()).await?)?;
        }
        Ok(())
    }

    /// Makes the tables, or compares those that are there.
    async fn schema_before(
        &self,
        source: &mut Session,
        control: &mut Session,
        slot: &NewSlot,
    ) -> Result<Option<schema::Prepared>> {
        match self.prepared.schema_mode() {
            SchemaMode::Existing => {
                schema::verify_existing(control, self.catalog, &self.masking.filtered_names).await.map(|_| None)
            }
            SchemaMode::PgDump => {
                let request = schema::Request {
                    tool: &self.prepared.dump_tool().await?,
                    environment: &self.prepared.tool_environment(),
                    snapshot: Some(&slot.snapshot),
                    catalog: self.catalog,
                    hidden: &self.masking.hidden,
                    existing: schema::Existing::KeepRows,
                };
                schema::before_data(source, control, &request).await.map(Some)
            }
        }
    }

    async fn schema_after(
        &self,
        source: &mut Session,
        control: &mut Session,
        schema: Option<schema::Prepared>,
        notice: &(dyn Fn(String) + Sync),
    ) -> Result<()> {
        let Some(schema) = schema else { return Ok(()) };
        for left_out in schema::after_data(source, control, schema).await? {
            notice(format!("left out: {} ({})", left_out.what, left_out.why));
        }
        Ok(())
    }

    fn records(&self, tables: &[Arc<Table>], extents: &[Extent]) -> Result<Vec<TableRecord>> {
        let record = |(table, extent): (&Arc<Table>, &Extent)| {
            Ok(TableRecord {
                relation_id: table.relation_id,
                name: table.name.clone(),
                shape: shape::write(table, &self.prepared.decisions(table), &[])?,
                fingerprint: self.masking.table_fingerprint(&table.name),
                state: TableState::Copying,
                rows_expected: extent.rows,
                rows_copied: 0,
                bytes_copied: 0,
            })
        };
        tables.iter().zip(extents).map(record).collect()
    }

    async fn copy(&self, tables: Vec<Arc<Table>>, sessions: Vec<CopySession>, extents: &[Extent]) -> Result<()> {
        let expected = tables.iter().zip(extents).map(|(table, extent)| (table.name.to_string(), extent.rows));
        let copy = Copy {
            job_id: self.prepared.job_id().to_owned(),
            progress: Arc::new(Progress::new(self.style, expected)),
            tables,
            target: Arc::clone(&self.prepared.target),
            pool: self.masking.pool(self.prepared.guest_workers())?,
            batch: self.prepared.batch_limits(),
            memory_bytes: self.prepared.copy_memory(),
        };
        copy.run(sessions, extents, self.prepared.chunk_blocks()).await
    }

    /// The planner's statistics, so that the stream's first look-ups are not sequential scans. A lack of rights only costs speed.
    async fn analyze(&self, control: &mut Session) {
        for found in &self.catalog.tables {
            if let Err(error) = control.batch(&format!("analyze {}", found.table.name.quoted())).await {
                tracing::warn!(table = %found.table.name, %error, "the table could not be analysed");
            }
        }
    }
}

async fn extents(sessions: &mut [CopySession], tables: &[Arc<Table>]) -> Result<Vec<Extent>> {
    let mut found = Vec::with_capacity(tables.len());
    if let Some(session) = sessions.first_mut() {
        for table in tables {
            found.push(session.extent(table).await?);
        }
    }
    Ok(found)
}

/// The first difference between two looks at the publication's tables.
fn same_tables(planned: &SourceCatalog, found: &SourceCatalog) -> Result<()> {
    let changed = |name: &dyn std::fmt::Display| {
        Error::new(Kind::RelationChanged, format!("table {name}: it changed while the bootstrap began; start it again"))
    };
    for planned in &planned.tables {
        match found.table(&planned.table.name) {
            Some(found) if found.table == planned.table => {}
            _ => return Err(changed(&planned.table.name)),
        }
    }
    match found.tables.iter().find(|found| planned.table(&found.table.name).is_none()) {
        Some(new) => Err(changed(&new.table.name)),
        None => Ok(()),
    }
}
