//! Key material: what is accepted, what is derived, and that nothing of it comes out.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use super::*;

const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn key(text: &str) -> KeyMaterial {
    KeyMaterial::decode("K", text).map_err(|error| error.to_string()).ok().unwrap()
}

fn error(text: &str) -> String {
    KeyMaterial::decode("PGVEIL_KEY", text).err().unwrap().to_string()
}

#[test]
fn hex_and_base64_of_the_same_bytes_are_the_same_key() {
    let expected = key(HEX).check_value();
    for same in [
        HEX.to_uppercase().as_str(),
        " 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
    ] {
        assert_eq!(key(same).check_value(), expected, "{same}");
    }
    let standard = key("+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=");
    let url_safe = key("-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s");
    assert_eq!(standard.check_value(), url_safe.check_value());
}

#[test]
fn weak_or_broken_keys_are_refused_without_being_shown() {
    assert!(error("00ff").contains("has 2 bytes, 32 are needed"));
    assert!(error(&HEX[2..]).contains("has 31 bytes"));
    assert!(error(&HEX[1..]).contains("neither hexadecimal digits nor base64"));
    assert!(error("correct horse battery staple").contains("neither hexadecimal"));
    assert!(error("c2hvcnQgYmFzZTY0IQ==").contains("has 13 bytes"));
    for text in ["deadbeefdeadbeef", "correct horse battery staple"] {
        assert!(!error(text).contains(text));
        assert!(error(text).contains("PGVEIL_KEY"));
    }
}

#[test]
fn a_missing_variable_is_named() {
    assert_eq!(
        KeyMaterial::from_env("PGVEIL_TEST_NEVER_SET").err().unwrap(),
        SecretError::Missing("PGVEIL_TEST_NEVER_SET".to_owned())
    );
}

#[test]
fn derived_keys_are_frozen() {
    let hex = |bytes: [u8; 32]| blake3::Hash::from_bytes(bytes).to_string();
    insta::assert_snapshot!(hex(key(HEX).derive_key("people", "")), @"a3daeba60d9627f2d489284dd0b69b471a05b7738ca364d4da6592f8740f0086");
    insta::assert_snapshot!(hex(key(HEX).derive_key("people", "email")), @"9ae961809ec0091f85ccad25c9ef179b86cdee1cfec8717c0703cf63e34d786e");
    insta::assert_snapshot!(key(HEX).check_value(), @"9115d2025a767fb5");
}

#[test]
fn names_domains_and_material_do_not_run_together() {
    let material = key(HEX);
    let mut derived: Vec<[u8; 32]> = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc")]
        .into_iter()
        .map(|(name, domain)| material.derive_key(name, domain))
        .collect();
    derived.push(key(&HEX.replace("00", "01")).derive_key("a", "bc"));
    derived.sort_unstable();
    derived.dedup();
    assert_eq!(derived.len(), 5);
}
