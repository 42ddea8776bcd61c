//! Messages as text. It lives in the tests because the library must not be able to print row data.

use std::fmt::Write as _;

use bytes::Bytes;
use pgveil_wire::pgoutput::{Message, OldTuple, Relation};
use pgveil_wire::tuple::{Tuple, TupleCell};
use pgveil_wire::{Lsn, WireError};

/// Longest value that is written out; of a longer one, only its length.
const SHOWN_LEN_MAX: usize = 60;

pub(crate) fn parsed(payload: &Bytes) -> String {
    match Message::parse(payload) {
        Ok(message) => self::message(&message),
        Err(error) => format!("refused: {error}"),
    }
}

pub(crate) fn error(result: Result<impl Sized, WireError>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
}

pub(crate) fn message(message: &Message) -> String {
    match message {
        Message::Begin(begin) => {
            format!("begin xid {} final {} at {}", begin.xid, begin.final_lsn, begin.commit_time.0)
        }
        Message::Commit(commit) => {
            format!("commit at {} ends {} at {}", commit.commit_lsn, commit.end_lsn, commit.commit_time.0)
        }
        Message::Origin(origin) => format!("origin {:?} {}", origin.name, origin.commit_lsn),
        Message::Relation(relation) => self::relation(relation),
        Message::Type(type_) => format!("type {} {:?}.{:?}", type_.id, type_.namespace, type_.name),
        Message::Insert(insert) => format!("insert {} {}", insert.relation_id, tuple(&insert.new)),
        Message::Update(update) => {
            let old = update.old.as_ref().map_or_else(String::new, |old| format!("{} ", old_tuple(old)));
            format!("update {} {old}new {}", update.relation_id, tuple(&update.new))
        }
        Message::Delete(delete) => format!("delete {} {}", delete.relation_id, old_tuple(&delete.old)),
        Message::Truncate(truncate) => format!(
            "truncate {:?}{}{}",
            truncate.relation_ids,
            if truncate.cascade { " cascade" } else { "" },
            if truncate.restart_identity { " restart identity" } else { "" },
        ),
        Message::LogicalMessage(message) => format!(
            "message {} at {} {:?} {}",
            if message.transactional { "in transaction" } else { "on its own" },
            message.lsn,
            message.prefix,
            bytes(&message.content),
        ),
    }
}

fn relation(relation: &Relation) -> String {
    let mut text = format!(
        "relation {} {:?}.{:?} identity {:?}",
        relation.id,
        relation.schema(),
        relation.name,
        relation.replica_identity
    );
    for column in &relation.columns {
        let key = if column.is_key { " key" } else { "" };
        write!(text, "\n    {:?} {}({}){key}", column.name, column.type_oid, column.type_modifier)
            .expect("strings grow");
    }
    text
}

fn old_tuple(old: &OldTuple) -> String {
    match old {
        OldTuple::Key(key) => format!("key {}", tuple(key)),
        OldTuple::Full(full) => format!("full {}", tuple(full)),
    }
}

pub(crate) fn tuple(tuple: &Tuple) -> String {
    let cells: Vec<_> = tuple
        .cells()
        .map(|cell| match cell {
            TupleCell::Null => "null".to_owned(),
            TupleCell::Unchanged => "unchanged".to_owned(),
            TupleCell::Text(value) => bytes(value),
        })
        .collect();
    assert_eq!(cells.len(), tuple.columns(), "a tuple has as many cells as columns");
    format!("({})", cells.join(", "))
}

pub(crate) fn bytes(value: &[u8]) -> String {
    if value.len() > SHOWN_LEN_MAX {
        return format!("<{} bytes>", value.len());
    }
    std::str::from_utf8(value).map_or_else(|_| format!("b\"{}\"", value.escape_ascii()), |text| format!("{text:?}"))
}

/// Bytes of hexadecimal digits, in which blanks may separate fields.
pub(crate) fn hex(digits: &str) -> Bytes {
    let digits: Vec<_> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    assert!(odd.is_empty(), "two digits make a byte");
    pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low).expect("two digits fit a byte")).collect()
}

/// The text of a position, for brevity in expectations.
pub(crate) fn lsn(text: &str) -> Lsn {
    text.parse().expect("a position")
}
