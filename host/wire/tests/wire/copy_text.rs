//! COPY text against what a server wrote, against its own inverse, and against malformed input.

use insta::assert_snapshot;
use pgveil_wire::WireError;
use pgveil_wire::copy_text::{Field, RowSplitter, escape_into, split_row, unescape_into};
use proptest::prelude::*;

use crate::render::bytes;

/// Three columns; see `captures/record.sql`.
const CAPTURED: &[u8] = include_bytes!("captures/copy_text.tsv");

fn escape(value: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    escape_into(value, &mut field);
    field
}

fn unescape(field: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut value = Vec::new();
    unescape_into(field, &mut value).map(|()| value)
}

fn rendered(row: &[u8], columns: usize) -> String {
    let mut fields = vec![Field { start: 7, end: 9, is_null: true }];
    match split_row(row, columns, &mut fields) {
        Ok(()) => fields
            .iter()
            .map(|field| if field.is_null { "null".to_owned() } else { bytes(field.of(row)) })
            .collect::<Vec<_>>()
            .join(" | "),
        Err(error) => format!("refused: {error}"),
    }
}

/// Rows by rows, each field as `None` for NULL or its value.
fn rows(chunk: &[u8], columns: usize) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut fields = Vec::new();
    let mut splitter = RowSplitter::new(chunk, columns).expect("small");
    let mut rows = Vec::new();
    while splitter.next_row(&mut fields).expect("well-formed") {
        rows.push(
            fields
                .iter()
                .map(|field| (!field.is_null).then(|| unescape(field.of(chunk)).expect("well-formed")))
                .collect(),
        );
    }
    assert_eq!(splitter.consumed(), chunk.len());
    rows
}

#[test]
fn every_ascii_character_as_the_server_writes_it() {
    let rows = rows(CAPTURED, 3);
    assert_eq!(rows.len(), 132);
    for (code, row) in (1_u8..128).zip(&rows) {
        let expected = [code.to_string().into_bytes(), vec![code], vec![b'a', code, b'b']].map(Some);
        assert!(*row == expected, "character {code}");
    }
    let odd: [[Option<&str>; 3]; 5] = [
        [Some("1000"), Some("\\N"), None],
        [Some("1001"), Some(""), Some("\\.")],
        [Some("1002"), Some("ü📦"), Some("\u{80}\u{85}")],
        [Some("1003"), Some("\\"), Some("\\\\")],
        [Some("1004"), Some("null"), Some("NULL")],
    ];
    for (expected, row) in odd.iter().zip(rows.iter().skip(127)) {
        assert_eq!(*row, expected.map(|value| value.map(|text| text.as_bytes().to_vec())));
    }
}

#[test]
fn what_we_write_is_what_the_server_writes() {
    let mut written = Vec::new();
    for row in rows(CAPTURED, 3) {
        let fields: Vec<_> = row.iter().map(|value| value.as_deref().map_or_else(|| b"\\N".to_vec(), escape)).collect();
        written.extend_from_slice(&fields.join(&b'\t'));
        written.push(b'\n');
    }
    assert!(written == CAPTURED);
}

#[test]
fn rows_of_one_message_each() {
    let cases: [(&[u8], usize); 19] = [
        (b"1\tone\n", 2),
        (b"1\tone", 2),
        (b"\\N\t\\\\N\tN\t\\N \n", 4),
        (b"\t\n", 2),
        (b"\n", 1),
        (b"", 1),
        (b"\n", 0),
        (b"", 0),
        (b".\n", 1),
        (b"\\\\.\n", 1),
        (b"a\rb\n", 1),
        (b"1\n", 2),
        (b"1\t2\t3\t4\t5\n", 2),
        (b"1\t2\t3", 2),
        (b"a\n", 0),
        (b"a\nb\n", 1),
        (b"\\.\n", 1),
        (b"\\.", 1),
        (b"a\t\\.\n", 2),
    ];
    let outcomes = cases.map(|(row, columns)| format!("{} in {columns}: {}", bytes(row), rendered(row, columns)));
    assert_snapshot!(outcomes.join("\n"), @r#"
    "1\tone\n" in 2: "1" | "one"
    "1\tone" in 2: "1" | "one"
    "\\N\t\\\\N\tN\t\\N \n" in 4: null | "\\\\N" | "N" | "\\N "
    "\t\n" in 2: "" | ""
    "\n" in 1: ""
    "" in 1: ""
    "\n" in 0: 
    "" in 0: 
    ".\n" in 1: "."
    "\\\\.\n" in 1: "\\\\."
    "a\rb\n" in 1: "a\rb"
    "1\n" in 2: refused: 1 columns where 2 are due at byte 1
    "1\t2\t3\t4\t5\n" in 2: refused: 3 columns where 2 are due at byte 4
    "1\t2\t3" in 2: refused: 3 columns where 2 are due at byte 4
    "a\n" in 0: refused: 1 columns where 0 are due at byte 1
    "a\nb\n" in 1: refused: line end inside a row at byte 1
    "\\.\n" in 1: refused: end-of-data marker where a row is due at byte 0
    "\\." in 1: refused: end-of-data marker where a row is due at byte 0
    "a\t\\.\n" in 2: "a" | "\\."
    "#);
}

#[test]
fn a_chunk_may_end_anywhere() {
    let whole = rows(CAPTURED, 3);
    for step in [1, 2, 3, 7, 64, 1000] {
        let (mut kept, mut seen) = (Vec::new(), Vec::new());
        for piece in CAPTURED.chunks(step) {
            kept.extend_from_slice(piece);
            let mut fields = Vec::new();
            let mut splitter = RowSplitter::new(&kept, 3).expect("small");
            while splitter.next_row(&mut fields).expect("well-formed") {}
            let consumed = splitter.consumed();
            seen.extend(rows(&kept[..consumed], 3));
            kept.drain(..consumed);
        }
        assert!(kept.is_empty() && seen == whole, "chunks of {step} bytes");
    }
}

#[test]
fn the_end_marker_ends_the_data() {
    let mut fields = Vec::new();
    let mut splitter = RowSplitter::new(b"1\n\\.\n", 1).expect("small");
    assert_eq!(splitter.next_row(&mut fields), Ok(true));
    assert!(!splitter.ended());
    assert_eq!(splitter.next_row(&mut fields), Ok(false));
    assert!(splitter.ended() && fields.is_empty());

    let mut splitter = RowSplitter::new(b"\\.\n2\n", 1).expect("small");
    let refusal = splitter.next_row(&mut fields).expect_err("data after the end");
    assert_snapshot!(refusal.to_string(), @"data after the end-of-data marker at byte 3");
    assert_eq!(splitter.next_row(&mut fields), Err(refusal), "and it stays refused");
}

#[test]
fn escapes_as_copy_from_reads_them() {
    let cases: [&[u8]; 16] = [
        br"\b\f\n\r\t\v\\",
        br"\101\60\0601",
        br"\7\8",
        br"\777",
        br"\x41\x4\x4g\xAf\xaF1",
        br"\x",
        br"\xg",
        br"\N",
        br"\.",
        br"\q\ ",
        br"plain",
        br"",
        b"\\\t",
        br"a\",
        br"\\\",
        br"\\\\",
    ];
    let outcomes = cases.map(|field| match unescape(field) {
        Ok(value) => format!("{}: {}", bytes(field), bytes(&value)),
        Err(error) => format!("{}: refused: {error}", bytes(field)),
    });
    assert_snapshot!(outcomes.join("\n"), @r#"
    "\\b\\f\\n\\r\\t\\v\\\\": "\u{8}\u{c}\n\r\t\u{b}\\"
    "\\101\\60\\0601": "A001"
    "\\7\\8": "\u{7}8"
    "\\777": b"\xff"
    "\\x41\\x4\\x4g\\xAf\\xaF1": b"A\x04\x04g\xaf\xaf1"
    "\\x": "x"
    "\\xg": "xg"
    "\\N": "N"
    "\\.": "."
    "\\q\\ ": "q "
    "plain": "plain"
    "": ""
    "\\\t": "\t"
    "a\\": refused: backslash at the end of a value at byte 1
    "\\\\\\": refused: backslash at the end of a value at byte 2
    "\\\\\\\\": "\\\\"
    "#);
}

/// Values rich in what must be escaped.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => any::<u8>(), 1 => prop::sample::select(b"\\\t\n\r\x08\x0B\x0CnN.x0".to_vec())];
    prop::collection::vec(byte, 0..200)
}

proptest! {
    #[test]
    fn unescaping_undoes_escaping(value in value()) {
        let field = escape(&value);
        prop_assert!(!field.iter().any(|byte| b"\t\n\r".contains(byte)));
        prop_assert!(field != b"\\N" && field != b"\\.");
        prop_assert!(unescape(&field)? == value);
    }

    #[test]
    fn a_written_row_splits_into_its_values(values in prop::collection::vec(prop::option::of(value()), 1..9)) {
        let fields: Vec<_> = values.iter().map(|value| value.as_deref().map_or_else(|| b"\\N".to_vec(), escape)).collect();
        let mut row = fields.join(&b'\t');
        let mut split = Vec::new();
        split_row(&row, values.len(), &mut split)?;
        prop_assert!(split.iter().map(|field| field.of(&row)).eq(fields.iter().map(Vec::as_slice)));
        row.push(b'\n');
        prop_assert!(rows(&row, values.len()) == [values]);
    }
}
