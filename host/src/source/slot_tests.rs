//! What must hold between a job's record and the slot that is found.

use super::*;
use crate::checkpoint::JobState;

fn identity() -> Identity {
    Identity {
        system: "7300000000000000001".to_owned(),
        timeline: 1,
        database: "shop".to_owned(),
        publication: "shop".to_owned(),
        slot: "pgveil_shop".to_owned(),
    }
}

fn record() -> JobRecord {
    JobRecord {
        job_id: "shop".to_owned(),
        state: JobState::Streaming,
        reason_kind: None,
        reason: None,
        identity: identity(),
        slot_created: true,
        consistent_lsn: Some(Lsn(100)),
        fingerprint: String::new(),
        applied_lsn: Some(Lsn(200)),
    }
}

fn slot() -> SlotState {
    SlotState {
        plugin: Some("pgoutput".to_owned()),
        database: Some("shop".to_owned()),
        active_pid: None,
        wal_status: Some("reserved".to_owned()),
        invalidation: None,
        confirmed_flush: Some(Lsn(150)),
        restart: Some(Lsn(90)),
        retained_bytes: Some(110),
        safe_bytes: None,
    }
}

fn verdict(change: impl FnOnce(&mut JobRecord, &mut SlotState, &mut Identity)) -> Option<Kind> {
    let (mut record, mut slot, mut identity) = (record(), slot(), identity());
    change(&mut record, &mut slot, &mut identity);
    verify_continuity(&record, Some(&slot), &identity).err().map(|error| error.kind())
}

#[test]
fn an_unchanged_slot_continues() {
    assert_eq!(verdict(|_, _, _| ()), None);
    assert_eq!(verdict(|_, slot, _| slot.confirmed_flush = Some(Lsn(200))), None, "confirmed all that is applied");
    assert_eq!(
        verdict(|_, slot, _| slot.confirmed_flush = Some(Lsn(100))),
        None,
        "nothing confirmed since the snapshot"
    );
    assert_eq!(
        verdict(|_, slot, _| slot.active_pid = Some(7)),
        None,
        "START_REPLICATION itself says that it is active"
    );
}

#[test]
fn a_gap_is_never_taken_for_continuity() {
    assert_eq!(
        verify_continuity(&record(), None, &identity()).err().map(|error| error.kind()),
        Some(Kind::SlotMissing)
    );
    assert_eq!(verdict(|_, slot, _| slot.wal_status = Some("lost".to_owned())), Some(Kind::SlotLost));
    assert_eq!(verdict(|_, slot, _| slot.invalidation = Some("idle_timeout".to_owned())), Some(Kind::SlotLost));
    assert_eq!(verdict(|_, slot, _| slot.confirmed_flush = Some(Lsn(201))), Some(Kind::SlotAdvanced));
    assert_eq!(verdict(|_, slot, _| slot.confirmed_flush = Some(Lsn(99))), Some(Kind::SourceChanged));
    assert_eq!(verdict(|_, slot, _| slot.confirmed_flush = None), Some(Kind::SlotMissing));
    assert_eq!(verdict(|record, _, _| record.applied_lsn = None), Some(Kind::NotReady));
}

#[test]
fn another_source_is_named() {
    assert_eq!(verdict(|_, _, found| found.system = "1".to_owned()), Some(Kind::SourceChanged));
    assert_eq!(verdict(|_, _, found| found.timeline = 2), Some(Kind::SourceChanged));
    assert_eq!(verdict(|_, _, found| found.publication = "other".to_owned()), Some(Kind::SourceChanged));
    assert_eq!(verdict(|_, slot, _| slot.plugin = Some("test_decoding".to_owned())), Some(Kind::SourceChanged));
    assert_eq!(verdict(|_, slot, _| slot.plugin = None), Some(Kind::SourceChanged), "a physical slot");
    assert_eq!(verdict(|_, slot, _| slot.database = Some("other".to_owned())), Some(Kind::SourceChanged));
    let promoted = Identity { timeline: 2, ..identity() };
    let error = verify_identity(&identity(), &promoted).err().map(|error| error.place().to_owned());
    assert_eq!(error.as_deref(), Some("source: timeline is 2, the job's is 1"));
}
