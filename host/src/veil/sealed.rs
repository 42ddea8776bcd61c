//! A sealed WASI 0.2: what a guest meets that was built for WASI, as `cargo component` builds by default.
//!
//! There are no files, environment variables, arguments or sockets. The clock stands still, random bytes are the same ones at
//! every call (not a stream: then a row's output would depend on the rows before it), output is counted and thrown away, and
//! whatever could block or end the program traps. No function returns anything that came from outside the component.
//!
//! Only what a component imports is defined, function by function. What this page does not list traps when it is called.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, LinkerInstance, Resource, ResourceAny, ResourceType, Val};
use wasmtime::{Engine, StoreContextMut};

use super::inspect::Refusal;
use super::instance::HostState;

/// The interfaces that are offered, without their version. Everything else is refused at load.
const OFFERED: [&str; 20] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
];

/// The byte that the random source is made of.
const RANDOM_BYTE: u8 = 0x5a;

/// The most random bytes a call gives; hash maps ask for sixteen.
const RANDOM_BYTES_MAX: u64 = 4096;

/// What an output stream says it has room for: the most that one `write` may carry.
const STREAM_ROOM_BYTES: u64 = 4096;

/// Calls into the sealed WASI that one guest call may make. A panic message takes about ten.
const CALLS_MAX: u32 = 10_000;

/// Any resource of the sealed WASI. None of them has state.
struct Sealed;

/// What a guest did that the sealed WASI does not allow. The name comes from the component file, never from a row.
#[derive(Debug, thiserror::Error)]
#[error("it called {0}, which the sealed WASI does not allow")]
pub(super) struct SealedCall(pub String);

/// Whether an import's interface is one of the sealed ones, of WASI 0.2.
pub(super) fn offers(import: &str) -> bool {
    import.split_once('@').is_some_and(|(interface, version)| {
        OFFERED.contains(&interface) && (version == "0.2" || version.starts_with("0.2."))
    })
}

/// Defines every function and resource of WASI that the component imports.
pub(super) fn define(engine: &Engine, component: &Component, linker: &mut Linker<HostState>) -> Result<(), Refusal> {
    let ty = component.component_type();
    for (name, item) in ty.imports(engine).filter(|(name, _)| offers(name)) {
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            return Err(Refusal::Import(name.to_owned()));
        };
        let refused = |_| Refusal::Import(name.to_owned());
        let mut target = linker.instance(name).map_err(refused)?;
        for (export, item) in instance.exports(engine) {
            define_item(&mut target, name, export, &item.ty).map_err(refused)?;
        }
    }
    Ok(())
}

fn define_item(
    target: &mut LinkerInstance<'_, HostState>,
    interface: &str,
    name: &str,
    item: &ComponentItem,
) -> wasmtime::Result<()> {
    match item {
        ComponentItem::Resource(_) => target.resource(name, ResourceType::host::<Sealed>(), |_, _| Ok(())),
        ComponentItem::ComponentFunc(_) => {
            let bare = interface.split_once('@').map_or(interface, |(bare, _)| bare);
            let answer = answer(bare, name);
            let full = format!("{bare}#{name}");
            target
                .func_new(name, move |store, _, parameters, results| respond(store, answer, &full, parameters, results))
        }
        _ => Ok(()),
    }
}

/// How a function of the sealed WASI answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It may not be called.
    Trap,
    /// An empty list.
    EmptyList,
    /// `none`.
    Absent,
    /// A handle without anything behind it.
    Handle,
    /// The empty text.
    EmptyText,
    /// `ok`, without a value.
    Ok,
    /// `ok`, and the second parameter's bytes are counted and dropped.
    Discard,
    /// `ok` with the room for one write.
    Room,
    /// `error(closed)`: the end of an empty stream.
    Closed,
    /// The same `u64` at every call.
    Number(u64),
    /// The first moment of 1970, to the nanosecond.
    Epoch,
    /// As many fixed bytes as the first parameter asks for.
    FixedBytes,
    /// Two fixed numbers.
    FixedPair,
    /// Yes.
    Yes,
}

/// The page of answers. `Trap` is the answer to everything else.
fn answer(interface: &str, function: &str) -> Answer {
    const FIXED: u64 = u64::from_le_bytes([RANDOM_BYTE; 8]);
    match (interface, function) {
        ("wasi:cli/environment", "get-environment" | "get-arguments") => Answer::EmptyList,
        ("wasi:cli/environment", "initial-cwd") => Answer::Absent,
        ("wasi:cli/stdin", "get-stdin")
        | ("wasi:cli/stdout", "get-stdout")
        | ("wasi:cli/stderr", "get-stderr")
        | ("wasi:io/streams", "[method]input-stream.subscribe" | "[method]output-stream.subscribe")
        | ("wasi:clocks/monotonic-clock", "subscribe-instant" | "subscribe-duration") => Answer::Handle,
        ("wasi:cli/terminal-stdin" | "wasi:cli/terminal-stdout" | "wasi:cli/terminal-stderr", _)
        | ("wasi:filesystem/types", "filesystem-error-code") => Answer::Absent,
        ("wasi:io/error", "[method]error.to-debug-string") => Answer::EmptyText,
        ("wasi:io/poll", "[method]pollable.ready") => Answer::Yes,
        ("wasi:io/streams", "[method]output-stream.check-write") => Answer::Room,
        ("wasi:io/streams", "[method]output-stream.write" | "[method]output-stream.blocking-write-and-flush") => {
            Answer::Discard
        }
        ("wasi:io/streams", "[method]output-stream.flush" | "[method]output-stream.blocking-flush") => Answer::Ok,
        ("wasi:io/streams", "[method]input-stream.read" | "[method]input-stream.blocking-read") => Answer::Closed,
        ("wasi:io/streams", "[method]input-stream.skip" | "[method]input-stream.blocking-skip") => Answer::Closed,
        ("wasi:clocks/monotonic-clock", "now") => Answer::Number(0),
        ("wasi:clocks/monotonic-clock", "resolution") => Answer::Number(1),
        ("wasi:clocks/wall-clock", "now" | "resolution") => Answer::Epoch,
        ("wasi:filesystem/preopens", "get-directories") => Answer::EmptyList,
        ("wasi:random/random", "get-random-bytes") | ("wasi:random/insecure", "get-insecure-random-bytes") => {
            Answer::FixedBytes
        }
        ("wasi:random/random", "get-random-u64") | ("wasi:random/insecure", "get-insecure-random-u64") => {
            Answer::Number(FIXED)
        }
        ("wasi:random/insecure-seed", _) => Answer::FixedPair,
        _ => Answer::Trap,
    }
}

fn respond(
    mut store: StoreContextMut<'_, HostState>,
    answer: Answer,
    full: &str,
    parameters: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    let refused = || SealedCall(full.to_owned());
    let calls = store.data_mut().count_sealed_call();
    if calls > CALLS_MAX {
        return Err(refused().into());
    }
    let value = match answer {
        Answer::Trap => return Err(refused().into()),
        Answer::EmptyList => Val::List(Vec::new()),
        Answer::Absent => Val::Option(None),
        Answer::Handle => Val::Resource(ResourceAny::try_from_resource(Resource::<Sealed>::new_own(0), &mut store)?),
        Answer::EmptyText => Val::String(String::new()),
        Answer::Ok => Val::Result(Ok(None)),
        Answer::Discard => {
            if let Some(Val::List(bytes)) = parameters.get(1) {
                store.data_mut().discard(bytes.len() as u64);
            }
            Val::Result(Ok(None))
        }
        Answer::Room => Val::Result(Ok(Some(Box::new(Val::U64(STREAM_ROOM_BYTES))))),
        Answer::Closed => Val::Result(Err(Some(Box::new(Val::Variant("closed".to_owned(), None))))),
        Answer::Number(number) => Val::U64(number),
        Answer::Epoch => {
            Val::Record(vec![("seconds".to_owned(), Val::U64(0)), ("nanoseconds".to_owned(), Val::U32(0))])
        }
        Answer::FixedBytes => match parameters.first() {
            Some(Val::U64(length)) if *length <= RANDOM_BYTES_MAX => {
                Val::List((0..*length).map(|_| Val::U8(RANDOM_BYTE)).collect())
            }
            _ => return Err(refused().into()),
        },
        Answer::FixedPair => Val::Tuple(vec![Val::U64(1), Val::U64(2)]),
        Answer::Yes => Val::Bool(true),
    };
    // A borrowed handle that was passed in must be let go before the call returns.
    for parameter in parameters {
        if let Val::Resource(handle) = parameter {
            handle.resource_drop(&mut store)?;
        }
    }
    match results {
        [] => Ok(()),
        [result] => {
            *result = value;
            Ok(())
        }
        _ => Err(refused().into()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::veil::engine::{GuestLimits, Sandbox};
    use crate::veil::instance::new_store;

    /// Calls the sealed WASI and tells what it heard.
    const CURIOUS: &str = r#"(component
        (import "wasi:random/random@0.2.3" (instance $random (export "get-random-u64" (func (result u64)))))
        (import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock (export "now" (func (result u64)))))
        (import "wasi:cli/exit@0.2.3" (instance $exit (export "exit" (func (param "status" (result))))))
        (core func $random (canon lower (func $random "get-random-u64")))
        (core func $now (canon lower (func $clock "now")))
        (core func $exit (canon lower (func $exit "exit")))
        (core module $code
            (import "wasi" "random" (func $random (result i64)))
            (import "wasi" "now" (func $now (result i64)))
            (import "wasi" "exit" (func $exit (param i32)))
            (func (export "random") (result i64) call $random)
            (func (export "now") (result i64) call $now)
            (func (export "exit") i32.const 0 call $exit)
            (func (export "flood") (loop call $now drop br 0)))
        (core instance $code (instantiate $code (with "wasi" (instance
            (export "random" (func $random)) (export "now" (func $now)) (export "exit" (func $exit))))))
        (func (export "random") (result u64) (canon lift (core func $code "random")))
        (func (export "now") (result u64) (canon lift (core func $code "now")))
        (func (export "exit") (canon lift (core func $code "exit")))
        (func (export "flood") (canon lift (core func $code "flood"))))"#;

    #[test]
    fn nothing_comes_in_and_nothing_happens() {
        let sandbox = Sandbox::new(GuestLimits::default()).unwrap();
        let component = Component::new(sandbox.engine(), wat::parse_str(CURIOUS).unwrap()).unwrap();
        let mut linker = Linker::new(sandbox.engine());
        define(sandbox.engine(), &component, &mut linker).unwrap();
        let start = || {
            let mut store = new_store(&sandbox).unwrap();
            let instance = linker.instantiate(&mut store, &component).unwrap();
            (store, instance)
        };
        for (name, expected) in [("random", 0x5a5a_5a5a_5a5a_5a5a), ("now", 0)] {
            let (mut store, instance) = start();
            let function = instance.get_typed_func::<(), (u64,)>(&mut store, name).unwrap();
            for _ in 0..3 {
                assert_eq!(function.call(&mut store, ()).unwrap(), (expected,), "{name} is the same at every call");
            }
        }
        for (name, called) in [("exit", "wasi:cli/exit#exit"), ("flood", "wasi:clocks/monotonic-clock#now")] {
            let (mut store, instance) = start();
            let function = instance.get_typed_func::<(), ()>(&mut store, name).unwrap();
            let error = function.call(&mut store, ()).unwrap_err();
            assert_eq!(error.downcast_ref::<SealedCall>().map(|call| call.0.as_str()), Some(called), "{name}");
        }
    }

    #[test]
    fn only_wasi_two_is_offered() {
        for (import, offered) in [
            ("wasi:cli/environment@0.2.3", true),
            ("wasi:random/random@0.2.0", true),
            ("wasi:cli/environment@0.3.0", false),
            ("wasi:cli/environment", false),
            ("wasi:sockets/tcp@0.2.3", false),
            ("wasi:http/outgoing-handler@0.2.3", false),
            ("acme:kv/store@0.2.0", false),
        ] {
            assert_eq!(offers(import), offered, "{import}");
        }
    }

    #[test]
    fn what_is_not_listed_traps() {
        for (interface, function) in [
            ("wasi:cli/exit", "exit"),
            ("wasi:io/poll", "poll"),
            ("wasi:io/poll", "[method]pollable.block"),
            ("wasi:filesystem/types", "[method]descriptor.open-at"),
            ("wasi:clocks/wall-clock", "tomorrow"),
        ] {
            assert_eq!(answer(interface, function), Answer::Trap, "{interface}#{function}");
        }
    }
}
