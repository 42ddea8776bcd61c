//! Same input, same output: in any batch, any order, any worker, whatever ran before.

use std::sync::Arc;

use pgveil::error::Kind;
use pgveil::relation::{ReplicaIdentity, Table};
use pgveil::row::RawBatch;
use pgveil::veil::{Veil, VeilPool, WorkerInstances};
use proptest::prelude::*;

use crate::support::C::{N, V};
use crate::support::{C, chain, rows, show, table, veil};

const POLICY: &str = "keep: { filter: standard/sample, columns: [id], percent: 50, key: k }\ncolumns:\n  id: { mask: standard/hash, key: k }\n  email: { mask: standard/email, key: k }\n  name: { mask: full-name/full-name, columns: [name, locale], key: k }\n  locale: pass";

fn people() -> (Arc<Table>, Arc<Veil>) {
    let table = table(ReplicaIdentity::Default, "id text key, email text, name text, locale text");
    let veil = veil(&table, POLICY);
    (table, Arc::new(veil))
}

/// The veiled rows, each with its verdict.
fn run(veil: &Veil, instances: &mut WorkerInstances, raw: RawBatch) -> Vec<(Vec<String>, Option<bool>)> {
    let batch = veil.veil_batch(instances, raw).unwrap_or_else(|error| panic!("{}", chain(&error)));
    show(&batch).into_iter().enumerate().map(|(row, cells)| (cells, batch.keep(row))).collect()
}

type Row = (String, Option<String>, Option<String>, Option<String>);

fn cells(row: &Row) -> Vec<C<'_>> {
    vec![V(&row.0), row.1.as_deref().map_or(N, V), row.2.as_deref().map_or(N, V), row.3.as_deref().map_or(N, V)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn splitting_and_order_change_nothing(
        all in proptest::collection::vec(("[a-z0-9é]{1,12}", any::<Option<String>>(), proptest::option::of("\\PC{0,20}"), proptest::option::of("de|ja_JP|en")), 1..60),
        split in 0_usize..60,
        rotate in 0_usize..60,
    ) {
        let all: Vec<Row> = all.into_iter().map(|(id, email, name, locale)| {
            // PostgreSQL's text holds no NUL.
            (id, email.map(|text| text.replace('\0', "")), name, locale)
        }).collect();
        let (table, veil) = people();
        let mut instances = WorkerInstances::default();
        let mut once = |part: &[Row]| run(&veil, &mut instances, rows(&table, &part.iter().map(cells).collect::<Vec<_>>()));
        let whole = once(&all);
        let (head, tail) = all.split_at(split.min(all.len()));
        prop_assert_eq!([once(head), once(tail)].concat(), whole.clone());
        let mut turned = all.clone();
        turned.rotate_left(rotate % all.len());
        let mut back = once(&turned);
        back.rotate_right(rotate % all.len());
        prop_assert_eq!(back, whole);
    }
}

fn numbered(table: &Arc<Table>, batch: usize, count: usize) -> RawBatch {
    let ids: Vec<String> = (0..count).map(|row| format!("{batch}-{row}")).collect();
    rows(table, &ids.iter().map(|id| vec![V(id), V("ada@lovelace.org"), V("Ada"), N]).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_workers_answers_as_one_does_and_in_order() {
    let (table, veil) = people();
    let pool = VeilPool::new(Arc::clone(&veil), 3).unwrap();
    // Unequal work, so that later batches finish earlier.
    let sizes = [900, 1, 300, 2, 50, 700, 3, 1];
    let pending: Vec<_> =
        sizes.iter().enumerate().map(|(batch, size)| pool.submit(numbered(&table, batch, *size))).collect();
    let mut instances = WorkerInstances::default();
    for (batch, (pending, size)) in pending.into_iter().zip(sizes).enumerate() {
        let answer = pending.await.unwrap_or_else(|error| panic!("{}", chain(&error)));
        let alone = veil.veil_batch(&mut instances, numbered(&table, batch, size)).unwrap();
        assert_eq!(show(&answer), show(&alone), "batch {batch}");
    }
}

#[tokio::test]
async fn a_guest_that_fails_on_a_worker_fails_its_batch_and_the_others_go_on() {
    let table = table(ReplicaIdentity::Default, "id text key, secret text");
    let trap = veil(&table, "columns: { id: pass, secret: { mask: hostile/trap-at-row, n: 5 } }");
    let pool = VeilPool::new(Arc::new(trap), 2).unwrap();
    let some = |count: usize| rows(&table, &vec![vec![V("1"), V("x")]; count]);
    let pending = [pool.submit(some(3)), pool.submit(some(9)), pool.submit(some(3))];
    let [first, second, third] = pending;
    assert!(first.await.is_ok());
    assert_eq!(second.await.err().map(|error| error.kind()), Some(Kind::GuestTrap));
    assert!(third.await.is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_flat_over_a_million_rows() {
    const BATCH_ROWS: usize = 4096;
    const GROWTH_ALLOWED_KIB: usize = 64 * 1024;
    let resident = || -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    };
    let table = table(ReplicaIdentity::Default, "id text key, note text");
    let veil = veil(&table, "columns: { id: pass, note: { mask: hello/hush } }");
    let mut instances = WorkerInstances::default();
    let mut before = 0;
    for batch in 0..1_000_000 / BATCH_ROWS {
        let raw = rows(&table, &vec![vec![V("1"), V("somebody@example.com")]; BATCH_ROWS]);
        assert_eq!(veil.veil_batch(&mut instances, raw).unwrap().rows(), BATCH_ROWS);
        if batch == 20 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < GROWTH_ALLOWED_KIB, "the process grew by {grown} KiB");
}
