//! The programs that the job runs.

use super::{Finding, Plan};
use crate::config::SchemaMode;
use crate::schema::DumpTool;

pub(super) async fn findings(plan: &Plan<'_>, source_version: u32) -> Vec<Finding> {
    const ID: &str = "tool-pg-dump";
    if plan.schema_mode == SchemaMode::Existing {
        return Vec::new();
    }
    let remedy = "Install the client programs of at least the source's version and name pg_dump in schema.pg_dump, or set schema.mode: existing.";
    let tool = match DumpTool::find(plan.pg_dump).await {
        Ok(tool) => tool,
        Err(error) => return vec![Finding::fail(ID, "pg_dump", error.to_string(), remedy)],
    };
    let (major, program) = (source_version / 10_000, tool.program().display());
    vec![if tool.reads(source_version) {
        Finding::pass(ID, "pg_dump", format!("{program} is of version {}, the source of {major}", tool.version))
    } else {
        let message = format!("{program} is of version {} and cannot read a source of version {major}", tool.version);
        Finding::fail(ID, "pg_dump", message, remedy)
    }]
}
