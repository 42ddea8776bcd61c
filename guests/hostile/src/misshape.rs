//! Misdeeds that return what is no proper column.

use crate::{Column, Misdeed, copy, values};

pub(crate) const MASKS: &[(&str, Misdeed)] = &[
    ("no-columns", |_, _| Ok(Vec::new())),
    ("extra-column", |batch, _| Ok([copy(batch), copy(batch)].into_iter().flatten().collect())),
    ("too-few-rows", |batch, _| {
        let mut columns = copy(batch);
        columns[0].states.pop();
        columns[0].ends.pop();
        let end = columns[0].ends.last().copied().unwrap_or(0);
        columns[0].bytes.truncate(end as usize);
        Ok(columns)
    }),
    ("too-many-rows", |batch, _| {
        let mut columns = copy(batch);
        columns[0].states.push(0);
        let end = columns[0].bytes.len() as u32;
        columns[0].ends.push(end);
        Ok(columns)
    }),
    ("states-without-ends", |batch, _| changed(batch, |column| column.ends.clear())),
    ("ends-without-states", |batch, _| changed(batch, |column| column.states.clear())),
    ("falling-offsets", |batch, _| {
        changed(batch, |column| {
            if let [.., before, last] = column.ends.as_mut_slice() {
                (*before, *last) = (*last + 1, *before);
            } else {
                column.ends.iter_mut().for_each(|end| *end += 1);
            }
        })
    }),
    ("offsets-beyond", |batch, _| {
        changed(batch, |column| column.ends.iter_mut().for_each(|end| *end = end.wrapping_add(1 << 20)))
    }),
    ("offsets-at-the-limit", |batch, _| changed(batch, |column| column.ends.fill(u32::MAX))),
    ("bytes-left-over", |batch, _| changed(batch, |column| column.bytes.extend_from_slice(b"more"))),
    ("bytes-in-a-null", |batch, _| {
        changed(batch, |column| {
            *column = values((0..batch.rows).map(|_| b"hidden".to_vec()));
            column.states.fill(1);
        })
    }),
    // Whole, the bytes are UTF-8; each row alone is not.
    ("split-character", |batch, _| {
        let half = |row: u32| if row.is_multiple_of(2) { vec![0xc3] } else { vec![0xa9] };
        Ok(vec![values((0..batch.rows).map(half))])
    }),
    ("bad-utf8", |batch, _| Ok(vec![values((0..batch.rows).map(|_| vec![b'a', 0xff, b'b']))])),
    ("surrogate", |batch, _| Ok(vec![values((0..batch.rows).map(|_| vec![0xed, 0xa0, 0x80]))])),
    ("nul-byte", |batch, _| Ok(vec![values((0..batch.rows).map(|_| b"a\0b".to_vec()))])),
    ("unknown-state", |batch, _| changed(batch, |column| column.states.fill(7))),
];

fn changed(batch: &crate::Batch, change: impl FnOnce(&mut Column)) -> Result<Vec<Column>, crate::Fault> {
    let mut columns = copy(batch);
    change(&mut columns[0]);
    Ok(columns)
}
