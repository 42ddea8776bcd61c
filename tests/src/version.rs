//! The PostgreSQL versions under test, and where their programs are.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::Result;

/// The environment variable that chooses the versions: majors with commas between, as in `15,18`.
pub const MATRIX_VARIABLE: &str = "PGVEIL_TEST_PG";

/// A major version of PostgreSQL that pgveil supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Major {
    /// 15, the oldest: the first with row filters and column lists in publications.
    V15,
    /// 16.
    V16,
    /// 17.
    V17,
    /// 18, the newest: the first with virtual generated columns.
    V18,
}

impl Major {
    /// All supported versions, oldest first.
    pub const ALL: [Self; 4] = [Self::V15, Self::V16, Self::V17, Self::V18];

    /// The number, as in `15`.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V15 => 15,
            Self::V16 => 16,
            Self::V17 => 17,
            Self::V18 => 18,
        }
    }

    /// The folder with `postgres` and `initdb` of this version.
    ///
    /// # Errors
    /// The version is not installed; the error says what to run.
    pub fn programs(self) -> Result<&'static Path> {
        static FOUND: [OnceLock<PathBuf>; 4] = [const { OnceLock::new() }; 4];
        let slot = &FOUND[self as usize];
        if let Some(folder) = slot.get() {
            return Ok(folder);
        }
        // One script knows where the servers are; the demo, CI and these tests ask the same one.
        let script = repository().join("scripts/pg-bin.sh");
        let answer = Command::new(&script).arg(self.to_string()).output()?;
        if !answer.status.success() {
            return Err(String::from_utf8_lossy(&answer.stderr).trim().into());
        }
        let folder = PathBuf::from(String::from_utf8(answer.stdout)?.trim());
        Ok(slot.get_or_init(|| folder))
    }

    /// Whether its server was built with TLS (a wheel or package for tests may not be).
    ///
    /// # Errors
    /// The version is not installed.
    pub fn has_tls(self) -> Result<bool> {
        // The name of the library is in the program's table of what it loads; no option of `postgres` tells.
        let program = std::fs::read(self.programs()?.join("postgres"))?;
        Ok(program.windows(10).any(|bytes| bytes == b"libssl.so."))
    }

    /// A client program (`psql`, `pg_dump`, `pgbench`): only the newest version has them, and it speaks to all.
    ///
    /// # Errors
    /// The newest version is not installed.
    pub fn client_program(name: &str) -> Result<PathBuf> {
        Ok(Self::V18.programs()?.join(name))
    }
}

impl fmt::Display for Major {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.number())
    }
}

impl std::str::FromStr for Major {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|major| major.to_string() == text)
            .ok_or_else(|| format!("{MATRIX_VARIABLE}: `{text}` is none of 15, 16, 17, 18").into())
    }
}

/// The root of the checkout.
#[must_use]
pub fn repository() -> PathBuf {
    // The manifest lies in `tests/`; nextest sets the variable for an archive that was moved, too.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.ancestors().find(|folder| folder.join("scripts/pg-bin.sh").is_file()).unwrap_or(&manifest).to_path_buf()
}

/// The versions to test, oldest first: those of `PGVEIL_TEST_PG`, else 15 and 18, and 16 and 17 where installed.
///
/// # Errors
/// A chosen version, or 15 or 18 where nothing was chosen, is not installed; or the variable names an unknown version.
pub fn matrix() -> Result<Vec<Major>> {
    let chosen = match std::env::var(MATRIX_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => Some(parse_matrix(&text)?),
        _ => None,
    };
    let Some(chosen) = chosen else {
        for required in [Major::V15, Major::V18] {
            required.programs()?;
        }
        return Ok(Major::ALL.into_iter().filter(|major| major.programs().is_ok()).collect());
    };
    for major in &chosen {
        major.programs()?;
    }
    Ok(chosen.into_iter().collect())
}

/// Whether this run tests `major`; when it does not, says so on standard error.
///
/// # Errors
/// As [`matrix`].
#[expect(clippy::print_stderr, reason = "a test that did nothing must say so in its output")]
pub fn is_tested(major: Major) -> Result<bool> {
    let tested = matrix()?.contains(&major);
    if !tested {
        eprintln!(
            "PostgreSQL {major} is not in this run's matrix ({MATRIX_VARIABLE}, or not installed): nothing tested"
        );
    }
    Ok(tested)
}

fn parse_matrix(text: &str) -> Result<BTreeSet<Major>> {
    text.split([',', ' ']).filter(|part| !part.is_empty()).map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_a_sorted_set_of_known_versions() {
        assert_eq!(parse_matrix("18,15, 15").unwrap().into_iter().collect::<Vec<_>>(), [Major::V15, Major::V18]);
        let refused = parse_matrix("15,14").unwrap_err().to_string();
        assert_eq!(refused, "PGVEIL_TEST_PG: `14` is none of 15, 16, 17, 18");
    }

    #[test]
    fn the_oldest_and_the_newest_version_are_always_installed() -> Result<()> {
        for major in [Major::V15, Major::V18] {
            assert!(major.programs()?.join("postgres").is_file());
        }
        Ok(())
    }
}
