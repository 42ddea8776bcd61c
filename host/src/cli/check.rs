//! `check`: the report on every prerequisite.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::check::{Grade, Report};
use crate::error::Result;
use crate::pipeline::prepare::Prepared;

use super::output::Output;

pub(super) async fn run(prepared: &Prepared, output: &Output) -> Result<ExitCode> {
    let report = prepared.check().await?;
    output.result(&report, || text(&report, output.colors_stdout()));
    Ok(ExitCode::from(report.exit_code()))
}

/// One line a finding, its remedy below, and the sum at the end.
fn text(report: &Report, color: bool) -> String {
    let mut text = String::new();
    let width = report.findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0).min(40);
    for finding in &report.findings {
        let grade = paint(finding.grade, color);
        let _ = writeln!(text, "{grade}  {:width$}  {}", finding.subject, finding.message);
        if !finding.remedy.is_empty() {
            let _ = writeln!(text, "      {:width$}  → {}", "", finding.remedy);
        }
    }
    let count = |grade| report.findings.iter().filter(|finding| finding.grade == grade).count();
    let _ =
        write!(text, "{} passed, {} warnings, {} failed", count(Grade::Pass), count(Grade::Warn), count(Grade::Fail));
    text
}

fn paint(grade: Grade, color: bool) -> String {
    let code = match grade {
        Grade::Pass => 32,
        Grade::Warn => 33,
        Grade::Fail => 31,
    };
    if color { format!("\u{1b}[{code}m{grade}\u{1b}[0m") } else { grade.to_string() }
}
