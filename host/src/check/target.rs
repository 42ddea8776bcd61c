//! The target: its server, our rights there, and the job's tables as they stand.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::source::SourceFacts;
use super::{Finding, Plan, list, pooler, server_version};
use crate::apply::schema::{TargetCatalog, TargetTable, occupied, read_tables};
use crate::config::{SchemaMode, quote_ident};
use crate::error::Result;
use crate::postgres::Session;
use crate::schema::{compare, unmet};
use crate::source::schema::{SourceCatalog, SourceTable};

/// What [`read`] learns of the server, in one statement.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TargetFacts {
    system: String,
    database: String,
    encoding: String,
    standby: bool,
    role: String,
    backend: u32,
    may_create: bool,
    may_replica: bool,
    installed: bool,
    may_record: bool,
    connections: i64,
    connections_used: i64,
    schemas: Vec<String>,
    all_schemas: Vec<String>,
}

pub(super) async fn read(target: &mut Session) -> Result<TargetFacts> {
    let rows = target.query(include_str!("target.sql"), &[]).await?;
    super::decode(rows.first(), "target")
}

/// What the target's records say of the job.
pub(super) async fn owns_slot(target: &mut Session, facts: &TargetFacts, plan: &Plan<'_>) -> Result<bool> {
    if !facts.may_record {
        return Ok(false);
    }
    let rows = target
        .query(
            "SELECT FROM pgveil.job WHERE job_id = $1 AND slot = $2 AND slot_created",
            &[Some(plan.job_id), Some(plan.slot)],
        )
        .await?;
    Ok(!rows.is_empty())
}

const SUBJECT: &str = "target";

/// The server and the role.
pub(super) fn server(target: &Session, facts: &TargetFacts, source: &SourceFacts) -> Vec<Finding> {
    let mut found = vec![server_version("target-version", SUBJECT, target)];
    found.extend(pooler("target-pooler", SUBJECT, facts.backend, target));
    found.extend(judge(facts, source));
    found
}

fn judge(facts: &TargetFacts, source: &SourceFacts) -> Vec<Finding> {
    let TargetFacts { role, database, encoding, .. } = facts;
    let role_name = quote_ident(role);
    vec![
        if facts.system == source.system && *database == source.database {
            let remedy = "Point the two URLs at two databases: the job would read what it writes.";
            Finding::fail(
                "target-other-database",
                SUBJECT,
                format!("source and target are the same database {database}"),
                remedy,
            )
        } else {
            Finding::pass("target-other-database", SUBJECT, format!("database {database} is not the source's"))
        },
        if facts.standby {
            Finding::fail(
                "target-standby",
                SUBJECT,
                "it is a standby, which cannot be written to",
                "Point the target URL at the primary.",
            )
        } else {
            Finding::pass("target-standby", SUBJECT, "it is a primary")
        },
        if encoding == "UTF8" || (*encoding == source.encoding && encoding != "SQL_ASCII") {
            Finding::pass("target-encoding", SUBJECT, format!("database {database} is {encoding}"))
        } else {
            let message = format!(
                "database {database} is {encoding}, the source's {}: not every character fits",
                source.encoding
            );
            Finding::fail("target-encoding", SUBJECT, message, "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0;")
        },
        if facts.may_record || (facts.may_create && !facts.installed) {
            Finding::pass("target-create", SUBJECT, format!("role {role} may keep its records in schema pgveil"))
        } else if facts.installed {
            let message = format!("schema pgveil belongs to another role than {role}");
            Finding::fail("target-create", SUBJECT, message, "Use the role that made it, or grant it to this one.")
        } else {
            let remedy = format!("GRANT CREATE ON DATABASE {} TO {role_name};", quote_ident(database));
            Finding::fail("target-create", SUBJECT, format!("role {role} may not create schema pgveil"), remedy)
        },
        if facts.may_replica {
            Finding::pass("target-replica-role", SUBJECT, format!("role {role} may set session_replication_role"))
        } else {
            let remedy = format!("GRANT SET ON PARAMETER session_replication_role TO {role_name};");
            let message =
                format!("role {role} may not set session_replication_role: triggers and foreign keys would act twice");
            Finding::fail("target-replica-role", SUBJECT, message, remedy)
        },
        connections(facts),
    ]
}

fn connections(facts: &TargetFacts) -> Finding {
    // One for the lock, one to apply, one for the flushed position, one for status.
    const NEEDED: i64 = 4;
    let free = facts.connections - facts.connections_used;
    let message = format!(
        "{free} of {} connections are free, {NEEDED} and one for each copy worker are needed",
        facts.connections
    );
    if free >= NEEDED {
        Finding::pass("target-connections", SUBJECT, message)
    } else {
        Finding::warn("target-connections", SUBJECT, message, "Raise max_connections or close sessions.")
    }
}

/// The tables. `running`: the job was copied before, so its tables have rows.
pub(super) async fn tables(
    source: &mut Session,
    target: &mut Session,
    facts: &TargetFacts,
    catalog: &SourceCatalog,
    plan: &Plan<'_>,
    running: bool,
) -> Result<Vec<Finding>> {
    let there = read_tables(target, plan.tables).await?;
    let made = plan.schema_mode == SchemaMode::PgDump && !running;
    let (mut found, mut full) = (Vec::new(), Vec::new());
    if !running {
        // A table that may not be read is told by its rights.
        let may_read =
            |table: &TargetTable| table.ordinary && !table.missing_rights.iter().any(|right| right == "SELECT");
        let readable = there.iter().filter(|(_, table)| may_read(table));
        full = occupied(target, &readable.map(|(name, _)| name).collect::<Vec<_>>()).await?;
        for name in &full {
            let remedy = "Empty it, or `pgveil bootstrap --restart-snapshot` replaces it.";
            found.push(Finding::fail(
                "target-table-rows",
                format!("table {name}"),
                "it has rows on the target already",
                remedy,
            ));
        }
    }
    if made {
        found.extend(schemas(facts, catalog));
        found.extend(there.iter().filter(|(name, _)| !full.contains(name)).map(|(name, table)| {
            if !table.ordinary {
                let message = "there is something on the target of this name that is not an ordinary table";
                return Finding::fail("target-table", format!("table {name}"), message, "Drop or rename it.");
            }
            let message = "it is on the target, without rows: bootstrap drops it and makes it anew";
            Finding::warn(
                "target-table-empty",
                format!("table {name}"),
                message,
                "Set schema.mode: existing to keep it.",
            )
        }));
        for (kind, name) in unmet(source, target, catalog).await? {
            let message = format!("the tables need {kind} {name}, which is not copied and is not on the target");
            found.push(Finding::fail("target-needs", SUBJECT, message, "Make it on the target before the bootstrap."));
        }
    } else {
        found.extend(existing(&there, catalog, plan));
    }
    Ok(found)
}

/// For tables that bootstrap makes: may it, in their schemas?
fn schemas(facts: &TargetFacts, catalog: &SourceCatalog) -> Vec<Finding> {
    const ID: &str = "target-schema-create";
    let wanted: BTreeSet<&str> = catalog.tables.iter().map(|found| found.table.name.schema.as_str()).collect();
    let closed = |schema: &&str| {
        let there = facts.all_schemas.iter().any(|other| other == schema);
        if there { !facts.schemas.iter().any(|other| other == schema) } else { !facts.may_create }
    };
    let role = quote_ident(&facts.role);
    let closed: Vec<_> = wanted.into_iter().filter(closed).collect();
    if closed.is_empty() {
        return vec![Finding::pass(ID, SUBJECT, format!("role {} may make the tables", facts.role))];
    }
    let finding = |schema: &str| {
        let remedy = format!(
            "GRANT CREATE, USAGE ON SCHEMA {} TO {role}; or CREATE on the database if there is none.",
            quote_ident(schema)
        );
        Finding::fail(ID, SUBJECT, format!("role {} may not make tables in schema {schema}", facts.role), remedy)
    };
    closed.into_iter().map(finding).collect()
}

/// For tables that are there: do the source's rows go in?
fn existing(there: &TargetCatalog, catalog: &SourceCatalog, plan: &Plan<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in &catalog.tables {
        let name = &source.table.name;
        let subject = format!("table {name}");
        let Some(target) = there.get(name) else {
            let remedy = "Make it, or set schema.mode: pg_dump.";
            found.push(Finding::fail("target-table", subject, "it is not on the target", remedy));
            continue;
        };
        if target.ordinary {
            found.extend(rights(target, &subject));
        }
        for difference in compare(source, target, plan.filtered.contains(name)) {
            let column = difference.column.map(|column| format!("column {column}: ")).unwrap_or_default();
            let message = format!("{column}{}", difference.what);
            found.push(if difference.refuses {
                Finding::fail("target-column", &subject, message, "Alter the target's table.")
            } else {
                Finding::warn("target-column", &subject, message, "Alter the target's table if this is not as meant.")
            });
        }
        if target.ordinary && reordered(source, target) {
            let message = "its columns are in another order than the source's";
            found.push(Finding::warn(
                "target-column-order",
                &subject,
                message,
                "Nothing: columns are matched by name.",
            ));
        }
        if found.last().is_none_or(|last| last.subject != subject) {
            found.push(Finding::pass("target-table", subject, "it takes the source's rows"));
        }
    }
    found
}

/// Whether the columns that both have stand in another order. `COPY` and every statement name theirs, so it is no fault.
fn reordered(source: &SourceTable, target: &TargetTable) -> bool {
    let common =
        source.table.columns.iter().map(|column| column.name.as_str()).filter(|name| target.column(name).is_some());
    let other =
        target.columns.iter().map(|column| column.name.as_str()).filter(|name| source.table.column(name).is_some());
    !common.eq(other)
}

fn rights(target: &TargetTable, subject: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if !target.missing_rights.is_empty() {
        let rights = target.missing_rights.join(", ");
        let message = format!("the target role lacks {rights}");
        found.push(Finding::fail(
            "target-table-rights",
            subject,
            message,
            format!("GRANT {rights} ON the table to it."),
        ));
    }
    if target.row_security {
        let remedy = "Give the target role BYPASSRLS, or let it own the table.";
        found.push(Finding::fail(
            "target-row-security",
            subject,
            "row-level security applies to the target role: COPY is refused",
            remedy,
        ));
    }
    if target.unlogged {
        let remedy = "ALTER TABLE … SET LOGGED;";
        let message = "it is unlogged: a crash of the target empties it while the checkpoint stays";
        found.push(Finding::fail("target-unlogged", subject, message, remedy));
    }
    if !target.firing_triggers.is_empty() {
        let message = format!("these triggers fire for replicated rows too: {}", list(&target.firing_triggers));
        found.push(Finding::warn(
            "target-triggers",
            subject,
            message,
            "ALTER TABLE … ENABLE TRIGGER …, without ALWAYS or REPLICA.",
        ));
    }
    if target.rules {
        let message = "it has rewrite rules, which change what a statement does";
        found.push(Finding::warn("target-rules", subject, message, "Drop them."));
    }
    found
}
