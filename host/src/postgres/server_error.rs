//! From a server's SQLSTATE to the job's kind of error (appendix "PostgreSQL Error Codes" in the manual).

use pgveil_wire::backend::ErrorFields;

use super::endpoint::Side;
use crate::error::{Error, Kind};

/// Functions of the server that report WAL which is no longer there. Some of them do so under XX000, "internal error",
/// which by itself says nothing.
const WAL_READERS: [&str; 8] = [
    "CheckXLogRemoved",
    "DecodingContextFindStartpoint",
    "WALReadRaiseError",
    "WalSndSegmentOpen",
    "XLogReadRecord",
    "XLogSendLogical",
    "logical_read_xlog_page",
    "wal_segment_open",
];

impl Error {
    /// The job's error for a server's refusal: the kind by its SQLSTATE; SQLSTATE and names as the place.
    #[must_use]
    pub fn from_server(side: Side, error: &ErrorFields) -> Error {
        Error::new(kind(side, error), place(side, error))
    }

    /// The same, for what a walsender says: there, some SQLSTATEs speak of the slot.
    pub(super) fn from_walsender(side: Side, error: &ErrorFields) -> Error {
        Error::new(slot_kind(error).unwrap_or_else(|| kind(side, error)), place(side, error))
    }
}

fn kind(side: Side, error: &ErrorFields) -> Kind {
    match error.sqlstate.as_str() {
        "57P01" | "57P02" | "57P03" => Kind::ServerRestarting,
        // Ended by idle_session_timeout or idle_in_transaction_session_timeout.
        "57P05" | "25P03" => Kind::ConnectionLost,
        "53300" => Kind::TooManyConnections,
        "55006" => Kind::SlotActive,
        "40001" | "40P01" | "55P03" => Kind::Contention,
        "42501" => Kind::Permission,
        _ => match (error.sqlstate.class(), side) {
            ("08", _) => Kind::ConnectionLost,
            ("28", _) => Kind::Authentication,
            (_, Side::Source) => Kind::ServerRefused,
            (_, Side::Target) => Kind::TargetRefused,
        },
    }
}

fn slot_kind(error: &ErrorFields) -> Option<Kind> {
    let routine = error.routine.as_deref().unwrap_or_default();
    match error.sqlstate.as_str() {
        // The slot; START_REPLICATION looks for no other object.
        "42704" => Some(Kind::SlotMissing),
        // "logical decoding requires wal_level >= logical" and its like: nothing is lost.
        "55000" if routine == "CheckLogicalDecodingRequirements" => Some(Kind::Preflight),
        "55000" | "58P01" => Some(Kind::SlotLost),
        "XX000" if WAL_READERS.contains(&routine) => Some(Kind::SlotLost),
        _ => None,
    }
}

/// `target: SQLSTATE 23505, table public.users, constraint users_email_key`.
fn place(side: Side, error: &ErrorFields) -> String {
    let mut place = format!("{side}: SQLSTATE {}", error.sqlstate);
    let table = match (&error.schema, &error.table) {
        (Some(schema), Some(table)) => Some(format!("{schema}.{table}")),
        (None, Some(table)) => Some(table.clone()),
        (_, None) => None,
    };
    let names = [
        ("table", table.as_ref()),
        ("column", error.column.as_ref()),
        ("type", error.data_type.as_ref()),
        ("constraint", error.constraint.as_ref()),
    ];
    for (what, name) in names {
        if let Some(name) = name {
            place.push_str(&format!(", {what} {name}"));
        }
    }
    place
}
