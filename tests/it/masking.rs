//! What masks and filters make of rows: in the snapshot and in the stream, under every identity, on every text type.

use pgveil_tests::compare::Comparison;
use pgveil_tests::database::Row;
use pgveil_tests::{Job, Major, Pair, Result, on_every_version};

use crate::scenario::publish;
use crate::support::native::{self, KEY, KEY_VARIABLE, POLICY_HEAD};
use crate::support::people::masked;
use crate::support::record::halted;

const HASH: &str = "{ mask: standard/hash, key: people }";

/// A text of 5 kB that compression cannot shorten.
const BIG: &str = "(select string_agg(md5(i::text), '') from generate_series(1, 160) i)";

/// A job on tables whose policies are given as YAML flow mappings.
fn job(pair: &Pair, tables: &[(&str, &str)]) -> Result<Job> {
    let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
    let written: String = tables.iter().map(|(name, policy)| format!("  {name}: {{ {policy} }}\n")).collect();
    publish(pair, &names)?;
    Ok(Job::new(pair, &names, &format!("{POLICY_HEAD}tables:\n{written}"))?.environment(KEY_VARIABLE, KEY))
}

/// A pair with the schema at both ends and rows at the source.
fn pair(major: Major, purpose: &str, schema: &str, rows: &str) -> Result<Pair> {
    let pair = Pair::of(major, purpose)?;
    pair.execute(schema)?;
    pair.source.execute(rows)?;
    Ok(pair)
}

/// Snapshot, compare, then each change by itself through the stream, compare.
fn check(pair: &Pair, job: &Job, changes: &[&str], compare: impl Fn() -> Result<()>) -> Result<()> {
    job.succeed(&["bootstrap", "--once"])?;
    compare().map_err(|error| format!("after the snapshot: {error}"))?;
    for change in changes {
        pair.source.execute(change)?;
        job.succeed(&["run", "--once"])?;
        compare().map_err(|error| format!("after {change}: {error}"))?;
    }
    Ok(())
}

/// The job is refused before anything is made, and each of these is named.
fn refused(pair: &Pair, tables: &[(&str, &str)], named: &[&str]) -> Result<()> {
    let job = job(pair, tables)?;
    for arguments in [&["check"][..], &["bootstrap", "--once"]] {
        let refused = job.run(arguments)?;
        assert!(matches!(refused.code, Some(2 | 3)), "{arguments:?} is not refused: {refused}");
        for name in named {
            assert!(refused.to_string().contains(name), "{arguments:?} does not name {name}: {refused}");
        }
    }
    assert_eq!(
        pair.source.value(&format!("select count(*) from pg_replication_slots where slot_name = '{}'", job.slot()))?,
        "0"
    );
    Ok(())
}

on_every_version! {
    /// K07, M17: rows are looked up by their masked old keys, and masked foreign keys still match.
    fn masked_keys(major) {
        let pair = pair(
            major,
            "masked_keys",
            "create table account (id text primary key, owner text); \
             create table entry (account text references account on update cascade, n int, note text, primary key (account, n))",
            "insert into account select 'a' || i, 'o' || i from generate_series(1, 60) i; insert into entry select 'a' || i, 1, 'x' from generate_series(1, 60) i",
        )?;
        let account = format!("columns: {{ id: {HASH} }}, rest: pass");
        let entry = format!("columns: {{ account: {HASH} }}, rest: pass");
        let job = job(&pair, &[("public.account", &account), ("public.entry", &entry)])?;
        let changes = [
            "update account set owner = 'new' where id = 'a1'",
            "update account set id = 'b' || id where id in ('a2', 'a3')",
            "begin; delete from entry where account = 'a4'; delete from account where id = 'a4'; commit",
            "update entry set note = 'all', n = n + 1",
            "insert into account values ('', null); insert into entry values ('', 1, 'empty')",
            "begin; delete from entry where account > 'a3'; delete from account where id > 'a3'; commit",
        ];
        check(&pair, &job, &changes, || {
            Comparison::of("public.account").mask("id", masked("id")).check(&pair.source, &pair.target)?;
            Comparison::of("public.entry").mask("account", masked("account")).check(&pair.source, &pair.target)?;
            let orphans = pair.target.value("select count(*) from entry left join account on account = id where id is null")?;
            assert_eq!(orphans, "0");
            Ok(())
        })?;
    }

    /// K01, M17: found by the whole masked row, NULLs and duplicates included.
    fn masked_whole_rows(major) {
        let pair = pair(
            major,
            "masked_full",
            "create table t (a text, b text, n int); alter table t replica identity full",
            "insert into t values ('x', null, 1), ('x', null, 1), (null, null, 2), ('', 'y', 3), ('z', 'z', 4), ('z', 'z', 4), ('z', 'z', 4)",
        )?;
        let policy = format!("columns: {{ a: {HASH}, b: {HASH} }}, rest: pass");
        let job = job(&pair, &[("public.t", &policy)])?;
        let changes = [
            "update t set b = 'changed' where ctid = (select min(ctid) from t where a = 'x')",
            "delete from t where ctid = (select min(ctid) from t where a = 'z')",
            "update t set n = n + 10",
            "delete from t where a is null",
        ];
        check(&pair, &job, &changes, || {
            Comparison::of("public.t").mask("a", masked("a")).mask("b", masked("b")).check(&pair.source, &pair.target).map(drop)
        })?;
    }

    /// X07: an unchanged out-of-line value is neither sent nor masked again.
    fn unchanged_masked_values(major) {
        for identity in ["default", "full"] {
            let pair = pair(
                major,
                &format!("masked_toast_{identity}"),
                &format!("create table t (id int primary key, big text, v text); alter table t alter big set storage external; alter table t replica identity {identity}"),
                &format!("insert into t values (1, {BIG}, 'v'), (2, {BIG}, null), (3, null, 'v')"),
            )?;
            let policy = format!("columns: {{ big: {HASH} }}, rest: pass");
            let job = job(&pair, &[("public.t", &policy)])?;
            let insert = format!("insert into t values (4, {BIG} || 'more', 'v')");
            let changes = [&insert, "update t set v = 'w'", "update t set id = id + 10 where id < 3", "update t set big = big || '!' where id = 4", "update t set big = null where id = 11", "delete from t where id = 12"];
            check(&pair, &job, &changes, || Comparison::of("public.t").mask("big", masked("big")).check(&pair.source, &pair.target).map(drop))?;
        }
    }

    /// M06, M07: NULL stays NULL, the empty string is a value.
    fn nulls_and_empty_strings(major) {
        let pair = pair(
            major,
            "nulls",
            "create table t (id int primary key, hashed text, address text, gone text)",
            "insert into t values (1, null, null, null), (2, '', '', ''), (3, 'x', 'x@example.com', 'x')",
        )?;
        let policy = format!("columns: {{ id: pass, hashed: {HASH}, address: {{ mask: standard/email, key: people }}, gone: \"null\" }}");
        let job = job(&pair, &[("public.t", &policy)])?;
        let changes = ["insert into t select id + 10, hashed, address, gone from t", "update t set hashed = address, gone = 'y' where id > 11", "update t set hashed = null where id = 3"];
        check(&pair, &job, &changes, || {
            let source = pair.source.rows("select id, hashed from t order by id")?;
            let target = pair.target.rows("select id, hashed, address, gone from t order by id")?;
            let addresses = pair.source.rows("select address from t order by id")?;
            assert_eq!(source.len(), target.len());
            for ((source, target), address) in source.iter().zip(&target).zip(&addresses) {
                assert_eq!(target[1], source[1].as_deref().map(native::hash), "row {:?}", source[0]);
                assert_eq!(target[3], None, "row {:?}", source[0]);
                match address[0].as_deref() {
                    None | Some("") => assert_eq!(target[2], address[0], "row {:?}", source[0]),
                    Some(address) => assert!(target[2].as_deref().is_some_and(|masked| masked != address && masked.contains('@'))),
                }
            }
            Ok(())
        })?;
    }

    /// The four ways of a row through a filter, by a column that changes; under both identities.
    fn filtered_rows(major) {
        for identity in ["default", "full"] {
            let pair = pair(
                major,
                &format!("sample_{identity}"),
                &format!("create table t (id int primary key, grp int, v text); alter table t replica identity {identity}"),
                "insert into t select i, i % 40, 'v' || i from generate_series(1, 400) i",
            )?;
            let policy = "keep: { filter: standard/sample, columns: [grp], percent: 50, key: people }, rest: pass";
            let job = job(&pair, &[("public.t", policy)])?;
            let changes = [
                "insert into t select i, i % 40, 'w' from generate_series(401, 480) i; insert into t values (500, null, 'null')",
                "update t set v = v || '!'",
                "update t set grp = grp + 1 where id % 2 = 0",
                "update t set grp = grp + 7, id = id + 10000 where id % 3 = 0",
                "begin; update t set grp = 3 where grp = 4; update t set grp = 5 where grp = 3; delete from t where grp = 6; commit",
                "delete from t where id % 5 = 0",
            ];
            check(&pair, &job, &changes, || {
                // A single NULL is hashed as its mark, which no text has; such rows are compared by hand below.
                let keeps = |row: &pgveil_tests::compare::SourceRow<'_>| row.get("grp").is_some_and(|grp| native::keeps(grp, 50));
                pair.target.execute("delete from t where grp is null")?;
                let kept = Comparison::of("public.t").keep(keeps).check(&pair.source, &pair.target)?;
                let all: usize = pair.source.value("select count(*) from t")?.parse()?;
                assert!(kept > all / 5 && kept < all * 4 / 5, "{kept} of {all}");
                Ok(())
            })?;
        }
    }
}

/// X07: a row must enter, but its value was not sent; and a filter must judge by a value that was not sent.
#[test]
fn a_filter_that_needs_an_unchanged_value_stops() -> Result<()> {
    let (inside, outside) = inside_and_outside();
    let enters = format!("update t set grp = {inside}");
    for (purpose, column, change) in [("enters", "grp", enters.as_str()), ("judges", "big", "update t set v = 'w'")] {
        let pair = pair(
            Major::V15,
            purpose,
            "create table t (id int primary key, grp int, big text, v text); alter table t alter big set storage external",
            &format!("insert into t values (1, {outside}, {BIG}, 'v')"),
        )?;
        let policy =
            format!("keep: {{ filter: standard/sample, columns: [{column}], percent: 50, key: people }}, rest: pass");
        let job = job(&pair, &[("public.t", &policy)])?;
        job.succeed(&["bootstrap", "--once"])?;
        let before = pair.target.rows("select id, grp, v from t")?;
        pair.source.execute(change)?;
        let finished = job.run(&["run", "--once"])?;
        // The target's own refusal counts as well: it holds no row to take the value from.
        let record = halted(&finished, 5, &pair.target, "ERROR", &["UnchangedNeeded", "RowMissing"])?;
        assert!(record.reason.contains("public.t"), "{record:?}");
        assert_eq!(pair.target.rows("select id, grp, v from t")?, before);
    }
    Ok(())
}

/// A group that the sample keeps, and one that it drops.
fn inside_and_outside() -> (u32, u32) {
    let found = |kept: bool| (0..100).find(|group: &u32| native::keeps(&group.to_string(), 50) == kept).unwrap();
    (found(true), found(false))
}

/// M04: what a column can hold is known before the first row.
#[test]
fn masks_fit_their_columns() -> Result<()> {
    let pair = pair(
        Major::V18,
        "lengths",
        "create table t (id int primary key, short varchar(10), padded char(12), mail varchar(40))",
        "insert into t select i, 'ünïcödé' || i, 'p' || i, 'somebody.with.a.long.name' || i || '@x.example' from generate_series(1, 200) i",
    )?;
    let policy = format!(
        "columns: {{ id: pass, short: {HASH}, padded: {HASH}, mail: {{ mask: standard/email, key: people }} }}"
    );
    let job = job(&pair, &[("public.t", &policy)])?;
    check(
        &pair,
        &job,
        &["update t set short = id::text, padded = id::text, mail = id || left(mail, 30) where id % 2 = 0"],
        || {
            assert_eq!(pair.target.value("select max(length(mail)) <= 40 and min(length(mail)) > 10 from t")?, "t");
            let shorts = pair.target.rows("select id, short from t order by id")?;
            let expected = pair.source.rows("select id, short from t order by id")?;
            let expected: Vec<Row> = expected
                .into_iter()
                .map(|row| vec![row[0].clone(), row[1].as_deref().map(|value| native::hash(value)[..10].to_owned())])
                .collect();
            assert_eq!(shorts, expected);
            Ok(())
        },
    )?;
    let narrow = Pair::of(Major::V18, "too_short")?;
    narrow.execute("create table t (id int primary key, short varchar(10))")?;
    refused(&narrow, &[("public.t", "columns: { id: pass, short: { mask: standard/email, key: people } }")], &["short"])
}

/// M02, K07: unique columns and keys take injective masks only; a key's mask reads the key only.
#[test]
fn masks_that_could_collide_are_refused_on_unique_columns() -> Result<()> {
    let short = "{ mask: standard/hash, key: people, length: 8 }";
    let cases = [
        (
            "unique",
            "create table t (id int primary key, email text unique)",
            format!("columns: {{ id: pass, email: {short} }}"),
            "email",
        ),
        (
            "unique_index",
            "create table t (id int primary key, email text); create unique index on t (email)",
            format!("columns: {{ id: pass, email: {short} }}"),
            "email",
        ),
        ("key", "create table t (email text primary key)", format!("columns: {{ email: {short} }}"), "email"),
        (
            "key_reads_more",
            "create table t (id text primary key, email text)",
            "columns: { email: pass, id: { mask: standard/hash, key: people, columns: [email] } }".to_owned(),
            "id",
        ),
    ];
    for (purpose, schema, policy, column) in cases {
        let pair = pair(Major::V15, &format!("collide_{purpose}"), schema, "select 1")?;
        refused(&pair, &[("public.t", &policy)], &[column]).map_err(|error| format!("{purpose}: {error}"))?;
    }
    Ok(())
}

/// N07: a rule that matches no column is an error, in exact case; so is a column without a rule, or NULL where none may be.
#[test]
fn rules_must_meet_columns() -> Result<()> {
    let schema = "create table t (id int primary key, \"Email\" text not null, note text)";
    let cases = [
        ("case", format!("columns: {{ id: pass, email: {HASH}, note: pass }}, rest: pass"), "email"),
        ("misspelt", format!("columns: {{ id: pass, Emial: {HASH}, note: pass }}, rest: pass"), "Emial"),
        ("undecided", format!("columns: {{ id: pass, Email: {HASH} }}"), "note"),
        ("not_null", "columns: { id: pass, Email: \"null\", note: pass }".to_owned(), "Email"),
        (
            "granted",
            "columns: { id: pass, Email: { mask: standard/hash, key: people, columns: [Nobody] }, note: pass }"
                .to_owned(),
            "Nobody",
        ),
        (
            "filter",
            "keep: { filter: standard/sample, columns: [Id], percent: 5, key: people }, rest: pass".to_owned(),
            "Id",
        ),
    ];
    for (purpose, policy, named) in cases {
        let pair = pair(Major::V18, &format!("rules_{purpose}"), schema, "select 1")?;
        refused(&pair, &[("public.t", &policy)], &[named]).map_err(|error| format!("{purpose}: {error}"))?;
    }
    Ok(())
}

/// M01: the same key gives the same output in every job, another key or domain an unrelated one.
#[test]
fn keys_and_domains_decide() -> Result<()> {
    let other = KEY.replace("00", "ff");
    let mut outputs = Vec::new();
    for (purpose, material, domain) in
        [("salt_1", KEY, ""), ("salt_2", KEY, ""), ("salt_3", other.as_str(), ""), ("salt_4", KEY, "elsewhere")]
    {
        let pair = pair(
            Major::V15,
            purpose,
            "create table t (id int primary key, v text, w text)",
            "insert into t values (1, 'ada', 'ada')",
        )?;
        let written = if domain.is_empty() { String::new() } else { format!(", domain: {domain}") };
        let policy = format!(
            "columns: {{ id: pass, v: {{ mask: standard/hash, key: people{written} }}, w: {{ mask: standard/hash, key: people{written} }} }}"
        );
        let job = job(&pair, &[("public.t", &policy)])?.environment(KEY_VARIABLE, material);
        job.succeed(&["bootstrap", "--once"])?;
        let expected = native::hash_under(material, domain, "ada");
        assert_eq!(pair.target.rows("select v, w from t")?, [[Some(expected.clone()), Some(expected.clone())]]);
        outputs.push(expected);
    }
    assert_eq!(outputs[0], outputs[1]);
    outputs.dedup();
    assert_eq!(outputs.len(), 3);
    Ok(())
}

/// M09, M22: a row masks alike by copy, by insert and by update, whatever the process's time zone and locale.
#[test]
fn neither_path_nor_locale_changes_a_value() -> Result<()> {
    let mut results = Vec::new();
    for (purpose, zone, locale) in [("locale_1", "UTC", "C"), ("locale_2", "Asia/Kathmandu", "tr_TR.UTF-8")] {
        let pair = pair(
            Major::V18,
            purpose,
            "create table t (id int primary key, mail text, name text, phone text, card text, city text)",
            "insert into t values (1, 'IRIS.Ipek@Example.COM', 'İpek Irmak', '+49 30 1234567', '4111 1111 1111 1111', 'Iğdır')",
        )?;
        let policy = "columns: { id: pass, mail: { mask: standard/email, key: people }, name: { mask: standard/name, key: people }, phone: { mask: standard/phone, key: people }, \
                      card: { mask: standard/digits, key: people }, city: { mask: standard/hash, key: people } }";
        let job = job(&pair, &[("public.t", policy)])?
            .environment("TZ", zone)
            .environment("LC_ALL", locale)
            .environment("LANG", locale);
        job.succeed(&["bootstrap", "--once"])?;
        pair.source
            .execute("insert into t select 2, mail, name, phone, card, city from t; insert into t values (3)")?;
        pair.source.execute("update t set (mail, name, phone, card, city) = (select mail, name, phone, card, city from t where id = 1) where id = 3")?;
        pair.source.execute(
            "insert into t select i, mail, name, phone, card, city from t, generate_series(4, 60) i where id = 1",
        )?;
        job.succeed(&["run", "--once"])?;
        let rows = pair.target.rows("select distinct mail, name, phone, card, city from t")?;
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].iter().all(Option::is_some));
        results.extend(rows);
    }
    assert_eq!(results[0], results[1]);
    Ok(())
}

/// M19: text under other names.
#[test]
fn every_type_of_text_can_be_masked() -> Result<()> {
    let pair = pair(
        Major::V15,
        "text_types",
        "create extension citext; create domain address as text check (value like '%@%' or length(value) = 64); create domain wide as varchar(64); \
         create table t (id int primary key, a text, b varchar, c varchar(64), d citext, e address, f wide, g char(64), mail_d citext, mail_e address)",
        "insert into t select i, v, v, v, v, v, v, v, v, v from generate_series(1, 30) i, lateral (select 'u' || i || '@example.com') x(v)",
    )?;
    let mail = "{ mask: standard/email, key: people }";
    let policy = format!(
        "columns: {{ id: pass, a: {HASH}, b: {HASH}, c: {HASH}, d: {HASH}, e: {HASH}, f: {HASH}, g: {HASH}, mail_d: {mail}, mail_e: {mail} }}"
    );
    let job = job(&pair, &[("public.t", &policy)])?;
    check(
        &pair,
        &job,
        &[
            "update t set (a, b, c, d, e, f, g) = row(a || 'x', b || 'x', c || 'x', d || 'x', e || 'x', f || 'x', rtrim(g) || 'x') where id % 2 = 0",
        ],
        || {
            for row in pair.target.rows("select a, b, c, d, e, f, g from t")? {
                assert!(row.iter().all(|value| value == &row[0]), "one value, one mask, whatever the type: {row:?}");
            }
            for row in pair.target.rows("select mail_d, mail_e from t")? {
                assert!(
                    row.iter().all(
                        |value| value == &row[0] && value.as_deref().is_some_and(|mail| mail.contains("@example."))
                    ),
                    "{row:?}"
                );
            }
            let expected: Vec<_> = pair
                .source
                .rows("select a from t order by id")?
                .into_iter()
                .flatten()
                .map(|value| vec![value.as_deref().map(native::hash)])
                .collect();
            assert_eq!(pair.target.rows("select a from t order by id")?, expected);
            Ok(())
        },
    )
}

/// M16: a generated column is computed from masked values, and never sent.
#[test]
fn generated_columns_follow_masked_ones() -> Result<()> {
    let pair = pair(
        Major::V18,
        "generated_masked",
        "create table t (id int primary key, first text, last text, whole text generated always as (first || ' ' || last) stored)",
        "insert into t (id, first, last) select i, 'Ada' || i, 'Lovelace' || i from generate_series(1, 30) i",
    )?;
    let policy = format!("columns: {{ id: pass, first: {HASH}, last: {HASH} }}, rest: pass");
    let job = job(&pair, &[("public.t", &policy)])?;
    check(
        &pair,
        &job,
        &[
            "insert into t (id, first) values (100, 'only')",
            "update t set last = 'Byron' where id < 5",
            "delete from t where id = 6",
        ],
        || {
            let whole = |row: &pgveil_tests::compare::SourceRow<'_>| {
                Some(format!("{} {}", native::hash(row.get("first")?), native::hash(row.get("last")?)))
            };
            Comparison::of("public.t")
                .mask("first", masked("first"))
                .mask("last", masked("last"))
                .mask("whole", whole)
                .check(&pair.source, &pair.target)
                .map(drop)
        },
    )
}
