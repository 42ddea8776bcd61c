//! What is done on the target: looked at first, then in one transaction.

use std::collections::BTreeSet;

use super::types::{self, Type};
use super::{Existing, Step};
use crate::apply::schema::{occupied, read_tables};
use crate::config::{TableName, quote_ident};
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;

/// What the statements' text and their run time depend on. Building an index takes as long as it takes.
const SETTINGS: &str = "SET LOCAL standard_conforming_strings = on; SET LOCAL check_function_bodies = off; \
     SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; \
     SET LOCAL client_min_messages = error";

/// Runs the steps in one transaction.
pub(super) async fn run(target: &mut Session, steps: &[Step]) -> Result<()> {
    target.batch("BEGIN").await?;
    match run_inside(target, steps).await {
        Ok(()) => target.batch("COMMIT").await.map(drop),
        Err(error) => {
            // The first error is the one to tell; if the connection is gone, the server rolls back by itself.
            let _ = target.batch("ROLLBACK").await;
            Err(error)
        }
    }
}

async fn run_inside(target: &mut Session, steps: &[Step]) -> Result<()> {
    target.batch(SETTINGS).await?;
    for step in steps {
        target.batch(&step.statement).await.map_err(|error| error.within(format!("schema: {}", step.what)))?;
    }
    Ok(())
}

/// Makes room for the tables, without `CASCADE`: what others built on them is not ours to drop.
pub(super) async fn clear(target: &mut Session, tables: &[TableName], existing: Existing) -> Result<Option<Step>> {
    let there = read_tables(target, tables).await?;
    if let Some((name, _)) = there.iter().find(|(_, table)| !table.ordinary) {
        return Err(Error::new(Kind::Preflight, format!("target: {name}: is there and not an ordinary table")));
    }
    if existing == Existing::KeepRows {
        let full = occupied(target, &there.keys().collect::<Vec<_>>()).await?;
        if let Some(first) = full.first() {
            let place = format!("target: table {first}: has rows already ({} of the job's tables have)", full.len());
            return Err(Error::new(Kind::Preflight, place));
        }
    }
    if there.is_empty() {
        return Ok(None);
    }
    let names: Vec<_> = there.keys().map(TableName::quoted).collect();
    Ok(Some(Step { what: "tables that were there".to_owned(), statement: format!("DROP TABLE {}", names.join(", ")) }))
}

/// Schemas that are not there yet. `IF NOT EXISTS` would ask for the right to create even where nothing is to be created.
pub(super) async fn schemas(target: &mut Session, wanted: &[String]) -> Result<Vec<Step>> {
    let rows = target.query("SELECT nspname FROM pg_catalog.pg_namespace", &[]).await?;
    let there = rows.iter().map(|row| row.text("nspname")).collect::<Result<BTreeSet<_>>>()?;
    Ok(wanted
        .iter()
        .filter(|name| !there.contains(name.as_str()))
        .map(|name| Step { what: format!("schema {name}"), statement: format!("CREATE SCHEMA {}", quote_ident(name)) })
        .collect())
}

/// Types that are not there yet; one that is there must take the same values.
pub(super) async fn types(target: &mut Session, wanted: Vec<Type>) -> Result<Vec<Step>> {
    let there = types::existing(target, &wanted).await?;
    let mut steps = Vec::new();
    for wanted in wanted {
        let name = wanted.qualified();
        match there.get(&name) {
            Some(found) if found.same_values(&wanted) => {}
            Some(_) => {
                return Err(Error::new(Kind::Preflight, format!("target: type {name}: differs from the source's")));
            }
            None => {
                let statement = wanted.statement()?;
                steps.extend(statement.map(|statement| Step { what: format!("type {name}"), statement }));
            }
        }
    }
    Ok(steps)
}
