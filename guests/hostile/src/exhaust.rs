//! Misdeeds that use up what a guest is given: fuel, stack, memory, the host's patience.

use std::hint::black_box;

use crate::{Batch, Column, Fault, Misdeed, copy, trap, value};

pub(crate) const MASKS: &[(&str, Misdeed)] = &[
    ("loop", |_, _| {
        loop {
            black_box(());
        }
    }),
    ("recurse", |batch, _| {
        black_box(recurse(0));
        Ok(copy(batch))
    }),
    ("take-all-memory", |batch, _| {
        let mut taken = Vec::new();
        loop {
            taken.push(black_box(vec![1_u8; 1 << 20]));
            black_box(batch);
        }
    }),
    // Whether growth is refused or trapped, it must not come back as if nothing were.
    ("take-memory-politely", |batch, _| {
        let mut taken: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut piece = Vec::new();
            if piece.try_reserve_exact(1 << 20).is_err() {
                return Ok(copy(batch));
            }
            piece.resize(1 << 20, 1);
            taken.push(black_box(piece));
        }
    }),
    ("fill-memory", |_, _| {
        let mut block = vec![0_u8; 16 << 20];
        for byte in 0_u8.. {
            black_box(&mut block).fill(byte);
            if byte == u8::MAX {
                break;
            }
        }
        loop {
            black_box(&mut block).fill(7);
        }
    }),
    // n steps of work a row, and then the right shape.
    ("burn", |batch, call| {
        for _ in 0..u64::from(batch.rows) * call.number {
            black_box(());
        }
        Ok(copy(batch))
    }),
    ("burn-then-trap", |_, call| {
        for _ in 0..call.number {
            black_box(());
        }
        trap()
    }),
    ("divide-by-zero", |batch, _| Ok(vec![divide(batch, black_box(0))])),
    // Traps at row n.
    ("trap-at-row", |batch, call| {
        if call.number < u64::from(batch.rows) {
            trap();
        }
        Ok(copy(batch))
    }),
    // Panics at row n, with the value in its message.
    ("panic-with-the-value", |batch, call| {
        if call.number < u64::from(batch.rows) {
            panic!("could not mask {:?}", String::from_utf8_lossy(value(batch, call.number as usize)));
        }
        Ok(copy(batch))
    }),
    ("fault-at-row", |batch, call| {
        if call.number < u64::from(batch.rows) { Err(crate::fault(call.number)) } else { Ok(copy(batch)) }
    }),
    ("fault-beyond", |batch, _| Err(Fault { column: 1000, ..crate::fault(u64::from(batch.rows) + 1) })),
    // A gigabyte of text in one value.
    ("huge-value", |batch, _| Ok(vec![huge(batch, 1 << 30)])),
    // n bytes of text in one value.
    ("long-value", |batch, call| Ok(vec![huge(batch, call.number as usize)])),
    // 2^28 rows, a gigabyte of offsets.
    ("huge-list", |_, _| Ok(vec![Column { states: vec![0; 1 << 28], ends: vec![0; 1 << 28], bytes: Vec::new() }])),
    ("many-columns", |_, _| {
        let empty = || Column { states: Vec::new(), ends: Vec::new(), bytes: Vec::new() };
        Ok((0..1 << 20).map(|_| empty()).collect())
    }),
    // A length that points far outside of the memory.
    ("false-length", |_, _| {
        let bytes = std::mem::ManuallyDrop::new(vec![0_u8; 8]);
        // SAFETY: there is none; the length is a lie that only the host will follow.
        let lie = unsafe { Vec::from_raw_parts(bytes.as_ptr().cast_mut(), 1 << 28, 1 << 28) };
        Ok(vec![Column { states: vec![0], ends: vec![1 << 28], bytes: lie }])
    }),
    ("refuse-to-bind", |batch, _| Ok(copy(batch))),
    ("refuse-at-length", |batch, _| Ok(copy(batch))),
    ("trap-at-bind", |batch, _| Ok(copy(batch))),
];

#[expect(unconditional_recursion, reason = "that is the misdeed")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1) + frame[depth as usize % 16]
}

fn divide(batch: &Batch, by: i32) -> Column {
    crate::values((0..batch.rows).map(|row| (row as i32).wrapping_div(black_box(by)).to_string().into_bytes()))
}

fn huge(batch: &Batch, bytes: usize) -> Column {
    let rows = batch.rows as usize;
    Column { states: vec![0; rows], ends: vec![bytes as u32; rows], bytes: vec![b'x'; bytes] }
}
