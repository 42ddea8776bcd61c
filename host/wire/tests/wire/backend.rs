//! Frames and bodies of ordinary sessions.

use bytes::{Bytes, BytesMut};
use insta::assert_snapshot;
use pgveil_wire::backend::{
    Authentication, BackendKeyData, CommandTag, CopyResponse, DataRow, ErrorFields, Frame, ParameterStatus,
    RowDescription, Tag, TransactionStatus,
};

use crate::render::{bytes, error, hex};

#[test]
fn a_frame_is_split_off_once_it_is_whole() {
    let whole = hex("5a 00000005 49 53 0000000a 6100 6200 6300");
    for length in 0..whole.len() {
        let mut received = BytesMut::from(whole.slice(..length).as_ref());
        let missing = Frame::missing(&received, 100).expect("well-formed");
        let frame = Frame::split(&mut received, 100).expect("well-formed");
        assert_eq!(frame.is_some(), missing == 0, "{length} bytes");
        match length {
            0..5 => assert_eq!(missing, 5 - length),
            5 => assert_eq!(missing, 1),
            _ => assert_eq!((missing, received.len()), (0, length - 6)),
        }
        if frame.is_none() {
            assert_eq!(received.len(), length, "an incomplete message is left alone");
        }
    }
    let mut received = BytesMut::from(whole.as_ref());
    let first = Frame::split(&mut received, 6).expect("well-formed").expect("whole");
    let second = Frame::split(&mut received, 6).expect("well-formed").expect("whole");
    assert_eq!((first.tag, first.body.as_ref()), (Tag::ReadyForQuery, &b"I"[..]));
    assert_eq!((second.tag, second.body.as_ref()), (Tag::ParameterStatus, &b"a\0b\0c\0"[..]));
    assert_eq!(error(first.expect(Tag::ReadyForQuery)), "accepted");
    assert_snapshot!(error(first.expect(Tag::DataRow)), @"message tag 0x5A where 0x44 is due at byte 0");
}

#[test]
fn what_is_no_frame_is_refused_by_its_header() {
    let cases = [
        ("HTTP", "48545450 2f312e31"),
        ("no such tag", "00"),
        ("length below itself", "5a 00000003"),
        ("negative length", "5a ffffffff"),
        ("one byte too long", "64 00000015"),
        ("as long as allowed", "64 00000014"),
    ];
    let refusals = cases.map(|(what, received)| {
        let received = hex(received);
        let missing = Frame::missing(&received, 16);
        let split = Frame::split(&mut BytesMut::from(received.as_ref()), 16);
        assert_eq!(split.err(), missing.err());
        format!(
            "{what}: {}",
            missing.map_or_else(|error| error.to_string(), |missing| format!("{missing} bytes missing"))
        )
    });
    assert_snapshot!(refusals.join("\n"), @"
    HTTP: message of 1414811691 bytes exceeds the limit of 16 at byte 1
    no such tag: unknown message or field tag 0x00 at byte 0
    length below itself: impossible length or count at byte 1
    negative length: impossible length or count at byte 1
    one byte too long: message of 17 bytes exceeds the limit of 16 at byte 1
    as long as allowed: 16 bytes missing
    ");
}

#[test]
fn every_tag_has_its_byte() {
    let bytes: String = Tag::ALL.iter().map(|tag| char::from(tag.byte())).collect();
    assert_eq!(bytes, "RK23CdcGHWDIEVvnNAtS1sZT");
    for byte in 0..=u8::MAX {
        assert_eq!(Tag::from_byte(byte).map(Tag::byte), bytes.bytes().find(|known| *known == byte));
    }
}

#[test]
fn errors_keep_codes_and_names_and_forget_what_they_quote() {
    let body = Bytes::from_static(
        b"SFEHLER\0VERROR\0C23505\0Mduplicate: canary\0DKey (email)=(canary) already exists.\0Hcanary\0P12\0p3\0qcanary\0\
          WCOPY users, line 1: \"canary\"\0spublic\0tusers\0cemail\0dtext\0nusers_pkey\0Fnbtinsert.c\0L664\0R_bt_check_unique\0\0",
    );
    let fields = format!("{:#?}", ErrorFields::parse(&body).expect("an error"));
    assert!(!fields.contains("canary"));
    assert_snapshot!(fields, @r#"
    ErrorFields {
        severity: Error,
        sqlstate: 23505,
        schema: Some(
            "public",
        ),
        table: Some(
            "users",
        ),
        column: Some(
            "email",
        ),
        data_type: Some(
            "text",
        ),
        constraint: Some(
            "users_pkey",
        ),
        routine: Some(
            "_bt_check_unique",
        ),
    }
    "#);
}

#[test]
fn errors_of_odd_servers() {
    let cases: [(&str, &[u8]); 8] = [
        ("both, at odds", b"SERROR\0VFATAL\0C57P01\0\0"),
        ("old server", b"SFATAL\0C57P01\0\0"),
        ("translated only", b"SFEHLER\0C57P01\0\0"),
        ("name in another encoding", b"VERROR\0C42P01\0t\xFCser\0\0"),
        ("no code", b"VERROR\0\0"),
        ("malformed code", b"VERROR\0C23-05\0\0"),
        ("no end", b"VERROR\0C23505\0"),
        ("goes on", b"VERROR\0C23505\0\0\0"),
    ];
    let outcomes = cases.map(|(what, body)| match ErrorFields::parse(&Bytes::from_static(body)) {
        Ok(fields) => format!("{what}: {:?} {} table {:?}", fields.severity, fields.sqlstate, fields.table),
        Err(error) => format!("{what}: refused: {error}"),
    });
    assert_snapshot!(outcomes.join("\n"), @"
    both, at odds: Fatal 57P01 table None
    old server: Fatal 57P01 table None
    translated only: Unrecognized 57P01 table None
    name in another encoding: Error 42P01 table None
    no code: refused: malformed SQLSTATE at byte 8
    malformed code: refused: malformed SQLSTATE at byte 8
    no end: refused: message is cut short at byte 14
    goes on: refused: message has bytes after its last field at byte 15
    ");
}

#[test]
fn authentication_requests() {
    let cases = [
        "00000000",
        "00000002",
        "00000003",
        "00000005 01020304",
        "00000005 010203",
        "00000006",
        "00000007",
        "00000008 aabb",
        "00000009",
        "0000000a 534352414d2d5348412d3235362d504c555300 534352414d2d5348412d32353600 00",
        "0000000a 534352414d00",
        "0000000b 723d",
        "0000000c 763d",
        "00000000 00",
    ];
    let requests = cases.map(|body| match Authentication::parse(&hex(body)) {
        Ok(Authentication::Ok) => "ok".to_owned(),
        Ok(Authentication::KerberosV5) => "kerberos".to_owned(),
        Ok(Authentication::CleartextPassword) => "cleartext".to_owned(),
        Ok(Authentication::Md5Password(salt)) => format!("md5 {salt:?}"),
        Ok(Authentication::Gss) => "gss".to_owned(),
        Ok(Authentication::GssContinue(data)) => format!("gss continue {}", bytes(&data)),
        Ok(Authentication::Sspi) => "sspi".to_owned(),
        Ok(Authentication::Sasl(mechanisms)) => format!("sasl {:?}", mechanisms.iter().collect::<Vec<_>>()),
        Ok(Authentication::SaslContinue(data)) => format!("sasl continue {}", bytes(&data)),
        Ok(Authentication::SaslFinal(data)) => format!("sasl final {}", bytes(&data)),
        Err(error) => format!("refused: {error}"),
    });
    assert_snapshot!(requests.join("\n"), @r#"
    ok
    kerberos
    cleartext
    md5 [1, 2, 3, 4]
    refused: message is cut short at byte 4
    refused: unknown code 6 at byte 0
    gss
    gss continue b"\xaa\xbb"
    sspi
    sasl ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
    refused: string has no terminator at byte 10
    sasl continue "r="
    sasl final "v="
    refused: message has bytes after its last field at byte 4
    "#);
}

#[test]
fn command_tags() {
    let cases: [&[u8]; 14] = [
        b"INSERT 0 5\0",
        b"UPDATE 0\0",
        b"COPY 18446744073709551615\0",
        b"SELECT 1\0",
        b"MERGE 3\0",
        b"CREATE TABLE\0",
        b"START_REPLICATION\0",
        b"\0",
        b"INSERT 0\0",
        b"INSERT 16384 1\0",
        b"COPY 18446744073709551616\0",
        b"COPY 1x\0",
        b"COPY 1",
        b"COPY 1\0\0",
    ];
    let tags = cases.map(|body| {
        let body = Bytes::from_static(body);
        CommandTag::parse(&body).map_or_else(|error| format!("refused: {error}"), |tag| format!("{tag:?}"))
    });
    assert_snapshot!(tags.join("\n"), @r#"
    CommandTag { verb: "INSERT", rows: Some(5) }
    CommandTag { verb: "UPDATE", rows: Some(0) }
    CommandTag { verb: "COPY", rows: Some(18446744073709551615) }
    CommandTag { verb: "SELECT", rows: Some(1) }
    CommandTag { verb: "MERGE", rows: Some(3) }
    CommandTag { verb: "CREATE TABLE", rows: None }
    CommandTag { verb: "START_REPLICATION", rows: None }
    CommandTag { verb: "", rows: None }
    refused: malformed number at byte 7
    refused: malformed number at byte 7
    refused: malformed number at byte 5
    refused: malformed number at byte 5
    refused: string has no terminator at byte 0
    refused: message has bytes after its last field at byte 7
    "#);
}

#[test]
fn rows_and_their_description() {
    let description = RowDescription::parse(&hex(
        "0002 696400 00004000 0001 00000017 0004 ffffffff 0000 c3a400 00000000 0000 00000019 ffff ffffffff 0000",
    ));
    assert_snapshot!(format!("{:?}", description.expect("a description")), @r#"RowDescription { fields: [FieldDescription { name: "id", type_oid: 23, format: Text }, FieldDescription { name: "ä", type_oid: 25, format: Text }] }"#);

    let body = hex("0003 00000002 6162 ffffffff 00000000");
    let row = DataRow::parse(&body, 3).expect("a row");
    let shared: Vec<_> = row.iter().collect();
    assert_eq!(shared, [Some(Bytes::from_static(b"ab")), None, Some(Bytes::new())]);
    let borrowed: Vec<_> = row.values().collect();
    assert_eq!(borrowed, [Some(&b"ab"[..]), None, Some(&b""[..])]);

    let refusals = [("0001 ffffffff", 2), ("ffff", 1), ("0001 fffffffe", 1), ("0001 00000002 61", 1), ("0000 00", 0)]
        .map(|(body, columns)| error(DataRow::parse(&hex(body), columns)));
    assert_snapshot!(refusals.join("\n"), @"
    1 columns where 2 are due at byte 0
    impossible length or count at byte 0
    impossible length or count at byte 2
    message is cut short at byte 6
    message has bytes after its last field at byte 2
    ");
}

#[test]
fn session_messages() {
    let key = BackendKeyData::parse(&hex("00001234 deadbeef")).expect("a key");
    assert_eq!((key.process_id, key.secret_key.as_ref()), (0x1234, &[0xDE, 0xAD, 0xBE, 0xEF][..]));
    let status = ParameterStatus::parse(&Bytes::from_static(b"client_encoding\0UTF8\0")).expect("a setting");
    assert_eq!((status.name.as_str(), status.value.as_str()), ("client_encoding", "UTF8"));
    assert_eq!(TransactionStatus::parse(&hex("45")), Ok(TransactionStatus::Failed));
    let copy = [hex("00 0000"), hex("00 0002 0000 0001"), hex("02 0000"), hex("00 0001 0002"), hex("00 ffff")];
    let outcomes = [
        error(BackendKeyData::parse(&hex("00001234 dead"))),
        error(BackendKeyData::parse(&Bytes::from(vec![0; 4 + 257]))),
        error(ParameterStatus::parse(&Bytes::from_static(b"a\0\xFF\0"))),
        error(TransactionStatus::parse(&hex("58"))),
    ];
    assert_snapshot!(outcomes.join("\n"), @"
    impossible length or count at byte 4
    impossible length or count at byte 4
    name is not valid UTF-8 at byte 2
    unknown message or field tag 0x58 at byte 0
    ");
    assert_snapshot!(copy.map(|body| format!("{:?}", CopyResponse::parse(&body))).join("\n"), @"
    Ok(CopyResponse { format: Text, columns: [] })
    Ok(CopyResponse { format: Text, columns: [Text, Binary] })
    Err(WireError { offset: 0, kind: UnknownCode(2) })
    Err(WireError { offset: 3, kind: UnknownCode(2) })
    Err(WireError { offset: 1, kind: BadLength })
    ");
}
