//! Arbitrary, cut and changed bytes: always an answer, never a panic, and an error always points into the input.

use bytes::{Bytes, BytesMut};
use pgveil_wire::backend::{
    Authentication, BackendKeyData, CommandTag, CopyResponse, DataRow, ErrorFields, Frame, ParameterStatus,
    RowDescription, TransactionStatus,
};
use pgveil_wire::copy_text::{RowSplitter, split_row, unescape_into};
use pgveil_wire::pgoutput::Message;
use pgveil_wire::replication::ServerMessage;
use pgveil_wire::{WireError, WireErrorKind};
use proptest::prelude::*;

use crate::pgoutput::captured;
use crate::render;

/// Runs every parser and gives their errors.
fn all_errors(input: &Bytes) -> Vec<WireError> {
    let mut received = BytesMut::from(input.as_ref());
    let (mut fields, mut value) = (Vec::new(), Vec::new());
    let mut chunk = RowSplitter::new(input, 3).expect("small");
    let chunk_error = std::iter::repeat_with(|| chunk.next_row(&mut fields)).find_map(|row| match row {
        Ok(true) => None,
        Ok(false) => Some(None),
        Err(error) => Some(Some(error)),
    });
    let errors = [
        Message::parse(input).map(|message| render::message(&message)).err(),
        ServerMessage::parse(input).err(),
        Frame::missing(input, 1 << 20).err(),
        Frame::split(&mut received, 1 << 20).err(),
        Authentication::parse(input).err(),
        BackendKeyData::parse(input).err(),
        ParameterStatus::parse(input).err(),
        TransactionStatus::parse(input).err(),
        ErrorFields::parse(input).err(),
        RowDescription::parse(input).err(),
        CopyResponse::parse(input).err(),
        CommandTag::parse(input).err(),
        DataRow::parse(input, 2).map(|row| assert_eq!(row.iter().count(), 2)).err(),
        chunk_error.flatten(),
        split_row(input, 2, &mut Vec::new()).err(),
        unescape_into(input, &mut value).err(),
    ];
    errors.into_iter().flatten().collect()
}

#[test]
fn every_cut_of_a_recorded_message_is_refused_where_it_was_cut() {
    for payload in captured() {
        for length in 0..payload.len() {
            let cut = payload.slice(..length);
            let refusal = Message::parse(&cut).err().expect("a cut message is no message");
            assert!(refusal.offset <= length, "{refusal} in {length} bytes");
            assert!(matches!(refusal.kind, WireErrorKind::Truncated | WireErrorKind::NoTerminator), "{refusal}");
        }
    }
}

#[test]
fn a_byte_after_a_recorded_message_is_refused() {
    for payload in captured() {
        let longer = Bytes::from([payload.as_ref(), &[0]].concat());
        let refusal = Message::parse(&longer).err().expect("a longer message is no message");
        assert_eq!(refusal, WireError::new(payload.len(), WireErrorKind::TrailingBytes));
    }
}

#[test]
fn errors_hold_no_bytes_of_the_message() {
    let mut row = b"I\0\0\0\x01N\0\x01t\0\0\0\x06".to_vec();
    row.extend_from_slice(b"canary!");
    let refusal = Message::parse(&row.into()).err().expect("a byte too many");
    assert!(!format!("{refusal} {refusal:?}").contains("canary"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_answered(input in prop::collection::vec(any::<u8>(), 0..300)) {
        let length = input.len();
        for error in all_errors(&input.into()) {
            prop_assert!(error.offset <= length, "{error} in {length} bytes");
        }
    }

    #[test]
    fn changed_messages_are_answered(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let payloads: Vec<_> = captured().collect();
        let mut input = which.get(&payloads).to_vec();
        *place.get_mut(&mut input) = byte;
        let length = input.len();
        for error in all_errors(&input.into()) {
            prop_assert!(error.offset <= length, "{error} in {length} bytes");
        }
    }
}
