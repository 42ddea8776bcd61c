//! Every message kind as PostgreSQL 15 sent it (see `captures/record.sql`), and what is refused.

use bytes::Bytes;
use insta::assert_snapshot;
use pgveil_wire::pgoutput::{Message, ReplicaIdentity};
use pgveil_wire::tuple::{CellKind, CellSpan, Tuple};

use crate::render::{error, hex, lsn, parsed};

/// One message each, in stream order.
pub(crate) fn captured() -> impl Iterator<Item = Bytes> {
    include_str!("captures/pgoutput.hex").lines().map(hex)
}

#[test]
fn every_message_of_a_recorded_stream() {
    let messages: Vec<_> = captured().map(|payload| parsed(&payload)).collect();
    assert_snapshot!(messages.join("\n"), @r#"
    begin xid 747 final 0/1555330 at 849341015889853
    type 16391 "public"."_dpos"
    type 16392 ""."int4"
    type 16386 "Q_\" . S"."Größe"
    relation 16394 "public"."users" identity Default
        "id" 23(-1) key
        "email" 1043(44)
        "amount" 1700(393222)
        "tags" 16391(-1)
        "level" 16392(-1)
        "size" 16386(-1)
    insert 16394 ("1", "ann@example.org", "NaN", "[0:1]={7,8}", "3", "groß")
    insert 16394 ("2", "", null, null, null, null)
    commit at 0/1555330 ends 0/1555360 at 849341015889853
    begin xid 748 final 0/1555468 at 849341015890063
    relation 16401 "Q_\" . S"."T \" ." identity Default
        "c\" x" 25(-1) key
        "größe 📦" 25(-1)
        "line\nbreak" 16(-1)
    insert 16401 ("tab\tnewline\nback\\slash", "📦", "t")
    commit at 0/1555468 ends 0/1555498 at 849341015890063
    begin xid 749 final 0/1556890 at 849341015891026
    relation 16408 "public"."toasted" identity Default
        "id" 23(-1) key
        "note" 25(-1)
        "big" 25(-1)
    update 16408 new ("1", "after", unchanged)
    update 16408 key ("1", null, null) new ("2", "after", unchanged)
    relation 16415 "public"."toasted_full" identity Full
        "id" 23(-1) key
        "note" 25(-1) key
        "big" 25(-1) key
    update 16415 full ("1", null, <2100 bytes>) new ("1", "after", unchanged)
    relation 16422 "public"."toasted_key" identity Default
        "big" 25(-1) key
        "note" 25(-1)
    update 16422 key (<2100 bytes>, null) new (unchanged, "after")
    delete 16408 key ("2", null, null)
    commit at 0/1556890 ends 0/15568C0 at 849341015891026
    begin xid 750 final 0/1556B08 at 849341015891574
    relation 16429 "public"."chosen" identity Index
        "project" 23(-1) key
        "group" 23(-1) key
        "note" 25(-1)
    insert 16429 ("1", "2", "a")
    update 16429 key ("1", "2", null) new ("1", "3", "a")
    delete 16429 key ("1", "3", null)
    relation 16434 "public"."nothing" identity Nothing
        "note" 25(-1)
    insert 16434 ("n")
    relation 16439 "public"."no_columns" identity Default
    insert 16439 ()
    commit at 0/1556B08 ends 0/1556B38 at 849341015891574
    begin xid 751 final 0/1556B78 at 849341015891661
    delete 16394 key ("2", null, null, null, null, null)
    commit at 0/1556B78 ends 0/1556BA8 at 849341015891661
    begin xid 753 final 0/1556E30 at 849341015891824
    type 16391 "public"."_dpos"
    type 16392 ""."int4"
    type 16386 "Q_\" . S"."Größe"
    relation 16394 "public"."users" identity Full
        "id" 23(-1) key
        "email" 1043(44) key
        "amount" 1700(393222) key
        "tags" 16391(-1) key
        "level" 16392(-1) key
        "size" 16386(-1) key
    delete 16394 full ("1", "ann@example.org", "NaN", "[0:1]={7,8}", "3", "groß")
    commit at 0/1556E30 ends 0/1556E60 at 849341015891824
    begin xid 754 final 0/1558560 at 849341015892739
    type 16391 "public"."_dpos"
    type 16392 ""."int4"
    type 16386 "Q_\" . S"."Größe"
    relation 16394 "public"."users" identity Full
        "id" 23(-1) key
        "email" 1043(44) key
        "amount" 1700(393222) key
        "tags" 16391(-1) key
        "level" 16392(-1) key
        "size" 16386(-1) key
    relation 16429 "public"."chosen" identity Index
        "project" 23(-1) key
        "group" 23(-1) key
        "note" 25(-1)
    truncate [16394, 16429]
    commit at 0/1558560 ends 0/1558800 at 849341015892739
    begin xid 755 final 0/155B498 at 849341015894126
    type 16391 "public"."_dpos"
    type 16392 ""."int4"
    type 16386 "Q_\" . S"."Größe"
    relation 16394 "public"."users" identity Full
        "id" 23(-1) key
        "email" 1043(44) key
        "amount" 1700(393222) key
        "tags" 16391(-1) key
        "level" 16392(-1) key
        "size" 16386(-1) key
    relation 16408 "public"."toasted" identity Default
        "id" 23(-1) key
        "note" 25(-1)
        "big" 25(-1)
    truncate [16394, 16408] cascade restart identity
    commit at 0/155B498 ends 0/155B738 at 849341015894126
    begin xid 756 final 0/155B7D0 at 633924122000000
    origin "upstream ü" 1/2345678
    insert 16401 ("from upstream", null, "f")
    commit at 0/155B7D0 ends 0/155B818 at 633924122000000
    message on its own at 0/155B858 "heart beat" b"\x00\xff"
    begin xid 757 final 0/155B988 at 849341015895172
    message in transaction at 0/155B8A8 "größe" "in a transaction"
    type 16391 "public"."_dpos"
    type 16392 ""."int4"
    type 16386 "Q_\" . S"."Größe"
    relation 16394 "public"."users" identity Full
        "id" 23(-1) key
        "email" 1043(44) key
        "amount" 1700(393222) key
        "tags" 16391(-1) key
        "level" 16392(-1) key
        "size" 16386(-1) key
    insert 16394 ("3", null, null, null, null, null)
    commit at 0/155B988 ends 0/155B9B8 at 849341015895172
    "#);
}

#[test]
fn no_namespace_is_pg_catalog_and_times_may_lie_before_2000() {
    assert_snapshot!(parsed(&hex("42 0000000100000000 fffffffffffffff6 00000007")), @"begin xid 7 final 1/0 at -10");
    assert_snapshot!(parsed(&hex("52 00000001 00 7400 6e 0001 00 6300 00000017 ffffffff")), @r#"
    relation 1 "pg_catalog"."t" identity Nothing
        "c" 23(-1)
    "#);
}

#[test]
fn each_truncate_option_has_its_bit() {
    let options = ["00", "01", "02", "03"].map(|bits| parsed(&hex(&format!("54 00000001 {bits} 00000007"))));
    assert_snapshot!(options.join("\n"), @"
    truncate [7]
    truncate [7] cascade
    truncate [7] restart identity
    truncate [7] cascade restart identity
    ");
}

#[test]
fn the_end_of_a_commit_lies_behind_its_start() {
    let Ok(Message::Commit(commit)) = Message::parse(&hex("43 00 00000000ffffffff 0000000100000000 0000000000000000"))
    else {
        panic!("a commit");
    };
    assert_eq!((commit.commit_lsn, commit.end_lsn), (lsn("0/FFFFFFFF"), lsn("1/0")));
    assert!(commit.commit_lsn < commit.end_lsn);
}

#[test]
fn relations_are_equal_only_if_type_modifiers_are() {
    let relation = |modifier: &str| {
        let payload = hex(&format!("52 00000001 7300 7400 64 0001 01 6300 00000413 {modifier}"));
        let Ok(Message::Relation(relation)) = Message::parse(&payload) else { panic!("a relation") };
        assert_eq!(relation.replica_identity, ReplicaIdentity::Default);
        relation
    };
    assert_eq!(relation("0000000e"), relation("0000000e"));
    assert_ne!(relation("0000000e"), relation("00000018"), "varchar(10) is not varchar(20)");
}

#[test]
fn spans_point_into_the_bytes_of_the_tuple() {
    let tuple = Tuple::parse(&hex("0005 74 00000002 6162 6e 75 74 00000000 74 00000001 63")).expect("a tuple");
    let spans: Vec<_> = tuple.spans().collect();
    let text = |start, len| CellSpan { kind: CellKind::Text, start, len };
    let empty = |kind| CellSpan { kind, start: 0, len: 0 };
    assert_eq!(spans, [text(5, 2), empty(CellKind::Null), empty(CellKind::Unchanged), text(14, 0), text(19, 1)]);
    assert_eq!(tuple.bytes().get(19..20), Some(&b"c"[..]));
    assert_eq!(tuple.spans().len(), 5);
    assert_eq!(error(tuple.expect_columns(5)), "accepted");
    assert_snapshot!(error(tuple.expect_columns(4)), @"5 columns where 4 are due at byte 0");
}

#[test]
fn what_is_not_version_one_in_text_is_refused() {
    let cases = [
        ("no bytes", ""),
        ("begin prepare", "62"),
        ("no such message", "5a"),
        ("stream start", "53 00000001 01"),
        ("stream stop", "45"),
        ("stream commit", "63"),
        ("stream abort", "41"),
        ("prepare", "50"),
        ("commit prepared", "4b"),
        ("rollback prepared", "72"),
        ("stream prepare", "70"),
        ("begin and a byte too many", "42 0000000000000000 0000000000000000 00000000 00"),
        ("commit flag", "43 01 0000000000000000 0000000000000000 0000000000000000"),
        ("binary value", "49 00000001 4e 0001 62 00000001 00"),
        ("unknown cell kind", "49 00000001 4e 0001 78"),
        ("negative column count", "49 00000001 4e ffff"),
        ("negative value length", "49 00000001 4e 0001 74 ffffffff"),
        ("value longer than its message", "49 00000001 4e 0001 74 7fffffff 61"),
        ("fewer cells than counted", "49 00000001 4e 0002 6e"),
        ("insert of a key", "49 00000001 4b 0000"),
        ("update with two old rows", "55 00000001 4b 0000 4f 0000 4e 0000"),
        ("update without a new row", "55 00000001 4b 0000"),
        ("delete of a new row", "44 00000001 4e 0000"),
        ("truncate of -1 tables", "54 ffffffff 00"),
        ("truncate of 2^31 - 1 tables", "54 7fffffff 00"),
        ("truncate option", "54 00000000 04"),
        ("message flag", "4d 02 0000000000000000 00 00000000"),
        ("message of negative length", "4d 00 0000000000000000 00 ffffffff"),
        ("name without end", "59 00000001 616263"),
        ("name that is not UTF-8", "59 00000001 6100 62ff00"),
        ("unknown replica identity", "52 00000001 6100 6200 78 0000"),
        ("column flag", "52 00000001 6100 6200 64 0001 02 6100 00000000 00000000"),
        ("negative relation column count", "52 00000001 6100 6200 64 8000"),
    ];
    let refusals: Vec<_> = cases.iter().map(|(what, payload)| format!("{what}: {}", parsed(&hex(payload)))).collect();
    assert_snapshot!(refusals.join("\n"), @"
    no bytes: refused: message is cut short at byte 0
    begin prepare: refused: message tag 0x62 belongs to a protocol option that was not asked for at byte 0
    no such message: refused: unknown message or field tag 0x5A at byte 0
    stream start: refused: message tag 0x53 belongs to a protocol option that was not asked for at byte 0
    stream stop: refused: message tag 0x45 belongs to a protocol option that was not asked for at byte 0
    stream commit: refused: message tag 0x63 belongs to a protocol option that was not asked for at byte 0
    stream abort: refused: message tag 0x41 belongs to a protocol option that was not asked for at byte 0
    prepare: refused: message tag 0x50 belongs to a protocol option that was not asked for at byte 0
    commit prepared: refused: message tag 0x4B belongs to a protocol option that was not asked for at byte 0
    rollback prepared: refused: message tag 0x72 belongs to a protocol option that was not asked for at byte 0
    stream prepare: refused: message tag 0x70 belongs to a protocol option that was not asked for at byte 0
    begin and a byte too many: refused: message has bytes after its last field at byte 21
    commit flag: refused: unknown flag bits 0x01 at byte 1
    binary value: refused: value in binary format where text was asked for at byte 8
    unknown cell kind: refused: unknown message or field tag 0x78 at byte 8
    negative column count: refused: impossible length or count at byte 6
    negative value length: refused: impossible length or count at byte 9
    value longer than its message: refused: message is cut short at byte 13
    fewer cells than counted: refused: message is cut short at byte 9
    insert of a key: refused: unknown message or field tag 0x4B at byte 5
    update with two old rows: refused: unknown message or field tag 0x4F at byte 8
    update without a new row: refused: message is cut short at byte 8
    delete of a new row: refused: unknown message or field tag 0x4E at byte 5
    truncate of -1 tables: refused: impossible length or count at byte 1
    truncate of 2^31 - 1 tables: refused: message is cut short at byte 6
    truncate option: refused: unknown flag bits 0x04 at byte 5
    message flag: refused: unknown flag bits 0x02 at byte 1
    message of negative length: refused: impossible length or count at byte 11
    name without end: refused: string has no terminator at byte 5
    name that is not UTF-8: refused: name is not valid UTF-8 at byte 8
    unknown replica identity: refused: unknown message or field tag 0x78 at byte 9
    column flag: refused: unknown flag bits 0x02 at byte 12
    negative relation column count: refused: impossible length or count at byte 10
    ");
}
