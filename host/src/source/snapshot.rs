//! The snapshot's rows: copy sessions that share the slot's exported snapshot, and the chunks of tables they read.
//!
//! All sessions are opened at the start, while the slot's session keeps the snapshot alive. One that is lost cannot come
//! back to the same snapshot, so its loss ends the copy: rows of two snapshots are never mixed.
//!
//! A snapshot freezes rows, not the catalogue. So every session locks every table in ACCESS SHARE mode as `pg_dump` does,
//! all before the first row is read; what the catalogue says after that holds until the copy ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use pgveil_wire::copy_text::{Field, ROW_END, split_row};

use crate::config::{quote_ident, quote_literal};
use crate::error::{Error, Kind, Result};
use crate::postgres::{CopyOut, Endpoint, Session};
use crate::relation::Table;
use crate::row::{Cell, Encoding, Image, RawBatch};

/// How long a copy session waits for its locks: a pending ALTER TABLE must not hold back all readers of the table behind it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A stretch of a table, in blocks, that one session reads and the target commits as one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The table, by its place in the job's list.
    pub table: usize,
    /// The first block.
    pub first: u32,
    /// The block behind the last; `None` in a table's last chunk, which has no end, so that no block can be missed.
    pub end: Option<u32>,
}

impl Chunk {
    /// First and end block, as the chunk's record holds them. An open end is the largest block number there can be.
    #[must_use]
    pub fn blocks(&self) -> (u64, u64) {
        (u64::from(self.first), u64::from(self.end.unwrap_or(u32::MAX)))
    }
}

/// How large a table is, by the source's own estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Blocks of the main fork.
    pub blocks: u32,
    /// The planner's estimate of rows; 0 for a table that was never analysed.
    pub rows: u64,
}

/// What a batch of snapshot rows may hold.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Rows.
    pub rows: usize,
    /// Bytes of COPY text; one row may exceed them.
    pub bytes: usize,
    /// Bytes of one row (`limits.max_row`).
    pub row_bytes: usize,
}

/// A session in a read-only transaction on the exported snapshot. It ends with its transaction when it is dropped.
pub struct CopySession {
    session: Session,
}

impl CopySession {
    /// Opens one on the snapshot, and locks the tables against changes of their shape.
    ///
    /// # Errors
    /// [`Kind::Contention`] when a table is locked for longer than ten seconds; those of the connection.
    pub async fn open(source: &Endpoint, snapshot: &str, tables: &[Arc<Table>]) -> Result<CopySession> {
        let mut session = Session::connect(source, "copy").await?;
        // Without row_security = off, a policy of the source's would silently leave rows out.
        session.batch("set row_security = off").await?;
        if session.server_version() >= 170_000 {
            session.batch("set transaction_timeout = 0").await?;
        }
        session.batch("begin isolation level repeatable read read only").await?;
        session.batch(&format!("set transaction snapshot {}", quote_literal(snapshot))).await?;
        session.batch(&format!("set local lock_timeout = {}", LOCK_TIMEOUT.as_millis())).await?;
        for table in tables {
            session
                .batch(&format!("lock table only {} in access share mode", table.name.quoted()))
                .await
                .map_err(|error| error.within(format_args!("table {}: lock", table.name)))?;
        }
        session.batch("set local lock_timeout = 0").await?;
        Ok(CopySession { session })
    }

    /// The session, for questions to the catalogue as the snapshot sees it.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// How large a table is, after making sure that no rewrite came between the snapshot and the lock: TRUNCATE, CLUSTER and
    /// a rewriting ALTER TABLE make a table look empty to older snapshots.
    ///
    /// # Errors
    /// [`Kind::RelationChanged`] for such a table.
    pub async fn extent(&mut self, table: &Table) -> Result<Extent> {
        let relation = table.relation_id.to_string();
        // `relfilenode` is what the snapshot sees; the functions look at the catalogue of now.
        let rows = self
            .session
            .query(
                "select c.relfilenode = pg_catalog.pg_relation_filenode(c.oid) as same, \
                 (pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int8)::int8 as blocks, \
                 greatest(c.reltuples, 0)::int8 as rows from pg_catalog.pg_class c where c.oid = $1::oid",
                &[Some(&relation)],
            )
            .await?;
        match rows.first() {
            Some(row) if row.text("same")? == "t" => {
                Ok(Extent { blocks: row.parse("blocks")?, rows: row.parse("rows")? })
            }
            _ => Err(Error::new(
                Kind::RelationChanged,
                format!("table {}: it was rewritten or dropped while the copy began", table.name),
            )),
        }
    }

    /// Begins to read a chunk.
    ///
    /// # Errors
    /// Those of the connection and of the statement.
    pub async fn read(&mut self, table: &Arc<Table>, chunk: &Chunk, limits: BatchLimits) -> Result<ChunkReader<'_>> {
        let copy = self.session.copy_out(&chunk_statement(table, chunk)).await?;
        Ok(ChunkReader { copy, table: Arc::clone(table), limits, fields: Vec::new(), ended: false })
    }

    /// Ends the transaction, so that nothing holds back vacuum on the source.
    ///
    /// # Errors
    /// Those of the connection; the transaction ends with it too.
    pub async fn close(mut self) -> Result<()> {
        self.session.batch("commit").await.map(|_| ())
    }
}

/// The statement that reads a chunk: the job's columns by name, the table alone without its children.
fn chunk_statement(table: &Table, chunk: &Chunk) -> String {
    let columns: Vec<String> = table.columns.iter().map(|column| quote_ident(&column.name)).collect();
    let end = chunk.end.map(|end| format!(" and ctid < '({end},0)'")).unwrap_or_default();
    let (columns, name, first) = (columns.join(", "), table.name.quoted(), chunk.first);
    format!("copy (select {columns} from only {name} where ctid >= '({first},0)'{end}) to stdout")
}

/// Cuts a table into chunks of so many blocks, the last one open-ended. An empty table is one chunk.
pub fn chunks(table: usize, extent: Extent, chunk_blocks: u32) -> impl Iterator<Item = Chunk> {
    let chunk_blocks = chunk_blocks.max(1);
    let count = extent.blocks.div_ceil(chunk_blocks).max(1);
    (0..count).map(move |number| {
        let first = number * chunk_blocks;
        Chunk { table, first, end: (number + 1 < count).then(|| first + chunk_blocks) }
    })
}

/// Rows of one chunk on their way from the server.
pub struct ChunkReader<'a> {
    copy: CopyOut<'a>,
    table: Arc<Table>,
    limits: BatchLimits,
    /// Kept between rows for its capacity.
    fields: Vec<Field>,
    ended: bool,
}

impl ChunkReader<'_> {
    /// The next batch; `None` when the chunk is whole.
    ///
    /// # Errors
    /// [`Kind::SourceData`] for a row above `limits.max_row`, [`Kind::Protocol`] for text that is not rows of this table,
    /// and those of the connection.
    pub async fn next(&mut self) -> Result<Option<RawBatch>> {
        let mut bytes = BytesMut::new();
        let mut cells = Vec::new();
        let mut rows = 0;
        while !self.ended && rows < self.limits.rows && bytes.len() < self.limits.bytes {
            match self.copy.next().await? {
                None => self.ended = true,
                Some(row) => {
                    self.push_row(&row, &mut bytes, &mut cells)
                        .map_err(|error| error.within(format_args!("source: table {}", self.table.name)))?;
                    rows += 1;
                }
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        RawBatch::new(Arc::clone(&self.table), Image::Row, Encoding::CopyText, bytes.freeze(), cells)
            .map(Some)
            .ok_or_else(|| Error::new(Kind::Internal, format!("table {}: cells outside their batch", self.table.name)))
    }

    fn push_row(&mut self, row: &[u8], bytes: &mut BytesMut, cells: &mut Vec<Cell>) -> Result<()> {
        let row = row.strip_suffix(&[ROW_END]).unwrap_or(row);
        if row.len() > self.limits.row_bytes {
            let (found, limit) = (row.len(), self.limits.row_bytes);
            return Err(Error::new(Kind::SourceData, format!("a row has {found} bytes, limits.max_row is {limit}")));
        }
        split_row(row, self.table.columns.len(), &mut self.fields)?;
        let base = bytes.len();
        bytes.extend_from_slice(row);
        for field in &self.fields {
            let cell = if field.is_null { Some(Cell::NULL) } else { place(base, *field) };
            cells.push(cell.ok_or_else(|| Error::new(Kind::SourceData, "a value of 1 GiB or more"))?);
        }
        Ok(())
    }
}

/// Where a field of a row lies in the batch that the row was appended to at `base`.
fn place(base: usize, field: Field) -> Option<Cell> {
    let start = u32::try_from(base).ok()?.checked_add(field.start)?;
    Cell::value(start, field.end.checked_sub(field.start)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(blocks: u32, chunk_blocks: u32) -> Vec<(u32, Option<u32>)> {
        chunks(0, Extent { blocks, rows: 0 }, chunk_blocks).map(|chunk| (chunk.first, chunk.end)).collect()
    }

    #[test]
    fn chunks_cover_every_block_once_and_the_last_is_open() {
        assert_eq!(cut(0, 10), [(0, None)], "an empty table is looked at too");
        assert_eq!(cut(1, 10), [(0, None)]);
        assert_eq!(cut(10, 10), [(0, None)]);
        assert_eq!(cut(11, 10), [(0, Some(10)), (10, None)]);
        assert_eq!(cut(25, 10), [(0, Some(10)), (10, Some(20)), (20, None)]);
        assert_eq!(cut(2, 0), [(0, Some(1)), (1, None)], "a chunk of no blocks would never end");
    }

    #[test]
    fn the_largest_table_there_can_be_does_not_overflow() {
        let last = chunks(0, Extent { blocks: u32::MAX - 1, rows: 0 }, 4096).last();
        assert_eq!(last.map(|chunk| (chunk.first, chunk.end)), Some((u32::MAX / 4096 * 4096, None)));
    }
}
