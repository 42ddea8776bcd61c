//! What the host will rely on, read from the components themselves.

use wasmparser::{ComponentExternalKind, Parser, Payload};

use crate::{ALL, Guest, HONEST, HOSTILE_IMPORT, by_name};

/// The names that the component itself imports and exports.
fn names(component: &[u8]) -> (Vec<String>, Vec<String>) {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth -= 1,
            Ok(Payload::ComponentImportSection(section)) if depth == 0 => {
                imports.extend(section.into_iter().flatten().map(|import| import.name.name.to_owned()));
            }
            Ok(Payload::ComponentExportSection(section)) if depth == 0 => {
                let instances =
                    section.into_iter().flatten().filter(|export| export.kind == ComponentExternalKind::Instance);
                exports.extend(instances.map(|export| export.name.name.to_owned()));
            }
            Ok(_) => {}
            Err(error) => panic!("no component: {error}"),
        }
    }
    (imports, exports)
}

fn foreign_imports(guest: &Guest) -> Vec<String> {
    // Types alone: what `policy` itself is written in, with no function to call.
    names(guest.component).0.into_iter().filter(|name| name != "pgveil:policy/types@0.1.0").collect()
}

#[test]
fn every_guest_is_a_component_of_this_version_and_imports_no_function() {
    for guest in ALL.iter().filter(|guest| guest.name != HOSTILE_IMPORT.name) {
        assert_eq!(foreign_imports(guest), Vec::<String>::new(), "{}", guest.name);
        let (_, exports) = names(guest.component);
        assert!(exports.contains(&"pgveil:policy/policy@0.1.0".to_owned()), "{}: {exports:?}", guest.name);
    }
}

#[test]
fn the_guest_that_asks_for_more_does_so() {
    assert_eq!(foreign_imports(&HOSTILE_IMPORT), ["hostile:outside/disk@0.1.0"]);
}

#[test]
fn components_can_be_decoded_and_found_by_name() {
    for guest in ALL {
        assert!(wit_component::decode(guest.component).is_ok(), "{}", guest.name);
        assert_eq!(std::fs::read(guest.path).ok().as_deref(), Some(guest.component), "{}", guest.name);
        assert_eq!(by_name(guest.name).map(|found| found.path), Some(guest.path));
        assert!(std::fs::read(guest.module_path).is_ok_and(|module| module.starts_with(b"\0asm\x01\0\0\0")));
    }
    assert!(by_name("nobody").is_none());
}

#[test]
fn honest_guests_hold_no_path_of_the_machine_that_built_them() {
    let here = env!("CARGO_MANIFEST_DIR").as_bytes();
    for guest in HONEST {
        assert!(!guest.component.windows(here.len()).any(|window| window == here), "{}", guest.name);
        assert!(
            !guest.component.windows(8).any(|window| window == b"registry" && contains_home(guest)),
            "{}",
            guest.name
        );
    }
}

fn contains_home(guest: &Guest) -> bool {
    let home = std::env::home_dir().map(|home| home.into_os_string().into_encoded_bytes()).unwrap_or_default();
    home.len() > 1 && guest.component.windows(home.len()).any(|window| window == home)
}
