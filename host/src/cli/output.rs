//! What commands print: results on standard output, errors with their remedy on standard error, both as JSON on demand.

use std::error::Error as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::config::Diagnostics;
use crate::error::Error;
use crate::observe::log::stderr_colors;

use super::args::Global;
use super::colors;

/// How to print.
pub(super) struct Output {
    json: bool,
    color_stdout: bool,
    color_stderr: bool,
}

impl Output {
    pub(super) fn new(global: &Global) -> Output {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Output {
            json: global.json,
            color_stdout: colors(global.color, std::io::stdout().is_terminal() && !no_color),
            color_stderr: colors(global.color, stderr_colors()),
        }
    }

    /// Whether JSON was asked for.
    pub(super) fn json(&self) -> bool {
        self.json
    }

    pub(super) fn colors_stderr(&self) -> bool {
        self.color_stderr
    }

    pub(super) fn colors_stdout(&self) -> bool {
        self.color_stdout
    }

    /// A result: as JSON, or as the text that `text` makes of it.
    pub(super) fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let shown =
            if self.json { serde_json::to_string(value).unwrap_or_default() } else { text().trim_end().to_owned() };
        // A reader that went away, as `head` does, is no failure.
        let _ = writeln!(std::io::stdout(), "{shown}");
    }

    /// Errors and warnings about files.
    pub(super) fn diagnostics(&self, found: &Diagnostics) {
        if found.is_empty() {
            return;
        }
        let shown = if self.json {
            json!({ "diagnostics": found.to_json() }).to_string()
        } else {
            found.render(self.color_stderr)
        };
        let _ = writeln!(std::io::stderr(), "{}", shown.trim_end());
    }

    /// How a command failed: where, what, why, and what to do. Gives the exit code.
    pub(super) fn failed(&self, error: &Error) -> ExitCode {
        let kind = error.kind();
        // Files have a form of their own, which points at the line.
        let files = error.source().and_then(|cause| cause.downcast_ref::<Diagnostics>());
        if let Some(found) = files {
            self.diagnostics(found);
        }
        let causes = if files.is_some() { Vec::new() } else { causes(error) };
        let shown = if self.json {
            json!({ "error": { "kind": kind.name(), "place": error.place(), "text": kind.text(), "causes": causes, "remedy": kind.remedy(), "exit_code": kind.exit_code() } }).to_string()
        } else {
            let because: String = causes.iter().map(|cause| format!("\n  because: {cause}")).collect();
            format!("error: {error}{because}\nhint: {}", kind.remedy())
        };
        let _ = writeln!(std::io::stderr(), "{shown}");
        ExitCode::from(kind.exit_code())
    }
}

/// The causes' texts. They carry names only: see `Error::because`.
fn causes(error: &Error) -> Vec<String> {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes
}

/// A panic's payload may quote anything, a row's value included: only its place is told.
pub(super) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(
            std::io::stderr(),
            "error: pgveil has a fault at {place}\nhint: Please report this line; no row was let through."
        );
    }));
}
