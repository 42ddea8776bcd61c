//! Every kind of value, in the snapshot and in the stream: what passes arrives as it was.

use pgveil_tests::{Result, on_every_version};

use crate::scenario::Scenario;

/// A table with one column of the type, and each value inserted before the snapshot, after it, and changed to and from
/// in the stream.
fn check(major: pgveil_tests::Major, purpose: &str, setup: &str, kind: &str, values: &[&str]) -> Result<()> {
    let schema = format!("{setup}; create table t (id int primary key, v {kind})");
    let rows = |from: usize| {
        let rows = values.iter().enumerate().map(|(number, value)| format!("({}, {value})", from + number));
        format!("insert into t values {}", rows.collect::<Vec<_>>().join(", "))
    };
    let rotated = format!(
        "update t set v = (select v from t o where o.id = (t.id + 1) % {count} limit 1) where id < {count}; delete from t where id = 1000",
        count = values.len().max(1)
    );
    let (before, after) = (rows(0), rows(1000));
    Scenario { schema: &schema, before: &before, changes: &[&after, &rotated], tables: &["public.t"] }
        .check(major, purpose)
}

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident: $setup:literal, $kind:literal, [$($value:literal),+ $(,)?];)+) => {
        on_every_version! {
            $($(#[$doc])* fn $name(major) { check(major, stringify!($name), $setup, $kind, &[$($value),+])?; })+
        }
    };
}

values! {
    /// T01
    numeric_specials: "", "numeric", ["'NaN'", "'Infinity'", "'-Infinity'", "null", "1e131071", "123456789012345678901234567890.123456789012345678901234567890", "0.000"];
    /// T01
    float_specials: "", "float8", ["'NaN'", "'Infinity'", "'-Infinity'", "-216237.00000035969", "0.1::float8 + 0.2", "'-0'", "5e-324"];
    /// T02
    infinite_dates: "", "date", ["'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-01-01 BC'"];
    /// T02, T04
    infinite_timestamps: "", "timestamptz", ["'infinity'", "'-infinity'", "'294276-12-31 23:59:59.999999+00'", "'2024-02-29 12:00:00.5+05:45'"];
    /// T02
    infinite_in_arrays: "", "timestamptz[]", ["'{infinity,-infinity,null}'", "'{}'"];
    /// T24
    ranges: "", "tstzrange", ["tstzrange(null, '2024-01-01')", "'[,]'", "'empty'", "tstzrange('-infinity', 'infinity')"];
    /// T24
    multiranges: "", "int4multirange", ["'{[1,3),[5,7)}'", "'{}'"];
    /// T07
    intervals: "", "interval", ["'1 mon -2 days 03:04:05.5'", "'-1 year'", "'0'"];
    /// T12
    arrays_with_bounds: "", "int[]", ["'[0:1]={7,8}'", "'[-2:0]={1,NULL,3}'", "'[0:0][5:6]={{1,2}}'", "null"];
    /// T12, T14
    text_arrays: "", "text[]", ["'{{NULL},{NULL}}'", "'{NULL,\"NULL\",\"\",a b,\"{x}\"}'", "'{}'"];
    /// T14
    json_arrays: "", "jsonb[]", ["array['{\"a\": [1, {\"b\": \"}\"}]}', '[]']::jsonb[]"];
    /// T16
    composite_arrays: "create type comp as (a int, b text)", "comp[]", ["null", "array[row(1, 'x,\"y')::comp, null]", "'{}'"];
    /// T19, T21
    enums_in_schemas: "create schema a; create schema b; create type a.t as enum ('x', 'y'); create type b.t as enum ('p', 'q'); create table other (id int primary key, v a.t)", "b.t", ["'p'", "'q'", "null"];
    /// T21
    mixed_case_type: "create schema \"coolSchema\"; create type \"coolSchema\".\"coolType\" as enum ('One', 'two words')", "\"coolSchema\".\"coolType\"", ["'One'", "'two words'"];
    /// T22
    domains: "create domain dpos as int check (value > 0); create domain dlen as varchar(5); create domain dd as dlen", "dd", ["'abc'", "null"];
    /// T22
    arrays_of_domains: "create domain dpos as int check (value > 0)", "dpos[]", ["'{1,2,null}'"];
    /// T27
    bytea: "", "bytea", ["'\\xdeadbeef'", "''", "null", "'\\x00ff5c'"];
    /// T29, T31
    json_null_and_sql_null: "", "jsonb", ["'\"FIRST\"'", "'null'", "null", "'{\"n\": 9007199254740993}'", "'1.10'"];
    /// T31, T32, T34
    texts: "", "text", ["'null'", "'NULL'", "''", "null", "'it''s'''", "E'tab\\tline\\nback\\\\slash\\r'", "E'\\\\N'", "'\\.'", "'ü€😀'"];
    /// T36
    money: "", "money", ["'-92233720368547758.08'", "'-1234.11'", "'0'"];
    /// T37
    inet: "", "inet", ["'192.168.2.0/12'", "'::1'", "'192.168.100.128/25'"];
    /// T37
    cidr: "", "cidr", ["'192.168.100.128/25'"];
    /// T37
    macaddr8: "", "macaddr8", ["'08:00:2b:01:02:03:04:05'"];
    /// T42
    padded: "", "char(5)", ["'ab'", "''", "'abcde'"];
    bits: "", "bit varying(9)", ["B'101'", "B''"];
    bit_exact: "", "bit(3)", ["B'101'"];
    uuid: "", "uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"];
    time_of_day: "", "timetz", ["'04:05:06.789-08'", "'24:00:00'"];
    text_search: "", "tsvector", ["'a fat cat'::tsvector", "null"];
    text_query: "", "tsquery", ["'fat & !rat:ab'::tsquery"];
    geometry: "", "polygon", ["'((0,0),(1,1),(2,0))'"];
    boxes: "", "box", ["'(1,1),(0,0)'"];
    internal_char: "", "\"char\"", ["'x'", "''"];
    names: "", "name", ["'pg_catalog'"];
    oids: "", "oid", ["4294967295"];
    lsns: "", "pg_lsn", ["'16/B374D848'"];
    booleans: "", "bool", ["true", "false", "null"];
    smallints: "", "int2", ["-32768", "32767"];
    bigints: "", "int8", ["-9223372036854775808", "9007199254740993"];
    floats: "", "real", ["1.1", "'-infinity'", "3.4028235e38"];
    jsonpaths: "", "jsonpath", ["'$.a[*] ? (@ > 1)'"];
    varchar_arrays: "", "varchar(7)[]", ["'{abc,\"d,e\"}'"];
}

/// Not every build of PostgreSQL has XML; Debian's has.
#[test]
fn xml() -> Result<()> {
    check(pgveil_tests::Major::V15, "xml", "", "xml", &["'<a>b</a>'", "null"])
}
