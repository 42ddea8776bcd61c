//! Tables whose shape at the source is not the one that was copied, and whether somebody has decided what follows from it.

use std::sync::Arc;

use crate::apply;
use crate::checkpoint::{JobRecord, set_shape};
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;
use crate::relation::Table;
use crate::schema::compare;
use crate::source::schema::{SourceCatalog, SourceTable};
use crate::source::shape::{self, Recorded, same_in_stream};

use super::masking::Masking;
use super::prepare::Prepared;

/// The job's tables as they were copied, beside the source's catalogue of now.
pub(super) struct Changes {
    recorded: Vec<Recorded>,
    catalog: SourceCatalog,
}

impl Changes {
    pub(super) fn find(recorded: Vec<Recorded>, catalog: SourceCatalog) -> Changes {
        Changes { recorded, catalog }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changed().next().is_none()
    }

    /// The shapes that were copied, or taken over since.
    pub(super) fn copied(&self) -> Vec<Arc<Table>> {
        self.recorded.iter().map(|recorded| Arc::clone(&recorded.table)).collect()
    }

    /// Shapes before those.
    pub(super) fn former(&self) -> Vec<Arc<Table>> {
        self.recorded.iter().flat_map(|recorded| recorded.former.iter().cloned()).collect()
    }

    /// The shapes that the source has left.
    pub(super) fn left(&self) -> Vec<Arc<Table>> {
        self.changed().map(|(recorded, _)| Arc::clone(&recorded.table)).collect()
    }

    /// The shapes of now. A table that did not change, or is gone or made anew, stays as it was copied; the stream tells.
    pub(super) fn current(&self) -> Vec<Arc<Table>> {
        let current = |recorded: &Recorded| Arc::clone(self.now(recorded).map_or(&recorded.table, |now| &now.table));
        self.recorded.iter().map(current).collect()
    }

    fn changed(&self) -> impl Iterator<Item = (&Recorded, &SourceTable)> {
        self.recorded.iter().filter_map(|recorded| self.now(recorded).map(|now| (recorded, now)))
    }

    /// The table's other shape, if it has one now.
    fn now(&self, recorded: &Recorded) -> Option<&SourceTable> {
        let table = &recorded.table;
        let same =
            |found: &&SourceTable| found.table.relation_id == table.relation_id && found.table.name == table.name;
        self.catalog.tables.iter().find(same).filter(|now| !same_in_stream(&now.table, table))
    }

    /// What the operator has yet to do at the target before the new shapes can be taken over.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) async fn undecided(&self, control: &mut Session, masking: &Masking) -> Result<Option<Error>> {
        let names: Vec<_> = self.changed().map(|(recorded, _)| recorded.table.name.clone()).collect();
        let there = apply::schema::read_tables(control, &names).await?;
        for (recorded, now) in self.changed() {
            let name = &recorded.table.name;
            let changed = |what: String| Some(Error::new(Kind::RelationChanged, format!("table {name}: {what}")));
            let Some(target) = there.get(name) else { return Ok(changed("it is not on the target".to_owned())) };
            if let Some(first) =
                compare(now, target, masking.filtered_names.contains(name)).into_iter().find(|found| found.refuses)
            {
                let column = first.column.map(|column| format!("column {column}: ")).unwrap_or_default();
                return Ok(changed(format!("{column}{}", first.what)));
            }
            let identity = shape::letter(now.table.replica_identity);
            if now.table.replica_identity != recorded.table.replica_identity
                && target_identity(control, &name.quoted()).await? != Some(identity)
            {
                return Ok(changed(
                    "its replica identity changed; set the same on the target's table to go on".to_owned(),
                ));
            }
        }
        Ok(None)
    }

    /// For a column that was there before, and for the filters, the decision must be what it was: rows that were copied follow it.
    ///
    /// # Errors
    /// [`Kind::FingerprintChanged`], naming the column.
    pub(super) fn compare_decisions(&self, prepared: &Prepared, job_id: &str) -> Result<()> {
        for recorded in &self.recorded {
            let table = self.now(recorded).map_or(&recorded.table, |now| &now.table);
            let decided = prepared.decisions(table);
            let place = |what: &str| {
                Error::new(Kind::FingerprintChanged, format!("job {job_id}: table {}: {what}", table.name))
            };
            if decided.filters != recorded.decisions.filters {
                return Err(place("its filters"));
            }
            let differs = |(name, digest): &(&String, &String)| {
                recorded.decisions.columns.get(*name).is_some_and(|before| before != *digest)
            };
            if let Some((name, _)) = decided.columns.iter().find(differs) {
                return Err(place(&format!("column {name}")));
            }
        }
        Ok(())
    }

    /// Takes the new shapes over into the job's record, the ones before them kept beside.
    ///
    /// # Errors
    /// Those of the target.
    pub(super) async fn adopt(
        &self,
        prepared: &Prepared,
        control: &mut Session,
        job_id: &str,
        masking: &Masking,
    ) -> Result<()> {
        control.batch("begin").await?;
        for (recorded, now) in self.changed() {
            let table = &now.table;
            let former: Vec<Arc<Table>> = std::iter::once(&recorded.table).chain(&recorded.former).cloned().collect();
            let shape = shape::write(table, &prepared.decisions(table), &former)?;
            set_shape(control, job_id, table.relation_id, &shape, &masking.table_fingerprint(&table.name)).await?;
            tracing::info!(table = %table.name, "took over the table's new shape");
        }
        JobRecord::set_fingerprint(control, job_id, &masking.fingerprint()).await?;
        control.batch("commit").await.map(|_| ())
    }
}

/// Those of the shapes whose columns the target still has: rows in the others can go nowhere.
///
/// # Errors
/// Those of the connection.
pub(super) async fn taken_by_target(control: &mut Session, mut shapes: Vec<Arc<Table>>) -> Result<Vec<Arc<Table>>> {
    if !shapes.is_empty() {
        let names: Vec<_> = shapes.iter().map(|table| table.name.clone()).collect();
        let there = apply::schema::read_tables(control, &names).await?;
        let has =
            |table: &Table, column: &str| there.get(&table.name).is_some_and(|found| found.column(column).is_some());
        shapes.retain(|table| table.columns.iter().all(|column| has(table, &column.name)));
    }
    Ok(shapes)
}

/// The replica identity of the target's table, as `pg_class.relreplident` writes it.
async fn target_identity(control: &mut Session, quoted: &str) -> Result<Option<char>> {
    let rows = control
        .query("select relreplident from pg_catalog.pg_class where oid = pg_catalog.to_regclass($1)", &[Some(quoted)])
        .await?;
    Ok(rows.first().and_then(|row| row.get(0)).and_then(|letter| letter.chars().next()))
}
