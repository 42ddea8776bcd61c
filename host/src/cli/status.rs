//! `status`: the job on one screen.

use std::fmt::Write as _;
use std::process::ExitCode;

use indicatif::{HumanBytes, HumanCount};

use crate::error::Result;
use crate::pipeline::prepare::Prepared;
use crate::pipeline::status::{Status, status};

use super::output::Output;

pub(super) async fn run(prepared: &Prepared, output: &Output) -> Result<ExitCode> {
    let status = status(prepared).await?;
    output.result(&status, || text(&status));
    Ok(ExitCode::SUCCESS)
}

fn text(status: &Status) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<13}{value}");
    };
    line("job", status.job.clone());
    line("state", status.state.clone());
    if let Some(reason) = &status.reason {
        line("reason", format!("{}: {}", reason.kind, reason.text));
    }
    if let Some(process) = &status.process {
        let alive = if process.alive { "running" } else { "not running" };
        let (pid, host, age) = (process.pid, &process.host, process.heartbeat_age_seconds);
        line("process", format!("{alive}, pid {pid} on {host}, last heard of {age} s ago"));
    }
    if let Some(applied) = &status.applied_lsn {
        line("applied", format!("{applied} (snapshot at {})", status.consistent_lsn.as_deref().unwrap_or("unknown")));
    }
    line("source", source(status));
    line("lag", lag(status));
    if let Some(slot) = &status.slot {
        line("slot", slot_text(slot));
    }
    if let Some(fingerprint) = &status.fingerprint {
        line("fingerprint", fingerprint.clone());
    }
    for guest in &status.guests {
        line("guest", format!("{} {}", guest.name, guest.digest));
    }
    for table in &status.tables {
        let (rows, bytes) = (HumanCount(table.rows_copied), HumanBytes(table.bytes_copied));
        let expected = if table.state == "copying" && table.rows_expected > 0 {
            format!(" of about {}", HumanCount(table.rows_expected))
        } else {
            String::new()
        };
        line("table", format!("{}: {}, {rows}{expected} rows, {bytes}", table.name, table.state));
    }
    if status.advice.is_empty() {
        line("advice", "nothing to do".to_owned());
    }
    for advice in &status.advice {
        line("advice", advice.clone());
    }
    text
}

fn source(status: &Status) -> String {
    match (&status.source_lsn, &status.source_error) {
        (Some(lsn), _) => lsn.clone(),
        (None, Some(error)) => format!("unknown ({error})"),
        (None, None) => "unknown".to_owned(),
    }
}

fn lag(status: &Status) -> String {
    let seconds = status.lag_seconds.map(|seconds| format!(", {seconds} s")).unwrap_or_default();
    status.lag_bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{}{seconds}", HumanBytes(bytes)))
}

fn slot_text(slot: &crate::pipeline::status::SlotReport) -> String {
    if !slot.exists {
        return format!("{}: does not exist", slot.name);
    }
    let active = if slot.active { "active" } else { "not active" };
    let confirmed = slot.confirmed_lsn.as_deref().unwrap_or("nothing");
    let retained =
        slot.retained_bytes.map_or_else(|| "an unknown amount".to_owned(), |bytes| HumanBytes(bytes).to_string());
    let safe =
        slot.safe_bytes.map(|bytes| format!(", {} until it is in danger", HumanBytes(bytes))).unwrap_or_default();
    let wal = slot.wal_status.as_deref().map(|status| format!(", WAL {status}")).unwrap_or_default();
    format!("{}: {active}, confirmed {confirmed}, keeps {retained} of WAL{safe}{wal}", slot.name)
}
