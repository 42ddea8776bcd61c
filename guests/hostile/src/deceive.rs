//! Misdeeds of proper shape that break a promise.

use crate::{Column, FilterMisdeed, Misdeed, copy, value, values};

pub(crate) const MASKS: &[(&str, Misdeed)] = &[
    // It masks nothing.
    ("identity", |batch, _| Ok(copy(batch))),
    ("null", |batch, _| Ok(vec![all_in_state(batch.rows, 1)])),
    // It says unchanged of values that came.
    ("unchanged", |batch, _| Ok(vec![all_in_state(batch.rows, 2)])),
    ("null-becomes-a-value", |batch, _| Ok(vec![values((0..batch.rows).map(|_| b"0".to_vec()))])),
    // All it promises but injective: every value becomes the same.
    ("collide", |batch, _| Ok(vec![values((0..batch.rows).map(|_| b"same".to_vec()))])),
    // Its output tells how often it was called.
    ("count-calls", |batch, call| {
        let masked = |row| [value(batch, row as usize), call.calls.to_string().as_bytes()].concat();
        Ok(vec![values((0..batch.rows).map(masked))])
    }),
    // Its output tells where in the batch a row was.
    ("count-rows", |batch, _| {
        let masked = |row: u32| [value(batch, row as usize), row.to_string().as_bytes()].concat();
        Ok(vec![values((0..batch.rows).map(masked))])
    }),
    // Its output tells how large the batch was.
    ("count-batch", |batch, _| {
        let masked = |row| [value(batch, row as usize), batch.rows.to_string().as_bytes()].concat();
        Ok(vec![values((0..batch.rows).map(masked))])
    }),
    // It behaves for n calls, and then no longer.
    ("turn-later", |batch, call| {
        let turned: &[u8] = if call.calls < call.number { b"" } else { b"!" };
        Ok(vec![values((0..batch.rows).map(|row| [value(batch, row as usize), turned].concat()))])
    }),
    // Longer than any `varchar(n)` in a test.
    ("lengthen", |batch, _| Ok(vec![values((0..batch.rows).map(|_| b"long ".repeat(100)))])),
    // No number, date or uuid.
    ("write-nonsense", |batch, _| Ok(vec![values((0..batch.rows).map(|_| b"nonsense".to_vec()))])),
    // What COPY and SQL would take for something else, if it were not escaped.
    ("write-escapes", |batch, _| {
        Ok(vec![values((0..batch.rows).map(|_| b"\\N\t\\.\n'); drop table users; --".to_vec()))])
    }),
];

pub(crate) const FILTERS: &[(&str, FilterMisdeed)] = &[
    ("keep-all", |batch, _| Ok(vec![1; batch.rows as usize])),
    ("keep-maybe", |batch, _| Ok(vec![2; batch.rows as usize])),
    ("keep-too-few", |batch, _| Ok(vec![1; (batch.rows as usize).saturating_sub(1)])),
    ("keep-too-many", |batch, _| Ok(vec![1; batch.rows as usize + 1])),
    ("keep-by-chance", |batch, call| Ok(vec![(call.calls % 2) as u8; batch.rows as usize])),
    ("keep-looping", |_, _| {
        loop {
            std::hint::black_box(());
        }
    }),
    ("keep-fault", |_, call| Err(crate::fault(call.number))),
    ("keep-trap", |_, _| crate::trap()),
];

fn all_in_state(rows: u32, state: u8) -> Column {
    Column { states: vec![state; rows as usize], ends: vec![0; rows as usize], bytes: Vec::new() }
}
