//! The program `pg_dump`: found, its version compared, run.
//!
//! What it writes to its standard error may quote rows or a connection string, so nobody reads it; an error names the
//! program and its exit status.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::environment::ToolEnvironment;
use crate::config::TableName;
use crate::error::{Error, Kind, Result};

/// The largest schema text that is taken: some 100,000 columns.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Asking a program for its version takes milliseconds; one that waits for something is not pg_dump.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long pg_dump waits for a table that someone alters; it asks for no more than a reader does.
const LOCK_TIMEOUT: &str = "--lock-wait-timeout=30s";

/// A `pg_dump` that is there and answers.
#[derive(Clone, Debug)]
pub struct DumpTool {
    program: PathBuf,
    /// Its major version.
    pub version: u32,
}

impl DumpTool {
    /// Takes the named program, or the one that `PATH` finds, and asks for its version.
    ///
    /// # Errors
    /// [`Kind::SchemaTool`] when it is not there, cannot be run, or is not `pg_dump`.
    pub async fn find(configured: Option<&Path>) -> Result<DumpTool> {
        let program = configured.map_or_else(|| PathBuf::from("pg_dump"), Path::to_owned);
        let fault = |what: &str| Error::new(Kind::SchemaTool, format!("{}: {what}", program.display()));
        let answer = Command::new(&program).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
        let answer = tokio::time::timeout(VERSION_TIMEOUT, answer)
            .await
            .map_err(|_| fault("does not answer --version"))?
            .map_err(|error| fault("cannot be run").because(error))?;
        let version = parse_version(&String::from_utf8_lossy(&answer.stdout)).ok_or_else(|| fault("is not pg_dump"))?;
        Ok(DumpTool { program, version })
    }

    /// Where it is.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether it can read a server (`server_version`, as 150018). An older pg_dump refuses a newer server.
    #[must_use]
    pub fn reads(&self, server_version: u32) -> bool {
        self.version >= server_version / 10_000
    }

    /// Writes the definitions of these tables and sequences, with the catalogue id of each beside it (`--verbose`).
    pub(super) async fn dump(
        &self,
        environment: &ToolEnvironment,
        snapshot: Option<&str>,
        relations: &[TableName],
    ) -> Result<String> {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command
            .envs(environment.variables())
            .args(arguments(snapshot, relations))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let fault = |what: &str| Error::new(Kind::SchemaTool, format!("{}: {what}", self.program.display()));
        let mut child = command.spawn().map_err(|error| fault("cannot be run").because(error))?;
        let mut text = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = output.take(OUTPUT_BYTES_MAX);
            output.read_to_string(&mut text).await.map_err(|_| fault("its output could not be read"))?;
            if output.limit() == 0 {
                return Err(fault("wrote more than 64 MiB"));
            }
        }
        let status = child.wait().await.map_err(|error| fault("its end could not be seen").because(error))?;
        // Every kind of failure that it has is 1: no table by that name, no right to lock it, no connection.
        if !status.success() {
            return Err(fault(&format!("ended with {status}; run it by hand with --schema-only to see why")));
        }
        Ok(text)
    }
}

/// Names are given quoted, so that `pg_dump` reads no pattern into them.
fn arguments(snapshot: Option<&str>, relations: &[TableName]) -> Vec<OsString> {
    let fixed = [
        "--schema-only",
        "--verbose",
        "--format=plain",
        "--encoding=UTF8",
        "--no-password",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "--no-publications",
        "--no-subscriptions",
        "--no-security-labels",
        "--no-tablespaces",
        "--no-table-access-method",
        "--strict-names",
        LOCK_TIMEOUT,
    ];
    let mut arguments: Vec<OsString> = fixed.iter().map(OsString::from).collect();
    arguments.extend(snapshot.map(|snapshot| format!("--snapshot={snapshot}").into()));
    arguments.extend(relations.iter().map(|name| format!("--table={}", name.quoted()).into()));
    arguments
}

/// Reads `pg_dump (PostgreSQL) 18.1 (Debian …)`, also of beta versions.
fn parse_version(text: &str) -> Option<u32> {
    let version = text.strip_prefix("pg_dump (PostgreSQL) ")?;
    let end = version.find(|character: char| !character.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, version) in [
            ("pg_dump (PostgreSQL) 18.6\n", Some(18)),
            ("pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some(15)),
            ("pg_dump (PostgreSQL) 19beta1", Some(19)),
            ("psql (PostgreSQL) 18.6", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), version, "{text}");
        }
    }
}
