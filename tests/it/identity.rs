//! How rows are found: keys, whole rows, key changes, out-of-line values.

use pgveil_tests::{Result, on_every_version};

use crate::scenario::Scenario;

fn check(major: pgveil_tests::Major, purpose: &str, schema: &str, before: &str, changes: &[&str]) -> Result<()> {
    Scenario { schema, before, changes, tables: &["public.t"] }.check(major, purpose)
}

/// A text of 3 kB that compression cannot shorten, stored out of line.
const BIG: &str = "(select string_agg(md5(i::text), '') from generate_series(1, 100) i)";

on_every_version! {
    /// K01: NULLs are found, and of equal rows exactly one is touched.
    fn full_with_nulls_and_duplicates(major) {
        check(
            major,
            "full_duplicates",
            "create table t (a int, b text); alter table t replica identity full",
            "insert into t values (1, null), (1, null), (2, 'x'), (2, 'x'), (2, 'x'), (null, null)",
            &[
                "update t set b = 'changed' where ctid = (select min(ctid) from t where a = 1)",
                "delete from t where ctid = (select min(ctid) from t where a = 2)",
                "delete from t where a is null",
            ],
        )?;
    }

    /// Equal numbers written differently are different rows under FULL.
    fn full_tells_scales_apart(major) {
        check(
            major,
            "full_scales",
            "create table t (a numeric, b json); alter table t replica identity full",
            "insert into t values (1.0, '{\"a\":1}'), (1.00, '{\"a\":1}'), (1.000, '{ \"a\":1}')",
            &["delete from t where a::text = '1.00'", "update t set a = 2 where a::text = '1.000'"],
        )?;
    }

    /// FULL on a table with a primary key.
    fn full_with_a_primary_key(major) {
        check(
            major,
            "full_pk",
            "create table t (id int primary key, b text); alter table t replica identity full",
            "insert into t select i, 'v' || i from generate_series(1, 50) i",
            &["update t set b = b || '!' where id % 2 = 0", "delete from t where id % 5 = 0", "update t set id = id + 100 where id < 5"],
        )?;
    }

    /// K02: the identity is another unique index, and is switched.
    fn identity_by_index_and_switched(major) {
        let scenario = Scenario {
            schema: "create table t (a int not null, b int not null, v text); create unique index t_a on t (a); \
                     create unique index t_b on t (b); alter table t replica identity using index t_a",
            before: "insert into t values (1, 10, 'x'), (2, 20, 'y')",
            changes: &["update t set v = 'z' where a = 1", "update t set a = 5 where a = 2", "delete from t where a = 1"],
            tables: &["public.t"],
        };
        scenario.check(major, "identity_index")?;
    }

    /// K04, K06, K17: composite keys, key changes.
    fn key_changes(major) {
        check(
            major,
            "key_changes",
            "create table t (a text, z int, v text, primary key (z, a))",
            "insert into t select 'a' || i, i, 'v' from generate_series(1, 20) i",
            &["update t set a = 'new' where z = 3", "update t set z = z + 100 where z < 6", "delete from t where z > 100", "update t set v = 'w'"],
        )?;
    }

    /// K09: nothing to set.
    fn only_key_columns(major) {
        check(
            major,
            "only_keys",
            "create table t (id int, k text, primary key (id, k))",
            "insert into t values (1, 'a'), (2, 'b')",
            &["update t set id = id", "update t set k = 'c' where id = 2", "delete from t where id = 1"],
        )?;
    }

    /// K14: a unique value moves from a deleted row to an inserted one in one transaction.
    fn source_order_across_keys(major) {
        check(
            major,
            "order_across_keys",
            "create table t (id int primary key, email text unique)",
            "insert into t select i, 'e' || i from generate_series(1, 200) i",
            &[
                "begin; delete from t where id = 1; insert into t values (1001, 'e1'); commit",
                "begin; update t set email = 'free' where id = 2; update t set email = 'e2' where id = 3; commit",
                "begin; delete from t where id between 50 and 150; insert into t select i + 2000, 'e' || i from generate_series(50, 150) i; commit",
            ],
        )?;
    }

    /// K16: swapped keys and shifted unique values.
    fn swapped_and_shifted_keys(major) {
        check(
            major,
            "swapped_keys",
            "create table t (id int not null, u int, v text, unique (u) deferrable initially deferred); \
             alter table t add primary key (id)",
            "insert into t select i, i, 'v' || i from generate_series(1, 100) i",
            &["update t set u = case u when 1 then 2 when 2 then 1 else u end where u < 3", "update t set u = u + 1"],
        )?;
    }

    /// X01, X06: an unchanged out-of-line value is left alone.
    fn unchanged_toast(major) {
        let before = format!("insert into t values (1, {BIG}, array[{BIG}], 'v'), (2, {BIG}, null, 'v')");
        check(
            major,
            "unchanged_toast",
            "create table t (id int primary key, big text, list text[], v text); alter table t alter big set storage external, alter list set storage external",
            &before,
            &["update t set v = 'w'", "update t set id = 10 where id = 1", "update t set big = 'small' where id = 2", "update t set list = null"],
        )?;
    }

    /// X02, T17: the same under FULL.
    fn unchanged_toast_under_full(major) {
        let before = format!("insert into t values (1, {BIG}, 'v'), (2, {BIG}, 'v')");
        check(
            major,
            "unchanged_toast_full",
            "create table t (id int, big varchar, v text); alter table t alter big set storage external; alter table t replica identity full",
            &before,
            &["update t set v = 'w' where id = 1", "delete from t where id = 2"],
        )?;
    }

    /// X04: the key itself lies out of line.
    fn toasted_key(major) {
        let before = format!("insert into t values (left({BIG}, 2500), 'v')");
        check(
            major,
            "toasted_key",
            "create table t (k text primary key, v text); alter table t alter k set storage external",
            &before,
            &["update t set v = 'w'", "update t set v = 'x'", "delete from t"],
        )?;
    }

    /// T42: padding is no part of a char(n) key.
    fn padded_key(major) {
        check(major, "padded_key", "create table t (k char(8) primary key, v text)", "insert into t values ('ab', 'v'), ('cd', 'v')", &["update t set v = 'w' where k = 'ab'", "delete from t where k = 'cd'"])?;
    }

    /// T27: bytea as key.
    fn bytea_key(major) {
        check(major, "bytea_key", "create table t (k bytea primary key, v text)", "insert into t values ('\\xdeadbeef', 'v'), ('\\x00', 'v')", &["update t set v = 'w'", "delete from t where k = '\\x00'"])?;
    }

    /// P11, P12: generated columns are computed on the target; identity columns keep the source's values.
    fn generated_and_identity_columns(major) {
        check(
            major,
            "generated",
            "create table t (id int generated always as identity primary key, n int generated always as identity (start 100), a int, b int generated always as (a * 2) stored)",
            "insert into t (a) select i from generate_series(1, 40) i",
            &["insert into t (a) values (77)", "update t set a = a + 1", "update t set id = default where id = 3", "update t set n = default where id = 5", "delete from t where id = 1"],
        )?;
    }

    /// Long runs go by set; repeated keys and mixed shapes keep their end state.
    fn long_runs(major) {
        check(
            major,
            "long_runs",
            "create table t (id int primary key, a text, b int)",
            "insert into t select i, 'a' || i, i from generate_series(1, 3000) i",
            &[
                "update t set a = a || '\"\\', b = null where id % 3 = 0",
                "begin; update t set b = 1; update t set b = 2 where id < 1000; update t set a = null where id % 7 = 0; commit",
                "begin; delete from t where id > 1500; insert into t select i, 'again', i from generate_series(1600, 1700) i; update t set b = 9 where id > 1650; commit",
                "delete from t",
            ],
        )?;
    }
}
