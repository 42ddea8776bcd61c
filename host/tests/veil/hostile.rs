//! Every misdeed of `guests/hostile`, with the exact kind that it must end in. A guest without a row here fails `no_misdeed_is_left_out`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgveil::error::{Error, Kind};
use pgveil::relation::{ReplicaIdentity, Table};
use pgveil::row::RawBatch;
use pgveil::veil::{Guest, GuestLimits, Sandbox, Veil, VeilParts, VeiledBatch, WorkerInstances};

use crate::support::{C, GUESTS, chain, compile, keys, policy, rows, show, table};

/// A value that must never be seen in an error.
const CANARY: &str = "canary-7f3d@example.com";

/// What must come of a misdeed.
enum Ends {
    /// The job does not start; the message holds this.
    Unbound(&'static str),
    /// The first batch fails.
    First(Kind),
    /// The first batch passes, the second fails: an audit compares it with a fresh instance.
    Second(Kind),
    /// Nothing that the host can know is wrong with it.
    Passes,
}

use Ends::{First, Passes, Second, Unbound};

/// Function, argument `n`, outcome, and what the place of the error must name besides guest, function and table.
const MISDEEDS: &[(&str, u64, Ends, &str)] = &[
    // === exhaust ===
    ("loop", 0, First(Kind::GuestFuel), ""),
    ("recurse", 0, First(Kind::GuestTrap), ""),
    ("take-all-memory", 0, First(Kind::GuestMemory), ""),
    ("take-memory-politely", 0, First(Kind::GuestMemory), ""),
    ("fill-memory", 0, First(Kind::GuestFuel), ""),
    ("burn", 10, Passes, ""),
    ("burn", 1_000_000_000, First(Kind::GuestFuel), ""),
    ("burn-then-trap", 1_000_000, First(Kind::GuestTrap), ""),
    ("divide-by-zero", 0, First(Kind::GuestTrap), ""),
    ("trap-at-row", 1, First(Kind::GuestTrap), ""),
    ("trap-at-row", 99, Passes, ""),
    ("panic-with-the-value", 0, First(Kind::GuestTrap), ""),
    ("fault-at-row", 1, First(Kind::GuestFault), "column secret: fault unsupported-value, row 1 of the batch"),
    ("fault-beyond", 0, First(Kind::GuestFault), "fault unsupported-value:"),
    ("huge-value", 0, First(Kind::GuestMemory), ""),
    // More than the output limit by a little, and by so much that it is not even lifted.
    ("long-value", 1_200_000, First(Kind::GuestOutput), "more than"),
    ("long-value", 20_000_000, First(Kind::GuestOutput), "lifting"),
    ("long-value", 1_000_000, Passes, ""),
    ("huge-list", 0, First(Kind::GuestMemory), ""),
    ("many-columns", 0, First(Kind::GuestOutput), "lifting"),
    ("false-length", 0, First(Kind::GuestOutput), "lifting"),
    ("refuse-to-bind", 0, Unbound("it does not want to"), ""),
    ("refuse-at-length", 0, Unbound("cannot be bound"), ""),
    ("trap-at-bind", 0, Unbound("cannot be bound"), ""),
    // === misshape ===
    ("no-columns", 0, First(Kind::GuestOutput), "0 columns for 1 outputs"),
    ("extra-column", 0, First(Kind::GuestOutput), "2 columns for 1 outputs"),
    ("too-few-rows", 0, First(Kind::GuestOutput), "2 states and 2 ends for 3 rows"),
    ("too-many-rows", 0, First(Kind::GuestOutput), "4 states and 4 ends for 3 rows"),
    ("states-without-ends", 0, First(Kind::GuestOutput), "3 states and 0 ends for 3 rows"),
    ("ends-without-states", 0, First(Kind::GuestOutput), "0 states and 3 ends for 3 rows"),
    ("falling-offsets", 0, First(Kind::GuestOutput), "an end lies before"),
    ("offsets-beyond", 0, First(Kind::GuestOutput), "the last end"),
    ("offsets-at-the-limit", 0, First(Kind::GuestOutput), "the last end"),
    ("bytes-left-over", 0, First(Kind::GuestOutput), "the last end"),
    ("bytes-in-a-null", 0, First(Kind::GuestOutput), "bytes for a row that has no value"),
    ("split-character", 0, First(Kind::GuestOutput), "UTF-8"),
    ("bad-utf8", 0, First(Kind::GuestOutput), "UTF-8"),
    ("surrogate", 0, First(Kind::GuestOutput), "UTF-8"),
    ("nul-byte", 0, First(Kind::GuestOutput), "without NUL bytes"),
    ("unknown-state", 0, First(Kind::GuestOutput), "a state that does not exist"),
    // === deceive ===
    ("identity", 0, Passes, ""),
    ("null", 0, First(Kind::GuestOutput), "NULL for a value"),
    ("unchanged", 0, First(Kind::GuestOutput), "unchanged for an input that is not"),
];

/// Each of these declares that it preserves NULL, and writes a value for one.
const UNFAITHFUL: &[&str] = &[
    "null-becomes-a-value",
    "collide",
    "count-calls",
    "count-rows",
    "count-batch",
    "turn-later",
    "lengthen",
    "write-nonsense",
    "write-escapes",
];

/// What only the audit can find.
const INCONSTANT: &[(&str, u64, Ends)] = &[
    ("count-calls", 0, Second(Kind::GuestNotDeterministic)),
    ("count-rows", 0, First(Kind::GuestNotDeterministic)),
    ("count-batch", 0, First(Kind::GuestNotDeterministic)),
    ("turn-later", 1, Second(Kind::GuestNotDeterministic)),
    ("turn-later", 99, Passes),
    ("long-value", 1_000_000, First(Kind::GuestNotDeterministic)),
    ("collide", 0, Passes),
    ("write-nonsense", 0, Passes),
    ("identity", 0, Passes),
];

const FILTERS: &[(&str, u64, Ends)] = &[
    ("keep-all", 0, Passes),
    ("keep-maybe", 0, First(Kind::GuestOutput)),
    ("keep-too-few", 0, First(Kind::GuestOutput)),
    ("keep-too-many", 0, First(Kind::GuestOutput)),
    ("keep-by-chance", 0, Second(Kind::GuestNotDeterministic)),
    ("keep-looping", 0, First(Kind::GuestFuel)),
    ("keep-fault", 1, First(Kind::GuestFault)),
    ("keep-trap", 0, First(Kind::GuestTrap)),
];

fn secret_table() -> Arc<Table> {
    table(ReplicaIdentity::Default, "id int4 key, secret text")
}

fn mask(function: &str, number: u64) -> String {
    format!("columns:\n  id: pass\n  secret: {{ mask: hostile/{function}, n: {number} }}")
}

fn some_rows(table: &Arc<Table>, with_null: bool) -> RawBatch {
    let last = if with_null { C::N } else { C::V("zoë-canary-7f3d") };
    rows(table, &[vec![C::V("1"), C::V(CANARY)], vec![C::V("2"), C::V("ada-canary-7f3d")], vec![C::V("3"), last]])
}

/// Runs two batches and compares with what must come of them.
fn check(label: &str, policy: &str, audit_percent: f64, with_null: bool, ends: &Ends, place: &str) {
    let table = secret_table();
    let veil = match (compile(&table, policy, audit_percent), ends) {
        (Err(errors), Unbound(text)) => return assert!(errors.to_string().contains(text), "{label}: {errors}"),
        (Err(errors), _) => panic!("{label}: {errors}"),
        (Ok(_), Unbound(_)) => panic!("{label}: it could be bound"),
        (Ok(veil), _) => veil,
    };
    let mut instances = WorkerInstances::default();
    let mut run = || veil.veil_batch(&mut instances, some_rows(&table, with_null));
    let failed = match ends {
        First(kind) => Some((run(), *kind)),
        Second(kind) => {
            assert!(run().is_ok(), "{label}: the first batch");
            Some((run(), *kind))
        }
        Passes | Unbound(_) => {
            assert!(run().is_ok() && run().is_ok(), "{label}: it should pass");
            None
        }
    };
    if let Some((outcome, kind)) = failed {
        expect_error(label, outcome, kind, place);
    }
}

fn expect_error(label: &str, outcome: Result<VeiledBatch, Error>, kind: Kind, place: &str) {
    let Err(error) = outcome else { panic!("{label}: it passed") };
    let text = chain(&error);
    assert_eq!(error.kind(), kind, "{label}: {text}");
    assert!(text.contains("table public.t: guest hostile@"), "{label}: {text}");
    assert!(text.contains(&format!("function {}", label.split(' ').next().unwrap_or_default())), "{label}: {text}");
    assert!(text.contains(place), "{label}: {text}");
    assert!(!text.contains("canary"), "{label} shows a value: {text}");
}

#[test]
fn every_misdeed_ends_in_its_kind_and_shows_no_value() {
    for (function, number, ends, place) in MISDEEDS {
        check(&format!("{function} {number}"), &mask(function, *number), 0.0, false, ends, place);
    }
}

#[test]
fn a_promise_about_null_is_held() {
    for function in UNFAITHFUL {
        check(function, &mask(function, 1), 0.0, true, &First(Kind::GuestOutput), "row 2: a value for NULL");
    }
}

#[test]
fn the_audit_finds_what_is_not_constant() {
    for (function, number, ends) in INCONSTANT {
        check(&format!("{function} {number}"), &mask(function, *number), 100.0, false, ends, "");
    }
}

#[test]
fn every_misdeed_of_a_filter_ends_in_its_kind() {
    for (function, number, ends) in FILTERS {
        let policy = format!(
            "keep: {{ filter: hostile/{function}, columns: [secret], n: {number} }}\ncolumns: {{ id: pass, secret: pass }}"
        );
        check(&format!("{function} {number}"), &policy, 100.0, true, ends, "");
    }
}

#[test]
fn no_misdeed_is_left_out() {
    let masks = MISDEEDS
        .iter()
        .map(|(name, ..)| *name)
        .chain(INCONSTANT.iter().map(|(name, ..)| *name))
        .chain(UNFAITHFUL.iter().copied());
    let tested: BTreeSet<&str> = masks.chain(FILTERS.iter().map(|(name, ..)| *name)).collect();
    let listed: BTreeSet<&str> = GUESTS["hostile"].functions().iter().map(|function| function.name.as_str()).collect();
    assert_eq!(tested, listed);
}

/// The backstop: fuel without end, and a clock.
#[test]
fn a_guest_that_fuel_does_not_end_is_ended_by_its_deadline() {
    let limits = GuestLimits { fuel_base: u64::MAX, deadline: Duration::from_millis(200), ..GuestLimits::default() };
    let sandbox = Sandbox::new(limits).unwrap();
    let hostile = &pgveil_artifacts::HOSTILE;
    let guests = [("hostile".to_owned(), Guest::load(&sandbox, hostile.name, hostile.component, None).unwrap())].into();
    let table = secret_table();
    let (policy, keys, tables) = (policy(&mask("loop", 0)), keys("ab"), [Arc::clone(&table)]);
    let parts = VeilParts { policy: &policy, tables: &tables, guests: &guests, keys: &keys, audit_percent: 0.0 };
    let veil = Veil::compile(&parts).unwrap_or_else(|errors| panic!("{errors}"));
    let begun = Instant::now();
    let outcome = veil.veil_batch(&mut WorkerInstances::default(), some_rows(&table, true));
    expect_error("loop", outcome, Kind::GuestDeadline, "");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn an_instance_that_failed_is_never_entered_again() {
    let table = secret_table();
    // It behaves for one call and then adds to its output: an instance that lived on would show that.
    let veil = compile(&table, "columns:\n  id: pass\n  secret: { mask: hostile/trap-at-row, n: 3 }", 0.0);
    let veil = veil.unwrap_or_else(|errors| panic!("{errors}"));
    let mut instances = WorkerInstances::default();
    let four: Vec<Vec<C<'_>>> = (0..4).map(|_| vec![C::V("1"), C::V(CANARY)]).collect();
    for _ in 0..3 {
        assert_eq!(
            veil.veil_batch(&mut instances, rows(&table, &four)).err().map(|error| error.kind()),
            Some(Kind::GuestTrap)
        );
        let again = veil
            .veil_batch(&mut instances, some_rows(&table, true))
            .unwrap_or_else(|error| panic!("{}", chain(&error)));
        assert_eq!(again.rows(), 3, "a fresh instance took its place");
    }
}

#[test]
fn what_looks_like_copy_or_sql_comes_out_as_a_plain_value() {
    let table = secret_table();
    let veil = compile(&table, &mask("write-escapes", 0), 0.0).unwrap_or_else(|errors| panic!("{errors}"));
    let batch = veil.veil_batch(&mut WorkerInstances::default(), some_rows(&table, false));
    let batch = batch.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(show(&batch)[0][1], r#""\\N\t\\.\n'); drop table users; --""#);
}

#[cfg(target_os = "linux")]
#[test]
fn no_misdeed_makes_the_host_take_much_memory() {
    const ALLOWED_KIB: u64 = 512 * 1024;
    let status = || std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = || -> u64 {
        let status = status();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(GUESTS.contains_key("hostile"));
    let before = peak();
    for function in ["take-all-memory", "huge-value", "huge-list", "many-columns", "false-length", "long-value"] {
        let table = secret_table();
        let veil = compile(&table, &mask(function, 20_000_000), 0.0).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(veil.veil_batch(&mut WorkerInstances::default(), some_rows(&table, true)).is_err(), "{function}");
    }
    let grown = peak() - before;
    assert!(grown < ALLOWED_KIB, "the process grew by {grown} KiB");
}
