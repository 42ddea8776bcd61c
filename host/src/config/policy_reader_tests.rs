//! Arguments become the JSON that their author meant, and the fingerprint's input depends on meaning only.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::path::PathBuf;

use super::super::{Diagnostics, FingerprintInputs, KeyCheckValue, KeyMaterial, SourceFile, parse_policy};
use super::*;

fn policy(text: &str) -> Result<Policy, Diagnostics> {
    let file = SourceFile { path: PathBuf::from("policy.yaml"), text: text.to_owned() };
    parse_policy(file).map(|loaded| loaded.value)
}

/// A policy with one mask that has these arguments.
fn with_arguments(arguments: &str) -> String {
    format!(
        "version: 1\nguests: {{ g: {{ builtin: standard }} }}\ntables:\n  a.b:\n    columns:\n      c:\n        mask: g/f\n{arguments}"
    )
}

#[test]
fn arguments_are_json_by_the_core_schema() {
    let text = "        i: 10\n        n: -7\n        big: 18446744073709551615\n        f: 1.50\n        e: 1e3\n        t: true\n        \
                no: no\n        nul: ~\n        q: '10'\n        date: 2024-01-31\n        version: 1.2.3\n        list: [1, a, [b]]\n        \
                map: { z: 1, a: 2 }\n        empty:\n";
    let policy = policy(&with_arguments(text)).unwrap();
    let mask = policy.tables.values().next().unwrap().masks().next().unwrap().clone();
    insta::assert_snapshot!(Value::Object(mask.arguments), @r#"{"i":10,"n":-7,"big":18446744073709551615,"f":1.5,"e":1000.0,"t":true,"no":"no","nul":null,"q":"10","date":"2024-01-31","version":"1.2.3","list":[1,"a",["b"]],"map":{"z":1,"a":2},"empty":null}"#);
    assert_eq!(mask.argument_spans["i"].line, 8);
}

#[test]
fn ambiguous_arguments_are_refused() {
    for (argument, told) in [
        ("zip: 01234", "leading zero"),
        ("n: 99999999999999999999", "does not fit 64 bits"),
        ("n: 1e999", "out of range"),
        ("o: { a: 1, a: 2 }", "written twice"),
    ] {
        let error = policy(&with_arguments(&format!("        {argument}\n"))).err().unwrap().to_string();
        assert!(error.contains(told), "{argument}: {error}");
    }
}

struct Inputs(&'static str);

impl FingerprintInputs for Inputs {
    fn guest_digest(&self, _: &str) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    fn key_check_value(&self, key: &str) -> KeyCheckValue {
        KeyMaterial::decode(key, &"5a".repeat(32)).unwrap_or_else(|error| panic!("{error}")).check_value()
    }
}

fn canonical(text: &str) -> String {
    policy(text).unwrap_or_else(|errors| panic!("{errors}")).tables.values().next().unwrap().canonical(&Inputs("a"))
}

const ONE: &str = "version: 1
guests: { g: { builtin: standard } }
keys: { k: { env: KEY } }
tables:
  a.b:
    keep: [{ filter: g/x, columns: [c], p: 1 }, { filter: g/y, columns: [c] }]
    columns:
      c: pass
      d: { mask: g/f, key: k, n: 1, m: { z: 1, y: [2, 3] } }
";

#[test]
fn form_and_names_of_guests_do_not_change_the_fingerprint() {
    let same = "# comment
version: 1
keys:
  k:
    env: OTHER_NAME
guests: { other: { builtin: standard } }
tables:
  A.\"b\":
    rest: deny
    columns:
      \"d\":
        m: { y: [2, 3], z: 1 }
        n: 1
        domain: \"\\x64\"
        mask: other/f
        key: k
        columns: [d]
        outputs: [d]
      c: 'pass'
    keep:
      - { filter: other/y, columns: [c] }
      - { p: 1, columns: [c], filter: other/x }
";
    assert_eq!(canonical(&ONE.replace("key: k", "key: k, domain: d")), canonical(same));
    insta::assert_snapshot!(canonical(ONE), @r#"{"columns":{"c":"pass","d":{"arguments":{"m":{"y":[2,3],"z":1},"n":1},"columns":["d"],"function":"f","guest":"17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f","key":{"check":"11c534509a23fac8","domain":"","name":"k"},"outputs":["d"]}},"form":1,"keep":[{"arguments":{"p":1},"columns":["c"],"function":"x","guest":"17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f","key":null,"outputs":[]},{"arguments":{},"columns":["c"],"function":"y","guest":"17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f","key":null,"outputs":[]}],"rest":"deny","schema":"a","table":"b"}"#);
}

#[test]
fn whatever_decides_an_output_changes_the_fingerprint() {
    let changed = [
        ONE.replace("c: pass", "c: \"null\""),
        ONE.replace("g/f", "g/f2"),
        ONE.replace(" n: 1", " n: 2"),
        ONE.replace(" n: 1", " n: '1'"),
        ONE.replace("[2, 3]", "[3, 2]"),
        ONE.replace("key: k", "key: k, domain: d"),
        ONE.replace("key: k, ", ""),
        ONE.replace("k: { env", "k2: { env").replace("key: k", "key: k2"),
        ONE.replace("key: k", "key: k, columns: [d, c]"),
        ONE.replace("key: k", "key: k, columns: [c, d]"),
        ONE.replace("key: k", "key: k, outputs: [d, e], columns: [d]"),
        ONE.replace("p: 1", "p: 2"),
        ONE.replace(", { filter: g/y, columns: [c] }", ""),
        format!("{ONE}    rest: pass\n"),
        ONE.replace("a.b", "a.c"),
    ];
    let mut all: Vec<String> = changed.iter().map(|text| canonical(text)).collect();
    all.push(canonical(ONE));
    all.push(policy(ONE).unwrap().tables.values().next().unwrap().canonical(&Inputs("another component")));
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}
