//! What a component asks for and offers, read before the engine compiles it: deny by default, by name.

use wasmparser::{Encoding, Parser, Payload};

use super::abi::{INTERFACE_VERSION, POLICY_INTERFACE, TYPES_INTERFACE};
use super::sealed;

/// Why a component is refused unread. Names come from the component file, which holds no rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Larger than `limits::GUEST_FILE_BYTES_MAX`.
    #[error("it has {bytes} bytes, {max} are allowed")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The most that is read.
        max: u64,
    },
    /// Not the pinned digest.
    #[error("its blake3 digest is {found}, the policy pins {pinned}")]
    OtherDigest {
        /// The digest of the bytes given.
        found: String,
        /// The digest that the policy names.
        pinned: String,
    },
    /// A core module, as `cargo build` makes it.
    #[error("it is a core module, not a component; build it with `cargo component build --release`")]
    CoreModule,
    /// Not WebAssembly, or damaged.
    #[error("it is not a valid WebAssembly component")]
    Invalid,
    /// It imports something that is not offered.
    #[error("it imports `{0}`; a guest may import nothing but WASI 0.2, which it meets sealed")]
    Import(String),
    /// Built for another version of the interface.
    #[error("it wants `{wanted}`; this pgveil offers pgveil:policy@{INTERFACE_VERSION}")]
    OtherVersion {
        /// What the component names.
        wanted: String,
    },
    /// It has no such export.
    #[error("it does not export `{POLICY_INTERFACE}`")]
    NoPolicy,
    /// An export has another type than the interface says.
    #[error("its `{0}` is missing, or of another type than pgveil:policy@{INTERFACE_VERSION} says")]
    ExportType(String),
    /// It failed while starting or describing itself, before any row.
    #[error("it failed in `{step}`, before any row: {how}")]
    Failed {
        /// `start` or `describe`.
        step: &'static str,
        /// The kind's clause.
        how: &'static str,
    },
    /// Its description is not usable.
    #[error("its description is not usable: {0}")]
    Description(String),
}

/// Reads imports and exports of the outermost component and refuses what is not offered.
pub(super) fn inspect(bytes: &[u8]) -> Result<(), Refusal> {
    let mut offers_policy = false;
    let mut other_version = None;
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|_| Refusal::Invalid)? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => return Err(Refusal::CoreModule),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    admit_import(import.map_err(|_| Refusal::Invalid)?.name.name)?;
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let name = export.map_err(|_| Refusal::Invalid)?.name.name;
                    offers_policy |= name == POLICY_INTERFACE;
                    if name.starts_with("pgveil:policy/") && !is_ours(name) {
                        other_version = Some(name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    match other_version {
        _ if offers_policy => Ok(()),
        Some(wanted) => Err(Refusal::OtherVersion { wanted }),
        None => Err(Refusal::NoPolicy),
    }
}

fn admit_import(name: &str) -> Result<(), Refusal> {
    if name == TYPES_INTERFACE || sealed::offers(name) {
        Ok(())
    } else if name.starts_with("pgveil:policy/") && !is_ours(name) {
        Err(Refusal::OtherVersion { wanted: name.to_owned() })
    } else {
        Err(Refusal::Import(name.to_owned()))
    }
}

fn is_ours(name: &str) -> bool {
    name.rsplit_once('@').is_some_and(|(_, version)| version == INTERFACE_VERSION)
}
