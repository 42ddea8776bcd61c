//! Relation: the shape of a table, as of the rows that follow it.

use super::flags;
use crate::cursor::Cursor;
use crate::error::{Result, WireErrorKind};

/// Relation, tag `R`.
///
/// Two of them are equal exactly when nothing about the table changed that this protocol can show.
/// Generated columns are absent, and so are columns outside the publication's column list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Object identifier of the table on the source. A table dropped and made again has another.
    pub id: u32,
    /// Its schema as sent; empty stands for `pg_catalog`. See [`schema`](Self::schema).
    pub namespace: String,
    /// Its name, unquoted.
    pub name: String,
    /// How its rows are told apart.
    pub replica_identity: ReplicaIdentity,
    /// Its columns, in the order of every tuple that follows.
    pub columns: Vec<Column>,
}

/// A column of a [`Relation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Part of the replica identity. Under `REPLICA IDENTITY FULL` every column is.
    pub is_key: bool,
    /// Its name, unquoted.
    pub name: String,
    /// Object identifier of its type on the source.
    pub type_oid: u32,
    /// Type modifier (`pg_attribute.atttypmod`): declared length or precision; -1 for none.
    pub type_modifier: i32,
}

/// `pg_class.relreplident` of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplicaIdentity {
    /// `d`: the primary key, if there is one.
    Default,
    /// `n`: nothing; rows can only be inserted.
    Nothing,
    /// `f`: all columns.
    Full,
    /// `i`: a unique index that was chosen by name.
    Index,
}

impl Relation {
    /// The schema's name, `pg_catalog` spelled out.
    #[must_use]
    pub fn schema(&self) -> &str {
        if self.namespace.is_empty() { "pg_catalog" } else { &self.namespace }
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let id = cursor.u32()?;
        let namespace = cursor.name()?.to_owned();
        let name = cursor.name()?.to_owned();
        let replica_identity = match cursor.u8()? {
            b'd' => ReplicaIdentity::Default,
            b'n' => ReplicaIdentity::Nothing,
            b'f' => ReplicaIdentity::Full,
            b'i' => ReplicaIdentity::Index,
            other => return Err(cursor.error_before(1, WireErrorKind::UnknownTag(other))),
        };
        let columns = cursor.count_i16()?;
        let columns = (0..columns).map(|_| Column::read(cursor)).collect::<Result<_>>()?;
        Ok(Self { id, namespace, name, replica_identity, columns })
    }
}

impl Column {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            is_key: flags(cursor, 0b1)? != 0,
            name: cursor.name()?.to_owned(),
            type_oid: cursor.u32()?,
            type_modifier: cursor.i32()?,
        })
    }
}
