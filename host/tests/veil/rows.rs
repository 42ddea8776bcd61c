//! What each cell of a veiled batch shows.

use std::sync::Arc;

use pgveil::error::Kind;
use pgveil::relation::{ReplicaIdentity, Table};
use pgveil::row::{Encoding, Image, RawBatch};
use pgveil::veil::{Veil, VeiledBatch, WorkerInstances};
use pgveil::window::{Operation, RawWindow, RowRef};

use crate::support::C::{A, N, U, V};
use crate::support::{batch, chain, rows, show, table, veil};

fn run(veil: &Veil, raw: RawBatch) -> VeiledBatch {
    veil.veil_batch(&mut WorkerInstances::default(), raw).unwrap_or_else(|error| panic!("{}", chain(&error)))
}

fn kind(veil: &Veil, raw: RawBatch) -> Kind {
    match veil.veil_batch(&mut WorkerInstances::default(), raw) {
        Ok(_) => panic!("it passed"),
        Err(error) => error.kind(),
    }
}

fn three_ways() -> (Arc<Table>, Veil) {
    let table = table(ReplicaIdentity::Default, "id text key, masked text, nulled text, passed text");
    let veil = veil(&table, "columns: { id: pass, masked: { mask: hello/hush }, nulled: \"null\" }\nrest: pass");
    (table, veil)
}

#[test]
fn passed_masked_and_nulled_cells() {
    let (table, veil) = three_ways();
    let raw =
        rows(&table, &[vec![V("1"), V("Zoë"), V("n"), V("p")], vec![V("2"), V(""), N, V("")], vec![V("3"), N, N, N]]);
    let shown = show(&run(&veil, raw));
    assert_eq!(shown[0], [r#""1""#, r#""xxx""#, "NULL", r#""p""#]);
    assert_eq!(shown[1], [r#""2""#, r#""""#, "NULL", r#""""#], "an empty string is not NULL");
    assert_eq!(shown[2], [r#""3""#, "NULL", "NULL", "NULL"]);
}

#[test]
fn a_batch_without_rows_passes_without_a_guest() {
    let (table, veil) = three_ways();
    assert_eq!(run(&veil, rows(&table, &[])).rows(), 0);
}

#[test]
fn copy_text_is_unescaped_for_the_guest_and_left_alone_where_it_passes() {
    let (table, veil) = three_ways();
    let raw = batch(&table, Image::Row, Encoding::CopyText, &[vec![V("1"), V(r"a\tb\\"), N, V(r"a\tb")]]);
    assert_eq!(show(&run(&veil, raw))[0], [r#"copy "1""#, r#""xxxx""#, "NULL", r#"copy "a\\tb""#]);
}

#[test]
fn an_unchanged_value_stays_unchanged_through_a_mask_of_one_column() {
    let (table, veil) = three_ways();
    let shown = show(&run(&veil, rows(&table, &[vec![V("1"), U, U, U], vec![V("2"), V("ab"), N, V("p")]])));
    assert_eq!(shown[0], [r#""1""#, "unchanged", "NULL", "unchanged"]);
    assert_eq!(shown[1][1], r#""xx""#);
}

#[test]
fn blanks_that_pad_a_char_mean_nothing() {
    let table = table(ReplicaIdentity::Default, "id bpchar(5) key, note bpchar(5)");
    let veil = veil(&table, "columns: { id: pass, note: { mask: hello/hush } }");
    let raw = rows(&table, &[vec![V("a    "), V("ab   ")], vec![V("a"), V("ab")], vec![V("b"), V("     ")]]);
    let shown = show(&run(&veil, raw));
    assert_eq!([&shown[0][1], &shown[1][1], &shown[2][1]], [r#""xx""#, r#""xx""#, r#""""#]);
}

#[test]
fn a_value_longer_than_its_column_is_refused_in_characters_not_bytes() {
    let narrow = table(ReplicaIdentity::Default, "id text key, note varchar(4)");
    let echo = veil(&narrow, "columns: { id: pass, note: { mask: hostile/identity } }");
    assert_eq!(show(&run(&echo, rows(&narrow, &[vec![V("1"), V("äöüß")]])))[0][1], r#""äöüß""#);
    assert_eq!(kind(&echo, rows(&narrow, &[vec![V("1"), V("abcde")]])), Kind::GuestOutput);
    assert_eq!(kind(&echo, rows(&narrow, &[vec![V("1"), V("äöüßx")]])), Kind::GuestOutput);
}

#[test]
fn null_is_refused_for_a_column_that_is_not_null() {
    let table = table(ReplicaIdentity::Default, "id text key, note text not");
    let veil = veil(&table, "columns: { id: pass, note: { mask: hostile/null } }");
    assert_eq!(kind(&veil, rows(&table, &[vec![V("1"), V("x")]])), Kind::GuestOutput);
}

fn keyed() -> (Arc<Table>, Veil) {
    let table = table(ReplicaIdentity::Default, "id text key, email text, note text");
    let veil = veil(
        &table,
        "keep: { filter: standard/sample, columns: [note], percent: 50, key: k }\ncolumns: { id: { mask: standard/hash, key: k }, email: { mask: hello/hush }, note: pass }",
    );
    (table, veil)
}

#[test]
fn an_old_key_is_masked_as_the_row_was_and_shows_nothing_else() {
    let (table, veil) = keyed();
    let row = run(&veil, rows(&table, &[vec![V("ada"), V("a@b.c"), V("n")]]));
    let key = run(&veil, batch(&table, Image::Key, Encoding::Plain, &[vec![V("ada"), A, A]]));
    assert_eq!(show(&key)[0], [show(&row)[0][0].as_str(), "absent", "absent"]);
    assert_ne!(show(&key)[0][0], r#""ada""#);
    assert_eq!((key.keep(0), row.keep(0).is_some()), (None, true), "a filter cannot judge an old key");
}

#[test]
fn a_key_image_that_carries_more_than_the_key_still_shows_only_the_key() {
    let (table, veil) = keyed();
    let key = run(&veil, batch(&table, Image::Key, Encoding::Plain, &[vec![V("ada"), V("secret"), V("secret")]]));
    assert_eq!(show(&key)[0][1..], ["absent", "absent"]);
}

#[test]
fn filters_keep_the_same_rows_wherever_they_stand() {
    let (table, veil) = keyed();
    let notes: Vec<String> = (0..200).map(|number| format!("note {number}")).collect();
    let all: Vec<Vec<_>> = notes.iter().map(|note| vec![V("i"), V("e"), V(note)]).collect();
    let kept = run(&veil, rows(&table, &all));
    let kept: Vec<Option<bool>> = (0..200).map(|row| kept.keep(row)).collect();
    assert!(kept.contains(&Some(true)) && kept.contains(&Some(false)), "half of them, by chance");
    for (row, one) in all.iter().enumerate().step_by(17) {
        assert_eq!(run(&veil, rows(&table, std::slice::from_ref(one))).keep(0), kept[row], "row {row}");
    }
}

fn two_columns(identity: ReplicaIdentity) -> (Arc<Table>, Veil) {
    let table = table(identity, "id text key, full_name text, locale text");
    let text = "columns: { id: pass, \"full name\": { mask: full-name/full-name, columns: [\"full name\", locale], key: k }, locale: pass }";
    let veil = veil(&table, text);
    (table, veil)
}

#[test]
fn a_mask_of_two_columns_needs_both_values() {
    let (table, veil) = two_columns(ReplicaIdentity::Default);
    assert_eq!(kind(&veil, rows(&table, &[vec![V("1"), U, V("de")]])), Kind::UnchangedNeeded);
    assert_eq!(kind(&veil, rows(&table, &[vec![V("1"), V("Zoë"), U]])), Kind::UnchangedNeeded);
}

#[test]
fn under_full_the_old_row_gives_what_the_new_one_left_out() {
    let (table, veil) = two_columns(ReplicaIdentity::Full);
    let whole = show(&run(&veil, rows(&table, &[vec![V("1"), V("Zoë Müller"), V("de")]])));
    let other = vec![V("9"), V("Nobody"), V("ja")];
    let window = RawWindow {
        operations: vec![
            Operation::Insert { new: RowRef { batch: 0, row: 0 } },
            Operation::Update { old: Some(RowRef { batch: 1, row: 1 }), new: RowRef { batch: 0, row: 1 } },
        ],
        batches: vec![
            rows(&table, &[other.clone(), vec![V("1"), U, V("de")]]),
            rows(&table, &[other, vec![V("1"), V("Zoë Müller"), V("de")]]),
        ],
        fault: None,
        budget: None,
    };
    let veiled = veil.veil_window(&mut WorkerInstances::default(), window);
    let veiled = veiled.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(show(&veiled.batches[0])[1], whole[0]);
    assert_eq!(show(&veiled.batches[1])[1], whole[0], "the old row is masked too");
    assert_eq!(veiled.operations.len(), 2);
}

#[test]
fn a_table_that_changed_its_shape_is_refused() {
    let (_, veil) = three_ways();
    let longer = table(ReplicaIdentity::Default, "id text key, masked text, nulled text, passed text, added text");
    assert_eq!(kind(&veil, rows(&longer, &[vec![V("1"), V("a"), N, N, V("unmasked")]])), Kind::RelationChanged);
    let retyped = table(ReplicaIdentity::Default, "id text key, masked varchar(9), nulled text, passed text");
    assert_eq!(kind(&veil, rows(&retyped, &[vec![V("1"), V("a"), N, N]])), Kind::RelationChanged);
    let unknown = Arc::new(Table { relation_id: 8, ..(*retyped).clone() });
    assert_eq!(kind(&veil, rows(&unknown, &[vec![V("1"), V("a"), N, N]])), Kind::UnknownRelation);
}

#[test]
fn a_value_that_is_not_utf8_is_refused_before_a_guest_sees_it() {
    let (table, veil) = three_ways();
    let cells = (0..4).map(|_| pgveil::row::Cell::value(0, 1).unwrap()).collect();
    let raw = RawBatch::new(Arc::clone(&table), Image::Row, Encoding::Plain, bytes::Bytes::from_static(b"\xff"), cells);
    assert_eq!(kind(&veil, raw.unwrap()), Kind::SourceData);
}
