//! Masked rows as COPY text, for the snapshot and for runs of inserts in the stream.

use bytes::BufMut;
use pgveil_wire::copy_text::{FIELD_SEPARATOR, NULL, ROW_END, escape_into};

use crate::config::quote_ident;
use crate::error::{Error, Kind, Result};
use crate::relation::Table;
use crate::veil::{VeiledBatch, VeiledCell};

/// The statement that takes the rows of a table: all of the job's columns, by name.
#[must_use]
pub(crate) fn copy_statement(table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(|column| quote_ident(&column.name)).collect();
    format!("copy {} ({}) from stdin", table.name.quoted(), columns.join(", "))
}

/// Appends the given rows of a batch to `output` as lines of COPY text, and says how many there were.
///
/// What arrived as COPY text and was not masked goes on as the bytes it is; everything else is escaped. Nothing is
/// allocated per cell.
///
/// # Errors
/// [`Kind::UnchangedNeeded`] for a value that the source did not send, naming its column: a new row needs all of its values.
/// [`Kind::Internal`] for a column that the image does not carry. `output` then holds a part of a line.
pub(crate) fn write_copy_rows(
    batch: &VeiledBatch,
    rows: impl IntoIterator<Item = usize>,
    output: &mut impl BufMut,
) -> Result<u64> {
    let width = batch.table().columns.len();
    let mut written = 0;
    for row in rows {
        for column in 0..width {
            if column > 0 {
                output.put_u8(FIELD_SEPARATOR);
            }
            match batch.cell(row, column) {
                VeiledCell::Null => output.put_slice(NULL),
                VeiledCell::CopyText(value) => output.put_slice(value),
                VeiledCell::Plain(value) => escape_into(value, output),
                VeiledCell::Unchanged => return Err(missing(batch.table(), column, Kind::UnchangedNeeded)),
                VeiledCell::Absent => return Err(missing(batch.table(), column, Kind::Internal)),
            }
        }
        output.put_u8(ROW_END);
        written += 1;
    }
    Ok(written)
}

fn missing(table: &Table, column: usize, kind: Kind) -> Error {
    let column = table.columns.get(column).map_or("?", |column| column.name.as_str());
    Error::new(kind, format!("table {}: column {column}: a row to insert has no value for it", table.name))
}
