//! Outputs that never change: a released function's answers, under the example key, as they were when it was released.
//!
//! `golden.txt` has a line for each: function, type, arguments, input, output. A function that is new is added to [`CASES`] and blessed once,
//! by `BLESS=1 cargo test -p standard golden`; a line that differs later means a new function name.

use std::fmt::Write;

use pgveil_guest::Harness;

/// Function, type, arguments, inputs.
const CASES: &[(&str, &str, &str, &[&str])] = &[
    ("redact", "text", "{}", &["Ada"]),
    ("redact", "varchar(5)", r#"{"mark":"秘密秘密秘密"}"#, &["Ada"]),
    ("constant", "date", r#"{"value":"1970-01-01"}"#, &["1815-12-10"]),
    ("hash", "text", "{}", &["", "Ada", "日本語"]),
    ("hash", "varchar(30)", r#"{"encoding":"base32"}"#, &["Ada"]),
    ("hash", "citext", r#"{"length":8}"#, &["Ada", "ada"]),
    ("hash", "char(8)", r#"{"length":8}"#, &["Ada     "]),
    ("partial", "text", r#"{"first":1,"last":2}"#, &["Ada", "Lovelace", "日本語日本語日本"]),
    ("truncate", "text", r#"{"length":3}"#, &["10115", "日本語日本"]),
    ("digits", "text", "{}", &["", "0", "42", "+49 30 901820", "123456", "4111111111111111", "no digits"]),
    ("digits", "text", r#"{"first":2,"last":4}"#, &["4111111111111111", "123456"]),
    ("alphanumeric", "text", "{}", &["", "A", "Ab1", "AB-12-cd-34", "Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9"]),
    ("integer", "int2", "{}", &["0", "1", "32767"]),
    ("integer", "int4", "{}", &["0", "1", "2147483647"]),
    ("integer", "int8", "{}", &["0", "1", "9223372036854775807"]),
    ("integer", "int8", r#"{"min":-10,"max":10}"#, &["-10", "0", "10"]),
    ("uuid", "uuid", "{}", &["00000000-0000-0000-0000-000000000000", "0f8fad5b-d9cb-469f-a165-70867728950e"]),
    ("card", "text", "{}", &["4111 1111 1111 1111", "378282246310005"]),
    ("iban", "text", r#"{"bank":8}"#, &["DE89370400440532013000"]),
    ("iban", "text", "{}", &["GB29 NWBK 6016 1331 9268 19"]),
    ("name", "text", "{}", &["", "Ada Lovelace", "Grace Hopper"]),
    ("name", "text", r#"{"locale":"ja"}"#, &["Ada Lovelace"]),
    ("name", "varchar(9)", r#"{"locale":"es"}"#, &["Ada Lovelace"]),
    ("first-name", "text", r#"{"locale":"fr"}"#, &["Ada"]),
    ("last-name", "text", r#"{"locale":"ja"}"#, &["Lovelace"]),
    ("email", "text", "{}", &["", "ada@lovelace.org", "ADA@lovelace.org", "no address"]),
    ("email", "text", r#"{"domain":"keep","unique":true}"#, &["ada@lovelace.org", "ADA@lovelace.org"]),
    ("email", "varchar(40)", r#"{"domain":"hash"}"#, &["ada@lovelace.org", "grace@lovelace.org"]),
    ("phone", "text", "{}", &["", "+1 (212) 555-0100", "0049 30 901820", "030/901820", "+358 9 1234567"]),
    ("ip", "inet", "{}", &["10.1.2.3", "192.168.2.0/12", "2001:db8::1"]),
    ("birth-date", "date", r#"{"years":10}"#, &["1815-12-10", "0044-03-15 BC", "infinity"]),
    ("birth-date", "timestamptz", "{}", &["2024-02-29 12:30:00.5+00"]),
    ("date-truncate", "timestamptz", r#"{"to":"quarter"}"#, &["2024-05-31 12:30:00.5+00", "-infinity"]),
    (
        "array",
        "text[]",
        r#"{"elements":{"mask":"hash","arguments":{"length":6}}}"#,
        &["{}", "[0:1]={a,NULL}", "{{\"NULL\"},{\"\"}}"],
    ),
    (
        "json",
        "jsonb",
        r#"{"paths":{"$.e":{"mask":"email"}},"strings":{"mask":"redact"}}"#,
        &[r#"{"e": "a@b.cd", "n": 1e400, "s": ["x"]}"#],
    ),
];

#[test]
fn golden_outputs_are_what_they_were() {
    let mut now = String::new();
    for (function, sql_type, arguments, inputs) in CASES {
        let harness = Harness::of(crate::functions(), function).column(sql_type).arguments(arguments);
        for input in *inputs {
            let output = harness.one(input).unwrap_or_else(|fault| panic!("{function} {input:?}: {fault:?}"));
            let _ = writeln!(now, "{function} {sql_type} {arguments}: {input:?} -> {output:?}");
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/golden.txt");
    if std::env::var_os("BLESS").is_some() {
        assert!(std::fs::write(path, &now).is_ok());
        return;
    }
    let before = std::fs::read_to_string(path).unwrap_or_default();
    for (before, now) in before.lines().zip(now.lines()) {
        assert_eq!(before, now, "a released output changed");
    }
    assert_eq!(
        before.lines().count(),
        now.lines().count(),
        "cases without a golden line: see the module's first lines"
    );
}
