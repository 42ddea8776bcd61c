//! Messages of the output plugin `pgoutput`, protocol version 1: the payload of a walsender's XLogData.
//!
//! Section "Logical Replication Message Formats". Version 1 is what we ask for: whole transactions, in commit order, after
//! their commit. The messages of later options (streaming of open transactions, two-phase) are told apart from garbage, and
//! refused all the same. Values arrive in text output, because option `binary` is not set.

mod relation;

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Result, WireErrorKind};
use crate::lsn::Lsn;
use crate::timestamp::Timestamp;
use crate::tuple::Tuple;

pub use relation::{Column, Relation, ReplicaIdentity};

/// One message of a logical replication stream.
///
/// Rows and message contents share the memory of the payload. No `Debug`: most variants hold row data.
pub enum Message {
    /// A transaction starts; all until [`Message::Commit`] belongs to it.
    Begin(Begin),
    /// The transaction ends.
    Commit(Commit),
    /// The transaction was itself replicated from elsewhere.
    Origin(Origin),
    /// Shape of a table, sent before its first row and again after each change.
    Relation(Relation),
    /// Name of a type that is not built in, sent before the Relation that uses it.
    Type(Type),
    /// A row is new.
    Insert(Insert),
    /// A row changed.
    Update(Update),
    /// A row is gone.
    Delete(Delete),
    /// Tables were emptied.
    Truncate(Truncate),
    /// What `pg_logical_emit_message` wrote; only sent when option `messages` is set.
    LogicalMessage(LogicalMessage),
}

/// Begin, tag `B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Where the transaction's commit record starts. It is not its end: see [`Commit::end_lsn`].
    pub final_lsn: Lsn,
    /// When it committed.
    pub commit_time: Timestamp,
    /// Its transaction number.
    pub xid: u32,
}

/// Commit, tag `C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Where the commit record starts; equals the transaction's [`Begin::final_lsn`].
    pub commit_lsn: Lsn,
    /// The first byte after the transaction: what is confirmed once it is durable, and the only position to compare on restart.
    pub end_lsn: Lsn,
    /// When it committed.
    pub commit_time: Timestamp,
}

/// Origin, tag `O`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Where the transaction committed on the server it came from.
    pub commit_lsn: Lsn,
    /// Name of the replication origin.
    pub name: String,
}

/// Type, tag `Y`. Also sent for domains, composites, enums and their arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Object identifier of the type on the source.
    pub id: u32,
    /// Its schema; empty stands for `pg_catalog`.
    pub namespace: String,
    /// Its name, unquoted.
    pub name: String,
}

/// Insert, tag `I`.
pub struct Insert {
    /// The table, as the last [`Relation`] with this id describes it.
    pub relation_id: u32,
    /// The row.
    pub new: Tuple,
}

/// Update, tag `U`.
pub struct Update {
    /// The table, as the last [`Relation`] with this id describes it.
    pub relation_id: u32,
    /// The row before. Absent when its identity columns did not change and the table is not `REPLICA IDENTITY FULL`.
    pub old: Option<OldTuple>,
    /// The row after. A TOAST value that did not change is [`CellKind::Unchanged`](crate::tuple::CellKind::Unchanged) here.
    pub new: Tuple,
}

/// Delete, tag `D`.
pub struct Delete {
    /// The table, as the last [`Relation`] with this id describes it.
    pub relation_id: u32,
    /// The row that is gone.
    pub old: OldTuple,
}

/// What PostgreSQL says of a row before the change. It has the relation's number of columns in both cases.
#[derive(Clone)]
pub enum OldTuple {
    /// Tag `K`: the replica identity's columns; every other column is NULL here whatever it holds.
    Key(Tuple),
    /// Tag `O`: the whole row, under `REPLICA IDENTITY FULL`.
    Full(Tuple),
}

impl OldTuple {
    /// The tuple of either kind.
    #[must_use]
    pub const fn tuple(&self) -> &Tuple {
        match self {
            Self::Key(tuple) | Self::Full(tuple) => tuple,
        }
    }
}

/// Truncate, tag `T`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncate {
    /// The tables, each described by a Relation before.
    pub relation_ids: Vec<u32>,
    /// `TRUNCATE … CASCADE` was written.
    pub cascade: bool,
    /// `TRUNCATE … RESTART IDENTITY` was written.
    pub restart_identity: bool,
}

/// Logical decoding message, tag `M`. No `Debug`: the content is whatever an application wrote.
pub struct LogicalMessage {
    /// Part of the transaction around it, or else on its own, outside of any Begin and Commit.
    pub transactional: bool,
    /// Where the message lies in the log.
    pub lsn: Lsn,
    /// Whose message it is; applications agree on it among themselves.
    pub prefix: String,
    /// The content. Raw bytes in no particular encoding.
    pub content: Bytes,
}

impl Message {
    /// Reads the payload of one XLogData, which is exactly one message.
    ///
    /// # Errors
    /// Anything the manual does not list for version 1, with its offset in `payload`. Nothing is skipped.
    pub fn parse(payload: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(payload);
        let message = match cursor.u8()? {
            b'B' => Self::Begin(begin(&mut cursor)?),
            b'C' => Self::Commit(commit(&mut cursor)?),
            b'O' => Self::Origin(Origin { commit_lsn: cursor.lsn()?, name: cursor.name()?.to_owned() }),
            b'R' => Self::Relation(Relation::read(&mut cursor)?),
            b'Y' => Self::Type(type_name(&mut cursor)?),
            b'I' => Self::Insert(insert(&mut cursor)?),
            b'U' => Self::Update(update(&mut cursor)?),
            b'D' => Self::Delete(delete(&mut cursor)?),
            b'T' => Self::Truncate(truncate(&mut cursor)?),
            b'M' => Self::LogicalMessage(logical_message(&mut cursor)?),
            // Stream start, stop, commit and abort; begin prepare, prepare, commit and rollback prepared, stream prepare.
            tag @ (b'S' | b'E' | b'c' | b'A' | b'b' | b'P' | b'K' | b'r' | b'p') => {
                return Err(cursor.error_before(1, WireErrorKind::NotAskedFor(tag)));
            }
            tag => return Err(cursor.error_before(1, WireErrorKind::UnknownTag(tag))),
        };
        cursor.finish()?;
        Ok(message)
    }
}

fn begin(cursor: &mut Cursor<'_>) -> Result<Begin> {
    Ok(Begin { final_lsn: cursor.lsn()?, commit_time: cursor.timestamp()?, xid: cursor.u32()? })
}

fn commit(cursor: &mut Cursor<'_>) -> Result<Commit> {
    // "Currently unused"; a bit that appears here one day changes what a commit means.
    flags(cursor, 0)?;
    Ok(Commit { commit_lsn: cursor.lsn()?, end_lsn: cursor.lsn()?, commit_time: cursor.timestamp()? })
}

fn type_name(cursor: &mut Cursor<'_>) -> Result<Type> {
    Ok(Type { id: cursor.u32()?, namespace: cursor.name()?.to_owned(), name: cursor.name()?.to_owned() })
}

fn insert(cursor: &mut Cursor<'_>) -> Result<Insert> {
    let relation_id = cursor.u32()?;
    match cursor.u8()? {
        b'N' => Ok(Insert { relation_id, new: Tuple::read(cursor)? }),
        tag => Err(cursor.error_before(1, WireErrorKind::UnknownTag(tag))),
    }
}

fn update(cursor: &mut Cursor<'_>) -> Result<Update> {
    let relation_id = cursor.u32()?;
    let mut old = None;
    let mut tag = cursor.u8()?;
    if tag != b'N' {
        old = Some(old_tuple(cursor, tag)?);
        tag = cursor.u8()?;
    }
    match tag {
        b'N' => Ok(Update { relation_id, old, new: Tuple::read(cursor)? }),
        tag => Err(cursor.error_before(1, WireErrorKind::UnknownTag(tag))),
    }
}

fn delete(cursor: &mut Cursor<'_>) -> Result<Delete> {
    let relation_id = cursor.u32()?;
    let tag = cursor.u8()?;
    Ok(Delete { relation_id, old: old_tuple(cursor, tag)? })
}

fn old_tuple(cursor: &mut Cursor<'_>, tag: u8) -> Result<OldTuple> {
    match tag {
        b'K' => Tuple::read(cursor).map(OldTuple::Key),
        b'O' => Tuple::read(cursor).map(OldTuple::Full),
        tag => Err(cursor.error_before(1, WireErrorKind::UnknownTag(tag))),
    }
}

fn truncate(cursor: &mut Cursor<'_>) -> Result<Truncate> {
    let relations = cursor.count_i32()?;
    let options = flags(cursor, 0b11)?;
    // The count is the sender's word. Collecting through `Result` reserves nothing ahead, so it allocates only what is there.
    let relation_ids = (0..relations).map(|_| cursor.u32()).collect::<Result<_>>()?;
    Ok(Truncate { relation_ids, cascade: options & 0b01 != 0, restart_identity: options & 0b10 != 0 })
}

fn logical_message(cursor: &mut Cursor<'_>) -> Result<LogicalMessage> {
    let transactional = flags(cursor, 0b1)? != 0;
    let lsn = cursor.lsn()?;
    let prefix = cursor.name()?.to_owned();
    let length = cursor.count_i32()?;
    Ok(LogicalMessage { transactional, lsn, prefix, content: cursor.take(length)? })
}

/// A byte of flags of which only those in `known` may be set.
fn flags(cursor: &mut Cursor<'_>, known: u8) -> Result<u8> {
    let flags = cursor.u8()?;
    if flags & !known == 0 { Ok(flags) } else { Err(cursor.error_before(1, WireErrorKind::UnknownFlags(flags))) }
}
