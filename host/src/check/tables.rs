//! Each published table: that it is of a kind that can be replicated, and that rows can be told apart.

use super::{Finding, Plan, list};
use crate::config::SchemaMode;
use crate::relation::ReplicaIdentity;
use crate::source::schema::{Publication, RelationKind, SourceCatalog, SourceTable};

pub(super) fn findings(catalog: &SourceCatalog, plan: &Plan<'_>) -> Vec<Finding> {
    catalog.tables.iter().flat_map(|table| judge(table, catalog, plan)).collect()
}

fn judge(table: &SourceTable, catalog: &SourceCatalog, plan: &Plan<'_>) -> Vec<Finding> {
    let subject = format!("table {}", table.table.name);
    let quoted = table.table.name.quoted();
    let mut found = Vec::new();
    if let Some(finding) = kind(table, &subject) {
        // Nothing else about such a table matters.
        return vec![finding];
    }
    if table.column_list {
        let remedy = format!("ALTER PUBLICATION … SET TABLE {quoted}; the policy decides about columns.");
        found.push(Finding::fail(
            "table-column-list",
            &subject,
            "the publication names its columns, which is not supported",
            remedy,
        ));
    }
    if table.row_filter {
        let remedy = format!("ALTER PUBLICATION … SET TABLE {quoted}; a filter of the policy can drop rows.");
        found.push(Finding::fail(
            "table-row-filter",
            &subject,
            "the publication filters its rows, which is not supported",
            remedy,
        ));
    }
    found.push(identity(table, &catalog.publication, &subject));
    if !table.readable {
        let remedy = format!("GRANT SELECT ON {quoted} TO the source role; and USAGE on its schema.");
        found.push(Finding::fail("table-readable", &subject, "the source role may not read it", remedy));
    }
    if table.row_security {
        let remedy = "Give the source role BYPASSRLS, or let it own the table.";
        found.push(Finding::fail(
            "table-row-security",
            &subject,
            "row-level security hides rows from the source role",
            remedy,
        ));
    }
    found.extend(inheritance(table, catalog, plan, &subject));
    if let Some(column) =
        table.generated.iter().find(|column| column.identity && table.table.replica_identity != ReplicaIdentity::Full)
    {
        let remedy = format!("ALTER TABLE {quoted} REPLICA IDENTITY FULL;");
        let message = format!("its replica identity has the generated column {}, which is not sent", column.name);
        found.push(Finding::fail("table-generated-identity", &subject, message, remedy));
    }
    if plan.schema_mode == SchemaMode::PgDump {
        found.extend(left_out(table, &subject));
    }
    found
}

fn kind(table: &SourceTable, subject: &str) -> Option<Finding> {
    let fail = |id, message: &str, remedy: &str| Some(Finding::fail(id, subject, message, remedy));
    match table.kind {
        RelationKind::Partitioned => {
            fail("table-partitioned", "it is partitioned, which is not supported", "Take it out of the publication.")
        }
        RelationKind::Foreign => {
            fail("table-foreign", "it is a foreign table, which is not supported", "Take it out of the publication.")
        }
        RelationKind::Other => fail("table-kind", "it is of an unknown kind", "Take it out of the publication."),
        RelationKind::Ordinary if table.is_partition => {
            let of = list(&table.parents.iter().map(ToString::to_string).collect::<Vec<_>>());
            fail(
                "table-partition",
                &format!("it is a partition of {of}, which is not supported"),
                "Take the partitioned table out of the publication.",
            )
        }
        RelationKind::Ordinary => None,
    }
}

/// Updates and deletes need an identity; without one PostgreSQL refuses them at the source as soon as they are published.
fn identity(table: &SourceTable, publication: &Publication, subject: &str) -> Finding {
    const ID: &str = "table-identity";
    let index = table.identity_index.as_ref();
    if table.has_identity() {
        let by = match (table.table.replica_identity, index) {
            (ReplicaIdentity::Full, _) => "the whole row".to_owned(),
            (_, Some(index)) => format!("index {}", index.name),
            (_, None) => "its key".to_owned(),
        };
        let columns = match table.table.columns.len() {
            1 => "1 column".to_owned(),
            count => format!("{count} columns"),
        };
        let message = format!("{columns}, about {} rows, identified by {by}", table.estimated_rows);
        return Finding::pass(ID, subject, message);
    }
    let why = match (table.table.replica_identity, index) {
        (ReplicaIdentity::Nothing, _) => "its replica identity is NOTHING".to_owned(),
        (_, Some(index)) if !index.immediate => {
            format!("its key {} is deferrable, which is no replica identity", index.name)
        }
        (_, Some(index)) if !index.valid => format!("its index {} was not built to the end", index.name),
        (_, Some(index)) => format!("its index {} is no replica identity", index.name),
        (_, None) => "it has no primary key".to_owned(),
    };
    let quoted = table.table.name.quoted();
    let remedy = format!("Give it a primary key, or ALTER TABLE {quoted} REPLICA IDENTITY FULL (or USING INDEX …);");
    if publication.update || publication.delete {
        Finding::fail(ID, subject, format!("{why}, and updates or deletes are published"), remedy)
    } else {
        Finding::warn(ID, subject, format!("{why}: only inserts can be replicated"), remedy)
    }
}

/// A parent's rows and its children's are copied each from its own table; the target's tables must be tied likewise.
fn inheritance(table: &SourceTable, catalog: &SourceCatalog, plan: &Plan<'_>, subject: &str) -> Option<Finding> {
    const ID: &str = "table-inheritance";
    let outside = table.parents.iter().chain(&table.children).find(|other| catalog.table(other).is_none());
    match outside {
        Some(other) if table.parents.contains(other) && plan.schema_mode == SchemaMode::PgDump => Some(Finding::fail(
            ID,
            subject,
            format!("it inherits from {other}, which is outside the job"),
            "Publish the parent too, or make the table by hand and set schema.mode: existing.",
        )),
        Some(other) => Some(Finding::warn(
            ID,
            subject,
            format!("{other} inherits from it or the other way round and is outside the job: its rows are not copied"),
            "Publish both if the rows are wanted.",
        )),
        None => None,
    }
}

/// What the target's table will lack.
fn left_out(table: &SourceTable, subject: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for key in table.foreign_keys.iter().filter(|key| !key.inside) {
        let message = format!("foreign key {} points at {}, outside the job: it is left out", key.name, key.referenced);
        found.push(Finding::warn(
            "table-foreign-key",
            subject,
            message,
            "Add that table to the job if the key is wanted.",
        ));
    }
    if !table.triggers.is_empty() {
        let message = format!("its triggers are not copied: {}", list(&table.triggers));
        found.push(Finding::warn(
            "table-triggers",
            subject,
            message,
            "Make them on the target if they are wanted there.",
        ));
    }
    found
}
