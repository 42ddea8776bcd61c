//! Builds every guest to a core module, makes a component of each, and writes the constants that `src/lib.rs` includes.
//!
//! - Which toolchain: `PGVEIL_WASM_TOOLCHAIN`, else the active one where it has the target, else the one that `make setup` links.
//! - Where to: `PGVEIL_GUEST_TARGET_DIR`, else `guests/target`, so that a build by hand and this one share their work.
//!
//! It runs again only when a guest, the SDK or `wit/` changes.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const TARGET: &str = "wasm32-unknown-unknown";

/// The toolchain that `make setup` links where rustup cannot fetch the target.
const LINKED_TOOLCHAIN: &str = "distro";

/// The guests: constant, package, feature.
const GUESTS: [(&str, &str, Option<&str>); 6] = [
    ("STANDARD", "standard", None),
    ("HELLO", "hello", None),
    ("FULL_NAME", "full-name", None),
    ("HOSTILE", "hostile", None),
    ("HOSTILE_START", "hostile", Some("start")),
    ("HOSTILE_IMPORT", "hostile", Some("import")),
];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let target_dir = env::var_os("PGVEIL_GUEST_TARGET_DIR").map_or_else(|| guests.join("target"), PathBuf::from);
    watch(&guests)?;

    let cargo = Cargo { toolchain: toolchain()?, guests, target_dir };
    cargo.build(None)?;
    let mut constants = String::new();
    for (constant, package, feature) in GUESTS {
        if feature.is_some() {
            cargo.build(Some((package, feature)))?;
        }
        let name = feature.map_or(package.to_owned(), |feature| format!("{package}-{feature}"));
        let module = out.join(format!("{name}.module.wasm"));
        fs::copy(cargo.module(package), &module)?;
        if feature.is_some() {
            // So that what lies in the target directory is what a plain build would leave there.
            cargo.build(Some((package, None)))?;
        }
        let component = out.join(format!("{name}.wasm"));
        fs::write(&component, componentize(&module).map_err(|error| format!("{name}: {error}"))?)?;
        write_constant(&mut constants, constant, &name, &component, &module)?;
    }
    let all: Vec<_> = GUESTS.iter().map(|(constant, ..)| *constant).collect();
    writeln!(constants, "/// Every guest.\npub const ALL: &[Guest] = &[{}];", all.join(", "))?;
    fs::write(out.join("guests.rs"), constants)?;
    Ok(())
}

/// Tells cargo what this build depends on.
fn watch(guests: &Path) -> Result<()> {
    for variable in ["PGVEIL_WASM_TOOLCHAIN", "PGVEIL_GUEST_TARGET_DIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed={}", guests.join("../wit").display());
    for entry in fs::read_dir(guests)? {
        let path = entry?.path();
        if !["artifacts", "target"].iter().any(|name| path.ends_with(name)) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Ok(())
}

/// The toolchain to build with; `None` for the active one.
fn toolchain() -> Result<Option<String>> {
    if let Ok(chosen) = env::var("PGVEIL_WASM_TOOLCHAIN") {
        return Ok(Some(chosen));
    }
    let mut active = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    if has_target(&mut active) {
        return Ok(None);
    }
    let mut linked = Command::new("rustup");
    linked.args(["run", LINKED_TOOLCHAIN, "rustc"]);
    if has_target(&mut linked) {
        return Ok(Some(LINKED_TOOLCHAIN.to_owned()));
    }
    Err(format!("no toolchain here builds guests: the standard library of {TARGET} is missing. Run `make setup`, or `rustup target add {TARGET}`.").into())
}

/// Whether a compiler has the target's standard library.
fn has_target(rustc: &mut Command) -> bool {
    let output = rustc.args(["--print", "target-libdir", "--target", TARGET]).output();
    let Some(printed) = output.ok().filter(|output| output.status.success()) else { return false };
    let Ok(entries) = fs::read_dir(String::from_utf8_lossy(&printed.stdout).trim()) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

struct Cargo {
    toolchain: Option<String>,
    guests: PathBuf,
    target_dir: PathBuf,
}

impl Cargo {
    /// Builds one package with a feature, or all as they are.
    fn build(&self, variant: Option<(&str, Option<&str>)>) -> Result<()> {
        let mut command = match &self.toolchain {
            Some(toolchain) => {
                let mut command = Command::new("rustup");
                command.args(["run", toolchain, "cargo"]);
                command.env_remove("RUSTC").env_remove("RUSTDOC");
                command
            }
            None => Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        };
        command.args(["build", "--release", "--target", TARGET, "--target-dir"]).arg(&self.target_dir);
        match variant {
            None => drop(command.arg("--workspace")),
            Some((package, feature)) => {
                command.args(["--package", package]);
                command.args(feature.iter().flat_map(|feature| ["--features", feature]));
            }
        }
        // What is meant for the host's build must not reach the guests'.
        for variable in
            ["RUSTUP_TOOLCHAIN", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET"]
        {
            command.env_remove(variable);
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", self.remapped_paths());
        let status = command.current_dir(&self.guests).status()?;
        if !status.success() {
            return Err(format!("the guests could not be built: {command:?} ended with {status}").into());
        }
        Ok(())
    }

    /// Flags that keep this machine's paths out of the modules, so that a guest's digest is the same on every machine.
    fn remapped_paths(&self) -> String {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        let mut flags = vec![format!("--remap-path-prefix={}=/pgveil", self.guests.display())];
        flags.extend(home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display())));
        flags.join("\u{1f}")
    }

    /// Where the core module of a package lies.
    fn module(&self, package: &str) -> PathBuf {
        let file = format!("{}.wasm", package.replace('-', "_"));
        self.target_dir.join(TARGET).join("release").join(file)
    }
}

/// Makes a component of a core module, and checks it.
fn componentize(module: &Path) -> Result<Vec<u8>> {
    let encoder = wit_component::ComponentEncoder::default().validate(true).module(&fs::read(module)?);
    let mut encoder = encoder.map_err(|error| format!("{error:#}"))?;
    Ok(encoder.encode().map_err(|error| format!("{error:#}"))?)
}

fn write_constant(out: &mut String, constant: &str, name: &str, component: &Path, module: &Path) -> Result<()> {
    writeln!(out, "/// The guest `{name}`.")?;
    writeln!(out, "pub const {constant}: Guest = Guest {{")?;
    writeln!(out, "    name: {name:?},\n    path: {component:?},\n    component: include_bytes!({component:?}),")?;
    writeln!(out, "    module_path: {module:?},\n}};\n")?;
    Ok(())
}
