//! The audit: some batches are run again in a fresh instance, split and shuffled, and compared.
//!
//! A guest that keeps state between rows or calls, or looks at what lies around a row, gives another answer the second time, and
//! the job stops. A guest cannot tell an audited batch from any other.

use std::sync::atomic::{AtomicU64, Ordering};

use super::abi::ColumnOut;
use super::binding::BindingPlan;
use super::input::Source;
use super::plan::{TablePlan, Veil};
use super::transform::{Masked, WorkerInstances};
use crate::error::{Error, Kind, Result};

/// A hundredth of a percent: the audit's share is counted in whole ones.
const SHARES: u64 = 10_000;

/// Which batches are audited: a share of all, spread evenly, the first one included so that a job with few batches has one too.
pub(super) struct Audit {
    share: u64,
    seen: AtomicU64,
}

impl Audit {
    /// A share in percent.
    pub(super) fn every(percent: f64) -> Audit {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=10000")]
        let share = (percent.clamp(0.0, 100.0) * (SHARES as f64) / 100.0).round() as u64;
        Audit { share, seen: AtomicU64::new(0) }
    }

    /// Counts a batch, and says whether it is audited.
    fn count(&self) -> bool {
        let before = self.seen.fetch_add(1, Ordering::Relaxed);
        // One batch in SHARES / share, at even distances.
        (before * self.share) % SHARES < self.share
    }
}

impl Veil {
    /// Whether the batch at hand is audited.
    pub(super) fn audit_is_due(&self) -> bool {
        self.audit.count()
    }

    /// Runs a batch again, in two shuffled halves, each in fresh instances.
    ///
    /// # Errors
    /// [`Kind::GuestNotDeterministic`] when a row comes out differently, or whatever the second run fails with.
    pub(super) fn audit(&self, plan: &TablePlan, source: &Source<'_>, first: &Masked) -> Result<()> {
        let order = shuffled(source.rows());
        for half in order.chunks(order.len().div_ceil(2).max(1)) {
            let again = Source { raw: source.raw, old_rows: source.old_rows, order: Some(half) };
            let second = self.run(&mut WorkerInstances::default(), plan, &again)?;
            compare(plan, half, first, &second)?;
        }
        Ok(())
    }
}

fn compare(plan: &TablePlan, order: &[usize], first: &Masked, second: &Masked) -> Result<()> {
    let differs = |binding: &BindingPlan| {
        let place = format!("table {}: {}: audit", plan.table.name, binding.place);
        Error::new(Kind::GuestNotDeterministic, place)
    };
    for (mask, (before, after)) in plan.masks.iter().zip(first.outputs.iter().zip(&second.outputs)) {
        let same = |before: &ColumnOut, after: &ColumnOut| {
            order.iter().enumerate().all(|(place, row)| before.cell(*row) == after.cell(place))
        };
        if before.len() != after.len() || !before.iter().zip(after).all(|(before, after)| same(before, after)) {
            return Err(differs(mask));
        }
    }
    if let (Some(before), Some(after), Some(filter)) = (&first.keep, &second.keep, plan.filters.first())
        && !order.iter().zip(after).all(|(row, kept)| before[*row] == *kept)
    {
        return Err(differs(filter));
    }
    Ok(())
}

/// The rows in an order that mixes them well and is the same each time: a permutation by a multiplicative generator.
fn shuffled(rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..rows).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = ((u128::from(state) * (last as u128 + 1)) >> 64) as usize;
        order.swap(last, pick);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_kept() {
        for (percent, expected) in [(0.0, 0), (1.0, 10), (12.5, 125), (100.0, 1000)] {
            let audit = Audit::every(percent);
            assert_eq!((0..1000).filter(|_| audit.count()).count(), expected, "{percent} percent");
        }
        assert!(Audit::every(1.0).count(), "the first batch is audited");
    }

    #[test]
    fn a_shuffle_has_every_row_once() {
        for rows in [0, 1, 2, 100] {
            let mut order = shuffled(rows);
            assert!(rows < 100 || order != (0..rows).collect::<Vec<_>>());
            order.sort_unstable();
            assert_eq!(order, (0..rows).collect::<Vec<_>>());
        }
    }
}
