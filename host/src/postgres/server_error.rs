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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

    use bytes::Bytes;

    use super::*;
    use Side::{Source, Target};

    /// An error as a server sends it.
    fn sent(fields: &str) -> ErrorFields {
        ErrorFields::parse(&Bytes::from(format!("{}\0\0", fields.replace('|', "\0")))).unwrap()
    }

    #[test]
    fn each_sqlstate_has_its_kind() {
        let cases = [
            ("57P01", Source, Kind::ServerRestarting),
            ("57P03", Target, Kind::ServerRestarting),
            ("53300", Source, Kind::TooManyConnections),
            ("55006", Source, Kind::SlotActive),
            ("40001", Target, Kind::Contention),
            ("40P01", Target, Kind::Contention),
            ("55P03", Target, Kind::Contention),
            ("28000", Source, Kind::Authentication),
            ("28P01", Target, Kind::Authentication),
            ("42501", Target, Kind::Permission),
            ("08006", Source, Kind::ConnectionLost),
            ("25P03", Source, Kind::ConnectionLost),
            ("23505", Target, Kind::TargetRefused),
            ("42P01", Source, Kind::ServerRefused),
            // Not known to pass by itself: halts.
            ("53100", Target, Kind::TargetRefused),
            ("XX000", Source, Kind::ServerRefused),
        ];
        for (sqlstate, side, kind) in cases {
            let error = Error::from_server(side, &sent(&format!("SERROR|C{sqlstate}|Mtext")));
            assert_eq!(error.kind(), kind, "{sqlstate}");
        }
    }

    #[test]
    fn a_walsender_speaks_of_its_slot() {
        let cases = [
            ("C42704", Kind::SlotMissing),
            ("C55006", Kind::SlotActive),
            ("C55000|RCreateDecodingContext", Kind::SlotLost),
            ("C55000|RCheckLogicalDecodingRequirements", Kind::Preflight),
            ("C58P01", Kind::SlotLost),
            ("CXX000|RWalSndSegmentOpen", Kind::SlotLost),
            ("CXX000|Rpgoutput_change", Kind::ServerRefused),
            ("C57P01", Kind::ServerRestarting),
        ];
        for (fields, kind) in cases {
            assert_eq!(Error::from_walsender(Source, &sent(fields)).kind(), kind, "{fields}");
        }
    }

    #[test]
    fn the_place_holds_names_and_none_of_the_words() {
        let fields = "SERROR|C23505|Mduplicate canary|DKey (email)=(canary)|Hcanary|Wcanary|qcanary\
                      |spublic|tusers|cemail|dtext|nusers_email_key";
        let error = Error::from_server(Target, &sent(fields));
        assert_eq!(
            error.to_string(),
            "target: SQLSTATE 23505, table public.users, column email, type text, constraint users_email_key: \
             the target refused a statement"
        );
        assert!(!format!("{error:?}").contains("canary"));
    }
}
