//! What the target knows of each table of a job: its shape when it was copied, and how far the copy is.

use crate::config::TableName;
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;

/// How far a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// Not all chunks are in.
    Copying,
    /// The snapshot's rows are all in.
    Copied,
}

/// One table's record.
#[derive(Clone, Debug)]
pub struct TableRecord {
    /// The relation's oid on the source.
    pub relation_id: u32,
    /// Its name.
    pub name: TableName,
    /// The columns that were copied, as `source::schema` writes them: compared with what the source has now.
    pub shape: String,
    /// The table's part of the fingerprint.
    pub fingerprint: String,
    /// How far the copy is.
    pub state: TableState,
    /// The planner's estimate at start.
    pub rows_expected: u64,
    /// Rows copied so far.
    pub rows_copied: u64,
    /// Bytes copied so far.
    pub bytes_copied: u64,
}

/// Records the job's tables, all as not copied.
pub async fn record_tables(target: &mut Session, job_id: &str, tables: &[TableRecord]) -> Result<()> {
    for table in tables {
        let (relation_id, rows) = (table.relation_id.to_string(), table.rows_expected.to_string());
        target
            .execute(
                "insert into pgveil.job_table (job_id, relation_id, schema_name, table_name, shape, fingerprint, state, rows_expected) \
                 values ($1, $2::oid, $3, $4, $5, $6, 'copying', $7::int8) \
                 on conflict (job_id, relation_id) do update set shape = excluded.shape, fingerprint = excluded.fingerprint",
                &[
                    Some(job_id),
                    Some(&relation_id),
                    Some(&table.name.schema),
                    Some(&table.name.name),
                    Some(&table.shape),
                    Some(&table.fingerprint),
                    Some(&rows),
                ],
            )
            .await?;
    }
    Ok(())
}

/// Reads all tables of the job, by name.
pub async fn read_tables(target: &mut Session, job_id: &str) -> Result<Vec<TableRecord>> {
    let rows = target
        .query(
            "select relation_id, schema_name, table_name, shape, fingerprint, state, rows_expected, rows_copied, bytes_copied \
             from pgveil.job_table where job_id = $1 order by schema_name, table_name",
            &[Some(job_id)],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(TableRecord {
                relation_id: row.parse("relation_id")?,
                name: TableName {
                    schema: row.text("schema_name")?.to_owned(),
                    name: row.text("table_name")?.to_owned(),
                },
                shape: row.text("shape")?.to_owned(),
                fingerprint: row.text("fingerprint")?.to_owned(),
                state: if row.text("state")? == "copied" { TableState::Copied } else { TableState::Copying },
                rows_expected: row.parse("rows_expected")?,
                rows_copied: row.parse("rows_copied")?,
                bytes_copied: row.parse("bytes_copied")?,
            })
        })
        .collect()
}

/// Records a finished chunk, inside the transaction that wrote its rows. A chunk recorded before is an error: its rows
/// would be there twice.
pub async fn record_chunk(
    target: &mut Session,
    job_id: &str,
    relation_id: u32,
    blocks: (u64, u64),
    rows: u64,
    bytes: u64,
) -> Result<()> {
    let (relation_id, first, end) = (relation_id.to_string(), blocks.0.to_string(), blocks.1.to_string());
    let (rows, bytes) = (rows.to_string(), bytes.to_string());
    target
        .execute(
            "insert into pgveil.chunk (job_id, relation_id, first_block, end_block, rows_copied) values ($1, $2::oid, $3::int8, $4::int8, $5::int8)",
            &[Some(job_id), Some(&relation_id), Some(&first), Some(&end), Some(&rows)],
        )
        .await?;
    let touched = target
        .execute(
            "update pgveil.job_table set rows_copied = rows_copied + $3::int8, bytes_copied = bytes_copied + $4::int8 where job_id = $1 and relation_id = $2::oid",
            &[Some(job_id), Some(&relation_id), Some(&rows), Some(&bytes)],
        )
        .await?;
    if touched == 1 {
        Ok(())
    } else {
        Err(Error::new(Kind::NotReady, format!("job {job_id}: a table's record is missing")))
    }
}

/// All chunks of the table are in.
pub async fn finish_table(target: &mut Session, job_id: &str, relation_id: u32) -> Result<()> {
    let relation_id = relation_id.to_string();
    target
        .execute(
            "update pgveil.job_table set state = 'copied' where job_id = $1 and relation_id = $2::oid",
            &[Some(job_id), Some(&relation_id)],
        )
        .await
        .map(|_| ())
}

/// Takes over a table's new shape, and the fingerprint of the rules that its rows are masked by from now on.
pub async fn set_shape(
    target: &mut Session,
    job_id: &str,
    relation_id: u32,
    shape: &str,
    fingerprint: &str,
) -> Result<()> {
    let relation_id = relation_id.to_string();
    target
        .execute(
            "update pgveil.job_table set shape = $3, fingerprint = $4 where job_id = $1 and relation_id = $2::oid",
            &[Some(job_id), Some(&relation_id), Some(shape), Some(fingerprint)],
        )
        .await
        .map(|_| ())
}

/// Forgets the tables' records, for a copy that starts over.
pub async fn delete_tables(target: &mut Session, job_id: &str) -> Result<()> {
    target.execute("delete from pgveil.job_table where job_id = $1", &[Some(job_id)]).await.map(|_| ())
}
