//! The target's tables, made like the source's: in two steps around the data.
//!
//! - [`before_data`]: schemas, extensions, types, sequences and bare tables, in one target transaction.
//! - [`after_data`]: indexes, constraints and the sequences' values, in one more. Loading before the keys exist is faster.
//! - [`verify_existing`]: for `schema.mode: existing`, where nothing is made and everything is compared.
//!
//! Tables, indexes and constraints are written by `pg_dump` under the exported snapshot; what `pg_dump` of chosen tables leaves
//! out is made from the catalogue. Comments, rights, owners, triggers, policies and statistics stay at the source. So do the
//! defaults of masked columns and of domains: they may be values like any other.

use serde::Deserialize;

use crate::config::{TableName, quote_ident};
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;
use crate::source::schema::SourceCatalog;

mod compare;
mod defaults;
mod dump;
mod environment;
mod hidden;
mod needs;
mod scan;
mod sequences;
mod target;
mod tool;
mod types;

pub use compare::{Difference, compare, verify_existing};
pub use environment::ToolEnvironment;
pub use hidden::{HiddenColumns, filtered_tables, hidden_columns};
pub use needs::unmet;
pub use tool::DumpTool;

/// What to do with tables that stand on the target already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse tables with rows. Empty ones are made anew.
    KeepRows,
    /// Make all of them anew, rows or not: the operator asked for a new snapshot.
    Replace,
}

/// What the schema step works from.
pub struct Request<'a> {
    /// The program, found and of a version that reads the source.
    pub tool: &'a DumpTool,
    /// How it reaches the source.
    pub environment: &'a ToolEnvironment,
    /// The exported snapshot's name.
    pub snapshot: Option<&'a str>,
    /// The source's tables.
    pub catalog: &'a SourceCatalog,
    /// The columns that the policy changes.
    pub hidden: &'a HiddenColumns,
    /// What to do with tables that are there already.
    pub existing: Existing,
}

/// Something of the source that the target does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What: `trigger audit of table public.users`. Names only.
    pub what: String,
    /// Why.
    pub why: &'static str,
}

/// One statement, or a few that belong together, and what it makes.
#[derive(Clone)]
struct Step {
    what: String,
    statement: String,
}

/// What is left to do when the data is there.
pub struct Prepared {
    after: Vec<Step>,
    sequences: Vec<TableName>,
    /// What the target does not get; to be reported once.
    pub left_out: Vec<LeftOut>,
}

/// Makes the job's tables on the target, empty and without keys, with all that they need.
///
/// All of it is one target transaction; on an error nothing is left behind. `source` may be any session on the source: the
/// catalogue is read by it, the tables' definitions by `pg_dump` under the snapshot.
///
/// # Errors
/// [`Kind::SchemaTool`] when `pg_dump` fails; [`Kind::Preflight`] when a table with rows or another type of the same name is
/// on the target, or a type cannot be copied; what the target refuses, naming the object.
pub async fn before_data(source: &mut Session, target: &mut Session, request: &Request<'_>) -> Result<Prepared> {
    let tables: Vec<TableName> = request.catalog.tables.iter().map(|found| found.table.name.clone()).collect();
    let ids = request.catalog.tables.iter().map(|found| found.table.relation_id).collect::<Vec<_>>();
    let ids = serde_json::to_string(&ids).map_err(|_| Error::new(Kind::Internal, "relation ids as JSON"))?;
    let needs = needs::read(source, &ids).await?;
    let objects = needs::objects(source, &ids).await?;
    let types = types::in_order(types::read(source, needs.types()).await?);

    let sequences: Vec<TableName> = needs.sequences().iter().map(needs::Sequence::qualified).collect();
    let relations: Vec<TableName> = tables.iter().chain(&sequences).cloned().collect();
    let text = request.tool.dump(request.environment, request.snapshot, &relations).await?;
    let mut sorted = dump::sort(&text, &objects, needs.sequences(), request.hidden)?;
    sorted.left_out.extend(types.iter().filter(|found| found.has_default()).map(|found| LeftOut {
        what: format!("default of domain {}", found.qualified()),
        why: "a default may be a value like any other",
    }));

    let mut steps: Vec<Step> = target::clear(target, &tables, request.existing).await?.into_iter().collect();
    steps.extend(target::schemas(target, needs.schemas()).await?);
    steps.extend(needs.extensions().iter().map(|(name, schema)| Step {
        what: format!("extension {name}"),
        statement: format!("CREATE EXTENSION IF NOT EXISTS {} SCHEMA {}", quote_ident(name), quote_ident(schema)),
    }));
    steps.extend(target::types(target, types).await?);
    steps.extend(sorted.before);
    target::run(target, &steps).await?;
    Ok(Prepared { after: sorted.after, sequences, left_out: sorted.left_out })
}

/// Makes keys, constraints and indexes, and sets the sequences to where the source's stand now. One target transaction.
///
/// Sequences are not replicated: from here on the target's stay where they are. Returns those whose value could not be read
/// for want of the right, beside all that was left out before.
///
/// # Errors
/// What the target refuses, naming the object: a key that masked values do not fit appears here.
pub async fn after_data(source: &mut Session, target: &mut Session, prepared: Prepared) -> Result<Vec<LeftOut>> {
    let (values, unread) = sequences::read(source, &prepared.sequences).await?;
    let mut steps = prepared.after;
    steps.extend(values);
    target::run(target, &steps).await?;
    Ok(prepared.left_out.into_iter().chain(unread).collect())
}

/// Reads one JSON answer of a catalogue. Only the place of a fault is kept: serde's message may quote what it read.
fn decode<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(Kind::Protocol, format!("the catalogue's answer, character {}", error.column())))
}
