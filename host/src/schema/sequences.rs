//! The values of sequences, which logical replication does not carry.

use super::{LeftOut, Step};
use crate::config::{TableName, quote_literal};
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;

/// Reads where the source's sequences stand, as `setval` for the target, and tells those that may not be read.
pub(super) async fn read(source: &mut Session, sequences: &[TableName]) -> Result<(Vec<Step>, Vec<LeftOut>)> {
    let mut readable = Vec::new();
    let mut unread = Vec::new();
    for name in sequences {
        let rows = source
            .query("SELECT pg_catalog.has_sequence_privilege($1, 'SELECT') AS may", &[Some(&name.quoted())])
            .await?;
        if rows.first().map(|row| row.text("may")).transpose()? == Some("t") {
            readable.push(name);
        } else {
            unread.push(LeftOut { what: format!("value of sequence {name}"), why: "the source role may not read it" });
        }
    }
    if readable.is_empty() {
        return Ok((Vec::new(), unread));
    }
    let branches: Vec<_> = readable
        .iter()
        .enumerate()
        .map(|(position, name)| format!("SELECT {position} AS position, last_value, is_called FROM {}", name.quoted()))
        .collect();
    let rows = source.batch(&branches.join("\nUNION ALL ")).await?;
    let mut steps = Vec::new();
    for row in &rows {
        let name = readable
            .get(row.parse::<usize>("position")?)
            .ok_or_else(|| Error::new(Kind::Protocol, "source: values of sequences: one too many"))?;
        let (value, called) = (row.parse::<i64>("last_value")?, row.text("is_called")? == "t");
        steps.push(Step {
            what: format!("value of sequence {name}"),
            statement: format!("SELECT pg_catalog.setval({}, {value}, {called})", quote_literal(&name.quoted())),
        });
    }
    Ok((steps, unread))
}
