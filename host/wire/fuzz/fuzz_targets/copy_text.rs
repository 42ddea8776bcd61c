//! Any chunk splits or is refused within its bytes; one row at a time and a chunk at a time agree; escaping is undone.
//! The first byte of the input is the number of columns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgveil_wire::copy_text::{Field, RowSplitter, escape_into, split_row, unescape_into};

fuzz_target!(|input: &[u8]| {
    let Some((columns, chunk)) = input.split_first() else { return };
    let columns = usize::from(*columns);
    let Ok(mut rows) = RowSplitter::new(chunk, columns) else { return };
    let mut fields = Vec::new();
    let mut start = 0;
    loop {
        match rows.next_row(&mut fields) {
            Ok(true) => {
                same_alone(&chunk[start..rows.consumed()], columns, chunk, &fields);
                start = rows.consumed();
                fields.iter().for_each(|field| round_trip(field.of(chunk)));
            }
            Ok(false) => break,
            Err(error) => {
                assert!(error.offset <= chunk.len());
                break;
            }
        }
    }
    round_trip(chunk);
});

fn same_alone(row: &[u8], columns: usize, chunk: &[u8], fields: &[Field]) {
    let mut alone = Vec::new();
    split_row(row, columns, &mut alone).expect("a row of a chunk is a row");
    let alone = alone.iter().map(|field| (field.is_null, field.of(row)));
    assert!(alone.eq(fields.iter().map(|field| (field.is_null, field.of(chunk)))));
}

fn round_trip(field: &[u8]) {
    let (mut value, mut written, mut read) = (Vec::new(), Vec::new(), Vec::new());
    match unescape_into(field, &mut value) {
        Ok(()) => {
            escape_into(&value, &mut written);
            unescape_into(&written, &mut read).expect("what was escaped can be unescaped");
            assert!(read == value);
        }
        Err(error) => assert!(error.offset < field.len()),
    }
}
