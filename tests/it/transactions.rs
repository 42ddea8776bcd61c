//! Transactions of every shape: one at the source is one at the target, in commit order.

use pgveil_tests::{Result, on_every_version};

use crate::scenario::Scenario;

fn check(major: pgveil_tests::Major, purpose: &str, changes: &[&str]) -> Result<()> {
    Scenario {
        schema: "create table t (id int primary key, v text); create table u (id int primary key, t int references t)",
        before: "insert into t select i, 'v' from generate_series(1, 10) i; insert into u values (1, 1)",
        changes,
        tables: &["public.t", "public.u"],
    }
    .check(major, purpose)
}

on_every_version! {
    /// O01: what a rolled-back savepoint did is not there, the rest of the transaction is.
    fn savepoints(major) {
        check(
            major,
            "savepoints",
            &[
                "set logical_decoding_work_mem = '64kB'; begin; insert into t select i, 'x' from generate_series(100, 599) i; savepoint a; \
                 insert into t select i, 'y' from generate_series(1000, 3999) i; rollback to a; insert into t select i, 'z' from generate_series(5000, 5004) i; commit",
                "begin; savepoint x; rollback to x; commit",
            ],
        )?;
    }

    /// O06: one large transaction.
    fn large_transaction(major) {
        check(major, "large_transaction", &["insert into t select i, repeat('x', i % 300) from generate_series(100, 100099) i", "update t set v = v || '!' where id > 50000"])?;
    }

    /// O11: transactions without changes, or on other tables.
    fn empty_transactions(major) {
        check(major, "empty_transactions", &["create table other (id int); insert into other select generate_series(1, 1000)", "begin; select 1; commit", "insert into t values (11, 'x')"])?;
    }

    /// O14: a transaction that came from elsewhere, and messages beside the data.
    fn origins_and_messages(major) {
        check(
            major,
            "origins",
            &[
                "select pg_replication_origin_create('elsewhere_' || current_database()); select pg_replication_origin_session_setup('elsewhere_' || current_database()); \
                 insert into t values (20, 'x'); select pg_replication_origin_session_reset(); select pg_replication_origin_drop('elsewhere_' || current_database())",
                "select pg_logical_emit_message(true, 'p', 'inside'); select pg_logical_emit_message(false, 'p', 'outside'); insert into t values (21, 'x')",
            ],
        )?;
    }

    /// Several tables, foreign keys, restarted sequences.
    fn truncates(major) {
        check(
            major,
            "truncates",
            &["truncate t, u", "insert into t values (1, 'x'); insert into u values (1, 1)", "truncate t cascade", "insert into t values (2, 'y')", "truncate t, u restart identity"],
        )?;
    }

    /// P14: children may come before parents within the target's constraints.
    fn foreign_keys(major) {
        check(major, "foreign_keys", &["begin; insert into t values (50, 'p'); insert into u values (50, 50); commit", "begin; delete from u where id = 50; delete from t where id = 50; commit"])?;
    }
}
