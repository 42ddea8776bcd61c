//! What is let into the sandbox, and what is refused, by name.

use std::error::Error as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pgveil::config::Digest;
use pgveil::error::Kind;
use pgveil::relation::ReplicaIdentity;
use pgveil::veil::{Guest, Refusal, Sandbox, Veil, VeilParts, WorkerInstances};
use pgveil_artifacts::{HELLO, HOSTILE_IMPORT, HOSTILE_START, build_with_cargo_component};

use crate::support::C::V;
use crate::support::{chain, keys, limits, policy, rows, show, table, veil};

fn sandbox() -> Sandbox {
    Sandbox::new(limits()).unwrap()
}

fn refusal(bytes: &[u8], pinned: Option<Digest>) -> Refusal {
    let Err(error) = Guest::load(&sandbox(), "acme", bytes, pinned) else { panic!("it was let in") };
    assert_eq!(error.kind(), Kind::GuestRefused, "{}", chain(&error));
    assert!(error.place().starts_with("guest acme"), "{}", error.place());
    error.source().and_then(|source| source.downcast_ref::<Refusal>()).cloned().expect("a refusal")
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("valid text")
}

#[test]
fn what_is_no_guest_is_refused_with_its_reason() {
    let module = std::fs::read(HELLO.module_path).unwrap();
    assert_eq!(refusal(&module, None), Refusal::CoreModule);
    assert_eq!(refusal(b"\0asm and then nothing", None), Refusal::Invalid);
    assert_eq!(refusal(b"", None), Refusal::Invalid);
    assert_eq!(refusal(&HELLO.component[..HELLO.component.len() / 2], None), Refusal::Invalid);
    assert_eq!(refusal(&component("(component)"), None), Refusal::NoPolicy);
    let start = refusal(HOSTILE_START.component, None);
    assert!(matches!(start, Refusal::Failed { step: "start", .. }), "{start}");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let bytes = vec![0; usize::try_from(pgveil::limits::GUEST_FILE_BYTES_MAX).unwrap() + 1];
    assert!(matches!(refusal(&bytes, None), Refusal::TooLarge { .. }));
}

#[test]
fn a_pinned_digest_is_held() {
    let right = Digest::of(HELLO.component);
    assert!(Guest::load(&sandbox(), "acme", HELLO.component, Some(right)).is_ok());
    let pinned = Digest([7; 32]);
    let expected = Refusal::OtherDigest { found: right.to_string(), pinned: pinned.to_string() };
    assert_eq!(refusal(HELLO.component, Some(pinned)), expected);
}

#[test]
fn imports_are_refused_by_name() {
    assert_eq!(refusal(HOSTILE_IMPORT.component, None), Refusal::Import("hostile:outside/disk@0.1.0".to_owned()));
    for import in [
        "wasi:sockets/tcp@0.2.0",
        "wasi:http/outgoing-handler@0.2.0",
        "wasi:cli/environment@0.3.0",
        "env",
        "acme:kv/store",
    ] {
        let bytes = component(&format!("(component (import \"{import}\" (instance)))"));
        assert_eq!(refusal(&bytes, None), Refusal::Import(import.to_owned()));
    }
}

#[test]
fn another_version_of_the_interface_is_refused_with_what_it_wants_and_what_is_offered() {
    for version in ["0.2.0", "0.1.1", "1.0.0"] {
        let wanted = format!("pgveil:policy/policy@{version}");
        let bytes = component(&format!("(component (instance $i) (export \"{wanted}\" (instance $i)))"));
        let refusal = refusal(&bytes, None);
        assert_eq!(refusal, Refusal::OtherVersion { wanted: wanted.clone() });
        assert_eq!(refusal.to_string(), format!("it wants `{wanted}`; this pgveil offers pgveil:policy@0.1.0"));
    }
}

#[test]
fn an_export_of_another_type_is_refused() {
    let bytes = component("(component (instance $i) (export \"pgveil:policy/policy@0.1.0\" (instance $i)))");
    assert_eq!(refusal(&bytes, None), Refusal::ExportType("describe".to_owned()));
}

#[test]
fn a_guest_says_what_it_offers() {
    let guest = Guest::load(&sandbox(), "hello", HELLO.component, None).unwrap();
    let names: Vec<&str> = guest.functions().iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["hush"]);
    assert_eq!(guest.digest(), Digest::of(HELLO.component));
    assert!(guest.place().starts_with("guest hello@"));
}

/// What an author gets who follows the component model's own guide: a component for WASI, with an adapter. It masks as the one
/// without WASI does.
#[test]
fn a_guest_that_cargo_component_builds_meets_a_sealed_wasi() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/wasm-toolchain.sh");
    let toolchain = Command::new(script).output().unwrap();
    let toolchain = String::from_utf8(toolchain.stdout).unwrap();
    let built = build_with_cargo_component(
        "hello",
        toolchain.trim(),
        &Path::new(env!("CARGO_TARGET_TMPDIR")).join("component"),
    );
    let component = std::fs::read(built.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    assert!(component.windows(17).any(|bytes| bytes == b"wasi:cli/stderr@0"), "it imports WASI");

    let guest = Guest::load(&sandbox(), "hello", &component, None).unwrap_or_else(|error| panic!("{}", chain(&error)));
    let guests = [("hello".to_owned(), guest)].into();
    let table = table(ReplicaIdentity::Default, "id text key, note text");
    let text = "columns: { id: pass, note: { mask: hello/hush } }";
    let (policy, keys, tables) = (policy(text), keys("ab"), [Arc::clone(&table)]);
    let parts = VeilParts { policy: &policy, tables: &tables, guests: &guests, keys: &keys, audit_percent: 100.0 };
    let sealed = Veil::compile(&parts).unwrap_or_else(|errors| panic!("{errors}"));
    let run = |veil: &Veil| {
        let raw = rows(&table, &[vec![V("1"), V("Zoë")], vec![V("2"), V("")]]);
        show(&veil.veil_batch(&mut WorkerInstances::default(), raw).unwrap_or_else(|error| panic!("{}", chain(&error))))
    };
    assert_eq!(run(&sealed), run(&veil(&table, text)));
}
