//! The other way to a component: as an author does it who follows the component model's own guide.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why `cargo component` did not build a guest.
#[derive(Debug)]
pub enum CargoComponentError {
    /// It could not be started, most likely because it is not installed: `cargo install --locked cargo-component`.
    NotStarted(std::io::Error),
    /// It failed; this is the end of what it said.
    Failed(String),
}

impl fmt::Display for CargoComponentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(error) => write!(out, "cargo component could not be started ({error}): run `make setup`"),
            Self::Failed(said) => write!(out, "cargo component failed: {said}"),
        }
    }
}

impl std::error::Error for CargoComponentError {}

/// Builds a guest of this repository by `cargo component build --release`, which makes a component for WASI preview 1 with an adapter, and returns where it
/// lies. Such a component imports WASI; a host must seal it.
///
/// `toolchain` is what `scripts/wasm-toolchain.sh` prints; `target_dir` a directory that other builds do not lock.
///
/// # Errors
/// `cargo component` is missing or fails.
pub fn build_with_cargo_component(
    package: &str,
    toolchain: &str,
    target_dir: &Path,
) -> Result<PathBuf, CargoComponentError> {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package);
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo", "component", "build", "--release", "--target-dir"]).arg(target_dir);
    for variable in ["RUSTC", "RUSTDOC", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR"]
    {
        command.env_remove(variable);
    }
    let output = command.current_dir(guest).output().map_err(CargoComponentError::NotStarted)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<_> = said.lines().rev().take(20).collect();
        return Err(CargoComponentError::Failed(last.into_iter().rev().collect::<Vec<_>>().join("\n")));
    }
    Ok(target_dir.join("wasm32-wasip1/release").join(format!("{}.wasm", package.replace('-', "_"))))
}
