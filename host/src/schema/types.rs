//! Types: what the source's catalogue says of them, as statements for the target, each after those that it needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::decode;
use crate::config::{TableName, quote_ident, quote_literal};
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;

/// One type. Equal when the two definitions accept the same values; ids differ from server to server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Type {
    id: u32,
    schema: String,
    name: String,
    kind: String,
    needs: Vec<u32>,
    labels: Vec<String>,
    domain: Option<Domain>,
    attributes: Vec<(String, String, Option<String>)>,
    range: Option<Range>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Domain {
    base: String,
    collation: Option<String>,
    not_null: bool,
    has_default: bool,
    checks: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Range {
    subtype: String,
    operator_class: Option<String>,
    collation: Option<String>,
    canonical: bool,
    difference: Option<String>,
    multirange: Option<(String, String)>,
}

/// Reads the definitions of types by their ids.
pub(super) async fn read(session: &mut Session, ids: &[u32]) -> Result<Vec<Type>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::to_string(ids).map_err(|_| Error::new(Kind::Internal, "type ids as JSON"))?;
    let rows = session.query(include_str!("types.sql"), &[Some(&ids)]).await?;
    rows.iter().map(|row| decode(row.text("type")?)).collect()
}

/// The types of these names that the target has already.
pub(super) async fn existing(target: &mut Session, types: &[Type]) -> Result<BTreeMap<TableName, Type>> {
    let names: Vec<_> = types.iter().map(|wanted| [&wanted.schema, &wanted.name]).collect();
    let names = serde_json::to_string(&names).map_err(|_| Error::new(Kind::Internal, "type names as JSON"))?;
    let rows = target
        .query(
            "SELECT type.oid::bigint AS id FROM pg_catalog.json_array_elements($1::pg_catalog.json) pair \
             JOIN pg_catalog.pg_namespace namespace ON namespace.nspname::text = pair ->> 0 \
             JOIN pg_catalog.pg_type type ON type.typnamespace = namespace.oid AND type.typname::text = pair ->> 1",
            &[Some(&names)],
        )
        .await?;
    let ids = rows.iter().map(|row| row.parse("id")).collect::<Result<Vec<u32>>>()?;
    Ok(read(target, &ids).await?.into_iter().map(|found| (found.qualified(), found)).collect())
}

/// Puts every type after those it is made of.
pub(super) fn in_order(types: Vec<Type>) -> Vec<Type> {
    fn visit(id: u32, waiting: &mut BTreeMap<u32, Type>, done: &mut Vec<Type>) {
        // Taken out before its needs are visited: a circle, which PostgreSQL does not allow, would end here too.
        if let Some(found) = waiting.remove(&id) {
            for need in &found.needs {
                visit(*need, waiting, done);
            }
            done.push(found);
        }
    }
    let ids: BTreeSet<u32> = types.iter().map(|found| found.id).collect();
    let mut waiting: BTreeMap<u32, Type> = types.into_iter().map(|found| (found.id, found)).collect();
    let mut done = Vec::with_capacity(waiting.len());
    for id in ids {
        visit(id, &mut waiting, &mut done);
    }
    done
}

impl Type {
    /// Schema and name.
    pub(super) fn qualified(&self) -> TableName {
        TableName::new(self.schema.as_str(), self.name.as_str())
    }

    /// Whether it has a default, which is not copied.
    pub(super) fn has_default(&self) -> bool {
        self.domain.as_ref().is_some_and(|domain| domain.has_default)
    }

    /// Whether both take the same values. Defaults do not count, nor do the ids.
    pub(super) fn same_values(&self, other: &Type) -> bool {
        let without_default =
            |domain: &Option<Domain>| domain.clone().map(|domain| Domain { has_default: false, ..domain });
        self.kind == other.kind
            && self.labels == other.labels
            && self.attributes == other.attributes
            && self.range == other.range
            && without_default(&self.domain) == without_default(&other.domain)
    }

    /// The statement that makes it; `None` for a type that comes with another (an array, a multirange).
    ///
    /// # Errors
    /// [`Kind::Preflight`] for kinds that cannot be made from the catalogue alone: base types of C code, pseudo-types, row
    /// types of tables outside the job, ranges with a canonical function.
    pub(super) fn statement(&self) -> Result<Option<String>> {
        let name = self.qualified().quoted();
        match (self.kind.as_str(), &self.domain, &self.range) {
            ("array" | "m", _, _) => Ok(None),
            ("e", _, _) => {
                let labels: Vec<_> = self.labels.iter().map(|label| quote_literal(label)).collect();
                Ok(Some(format!("CREATE TYPE {name} AS ENUM ({})", labels.join(", "))))
            }
            ("d", Some(domain), _) => Ok(Some(domain.statement(&name))),
            ("c", _, _) => {
                let attributes: Vec<_> = self
                    .attributes
                    .iter()
                    .map(|(name, kind, collation)| {
                        format!("{} {kind}{}", quote_ident(name), collate(collation.as_deref()))
                    })
                    .collect();
                Ok(Some(format!("CREATE TYPE {name} AS ({})", attributes.join(", "))))
            }
            ("r", _, Some(range)) if !range.canonical => Ok(Some(range.statement(&name))),
            _ => Err(Error::new(
                Kind::Preflight,
                format!(
                    "source: type {}: cannot be copied; create it on the target and set schema.mode: existing",
                    self.qualified()
                ),
            )),
        }
    }
}

impl Domain {
    fn statement(&self, name: &str) -> String {
        let mut statement = format!("CREATE DOMAIN {name} AS {}{}", self.base, collate(self.collation.as_deref()));
        if self.not_null {
            statement.push_str(" NOT NULL");
        }
        for (rule, definition) in &self.checks {
            statement.push_str(&format!(" CONSTRAINT {} {definition}", quote_ident(rule)));
        }
        statement
    }
}

impl Range {
    fn statement(&self, name: &str) -> String {
        let mut parts = vec![format!("SUBTYPE = {}", self.subtype)];
        let multirange =
            self.multirange.as_ref().map(|(schema, name)| TableName::new(schema.as_str(), name.as_str()).quoted());
        for (keyword, value) in [
            ("SUBTYPE_OPCLASS", self.operator_class.as_ref()),
            ("COLLATION", self.collation.as_ref()),
            ("SUBTYPE_DIFF", self.difference.as_ref()),
            ("MULTIRANGE_TYPE_NAME", multirange.as_ref()),
        ] {
            parts.extend(value.map(|value| format!("{keyword} = {value}")));
        }
        format!("CREATE TYPE {name} AS RANGE ({})", parts.join(", "))
    }
}

fn collate(collation: Option<&str>) -> String {
    collation.map(|collation| format!(" COLLATE {collation}")).unwrap_or_default()
}
