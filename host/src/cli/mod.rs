//! The command line: reads it, runs the command, and tells how it ended.
//!
//! Output goes to standard output, everything else to standard error. The exit code is the error's kind
//! ([`Kind::exit_code`]); 0 is also the end by SIGTERM or Ctrl-C.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory as _, Parser as _};

use crate::config::{Configuration, load};
use crate::error::{Error, Kind, Result};
use crate::observe::log::{self, LogFormat};
use crate::observe::progress::Style;
use crate::pipeline::prepare::Prepared;
use crate::pipeline::{bootstrap, resume};

use args::{Arguments, Command, Global};
use output::Output;

pub mod args;
mod check;
mod cleanup;
mod output;
mod signals;
mod status;

/// The files are wrong.
const EXIT_FILES: u8 = 2;

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    output::keep_panics_quiet();
    let arguments = Arguments::parse();
    if let Command::Completions { shell } = arguments.command {
        // Collected first: the generator panics when its reader goes away, as `head` does.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Arguments::command(), "pgveil", &mut script);
        let _ = std::io::stdout().write_all(&script);
        return ExitCode::SUCCESS;
    }
    let output = Output::new(&arguments.global);
    if let Err(error) = set_up_log(&arguments.global, &output) {
        return output.failed(&error);
    }
    let configuration = match load(&arguments.global.config) {
        Ok(loaded) => {
            output.diagnostics(&loaded.warnings);
            loaded.value
        }
        Err(diagnostics) => {
            output.diagnostics(&diagnostics);
            return ExitCode::from(EXIT_FILES);
        }
    };
    match run(arguments.command, configuration, &output) {
        Ok(code) => code,
        Err(error) => output.failed(&error),
    }
}

fn set_up_log(global: &Global, output: &Output) -> Result<()> {
    let format = if global.json { LogFormat::Json } else { LogFormat::Text { color: output.colors_stderr() } };
    log::set_up(global.log.clone(), format).map_err(|error| Error::new(Kind::Internal, "log").because(error))
}

/// Whether colours are written where `auto` would write them.
fn colors(choice: ColorChoice, auto: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => auto,
    }
}

fn run(command: Command, configuration: Configuration, output: &Output) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Kind::Internal, "starting the runtime").because(error))?;
    // Before anything takes time: a signal from now on ends the command in order, with exit code 0.
    let stop = match command {
        Command::Bootstrap(_) | Command::Run(_) => {
            let _context = runtime.enter();
            Some(signals::stop_on_signals()?)
        }
        _ => None,
    };
    let stop = || stop.ok_or_else(|| Error::new(Kind::Internal, "a command that streams without a stop"));
    // Compiling guests blocks, so it comes before anything else runs.
    let prepared = Prepared::new(configuration)?;
    let ended = runtime.block_on(async {
        match command {
            Command::Check => check::run(&prepared, output).await,
            Command::Status => status::run(&prepared, output).await,
            Command::Cleanup(_) => cleanup::run(&prepared, output).await,
            Command::Bootstrap(options) => {
                let options = bootstrap::Options {
                    restart: options.restart_snapshot,
                    once: options.once,
                    style: Style::choose(output.json()),
                };
                bootstrap::bootstrap(prepared, options, stop()?).await.map(|()| ExitCode::SUCCESS)
            }
            Command::Run(options) => {
                let options =
                    resume::Options { once: options.once, accept_policy_change: options.accept_policy_change };
                resume::run(prepared, options, stop()?).await.map(|()| ExitCode::SUCCESS)
            }
            Command::Completions { .. } => Ok(ExitCode::SUCCESS),
        }
    });
    // A task that hangs must not keep the process: what has to be finished was awaited above.
    runtime.shutdown_background();
    ended
}
