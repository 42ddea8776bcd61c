//! The guests of this repository, built: their bytes for `builtin: standard`, and their paths for tests.
//!
//! A build script makes them; see `build.rs` for what it obeys. [`ALL`] lists them, so that a test can go over every one.

mod cargo_component;

pub use cargo_component::{CargoComponentError, build_with_cargo_component};

/// A guest that has been built.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Its name: the package's, and the feature's where there is one.
    pub name: &'static str,
    /// Where the component lies on this machine, for tests that name a file.
    pub path: &'static str,
    /// The component itself.
    pub component: &'static [u8],
    /// Where the core module lies that the component was made of. It is no component, and a host must say so.
    pub module_path: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// The guests that keep their promises.
pub const HONEST: &[Guest] = &[STANDARD, HELLO, FULL_NAME];

/// The guest with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<Guest> {
    ALL.iter().find(|guest| guest.name == name).copied()
}

#[cfg(test)]
mod tests;
