//! Any payload is a message or an error that points into it; a row that was accepted can be read to its end.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use pgveil_wire::pgoutput::{Message, OldTuple};
use pgveil_wire::replication::ServerMessage;
use pgveil_wire::tuple::{CellKind, Tuple, TupleCell};

fuzz_target!(|input: &[u8]| {
    let payload = Bytes::copy_from_slice(input);
    if let Err(error) = ServerMessage::parse(&payload) {
        assert!(error.offset <= input.len());
    }
    match Message::parse(&payload) {
        Ok(Message::Insert(insert)) => read(&insert.new),
        Ok(Message::Update(update)) => {
            update.old.iter().map(OldTuple::tuple).for_each(read);
            read(&update.new);
        }
        Ok(Message::Delete(delete)) => read(delete.old.tuple()),
        Ok(_) => {}
        Err(error) => assert!(error.offset <= input.len()),
    }
});

fn read(tuple: &Tuple) {
    let cells = tuple.spans().zip(tuple.cells()).filter(|(span, cell)| match cell {
        TupleCell::Null => span.kind == CellKind::Null,
        TupleCell::Unchanged => span.kind == CellKind::Unchanged,
        TupleCell::Text(value) => {
            let start = span.start as usize;
            tuple.bytes().get(start..start + span.len as usize) == Some(value)
        }
    });
    assert_eq!(cells.count(), tuple.columns());
}
