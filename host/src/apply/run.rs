//! Finds runs: neighbouring changes of one kind in one transaction that may go to the target together.

use std::collections::HashSet;

use crate::error::Result;
use crate::window::{Operation, RowRef};

use super::change::{Rows, update_shape};
use super::statement::{UpdateShape, replaces};
use super::table::{Lookup, TargetTable};

/// How far a run of inserts into one batch reaches, from the first operation on.
pub(super) fn inserts(operations: &[Operation], first: RowRef) -> usize {
    operations
        .iter()
        .take_while(|operation| matches!(operation, Operation::Insert { new } if new.batch == first.batch))
        .count()
}

/// How far a run of deletes by key reaches.
pub(super) fn deletes(operations: &[Operation], first: RowRef, table: &TargetTable) -> usize {
    if table.lookup != Lookup::Key || table.filtered {
        return 1;
    }
    operations
        .iter()
        .take_while(|operation| matches!(operation, Operation::Delete { old } if old.batch == first.batch))
        .count()
}

/// How far a run of updates reaches that set the same columns of different rows and leave the keys alone.
///
/// A statement over many rows changes them in an order of its own and each once: tables with another unique index are
/// left out (the source's order may be what keeps it satisfied), and a row that comes again begins a new run.
pub(super) fn updates(
    operations: &[Operation],
    rows: &Rows<'_>,
    table: &TargetTable,
    shape: &UpdateShape,
) -> Result<usize> {
    if shape.old || !table.reorderable || table.filtered || replaces(table, shape) {
        return Ok(1);
    }
    let Some(Operation::Update { new: first, .. }) = operations.first() else { return Ok(0) };
    let mut seen = HashSet::new();
    let mut key = Vec::new();
    let mut reach = 0;
    for operation in operations {
        let Operation::Update { old: None, new } = operation else { break };
        if new.batch != first.batch || (reach > 0 && update_shape(rows, None, *new)? != *shape) {
            break;
        }
        rows.key(table, *new, &mut key)?;
        if !seen.insert(std::mem::take(&mut key)) {
            break;
        }
        reach += 1;
    }
    Ok(reach)
}
