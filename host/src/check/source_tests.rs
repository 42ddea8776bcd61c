//! Every judgement about the source's settings, each from good facts with one thing wrong.

use std::collections::BTreeSet;

use super::super::{Grade, Plan};
use super::*;
use crate::config::SchemaMode;
use crate::schema::HiddenColumns;

const GOOD: &str = r#"{
    "system": "1", "database": "shop", "encoding": "UTF8", "standby": false, "role": "copy", "backend": 1, "replication": true,
    "wal_level": "logical", "slots": 10, "slots_used": 9, "senders": 10, "senders_used": 9, "connections": 100,
    "connections_used": 90, "wal_sender_timeout_ms": 60000, "wal_keep_mb": 4096, "idle_slot_timeout_s": 0, "slot": null
}"#;

const SLOT: &str = r#"{ "plugin": "pgoutput", "database": "shop", "active": false, "temporary": false, "wal_status": "reserved", "retained_bytes": 5000 }"#;

/// The findings other than PASS for the good facts with one field changed.
fn with(field: &str, value: &str, owned: bool) -> Vec<(Grade, &'static str, String)> {
    let mut facts: serde_json::Value = serde_json::from_str(GOOD).unwrap_or_default();
    facts[field] = serde_json::from_str(value).unwrap_or_default();
    let facts: SourceFacts = serde_json::from_value(facts).unwrap_or_else(|error| panic!("{field}: {error}"));
    let (hidden, filtered) = (HiddenColumns::new(), BTreeSet::new());
    let plan = Plan {
        job_id: "shop",
        publication: "shop",
        create_publication: false,
        slot: "pgveil_shop",
        tables: &[],
        schema_mode: SchemaMode::PgDump,
        pg_dump: None,
        copy_workers: 2,
        wal_retention_alarm: 1 << 30,
        require_tls: true,
        hidden: &hidden,
        filtered: &filtered,
    };
    let mut found = judge(&facts, &plan);
    found.push(slot(&facts, &plan, owned));
    let found = found.into_iter().filter(|finding| finding.grade != Grade::Pass);
    found.map(|finding| (finding.grade, finding.id, finding.message)).collect()
}

#[test]
fn good_settings_pass() {
    assert_eq!(with("role", "\"copy\"", false), []);
    assert_eq!(with("slot", SLOT, true), []);
}

#[test]
fn each_wrong_setting_is_found_and_nothing_else() {
    use Grade::{Fail, Warn};
    for (field, value, grade, id) in [
        ("standby", "true", Fail, "source-standby"),
        ("wal_level", "\"replica\"", Fail, "source-wal-level"),
        ("encoding", "\"SQL_ASCII\"", Fail, "source-encoding"),
        ("replication", "false", Fail, "source-role-replication"),
        ("slots_used", "10", Fail, "source-slots"),
        ("senders_used", "10", Fail, "source-senders"),
        ("connections_used", "97", Warn, "source-connections"),
        ("wal_sender_timeout_ms", "0", Warn, "source-wal-sender-timeout"),
        ("wal_sender_timeout_ms", "2000", Warn, "source-wal-sender-timeout"),
        ("wal_keep_mb", "-1", Warn, "source-wal-keep"),
        ("wal_keep_mb", "1024", Warn, "source-wal-keep"),
        ("idle_slot_timeout_s", "60", Warn, "source-slot-idle-timeout"),
        ("slot", SLOT, Fail, "source-slot"),
    ] {
        let found = with(field, value, false);
        assert!(
            matches!(&found[..], [(found_grade, found_id, _)] if (*found_grade, *found_id) == (grade, id)),
            "{field} {value}: {found:?}"
        );
    }
}

#[test]
fn the_jobs_own_slot_must_still_be_usable() {
    use Grade::{Fail, Warn};
    for (from, to, grade) in [
        ("reserved", "lost", Fail),
        ("reserved", "unreserved", Warn),
        ("pgoutput", "test_decoding", Fail),
        ("\"shop\"", "\"other\"", Fail),
        ("\"temporary\": false", "\"temporary\": true", Fail),
    ] {
        let found = with("slot", &SLOT.replace(from, to), true);
        assert!(matches!(&found[..], [(found_grade, "source-slot", _)] if *found_grade == grade), "{to}: {found:?}");
    }
    let gone = with("slot", "null", true);
    assert!(matches!(&gone[..], [(Fail, "source-slot", _)]), "{gone:?}");
}
