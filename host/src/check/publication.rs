//! The publication: that it is there, what it sends, and that its tables are the job's.

use std::collections::BTreeSet;

use super::{Finding, Plan, list};
use crate::config::{TableName, quote_ident};
use crate::source::schema::{GeneratedKind, SourceCatalog};

/// There is none of the job's name.
pub(super) fn missing(plan: &Plan<'_>) -> Finding {
    const ID: &str = "publication";
    let subject = format!("publication {}", plan.publication);
    if plan.create_publication {
        return Finding::pass(ID, subject, "there is none; bootstrap makes it");
    }
    let tables: Vec<_> = plan.tables.iter().map(TableName::quoted).collect();
    let statement = format!("CREATE PUBLICATION {} FOR TABLE {};", quote_ident(plan.publication), tables.join(", "));
    Finding::fail(ID, subject, "there is none of this name in the source's database", statement)
}

pub(super) fn findings(catalog: &SourceCatalog, plan: &Plan<'_>) -> Vec<Finding> {
    let publication = &catalog.publication;
    let subject = format!("publication {}", plan.publication);
    let mut found = vec![Finding::pass("publication", subject.clone(), "it is there")];
    found.push(table_set(catalog, plan, &subject));

    if publication.all_tables || publication.whole_schemas {
        found.push(Finding::warn(
            "publication-open",
            subject.clone(),
            "it publishes tables that are yet to be made: the job stops when one of them gets a row",
            "Name the tables: CREATE PUBLICATION … FOR TABLE ….",
        ));
    }
    let operations = [
        ("insert", publication.insert),
        ("update", publication.update),
        ("delete", publication.delete),
        ("truncate", publication.truncate),
    ];
    let unsent: Vec<_> = operations.iter().filter(|(_, sent)| !sent).map(|(name, _)| *name).collect();
    found.push(if unsent.is_empty() {
        Finding::pass("publication-operations", subject.clone(), "it publishes insert, update, delete and truncate")
    } else {
        let remedy = format!(
            "ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate');",
            quote_ident(plan.publication)
        );
        let message = format!("it does not publish {}: the target will differ from the source", unsent.join(", "));
        Finding::warn("publication-operations", subject.clone(), message, remedy)
    });
    let stored = catalog
        .tables
        .iter()
        .filter(|found| found.generated.iter().any(|column| column.kind == GeneratedKind::Stored))
        .map(|found| found.table.name.to_string());
    let stored: Vec<_> = stored.collect();
    if publication.generated_columns && !stored.is_empty() {
        // What is computed from a masked column would arrive unmasked.
        let remedy =
            format!("ALTER PUBLICATION {} SET (publish_generated_columns = none);", quote_ident(plan.publication));
        let message = format!("it sends generated columns, which the target computes by itself: {}", list(&stored));
        found.push(Finding::fail("publication-generated", subject, message, remedy));
    }
    found
}

fn table_set(catalog: &SourceCatalog, plan: &Plan<'_>, subject: &str) -> Finding {
    const ID: &str = "publication-tables";
    let published: BTreeSet<&TableName> = catalog.tables.iter().map(|found| &found.table.name).collect();
    let wanted: BTreeSet<&TableName> = plan.tables.iter().collect();
    let names = |set: Vec<&&TableName>| list(&set.iter().map(ToString::to_string).collect::<Vec<_>>());
    let unpublished: Vec<_> = wanted.difference(&published).collect();
    let unasked: Vec<_> = published.difference(&wanted).collect();
    if unpublished.is_empty() && unasked.is_empty() {
        return Finding::pass(ID, subject, format!("its {} tables are the job's", published.len()));
    }
    let mut parts = Vec::new();
    if !unpublished.is_empty() {
        parts.push(format!("it lacks {}", names(unpublished)));
    }
    if !unasked.is_empty() {
        parts.push(format!("the job lacks {}", names(unasked)));
    }
    let remedy = format!(
        "Make both sets equal: ALTER PUBLICATION {} SET TABLE …, or `tables` of the job file.",
        quote_ident(plan.publication)
    );
    Finding::fail(ID, subject, parts.join("; "), remedy)
}
