//! A batch through the door: every mask and filter of its table, in one instance per guest.

use std::sync::Arc;

use super::abi::ColumnOut;
use super::binding::BindingPlan;
use super::input::{Inputs, OldRow, Source};
use super::instance::Instance;
use super::plan::{ColumnPlan, TablePlan, Veil};
use super::{Shown, VeiledBatch, VeiledWindow};
use crate::error::{Error, Kind, Result};
use crate::row::{Image, RawBatch};
use crate::window::{Operation, RawWindow};

/// The instances of one worker, one for each guest, and its reused vectors. Made empty; a guest starts when it is first needed.
#[derive(Default)]
pub struct WorkerInstances {
    guests: Vec<Option<Instance>>,
    inputs: Inputs,
}

/// What the guests made of a batch.
pub(super) struct Masked {
    /// For each binding of the plan its output columns; none where it did not run.
    pub outputs: Vec<Vec<ColumnOut>>,
    /// One byte a row, when the table has filters and the image is a whole row.
    pub keep: Option<Vec<u8>>,
}

impl Veil {
    /// Masks and filters one batch. Blocks on the processor for as long as the guests take.
    ///
    /// The same rows give the same output in any batch, worker and process.
    ///
    /// # Errors
    /// Whatever a guest or a value did wrong; nothing of the batch comes out then, and the instance that failed is gone.
    pub fn veil_batch(&self, instances: &mut WorkerInstances, raw: RawBatch) -> Result<VeiledBatch> {
        let plan = self.plan(&raw)?;
        let source = Source { raw: &raw, old_rows: &[], order: None };
        let masked = self.run_audited(instances, plan, &source)?;
        Ok(assemble(plan, raw, masked))
    }

    /// Masks and filters a window. A value that an update left unchanged is read from the update's old row where there is one.
    ///
    /// # Errors
    /// As for [`veil_batch`](Self::veil_batch).
    pub fn veil_window(&self, instances: &mut WorkerInstances, window: RawWindow) -> Result<VeiledWindow> {
        let RawWindow { operations, batches, fault, budget } = window;
        let old_rows = old_rows(&operations, &batches)?;
        let mut all = Vec::with_capacity(batches.len());
        for (raw, old_rows) in batches.iter().zip(&old_rows) {
            let plan = self.plan(raw)?;
            let source = Source { raw, old_rows, order: None };
            all.push((plan, self.run_audited(instances, plan, &source)?));
        }
        let batches = batches.into_iter().zip(all).map(|(raw, (plan, masked))| assemble(plan, raw, masked));
        Ok(VeiledWindow { operations, batches: batches.collect(), fault, budget })
    }

    fn run_audited(&self, instances: &mut WorkerInstances, plan: &TablePlan, source: &Source<'_>) -> Result<Masked> {
        let masked = self.run(instances, plan, source)?;
        if self.audit_is_due() {
            self.audit(plan, source, &masked)?;
        }
        Ok(masked)
    }

    /// Runs every binding that this image needs.
    pub(super) fn run(&self, instances: &mut WorkerInstances, plan: &TablePlan, source: &Source<'_>) -> Result<Masked> {
        let is_key = source.raw.image() == Image::Key;
        let mut masked = Masked { outputs: Vec::with_capacity(plan.masks.len()), keep: None };
        instances.inputs.reset(plan.table.columns.len());
        let table = |error: Error| error.within(format!("table {}", plan.table.name));
        for filter in plan.filters.iter().filter(|_| !is_key) {
            let kept = match source.rows() {
                0 => Ok(Vec::new()),
                _ => self.call(instances, filter, |instance, inputs| filter.keep(instance, source, inputs)),
            };
            let kept = kept.map_err(table)?;
            match &mut masked.keep {
                None => masked.keep = Some(kept),
                // A row is kept when all filters keep it.
                Some(before) => before.iter_mut().zip(kept).for_each(|(all, this)| *all &= this),
            }
        }
        for mask in &plan.masks {
            let runs = source.rows() > 0 && (!is_key || mask.on_keys);
            let outputs = match runs {
                true => self.call(instances, mask, |instance, inputs| mask.mask(instance, source, inputs)),
                false => Ok(Vec::new()),
            };
            masked.outputs.push(outputs.map_err(table)?);
        }
        Ok(masked)
    }

    /// Takes the guest's instance out, or starts one, and puts it back only if the call gave it back.
    fn call<T>(
        &self,
        instances: &mut WorkerInstances,
        binding: &BindingPlan,
        call: impl FnOnce(Instance, &mut Inputs) -> Result<(Instance, T)>,
    ) -> Result<T> {
        if instances.guests.len() < self.guests.len() {
            instances.guests.resize_with(self.guests.len(), || None);
        }
        let instance = match instances.guests[binding.guest].take() {
            Some(instance) => instance,
            None => self.guests[binding.guest].start()?,
        };
        let (instance, answer) = call(instance, &mut instances.inputs)?;
        instances.guests[binding.guest] = Some(instance);
        Ok(answer)
    }

    /// The plan of the batch's table.
    fn plan(&self, raw: &RawBatch) -> Result<&TablePlan> {
        let table = raw.table();
        let plans = self.tables.get(&table.relation_id);
        let plans = plans.ok_or_else(|| Error::new(Kind::UnknownRelation, format!("table {}", table.name)))?;
        // Most batches share the very table that was planned; any other must be equal to one, column by column.
        plans
            .iter()
            .find(|plan| Arc::ptr_eq(&plan.table, table) || plan.table == *table)
            .ok_or_else(|| Error::new(Kind::RelationChanged, format!("table {}", table.name)))
    }
}

/// For each batch, each row's old row, if an update brought a whole one. Batches without any have none listed.
fn old_rows<'a>(operations: &[Operation], batches: &'a [RawBatch]) -> Result<Vec<Vec<OldRow<'a>>>> {
    let outside = || Error::new(Kind::Internal, "an operation names a row outside its window");
    let mut all: Vec<Vec<OldRow<'a>>> = batches.iter().map(|_| Vec::new()).collect();
    for operation in operations {
        let Operation::Update { old: Some(old), new } = operation else { continue };
        let before = batches.get(old.batch as usize).ok_or_else(outside)?;
        let after = batches.get(new.batch as usize).ok_or_else(outside)?;
        if (old.row as usize) >= before.rows() || (new.row as usize) >= after.rows() {
            return Err(outside());
        }
        if before.image() == Image::Row && before.table() == after.table() {
            let rows = &mut all[new.batch as usize];
            rows.resize(after.rows(), None);
            rows[new.row as usize] = Some((before, old.row as usize));
        }
    }
    Ok(all)
}

/// Joins raw rows and masked columns. Born hidden: a column shows its raw bytes only where the plan says `pass`.
fn assemble(plan: &TablePlan, raw: RawBatch, mut masked: Masked) -> VeiledBatch {
    let is_key = raw.image() == Image::Key;
    let columns = plan.columns.iter().zip(&plan.table.columns).map(|(decided, column)| match decided {
        _ if is_key && !column.identity => Shown::Absent,
        ColumnPlan::Pass => Shown::Raw,
        ColumnPlan::Null => Shown::Null,
        ColumnPlan::Masked { mask, output } => match masked.outputs[*mask].get_mut(*output) {
            Some(out) => Shown::Masked(std::mem::take(out)),
            None => Shown::Absent,
        },
    });
    let columns = columns.collect();
    VeiledBatch { raw, columns, keep: masked.keep }
}
