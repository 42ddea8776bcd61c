//! What may be typed: this definition is parser, help and shell completions in one.

use std::path::PathBuf;

use clap::{ArgAction, Args, ColorChoice, Parser, Subcommand};
use clap_complete::Shell;

use crate::observe::log::LogFilter;

/// Printed under the help of the program: scripts and service managers act on these.
const EXIT_CODES: &str = "\
Exit codes:
  0  done, or stopped by SIGTERM or Ctrl-C
  1  runtime: a server was lost for too long, or refused something
  2  the command line, the job file or the policy file
  3  preflight: `check` found something that must be mended first
  4  resynchronise: continuity with the source cannot be proven
  5  an unsupported change, or source and target do not agree
  6  a guest failed, or broke its promises

Connection URLs and keys come from the environment variables that the job and policy files name.";

/// Copy PostgreSQL tables and keep them in step, every row masked by sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "pgveil", version, about, after_help = EXIT_CODES, propagate_version = true, max_term_width = 100)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes, before or after its name.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The job file
    #[arg(long, short, global = true, env = "PGVEIL_CONFIG", value_name = "FILE", default_value = "pgveil.yaml")]
    pub config: PathBuf,

    /// Write output and logs as JSON, logs one object a line
    #[arg(long, global = true)]
    pub json: bool,

    /// What is logged: a level, or levels by target, such as `info,pgveil::source=trace`. Values of rows are logged at no level
    #[arg(long, global = true, env = "PGVEIL_LOG", value_name = "LEVEL", default_value = "info")]
    pub log: LogFilter,

    /// When output is coloured
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

/// The commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Check servers, policy and guests, and change nothing
    ///
    /// Each prerequisite is graded PASS, WARN or FAIL, with what to do about it. Exits with 3 when one fails.
    Check,

    /// Copy the tables, then stream their changes
    ///
    /// Creates the replication slot and, unless the job file says `schema: { mode: existing }`, the tables in the target.
    Bootstrap(Bootstrap),

    /// Go on streaming from the checkpoint
    ///
    /// Refuses when it cannot be proven that nothing is missing in between.
    Run(Run),

    /// Show state, positions, lag, retained WAL, progress, and what the operator should do
    Status,

    /// Drop the job's replication slot and its records; the data in the target stays
    Cleanup(Cleanup),

    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// What `bootstrap` takes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Bootstrap {
    /// Stop once all that the source had committed at the start is applied
    #[arg(long)]
    pub once: bool,

    /// Give up what an earlier bootstrap copied, and start over
    #[arg(long)]
    pub restart_snapshot: bool,
}

/// What `run` takes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Run {
    /// Stop once all that the source had committed at the start is applied
    #[arg(long)]
    pub once: bool,

    /// Go on under a changed policy, guest or key: rows that are in the target stay as the former one masked them
    #[arg(long)]
    pub accept_policy_change: bool,
}

/// What `cleanup` takes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Cleanup {
    /// Confirm: the job cannot go on afterwards, only start over
    #[arg(long, required = true, action = ArgAction::SetTrue)]
    pub yes: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn command(line: &str) -> Result<Command, clap::Error> {
        Arguments::try_parse_from(line.split(' ')).map(|arguments| arguments.command)
    }

    #[test]
    fn the_definition_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn commands_are_read() {
        assert_eq!(command("pgveil check").ok(), Some(Command::Check));
        assert_eq!(
            command("pgveil run --once").ok(),
            Some(Command::Run(Run { once: true, accept_policy_change: false }))
        );
        assert_eq!(
            command("pgveil --config a.yaml bootstrap --restart-snapshot").ok(),
            Some(Command::Bootstrap(Bootstrap { once: false, restart_snapshot: true }))
        );
        assert_eq!(command("pgveil cleanup --yes --json").ok(), Some(Command::Cleanup(Cleanup { yes: true })));
    }

    #[test]
    fn what_is_wrong_is_refused_with_exit_code_2() {
        for line in
            ["pgveil", "pgveil cleanup", "pgveil chek", "pgveil check --log loud", "pgveil run --restart-snapshot"]
        {
            assert_eq!(command(line).err().map(|error| error.exit_code()), Some(2), "{line}");
        }
    }

    #[test]
    fn the_help_is_as_documented() {
        insta::assert_snapshot!(Arguments::command().term_width(100).render_help(), @"
        Copy PostgreSQL tables and keep them in step, every row masked by sandboxed WebAssembly components

        Usage: pgveil [OPTIONS] <COMMAND>

        Commands:
          check        Check servers, policy and guests, and change nothing
          bootstrap    Copy the tables, then stream their changes
          run          Go on streaming from the checkpoint
          status       Show state, positions, lag, retained WAL, progress, and what the operator should do
          cleanup      Drop the job's replication slot and its records; the data in the target stays
          completions  Print completions for a shell
          help         Print this message or the help of the given subcommand(s)

        Options:
          -c, --config <FILE>  The job file [env: PGVEIL_CONFIG=] [default: pgveil.yaml]
              --json           Write output and logs as JSON, logs one object a line
              --log <LEVEL>    What is logged: a level, or levels by target, such as
                               `info,pgveil::source=trace`. Values of rows are logged at no level [env:
                               PGVEIL_LOG=] [default: info]
              --color <WHEN>   When output is coloured [default: auto] [possible values: auto, always,
                               never]
          -h, --help           Print help
          -V, --version        Print version

        Exit codes:
          0  done, or stopped by SIGTERM or Ctrl-C
          1  runtime: a server was lost for too long, or refused something
          2  the command line, the job file or the policy file
          3  preflight: `check` found something that must be mended first
          4  resynchronise: continuity with the source cannot be proven
          5  an unsupported change, or source and target do not agree
          6  a guest failed, or broke its promises

        Connection URLs and keys come from the environment variables that the job and policy files name.
        ");
    }
}
