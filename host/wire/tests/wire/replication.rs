//! What travels inside CopyData.

use bytes::BytesMut;
use insta::assert_snapshot;
use pgveil_wire::Timestamp;
use pgveil_wire::replication::{ServerMessage, StandbyStatusUpdate};

use crate::render::{bytes, error, hex, lsn};

fn rendered(body: &str) -> String {
    match ServerMessage::parse(&hex(body)) {
        Ok(ServerMessage::XLogData(data)) => {
            format!("data {}..{} at {}: {}", data.wal_start, data.wal_end, data.server_time.0, bytes(&data.payload))
        }
        Ok(ServerMessage::PrimaryKeepalive(keepalive)) => format!("{keepalive:?}"),
        Err(error) => format!("refused: {error}"),
    }
}

#[test]
fn stream_data_and_keepalives() {
    let cases = [
        "77 0000000100000000 00000001000000ff 000000000000002a 68656c6c6f",
        "77 0000000000000000 0000000000000000 0000000000000000",
        "6b 00000000ffffffff ffffffffffffffff 00",
        "6b 0000000100000000 000000000000002a 01",
        "6b 0000000100000000 000000000000002a 02",
        "6b 0000000100000000 000000000000002a 01 00",
        "6b 0000000100000000 000000000000002a",
        "77 0000000100000000 00000001000000ff 00000000",
        "72 00",
        "",
    ];
    assert_snapshot!(cases.map(rendered).join("\n"), @r#"
    data 1/0..1/FF at 42: "hello"
    data 0/0..0/0 at 0: ""
    PrimaryKeepalive { wal_end: 0/FFFFFFFF, server_time: Timestamp(-1), reply_requested: false }
    PrimaryKeepalive { wal_end: 1/0, server_time: Timestamp(42), reply_requested: true }
    refused: unknown flag bits 0x02 at byte 17
    refused: message has bytes after its last field at byte 18
    refused: message is cut short at byte 17
    refused: message is cut short at byte 17
    refused: unknown message or field tag 0x72 at byte 0
    refused: message is cut short at byte 0
    "#);
}

#[test]
fn status_update_as_the_manual_lays_it_out() {
    let update = StandbyStatusUpdate {
        written: lsn("3/33"),
        flushed: lsn("2/22"),
        applied: lsn("1/11"),
        client_time: Timestamp(-2),
        reply_requested: true,
    };
    let mut body = BytesMut::new();
    update.encode(&mut body);
    assert_eq!(body, hex("72 0000000300000033 0000000200000022 0000000100000011 fffffffffffffffe 01"));
    assert_eq!(body.len(), StandbyStatusUpdate::LEN);

    let mut framed = BytesMut::new();
    update.encode_framed(&mut framed);
    assert_eq!(framed.first(), Some(&b'd'));
    assert_eq!(framed.get(1..5), Some(&38_u32.to_be_bytes()[..]));
    assert_eq!(framed.get(5..), Some(&body[..]));
}

#[test]
fn errors_name_a_place_but_no_bytes() {
    assert_eq!(error(ServerMessage::parse(&hex("6b 00"))), "message is cut short at byte 1");
}
