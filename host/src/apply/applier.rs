//! Sends the changes of veiled windows, pipelined: the next transaction's statements go out before the last commit is
//! answered.
//!
//! A transaction is everything up to a Sync message, with no BEGIN and no COMMIT: PostgreSQL runs it as one (manual
//! section 55.2.3.4), and its last statement moves the checkpoint from the position before it. When one fails, the
//! server skips to its Sync, and the guard makes every later one fail: exactly the transactions before it stay.

use std::collections::HashMap;
use std::sync::Arc;

use pgveil_wire::lsn::Lsn;
use postgres_protocol::IsNull;
use tokio::sync::{mpsc, watch};

use crate::checkpoint::{self, Claim};
use crate::error::{Error, Kind, Result};
use crate::failpoint::{self, Point};
use crate::limits;
use crate::postgres::{PipelineWriter, Session};
use crate::relation::Table;
use crate::veil::VeiledWindow;
use crate::window::{Operation, RowRef};

use super::change::{Rows, update_shape};
use super::copy::write_copy_rows;
use super::replies::{Expectation, Progress, Purpose, Replies, Sent};
use super::statement::{self, UpdateShape};
use super::statements::{Shape, Statements};
use super::table::{Lookup, TargetTable};
use super::{array, run};

/// The name of the prepared statement that moves the checkpoint.
const ADVANCE: &str = "advance";

/// Rows of one CopyData message: some kilobytes, so that the message's header costs nothing.
const COPY_ROWS: usize = 64;

/// What the statements of one apply session need.
const SESSION: &str = "set synchronous_commit = off; set session_replication_role = replica; set lock_timeout = 0; \
     set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; \
     set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3";

/// The writing half.
#[expect(
    clippy::disallowed_types,
    reason = "bounded by the windows in flight, each of which holds its share of the byte budget"
)]
pub struct Applier {
    writer: PipelineWriter,
    expectations: mpsc::UnboundedSender<Expectation>,
    tables: Vec<(TargetTable, Arc<str>)>,
    /// By the address of the source's description, so that rows of an older shape meet the statements of that shape.
    /// The address is compared and never followed; `tables` keeps what lies there alive.
    numbers: HashMap<usize, usize>,
    statements: Statements,
    claim: Claim,
    epoch: String,
    applied: Lsn,
    transaction: Option<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    xid: u32,
    final_lsn: Lsn,
}

impl Applier {
    /// Takes over a session on the target. `filtered` tells which tables the policy filters.
    ///
    /// Returns the reading half as well; both must run, or the pipeline stalls.
    #[expect(
        clippy::disallowed_methods,
        reason = "a bounded queue would deadlock: the server answers only at the end of a window"
    )]
    pub async fn new(
        mut target: Session,
        tables: &[Arc<Table>],
        filtered: impl Fn(&Table) -> bool,
        claim: Claim,
        progress: watch::Sender<Progress>,
    ) -> Result<(Applier, Replies)> {
        target.batch(SESSION).await?;
        let mut found = Vec::with_capacity(tables.len());
        let mut numbers = HashMap::with_capacity(tables.len());
        for table in tables {
            numbers.insert(Arc::as_ptr(table).addr(), found.len());
            let written: Arc<str> = table.name.to_string().into();
            found.push((TargetTable::read(&mut target, table.clone(), filtered(table)).await?, written));
        }
        let (mut writer, reader) = target.into_pipeline();
        writer.parse(ADVANCE, checkpoint::ADVANCE)?;
        let (expectations, received) = mpsc::unbounded_channel();
        let applier = Applier {
            writer,
            expectations,
            tables: found,
            numbers,
            statements: Statements::default(),
            epoch: claim.epoch.to_string(),
            applied: claim.applied_lsn,
            claim,
            transaction: None,
        };
        Ok((applier, Replies::new(reader, received, progress)))
    }

    /// Sends a window. Its fault, if it has one, is returned behind everything that came before it; the transaction
    /// that it lies in has not been ended, and never will be.
    pub async fn window(&mut self, mut window: VeiledWindow) -> Result<()> {
        let rows = Rows { batches: &window.batches };
        let mut next = 0;
        while let Some(operation) = window.operations.get(next) {
            next += self.step(operation, &window.operations[next..], &rows).await?;
            if self.writer.pending_bytes() >= limits::WINDOW_BYTES as usize {
                self.writer.flush().await?;
            }
        }
        // Inside a large transaction no Sync follows for long; the answers must come all the same.
        self.writer.flush_request()?;
        self.writer.flush().await?;
        failpoint::reach(Point::Commit)?;
        self.expect(Expectation::Window(window.budget.take()))?;
        window.fault.take().map_or(Ok(()), Err)
    }

    /// One operation, or a run of them; answers how many.
    async fn step(&mut self, operation: &Operation, rest: &[Operation], rows: &Rows<'_>) -> Result<usize> {
        match operation {
            Operation::Begin { xid, final_lsn, .. } => {
                self.transaction = Some(Open { xid: *xid, final_lsn: *final_lsn });
                Ok(1)
            }
            Operation::Insert { new } => self.inserts(*new, rest, rows),
            Operation::Update { old, new } => self.updates(*old, *new, rest, rows),
            Operation::Delete { old } => self.deletes(*old, rest, rows),
            Operation::Truncate { relation_ids, restart_identity, .. } => {
                self.truncate(relation_ids, *restart_identity).map(|()| 1)
            }
            Operation::Commit { end_lsn } => {
                self.advance(*end_lsn)?;
                self.transaction = None;
                Ok(1)
            }
            Operation::Advance { lsn } => {
                self.advance(*lsn)?;
                Ok(1)
            }
        }
    }

    // === inserts ===

    fn inserts(&mut self, new: RowRef, rest: &[Operation], rows: &Rows<'_>) -> Result<usize> {
        let reach = run::inserts(rest, new);
        let number = self.number(rows, new)?;
        let mut kept = Vec::with_capacity(reach);
        for operation in &rest[..reach] {
            if let Operation::Insert { new } = operation
                && rows.keep(*new)? != Some(false)
            {
                kept.push(*new);
            }
        }
        if kept.len() >= limits::COPY_RUN_MIN {
            self.copy(number, &kept, rows)?;
        } else {
            for row in kept {
                self.whole_row(number, Shape::Insert, row, rows)?;
            }
        }
        Ok(reach)
    }

    fn copy(&mut self, number: usize, kept: &[RowRef], rows: &Rows<'_>) -> Result<()> {
        self.sent(number, Purpose::Insert, Some(kept.len() as u64))?;
        let name = self.statements.name(&mut self.writer, number, &self.tables[number].0, Shape::Copy)?;
        self.writer.bind(name, [])?;
        self.writer.execute()?;
        for some in kept.chunks(COPY_ROWS) {
            let Some(first) = some.first() else { continue };
            self.writer.start_copy_data()?;
            write_copy_rows(rows.batch(*first)?, some.iter().map(|row| row.row as usize), self.writer.copy_buffer())?;
            self.writer.end_copy_data()?;
        }
        self.writer.copy_done()
    }

    /// A statement whose parameters are all columns of a row.
    fn whole_row(&mut self, number: usize, shape: Shape, row: RowRef, rows: &Rows<'_>) -> Result<()> {
        self.sent(number, Purpose::Insert, None)?;
        let columns: Vec<_> = (0..self.tables[number].0.columns.len()).map(|column| (row, column)).collect();
        self.bind(number, shape, &columns, rows)
    }

    // === updates ===

    fn updates(&mut self, old: Option<RowRef>, new: RowRef, rest: &[Operation], rows: &Rows<'_>) -> Result<usize> {
        let number = self.number(rows, new)?;
        let shape = update_shape(rows, old, new)?;
        if self.tables[number].0.filtered {
            return self.filtered_update(number, old, new, shape, rows).map(|()| 1);
        }
        let reach = run::updates(rest, rows, &self.tables[number].0, &shape)?;
        if reach >= limits::SET_RUN_MIN {
            self.update_many(number, shape, &rest[..reach], rows)?;
            return Ok(reach);
        }
        self.update_one(number, Purpose::Update, old, new, shape, rows).map(|()| 1)
    }

    fn update_one(
        &mut self,
        number: usize,
        purpose: Purpose,
        old: Option<RowRef>,
        new: RowRef,
        shape: UpdateShape,
        rows: &Rows<'_>,
    ) -> Result<()> {
        let table = &self.tables[number].0;
        let set = statement::set_columns(table, &shape).into_iter().map(|column| (new, column));
        let found_by = statement::lookup_columns(table).into_iter().map(|column| (old.unwrap_or(new), column));
        let columns: Vec<_> = set.chain(found_by).collect();
        self.sent(number, purpose, None)?;
        self.bind(number, Shape::Update(shape), &columns, rows)
    }

    fn update_many(&mut self, number: usize, shape: UpdateShape, updates: &[Operation], rows: &Rows<'_>) -> Result<()> {
        let table = &self.tables[number].0;
        let columns: Vec<_> = table.key.iter().copied().chain(statement::set_columns(table, &shape)).collect();
        let changed: Vec<_> = updates
            .iter()
            .filter_map(|operation| if let Operation::Update { new, .. } = operation { Some(*new) } else { None })
            .collect();
        self.sent(number, Purpose::Update, None)?;
        self.bind_arrays(number, Shape::UpdateMany(shape), &columns, &changed, rows)
    }

    /// The four transitions of a filtered table. The old side is known when the whole old row came; else what the
    /// target holds decides, so the statements insert or update, and delete if there.
    fn filtered_update(
        &mut self,
        number: usize,
        old: Option<RowRef>,
        new: RowRef,
        shape: UpdateShape,
        rows: &Rows<'_>,
    ) -> Result<()> {
        let was = old.map(|old| rows.keep(old)).transpose()?.flatten();
        let is = rows.keep(new)?.ok_or_else(|| Error::new(Kind::Internal, "a filtered row without a verdict"))?;
        let whole = shape.set.iter().all(|set| *set);
        match (was, is) {
            (Some(true), true) => self.update_one(number, Purpose::Update, old, new, shape, rows),
            (Some(true), false) => self.delete_one(number, Shape::Delete, old.unwrap_or(new), rows),
            (Some(false), true) if whole => self.whole_row(number, Shape::Insert, new, rows),
            (Some(false), true) => self.insert_with_old(number, old.unwrap_or(new), new, rows),
            (Some(false), false) => Ok(()),
            (None, true) if whole => {
                if let Some(old) = old {
                    self.delete_one(number, Shape::DeleteIfThere, old, rows)?;
                }
                self.whole_row(number, Shape::Upsert, new, rows)
            }
            (None, true) => self.update_one(number, Purpose::UpdateKept, old, new, shape, rows),
            (None, false) => self.delete_one(number, Shape::DeleteIfThere, old.unwrap_or(new), rows),
        }
    }

    /// A row enters under FULL with unchanged values: they stand in the old row.
    fn insert_with_old(&mut self, number: usize, old: RowRef, new: RowRef, rows: &Rows<'_>) -> Result<()> {
        let shape = update_shape(rows, None, new)?;
        let columns: Vec<_> =
            shape.set.iter().enumerate().map(|(column, set)| (if *set { new } else { old }, column)).collect();
        self.sent(number, Purpose::Insert, None)?;
        self.bind(number, Shape::Insert, &columns, rows)
    }

    // === deletes ===

    fn deletes(&mut self, old: RowRef, rest: &[Operation], rows: &Rows<'_>) -> Result<usize> {
        let number = self.number(rows, old)?;
        let table = &self.tables[number].0;
        if table.filtered {
            let shape = match rows.keep(old)? {
                Some(false) => return Ok(1),
                Some(true) => Shape::Delete,
                None => Shape::DeleteIfThere,
            };
            return self.delete_one(number, shape, old, rows).map(|()| 1);
        }
        let reach = run::deletes(rest, old, table);
        if reach < limits::SET_RUN_MIN {
            return self.delete_one(number, Shape::Delete, old, rows).map(|()| 1);
        }
        let gone: Vec<_> = rest[..reach]
            .iter()
            .filter_map(|operation| if let Operation::Delete { old } = operation { Some(*old) } else { None })
            .collect();
        let columns = table.key.clone();
        self.sent(number, Purpose::Delete, None)?;
        self.bind_arrays(number, Shape::DeleteMany, &columns, &gone, rows)?;
        Ok(reach)
    }

    fn delete_one(&mut self, number: usize, shape: Shape, old: RowRef, rows: &Rows<'_>) -> Result<()> {
        let columns: Vec<_> =
            statement::lookup_columns(&self.tables[number].0).into_iter().map(|column| (old, column)).collect();
        self.sent(number, Purpose::Delete, None)?;
        self.bind(number, shape, &columns, rows)
    }

    // === the rest ===

    fn truncate(&mut self, relation_ids: &[u32], restart_identity: bool) -> Result<()> {
        let tables: Vec<_> = relation_ids
            .iter()
            .map(|relation_id| {
                let found = self.tables.iter().position(|(table, _)| table.source.relation_id == *relation_id);
                found.ok_or_else(|| Error::new(Kind::UnknownRelation, format!("relation with oid {relation_id}")))
            })
            .collect::<Result<_>>()?;
        let Some(first) = tables.first() else { return Ok(()) };
        let sql = statement::truncate(tables.iter().map(|number| &self.tables[*number].0), restart_identity);
        self.sent(*first, Purpose::Truncate, None)?;
        self.writer.parse("", &sql)?;
        self.writer.bind("", [])?;
        self.writer.execute()
    }

    /// Moves the checkpoint and ends the transaction.
    fn advance(&mut self, lsn: Lsn) -> Result<()> {
        failpoint::reach(Point::Checkpoint)?;
        let open = self.transaction.unwrap_or(Open { xid: 0, final_lsn: lsn });
        self.expect(Expectation::Statement(Sent {
            purpose: Purpose::Checkpoint,
            table: "".into(),
            xid: open.xid,
            final_lsn: open.final_lsn,
            rows: Some(1),
        }))?;
        let (to, from) = (lsn.to_string(), self.applied.to_string());
        let parameters = [&to, &self.claim.job_id, &from, &self.epoch].map(|text| Some(text.as_bytes()));
        self.writer.bind(ADVANCE, parameters)?;
        self.writer.execute()?;
        self.writer.sync()?;
        self.applied = lsn;
        self.expect(Expectation::Commit(lsn))
    }

    fn number(&self, rows: &Rows<'_>, row: RowRef) -> Result<usize> {
        let table = rows.batch(row)?.table();
        self.numbers
            .get(&Arc::as_ptr(table).addr())
            .copied()
            .ok_or_else(|| Error::new(Kind::UnknownRelation, format!("table {}", table.name)))
    }

    fn sent(&self, number: usize, purpose: Purpose, rows: Option<u64>) -> Result<()> {
        failpoint::reach(Point::Statement)?;
        let open = self.transaction.ok_or_else(|| Error::new(Kind::Internal, "a change outside of a transaction"))?;
        self.expect(Expectation::Statement(Sent {
            purpose,
            table: self.tables[number].1.clone(),
            xid: open.xid,
            final_lsn: open.final_lsn,
            rows,
        }))
    }

    /// Nobody hears when the reading half has failed; its own error is the one to report.
    fn expect(&self, expectation: Expectation) -> Result<()> {
        self.expectations
            .send(expectation)
            .map_err(|_| Error::new(Kind::ConnectionLost, "target: the apply session ended"))
    }

    /// Binds cells as parameters and executes.
    fn bind(&mut self, number: usize, shape: Shape, cells: &[(RowRef, usize)], rows: &Rows<'_>) -> Result<()> {
        let name = self.statements.name(&mut self.writer, number, &self.tables[number].0, shape)?;
        let mut scratch = Vec::new();
        self.writer.bind_with(name, cells, |(row, column), buffer| {
            Ok(match rows.value(*row, *column, &mut scratch)? {
                Some(value) => {
                    buffer.extend_from_slice(value);
                    IsNull::No
                }
                None => IsNull::Yes,
            })
        })?;
        self.writer.execute()
    }

    /// Binds one array for each column, then the number of rows, and executes.
    fn bind_arrays(
        &mut self,
        number: usize,
        shape: Shape,
        columns: &[usize],
        changed: &[RowRef],
        rows: &Rows<'_>,
    ) -> Result<()> {
        debug_assert!(self.tables[number].0.lookup == Lookup::Key, "rows without a key are changed one by one");
        let name = self.statements.name(&mut self.writer, number, &self.tables[number].0, shape)?;
        let mut scratch = Vec::new();
        let parameters = columns.iter().map(|column| Some(*column)).chain([None]);
        self.writer.bind_with(name, parameters, |column, buffer| {
            match column {
                Some(column) => {
                    array::begin(buffer);
                    for (position, row) in changed.iter().enumerate() {
                        array::element(buffer, position == 0, rows.value(*row, column, &mut scratch)?);
                    }
                    array::end(buffer);
                }
                None => buffer.extend_from_slice(changed.len().to_string().as_bytes()),
            }
            Ok(IsNull::No)
        })?;
        self.writer.execute()
    }
}
