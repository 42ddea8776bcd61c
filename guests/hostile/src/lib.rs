//! A guest that misbehaves in every way that the host must survive. For tests only: each function is one misdeed, named by what it does.
//!
//! It implements `wit/` without the SDK, which would not let it lie. Three kinds of misdeed, a file each: [`exhaust`] uses up what
//! it is given, [`misshape`] returns what is no proper column, [`deceive`] returns proper columns that break a promise.
//! Arguments are one bare JSON number, where a function takes one: `{"n": 3}`.

mod deceive;
mod exhaust;
mod misshape;

#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod bindings {
    #[cfg(not(feature = "import"))]
    wit_bindgen::generate!({ path: "../../wit", world: "guest" });

    #[cfg(feature = "import")]
    wit_bindgen::generate!({
        path: ["../../wit", "outside.wit"],
        inline: "
            package hostile:guest@0.1.0;
            world guest {
                include pgveil:policy/guest@0.1.0;
                import hostile:outside/disk@0.1.0;
            }
        ",
        world: "hostile:guest/guest",
        generate_all,
    });
}

use std::cell::Cell;

use bindings::exports::pgveil::policy::policy::{
    AcceptedType, Arity, Batch, Binding, Column, Example, Fault, Filter as FilterHandle, FunctionInfo, FunctionKind,
    Guarantees, Guest, GuestFilter, GuestMask, KeyUse, Mask as MaskHandle,
};
use bindings::pgveil::policy::types::FaultCode;

/// What a misdeed is told: its number, and how often it was called before.
struct Call {
    number: u64,
    calls: u64,
}

/// A misdeed of a mask.
type Misdeed = fn(&Batch, &Call) -> Result<Vec<Column>, Fault>;

/// A misdeed of a filter.
type FilterMisdeed = fn(&Batch, &Call) -> Result<Vec<u8>, Fault>;

fn masks() -> impl Iterator<Item = (&'static str, Misdeed)> {
    exhaust::MASKS.iter().chain(misshape::MASKS).chain(deceive::MASKS).copied()
}

struct Hostile;

impl Guest for Hostile {
    type Mask = Mask;
    type Filter = Filter;

    fn describe() -> Vec<FunctionInfo> {
        let masks = masks().map(|(name, _)| info(name, FunctionKind::Mask));
        masks.chain(deceive::FILTERS.iter().map(|(name, _)| info(name, FunctionKind::Filter))).collect()
    }
}

/// Every mask promises everything.
fn info(name: &str, kind: FunctionKind) -> FunctionInfo {
    let outputs = u32::from(kind == FunctionKind::Mask);
    FunctionInfo {
        name: name.to_owned(),
        kind,
        doc: "Misbehaves.".to_owned(),
        argument_schema: r#"{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}"#
            .to_owned(),
        accepts: vec![AcceptedType::Any],
        inputs: Arity { at_least: 1, at_most: None },
        outputs: Arity { at_least: outputs, at_most: (outputs == 0).then_some(0) },
        key: KeyUse::Optional,
        guarantees: Guarantees::all(),
        example: Example { arguments: "{}".to_owned(), inputs: Vec::new(), outputs: Vec::new() },
    }
}

struct Mask {
    misdeed: Misdeed,
    number: u64,
    calls: Cell<u64>,
}

impl GuestMask for Mask {
    fn bind(binding: Binding) -> Result<MaskHandle, String> {
        match binding.function.as_str() {
            "refuse-to-bind" => return Err("it does not want to".to_owned()),
            "refuse-at-length" => return Err("x".repeat(8 << 20)),
            "trap-at-bind" => trap(),
            _ => {}
        }
        let (_, misdeed) = masks().find(|(name, _)| *name == binding.function).ok_or("no such function")?;
        Ok(MaskHandle::new(Self { misdeed, number: number(&binding.arguments), calls: Cell::new(0) }))
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::all()
    }

    fn apply(&self, rows: Batch) -> Result<Vec<Column>, Fault> {
        (self.misdeed)(&rows, &Call { number: self.number, calls: self.calls.replace(self.calls.get() + 1) })
    }
}

struct Filter {
    misdeed: FilterMisdeed,
    number: u64,
    calls: Cell<u64>,
}

impl GuestFilter for Filter {
    fn bind(binding: Binding) -> Result<FilterHandle, String> {
        let found = deceive::FILTERS.iter().find(|(name, _)| *name == binding.function);
        let (_, misdeed) = found.ok_or("no such function")?;
        Ok(FilterHandle::new(Self { misdeed: *misdeed, number: number(&binding.arguments), calls: Cell::new(0) }))
    }

    fn keep(&self, rows: Batch) -> Result<Vec<u8>, Fault> {
        (self.misdeed)(&rows, &Call { number: self.number, calls: self.calls.replace(self.calls.get() + 1) })
    }
}

/// The digits of the arguments, as one number.
fn number(arguments: &str) -> u64 {
    let digits = arguments.bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// The input as it came: what a mask that does nothing returns.
fn copy(batch: &Batch) -> Vec<Column> {
    let first = &batch.columns[0];
    vec![Column { states: first.states.clone(), ends: first.ends.clone(), bytes: first.bytes.clone() }]
}

/// The value of a row of the first column.
fn value(batch: &Batch, row: usize) -> &[u8] {
    let column = &batch.columns[0];
    let start = if row == 0 { 0 } else { column.ends[row - 1] as usize };
    &column.bytes[start..column.ends[row] as usize]
}

/// A column of values.
fn values(rows: impl Iterator<Item = Vec<u8>>) -> Column {
    let mut column = Column { states: Vec::new(), ends: Vec::new(), bytes: Vec::new() };
    for row in rows {
        column.bytes.extend_from_slice(&row);
        column.states.push(0);
        column.ends.push(column.bytes.len() as u32);
    }
    column
}

fn fault(row: u64) -> Fault {
    Fault { code: FaultCode::UnsupportedValue, row: row as u32, column: 0 }
}

/// Ends the instance.
fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    std::process::abort();
}

/// `wit-component` calls this while it instantiates a module.
#[cfg(feature = "start")]
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    trap();
}

#[cfg(feature = "import")]
#[unsafe(no_mangle)]
extern "C" fn use_the_import() {
    std::hint::black_box(bindings::hostile::outside::disk::read_file("/etc/passwd"));
}

bindings::export!(Hostile with_types_in bindings);
