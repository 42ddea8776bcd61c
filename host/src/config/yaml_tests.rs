//! What a file can do to the reader: nothing but be read or refused, with a place.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// The tree in a line, with places.
fn outline(node: &Node) -> String {
    let place = format!("{}:{}", node.span.line, node.span.column);
    match &node.kind {
        Kind::Scalar { text, plain } => format!("{}{text:?}@{place}", if *plain { "" } else { "quoted " }),
        Kind::Sequence(items) => format!("[{}]@{place}", items.iter().map(outline).collect::<Vec<_>>().join(", ")),
        Kind::Mapping(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, node)| format!("{:?}@{}: {}", key.value, key.span.line, outline(node)))
                .collect();
            format!("{{{}}}@{place}", entries.join(", "))
        }
    }
}

fn refused(text: &str) -> String {
    match parse(text) {
        Ok(_) => "taken".to_owned(),
        Err(error) => format!("{}:{}: {}", error.span.line, error.span.column, error.message),
    }
}

#[test]
fn nodes_know_their_place() {
    let text = "# \u{e9}\na: \u{1F600} x\n\"b c\": [1, '2']\nd:\n  e: |\n    f\n  g:\nd: again\r\n";
    insta::assert_snapshot!(outline(&parse(text).unwrap()), @r#"{"a"@2: "😀 x"@2:4, "b c"@3: ["1"@3:9, quoted "2"@3:12]@3:8, "d"@4: {"e"@5: quoted "f\n"@6:5, "g"@7: ""@7:4}@5:3, "d"@8: "again"@8:4}@2:1"#);
}

#[test]
fn spans_cover_what_was_written() {
    let text = "\u{e9}: \"\u{1F600}\" # rest\n";
    let Kind::Mapping(entries) = parse(text).unwrap().kind else { panic!("a mapping was written") };
    let (key, value) = entries.first().unwrap();
    assert_eq!(&text[key.span.bytes()], "\u{e9}");
    assert_eq!(&text[value.span.bytes()], "\"\u{1F600}\"");
}

#[test]
fn what_is_not_used_here_is_refused_with_its_place() {
    let told: Vec<String> = [
        "a: &x 1\nb: *x",
        "a: &x {b: 1}",
        "base: &b {c: 1}\nd:\n  <<: *b",
        "a: !!str 1",
        "a: !env X",
        "a: 1\n---\nb: 2",
        "? [a]\n: b",
        "{a: 1}: b",
        "a: \0",
        "a: \u{7}",
        "a:\n\tb: 1",
        "a: [1, 2",
        "a: 'x",
        "a: b: c",
        "a: 1\n b: 2",
        "*unknown",
        "",
        "# nothing\n",
    ]
    .iter()
    .map(|text| format!("{text:?} -> {}", refused(text)))
    .collect();
    insta::assert_snapshot!(told.join("\n"), @r##"
    "a: &x 1\nb: *x" -> 1:4: YAML anchors and aliases (`&…`, `*…`, `<<`) are not used here: every decision stands where it applies
    "a: &x {b: 1}" -> 1:4: YAML anchors and aliases (`&…`, `*…`, `<<`) are not used here: every decision stands where it applies
    "base: &b {c: 1}\nd:\n  <<: *b" -> 1:7: YAML anchors and aliases (`&…`, `*…`, `<<`) are not used here: every decision stands where it applies
    "a: !!str 1" -> 1:4: YAML tags (`!…`) are not used here
    "a: !env X" -> 1:4: YAML tags (`!…`) are not used here
    "a: 1\n---\nb: 2" -> 2:1: the file holds a second document
    "? [a]\n: b" -> 1:3: a key must be a text
    "{a: 1}: b" -> 1:1: a key must be a text
    "a: \0" -> 1:4: the file holds a NUL character
    "a: \u{7}" -> 1:4: the file holds the control character '\u{7}'
    "a:\n\tb: 1" -> 2:2: this is not valid YAML: tabs disallowed within this context (block indentation)
    "a: [1, 2" -> 1:9: this is not valid YAML: while parsing a flow sequence, expected ',' or ']'
    "a: 'x" -> 1:4: this is not valid YAML: while scanning a quoted scalar, found unexpected end of stream
    "a: b: c" -> 1:5: this is not valid YAML: mapping values are not allowed in this context
    "a: 1\n b: 2" -> 2:3: this is not valid YAML: mapping values are not allowed in this context
    "*unknown" -> 1:1: this is not valid YAML: while parsing node, found unknown anchor
    "" -> 1:1: the file is empty
    "# nothing\n" -> 1:1: the file is empty
    "##);
}

#[test]
fn hostile_files_end_quickly() {
    const SIZE: usize = 1 << 20;
    let laughs = (1..10).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "))
    });
    let hostile = [
        laughs,
        "[".repeat(SIZE),
        "{a: ".repeat(SIZE / 4),
        "- ".repeat(SIZE / 2),
        "? ".repeat(SIZE / 2),
        (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect(),
        "\"".repeat(SIZE),
        "a: ".to_owned() + &"x".repeat(SIZE),
        "a".repeat(SIZE),
        "#".repeat(SIZE),
        "a:\n".repeat(SIZE / 3),
        format!("[{}]", "a,".repeat(SIZE / 2)),
        format!("{{{}}}", "a: '\u{e9}',".repeat(SIZE / 9)),
    ];
    for text in hostile {
        let begun = Instant::now();
        let _ = parse(&text);
        // Generous for a slow machine; quadratic behaviour on a MiB would take hours.
        let shown: String = text.chars().take(8).collect();
        assert!(begun.elapsed() < Duration::from_secs(30), "{shown:?} took {:?}", begun.elapsed());
    }
}

/// Texts that look like YAML more than random letters do.
fn yaml_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("\n"),
        Just("  "),
        Just("- "),
        Just(": "),
        Just("? "),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(", "),
        Just("a"),
        Just("\""),
        Just("'"),
        Just("|\n"),
        Just(">-\n"),
        Just("#"),
        Just("&a "),
        Just("*a "),
        Just("!t "),
        Just("---\n"),
        Just("...\n"),
        Just("%YAML 1.2\n"),
        Just("\t"),
        Just("\r"),
        Just("\u{e9}"),
        Just("\u{feff}"),
        Just("\u{2028}"),
        Just("\\x"),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_text_is_a_tree_or_an_error_inside_the_text(text in prop_oneof![any::<String>(), yaml_like()]) {
        let _ = parse(&text).map(|root| outline(&root));
        if let Err(error) = parse(&text) {
            prop_assert!(error.span.bytes().end <= text.len());
            prop_assert!(text.is_char_boundary(error.span.bytes().start) && text.is_char_boundary(error.span.bytes().end));
        }
    }
}
