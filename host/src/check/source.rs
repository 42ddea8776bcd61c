//! The source's server: version, settings, free slots and senders, the role, the slot.

use serde::Deserialize;

use super::{Finding, Plan, pooler, server_version, size};
use crate::config::{quote_ident, quote_literal};
use crate::error::Result;
use crate::limits::FEEDBACK_INTERVAL;
use crate::postgres::Session;

/// What [`read`] learns, in one statement.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SourceFacts {
    pub(super) system: String,
    pub(super) database: String,
    pub(super) encoding: String,
    standby: bool,
    pub(super) role: String,
    backend: u32,
    replication: bool,
    wal_level: String,
    slots: i64,
    slots_used: i64,
    senders: i64,
    senders_used: i64,
    connections: i64,
    connections_used: i64,
    wal_sender_timeout_ms: i64,
    wal_keep_mb: i64,
    idle_slot_timeout_s: i64,
    slot: Option<SlotFacts>,
}

/// The slot of the job's name, if there is one.
#[derive(Clone, Debug, Deserialize)]
struct SlotFacts {
    /// `None` for a physical slot.
    plugin: Option<String>,
    database: Option<String>,
    active: bool,
    temporary: bool,
    wal_status: Option<String>,
    retained_bytes: Option<i64>,
}

pub(super) async fn read(source: &mut Session, slot: &str) -> Result<SourceFacts> {
    let rows = source.query(include_str!("source.sql"), &[Some(slot)]).await?;
    super::decode(rows.first(), "source")
}

const SUBJECT: &str = "source";

pub(super) fn findings(source: &Session, facts: &SourceFacts, plan: &Plan<'_>, owned: bool) -> Vec<Finding> {
    let mut found = vec![server_version("source-version", SUBJECT, source)];
    found.extend(pooler("source-pooler", SUBJECT, facts.backend, source));
    found.extend(judge(facts, plan));
    found.push(slot(facts, plan, owned));
    found
}

/// The settings, apart from the slot.
fn judge(facts: &SourceFacts, plan: &Plan<'_>) -> Vec<Finding> {
    let SourceFacts { role, database, encoding, .. } = facts;
    vec![
        if facts.standby {
            let remedy = "Point the source URL at the primary.";
            Finding::fail("source-standby", SUBJECT, "it is a standby: it cannot export a snapshot", remedy)
        } else {
            Finding::pass("source-standby", SUBJECT, "it is a primary")
        },
        if facts.wal_level == "logical" {
            Finding::pass("source-wal-level", SUBJECT, "wal_level is logical")
        } else {
            let remedy = "ALTER SYSTEM SET wal_level = 'logical'; then restart the source.";
            Finding::fail("source-wal-level", SUBJECT, format!("wal_level is {}", facts.wal_level), remedy)
        },
        // Bytes without an encoding are no text: what a mask would see is not defined.
        if encoding == "SQL_ASCII" {
            let remedy = "Restore the database into one with a real encoding.";
            Finding::fail("source-encoding", SUBJECT, format!("database {database} has the encoding SQL_ASCII"), remedy)
        } else {
            Finding::pass("source-encoding", SUBJECT, format!("database {database} is {encoding}"))
        },
        if facts.replication {
            Finding::pass("source-role-replication", SUBJECT, format!("role {role} may replicate"))
        } else {
            let remedy = format!("ALTER ROLE {} REPLICATION;", quote_ident(role));
            Finding::fail("source-role-replication", SUBJECT, format!("role {role} may not replicate"), remedy)
        },
        free_slots(facts),
        {
            let free = facts.senders - facts.senders_used;
            // Our own, when the job runs already, is among those in use.
            let needed = i64::from(!facts.slot.as_ref().is_some_and(|slot| slot.active));
            let message = format!("{free} of {} WAL senders are free", facts.senders);
            if free >= needed {
                Finding::pass("source-senders", SUBJECT, message)
            } else {
                Finding::fail("source-senders", SUBJECT, message, "Raise max_wal_senders and restart the source.")
            }
        },
        {
            // The copy's sessions, pg_dump and one for questions.
            let (free, needed) = (facts.connections - facts.connections_used, plan.copy_workers + 2);
            let message = format!("{free} of {} connections are free, {needed} are needed", facts.connections);
            if free >= needed {
                Finding::pass("source-connections", SUBJECT, message)
            } else {
                let remedy = "Raise max_connections, close sessions, or lower limits.copy_workers.";
                Finding::warn("source-connections", SUBJECT, message, remedy)
            }
        },
        sender_timeout(facts),
        wal_keep(facts, plan),
        idle_timeout(facts),
    ]
}

fn free_slots(facts: &SourceFacts) -> Finding {
    let free = facts.slots - facts.slots_used;
    let message = format!("{free} of {} replication slots are free", facts.slots);
    if free > 0 || facts.slot.is_some() {
        Finding::pass("source-slots", SUBJECT, message)
    } else {
        Finding::fail("source-slots", SUBJECT, message, "Drop a slot that nobody uses, or raise max_replication_slots.")
    }
}

fn sender_timeout(facts: &SourceFacts) -> Finding {
    const ID: &str = "source-wal-sender-timeout";
    let timeout = facts.wal_sender_timeout_ms;
    let least = i64::try_from(FEEDBACK_INTERVAL.as_millis()).unwrap_or(i64::MAX).saturating_mul(3);
    match timeout {
        0 => Finding::warn(
            ID,
            SUBJECT,
            "wal_sender_timeout is 0: after a lost connection the slot may stay in use for hours",
            "Set wal_sender_timeout to a minute.",
        ),
        short if short < least => Finding::warn(
            ID,
            SUBJECT,
            format!("wal_sender_timeout is {short} ms, which leaves no room for a pause of the network"),
            format!("Set it to at least {least} ms."),
        ),
        _ => Finding::pass(ID, SUBJECT, format!("wal_sender_timeout is {timeout} ms")),
    }
}

fn wal_keep(facts: &SourceFacts, plan: &Plan<'_>) -> Finding {
    const ID: &str = "source-wal-keep";
    let Ok(megabytes) = u64::try_from(facts.wal_keep_mb) else {
        return Finding::warn(
            ID,
            SUBJECT,
            "max_slot_wal_keep_size is unlimited: while the job stands still the source's disk fills up",
            "Set max_slot_wal_keep_size to what the disk can spare.",
        );
    };
    let bytes = megabytes.saturating_mul(1 << 20);
    let message = format!("max_slot_wal_keep_size is {}", size(bytes));
    if plan.wal_retention_alarm > 0 && bytes <= plan.wal_retention_alarm {
        let message =
            format!("{message}: the slot would be lost before the alarm at {}", size(plan.wal_retention_alarm));
        return Finding::warn(ID, SUBJECT, message, "Lower safety.wal_retention_alarm, or raise the setting.");
    }
    Finding::pass(ID, SUBJECT, message)
}

fn idle_timeout(facts: &SourceFacts) -> Finding {
    const ID: &str = "source-slot-idle-timeout";
    if facts.idle_slot_timeout_s == 0 {
        return Finding::pass(ID, SUBJECT, "an idle slot is kept");
    }
    Finding::warn(
        ID,
        SUBJECT,
        format!("the slot is lost after the job has stood still for {} s", facts.idle_slot_timeout_s),
        "Set idle_replication_slot_timeout to 0, or never stop the job for longer.",
    )
}

/// `owned`: the target's records say that this job made the slot.
fn slot(facts: &SourceFacts, plan: &Plan<'_>, owned: bool) -> Finding {
    const ID: &str = "source-slot";
    let subject = format!("slot {}", plan.slot);
    let anew = "`pgveil bootstrap --restart-snapshot` copies anew.";
    let Some(slot) = &facts.slot else {
        return if owned {
            Finding::fail(ID, subject, "it is gone: changes since then cannot be had", anew)
        } else {
            Finding::pass(ID, subject, "the name is free; bootstrap makes it")
        };
    };
    if !owned {
        let remedy = format!(
            "Name another in source.slot, or drop it if nobody uses it: SELECT pg_drop_replication_slot({});",
            quote_literal(plan.slot)
        );
        return Finding::fail(ID, subject, "there is one of this name that this job did not make", remedy);
    }
    let ours = slot.plugin.as_deref() == Some("pgoutput")
        && slot.database.as_deref() == Some(&facts.database)
        && !slot.temporary;
    if !ours {
        return Finding::fail(ID, subject, "it is of another kind or database than the one this job made", anew);
    }
    match slot.wal_status.as_deref() {
        Some("lost") => Finding::fail(ID, subject, "it is lost: the source removed WAL that it needs", anew),
        Some("unreserved") => {
            let remedy = "Run the job now; raise max_slot_wal_keep_size.";
            Finding::warn(ID, subject, "it will be lost at the source's next checkpoint", remedy)
        }
        _ => {
            let used = if slot.active { "in use" } else { "not in use" };
            let retained = slot.retained_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
            Finding::pass(ID, subject, format!("this job's, {used}, keeps {} of WAL", size(retained)))
        }
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
