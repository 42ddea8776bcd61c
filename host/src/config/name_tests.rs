//! Names as people and SQL write them (field cases N01 to N04), and that what is shown is read back.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use proptest::prelude::*;

use super::*;

#[test]
fn names_are_read_as_sql_reads_them() {
    for (written, schema, name) in [
        ("public.users", "public", "users"),
        ("Public.USERS", "public", "users"),
        (r#""Shop"."order""#, "Shop", "order"),
        (r#""Q_"" . S"."T "" .""#, r#"Q_" . S"#, r#"T " ."#),
        (r#"public."""x""""#, "public", r#""x""#),
        ("public.\"line\nbreak\"", "public", "line\nbreak"),
        (r#"public."a\b""#, "public", r"a\b"),
        (r#"public."a%b""#, "public", "a%b"),
        ("public . users", "public", "users"),
        (" public.users\n", "public", "users"),
        ("public.a$1_B", "public", "a$1_b"),
        // Only ASCII letters are folded, as the server does under UTF-8.
        ("public.\u{c9}T\u{c9}", "public", "\u{c9}t\u{c9}"),
        ("public.b\u{131}g\u{131}nt", "public", "b\u{131}g\u{131}nt"),
        // After a dot every word is a name.
        ("public.order", "public", "order"),
    ] {
        assert_eq!(written.parse(), Ok(TableName::new(schema, name)), "{written}");
    }
}

#[test]
fn what_is_no_name_says_why() {
    let told: Vec<String> = [
        "",
        "  ",
        "users",
        "Users",
        r#""Users""#,
        "a.b.c",
        "a.",
        ".b",
        "..",
        r#""".b"#,
        r#""a.b"#,
        "a-b.c",
        "a.1b",
        "a.b c",
        "a b",
        "a.b;",
        "'a'.b",
        "a.\"x\0\"",
    ]
    .iter()
    .map(|text| format!("{text:?}: {}", text.parse::<TableName>().unwrap_err()))
    .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "": it is empty
    "  ": it is empty
    "users": it has no schema; write `public.users`
    "Users": it has no schema; write `public.users`
    "\"Users\"": it has no schema; write `public."Users"`
    "a.b.c": it has more than a schema and a name; a name with a dot in it must be in double quotes
    "a.": a part of it is empty
    ".b": a part of it is empty
    "..": a part of it is empty
    "\"\".b": a part of it is empty
    "\"a.b": a double quote is not closed
    "a-b.c": `-` is not allowed in an unquoted name; put the name in double quotes
    "a.1b": `1` is not allowed in an unquoted name; put the name in double quotes
    "a.b c": `c` is not allowed in an unquoted name; put the name in double quotes
    "a b": `b` is not allowed in an unquoted name; put the name in double quotes
    "a.b;": `;` is not allowed in an unquoted name; put the name in double quotes
    "'a'.b": `'` is not allowed in an unquoted name; put the name in double quotes
    "a.\"x\0\"": it holds a NUL character
    "#);
    let long = "x".repeat(64);
    assert_eq!(format!("a.{long}").parse::<TableName>(), Err(NameError::TooLong(64)));
    assert!(format!("a.{}", &long[1..]).parse::<TableName>().is_ok());
}

#[test]
fn names_are_shown_with_quotes_where_needed() {
    for (name, shown) in [
        (TableName::new("public", "users"), "public.users"),
        (TableName::new("Shop", "order"), r#""Shop"."order""#),
        (TableName::new(r#"Q_" . S"#, r#"T " ."#), r#""Q_"" . S"."T "" .""#),
    ] {
        assert_eq!(name.to_string(), shown);
    }
    assert_eq!(TableName::new("public", "users").quoted(), r#""public"."users""#);
}

#[test]
fn literals_are_quoted() {
    for (text, quoted) in [("a", "'a'"), ("it's", "'it''s'"), (r"a\b", r"E'a\\b'"), (r"\'", r"E'\\'''"), ("", "''")] {
        assert_eq!(quote_literal(text), quoted);
    }
}

/// What PostgreSQL itself does with a quoted literal, for the round trip.
fn read_literal(literal: &str) -> String {
    match literal.strip_prefix("E'") {
        Some(rest) => rest[..rest.len() - 1].replace(r"\\", "\\").replace("''", "'"),
        None => literal[1..literal.len() - 1].replace("''", "'"),
    }
}

/// Up to 60 bytes without NUL, with the characters that make trouble made likely.
fn part() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just('"'),
            Just('.'),
            Just(' '),
            Just('\''),
            Just('\\'),
            Just('\n'),
            proptest::char::range('a', 'z'),
            any::<char>()
        ],
        1..15,
    )
    .prop_map(|letters| letters.into_iter().filter(|letter| *letter != '\0').collect::<String>())
    .prop_filter("a name is not empty", |name| !name.is_empty())
}

proptest! {
    #[test]
    fn every_name_is_read_back(schema in part(), name in part()) {
        let table = TableName { schema, name };
        prop_assert_eq!(table.to_string().parse(), Ok(table.clone()));
        prop_assert_eq!(table.quoted().parse(), Ok(table));
    }

    #[test]
    fn every_literal_is_read_back(text in part()) {
        prop_assert_eq!(read_literal(&quote_literal(&text)), text);
    }

    #[test]
    fn any_text_is_a_name_or_an_error(text in any::<String>()) {
        let _ = text.parse::<TableName>();
    }
}
