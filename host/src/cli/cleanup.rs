//! `cleanup --yes`: what was taken back.

use std::process::ExitCode;

use crate::error::Result;
use crate::pipeline::cleanup::{Cleaned, cleanup};
use crate::pipeline::prepare::Prepared;

use super::output::Output;

pub(super) async fn run(prepared: &Prepared, output: &Output) -> Result<ExitCode> {
    let cleaned = cleanup(prepared).await?;
    output.result(&cleaned, || text(prepared, &cleaned));
    Ok(ExitCode::SUCCESS)
}

fn text(prepared: &Prepared, cleaned: &Cleaned) -> String {
    if !cleaned.records_deleted {
        return format!("job {}: there is nothing to clean up", prepared.job_id());
    }
    let slot = if cleaned.slot_dropped { "dropped" } else { "was gone already" };
    let schema = if cleaned.schema_dropped { "\nschema pgveil on the target: dropped, no job is left" } else { "" };
    format!(
        "slot {}: {slot}\njob {}: records deleted{schema}\nThe copied tables stay on the target.",
        prepared.slot(),
        prepared.job_id()
    )
}
