//! The SQL that changes the target, as text. Pure: no session, no values.
//!
//! Parameters are text and get their type from the place where they stand, or by a cast to the column's type without
//! its modifier. A statement that must find its row ends in [`MUST_FIND`], which raises an error on the server when it
//! did not: the transaction fails there, although its answer is read only after later ones were sent.
//!
//! | change | replica identity | statement |
//! | --- | --- | --- |
//! | insert | any | `INSERT … OVERRIDING SYSTEM VALUE`, many by COPY |
//! | update, delete | DEFAULT, INDEX | by the key, many by one statement over arrays |
//! | update, delete | FULL | by the whole old row, exactly one of equal rows |
//! | update that sets a `GENERATED ALWAYS` identity | any | delete and insert in one statement |
//! | update, delete of a filtered table | DEFAULT, INDEX | insert or update; delete if there |

use std::fmt::Write;

use super::table::{Lookup, TargetTable};

/// Raises SQLSTATE 2201G unless `hit` has as many rows as the statement must touch.
const MUST_FIND: &str = "select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = ";

/// The shape of an update: which columns it sets, and whether the key may change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UpdateShape {
    /// One flag for each column of the table: its new value came.
    pub(crate) set: Box<[bool]>,
    /// An old image came, so the row is found by it and the key is set too.
    pub(crate) old: bool,
}

/// Numbers parameters as they are written.
struct Sql {
    text: String,
    parameters: usize,
}

impl Sql {
    fn new(text: &str) -> Sql {
        Sql { text: text.to_owned(), parameters: 0 }
    }

    fn put(&mut self, text: &str) -> &mut Sql {
        self.text.push_str(text);
        self
    }

    fn parameter(&mut self) -> &mut Sql {
        self.parameters += 1;
        // Writing to a String cannot fail.
        let _ = write!(self.text, "${}", self.parameters);
        self
    }

    fn list<T>(
        &mut self,
        separator: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Sql, T),
    ) -> &mut Sql {
        for (position, item) in items.into_iter().enumerate() {
            if position > 0 {
                self.put(separator);
            }
            write(self, item);
        }
        self
    }

    fn must_find(&mut self, rows: &str) -> String {
        self.put(" returning 1) ").put(MUST_FIND).put(rows).put(")::int4) from hit");
        std::mem::take(&mut self.text)
    }
}

/// `INSERT` of one row; parameters are all columns.
pub(crate) fn insert(table: &TargetTable) -> String {
    let mut sql = Sql::new("");
    insert_values(&mut sql, table);
    sql.text
}

fn insert_values(sql: &mut Sql, table: &TargetTable) {
    sql.put("insert into ").put(&table.name).put(" (");
    sql.list(", ", &table.columns, |sql, column| _ = sql.put(&column.name));
    sql.put(") overriding system value values (");
    sql.list(", ", &table.columns, |sql, _| _ = sql.parameter());
    sql.put(")");
}

/// `UPDATE` of one row. Parameters: the columns set, in table order, then the look-up's ([`lookup_columns`]).
pub(crate) fn update(table: &TargetTable, shape: &UpdateShape) -> String {
    if replaces(table, shape) {
        return replace(table, shape);
    }
    let set = set_columns(table, shape);
    let mut sql = Sql::new("with hit as (update only ");
    sql.put(&table.name).put(" as t set ");
    if set.is_empty() {
        // Nothing to set, yet the row must be there: a table of only key columns, or all else unchanged.
        let column = &table.columns[table.key.first().copied().unwrap_or(0)].name;
        sql.put(column).put(" = t.").put(column);
    }
    sql.list(", ", &set, |sql, position| _ = sql.put(&table.columns[*position].name).put(" = ").parameter());
    sql.put(" where ");
    look_up(&mut sql, table);
    sql.must_find("1")
}

/// The columns that an update sets, in table order.
pub(crate) fn set_columns(table: &TargetTable, shape: &UpdateShape) -> Vec<usize> {
    let by_new_key = table.lookup == Lookup::Key && !shape.old;
    (0..table.columns.len())
        .filter(|position| shape.set[*position] && !(by_new_key && table.key.contains(position)))
        .collect()
}

/// The columns whose old values find the row, in the order of the look-up's parameters.
pub(crate) fn lookup_columns(table: &TargetTable) -> Vec<usize> {
    match table.lookup {
        Lookup::Key => table.key.clone(),
        Lookup::WholeRow => table.key.iter().copied().chain(0..table.columns.len()).collect(),
    }
}

/// An UPDATE may not set a `GENERATED ALWAYS` identity column.
pub(crate) fn replaces(table: &TargetTable, shape: &UpdateShape) -> bool {
    set_columns(table, shape).iter().any(|position| table.columns[*position].always_identity)
}

/// Delete and insert in one statement, unchanged columns carried over on the server.
fn replace(table: &TargetTable, shape: &UpdateShape) -> String {
    let set = set_columns(table, shape);
    let mut sql = Sql::new("with prior as (delete from only ");
    // The set columns' parameters come first, so the values are written into a query of their own in front.
    let mut values = Sql::new("");
    values.list(", ", table.columns.iter().enumerate(), |sql, (position, column)| {
        if set.contains(&position) {
            sql.put("(").parameter().put("::text)::").put(&column.type_name);
        } else {
            sql.put("prior.").put(&column.name);
        }
    });
    sql.parameters = values.parameters;
    sql.put(&table.name).put(" as t where ");
    look_up(&mut sql, table);
    sql.put(" returning t.*), hit as (insert into ").put(&table.name).put(" (");
    sql.list(", ", &table.columns, |sql, column| _ = sql.put(&column.name));
    sql.put(") overriding system value select ").put(&values.text).put(" from prior");
    sql.must_find("1")
}

fn look_up(sql: &mut Sql, table: &TargetTable) {
    match table.lookup {
        Lookup::Key => by_key(sql, table),
        Lookup::WholeRow => by_whole_row(sql, table),
    }
}

fn by_key(sql: &mut Sql, table: &TargetTable) {
    key_equals(sql, table, "t.");
}

/// The key's columns of the row named `row`, each compared by the operator of its index.
fn key_equals(sql: &mut Sql, table: &TargetTable, row: &str) {
    sql.list(" and ", &table.key, |sql, position| {
        let column = &table.columns[*position];
        sql.put(row)
            .put(&column.name)
            .put(" ")
            .put(&column.equals)
            .put(" (")
            .parameter()
            .put("::text)::")
            .put(&column.type_name);
    });
}

/// By text, not by equality: `1.0` and `1.00` are equal numbers in different rows, and types such as `json` have no
/// equality. `ctid` takes exactly one of several equal rows.
fn by_whole_row(sql: &mut Sql, table: &TargetTable) {
    sql.put("t.ctid = (select w.ctid from only ").put(&table.name).put(" as w where ");
    key_equals(sql, table, "w.");
    if !table.key.is_empty() {
        sql.put(" and ");
    }
    sql.list(" and ", &table.columns, |sql, column| {
        sql.put("w.").put(&column.name).put("::text is not distinct from ((").parameter();
        sql.put("::text)::").put(&column.type_name).put(")::text");
    });
    sql.put(" limit 1)");
}

/// `DELETE` of one row; parameters are the look-up's.
pub(crate) fn delete(table: &TargetTable) -> String {
    let mut sql = Sql::new("with hit as (delete from only ");
    sql.put(&table.name).put(" as t where ");
    look_up(&mut sql, table);
    sql.must_find("1")
}

/// `DELETE` of a filtered table: the row may never have been there.
pub(crate) fn delete_if_there(table: &TargetTable) -> String {
    let mut sql = Sql::new("delete from only ");
    sql.put(&table.name).put(" as t where ");
    look_up(&mut sql, table);
    sql.text
}

/// Insert or update by the key; parameters are all columns.
pub(crate) fn upsert(table: &TargetTable) -> String {
    let mut sql = Sql::new("");
    insert_values(&mut sql, table);
    sql.put(" on conflict (");
    sql.list(", ", &table.key, |sql, position| _ = sql.put(&table.columns[*position].name));
    let set: Vec<_> = (0..table.columns.len()).filter(|position| !table.key.contains(position)).collect();
    if set.is_empty() {
        sql.put(") do nothing");
        return sql.text;
    }
    sql.put(") do update set ");
    sql.list(", ", set, |sql, position| {
        let column = &table.columns[position].name;
        sql.put(column).put(" = excluded.").put(column);
    });
    sql.text
}

/// `UPDATE` of many rows at once. Parameters: an array for each key column, then one for each column set; the last is
/// the number of rows.
pub(crate) fn update_many(table: &TargetTable, shape: &UpdateShape) -> String {
    let set = set_columns(table, shape);
    let mut sql = Sql::new("with hit as (update only ");
    sql.put(&table.name).put(" as t set ");
    sql.list(", ", set.iter().enumerate(), |sql, (number, position)| {
        let column = &table.columns[*position];
        sql.put(&column.name).put(&format!(" = u.s{number}::")).put(&column.type_name);
    });
    sql.put(" from ");
    arrays(&mut sql, table.key.len(), set.len());
    key_join(&mut sql, table);
    counted(sql)
}

/// `DELETE` of many rows at once. Parameters: an array for each key column, then the number of rows.
pub(crate) fn delete_many(table: &TargetTable) -> String {
    let mut sql = Sql::new("with hit as (delete from only ");
    sql.put(&table.name).put(" as t using ");
    arrays(&mut sql, table.key.len(), 0);
    key_join(&mut sql, table);
    counted(sql)
}

fn arrays(sql: &mut Sql, keys: usize, sets: usize) {
    // Unqualified: only so does the grammar take several arrays (manual section 7.2.1.4). pg_catalog is searched first anyway.
    sql.put("unnest(");
    sql.list(", ", 0..keys + sets, |sql, _| _ = sql.parameter().put("::text[]"));
    sql.put(") as u (");
    let names = (0..keys).map(|number| format!("k{number}")).chain((0..sets).map(|number| format!("s{number}")));
    sql.list(", ", names, |sql, name| _ = sql.put(&name));
    sql.put(")");
}

fn key_join(sql: &mut Sql, table: &TargetTable) {
    sql.put(" where ");
    sql.list(" and ", table.key.iter().enumerate(), |sql, (number, position)| {
        let column = &table.columns[*position];
        sql.put("t.")
            .put(&column.name)
            .put(" ")
            .put(&column.equals)
            .put(&format!(" u.k{number}::"))
            .put(&column.type_name);
    });
}

fn counted(mut sql: Sql) -> String {
    sql.parameters += 1;
    let rows = format!("${}::int8", sql.parameters);
    sql.must_find(&rows)
}

/// `TRUNCATE` of several tables. Never CASCADE: the source names every published table that it emptied, and a table
/// outside the job is not ours to empty (as PostgreSQL's own subscription does).
pub(crate) fn truncate<'a>(tables: impl IntoIterator<Item = &'a TargetTable>, restart_identity: bool) -> String {
    let mut sql = Sql::new("truncate ");
    sql.list(", ", tables, |sql, table| _ = sql.put("only ").put(&table.name));
    if restart_identity {
        sql.put(" restart identity");
    }
    sql.text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::apply::copy::copy_statement;
    use crate::apply::table::TargetColumn;
    use crate::config::TableName;
    use crate::relation::{Column, ReplicaIdentity, Table};

    /// A table `s.t` from `name type flags`, where the flags are `k` for the key and `a` for GENERATED ALWAYS.
    fn table(lookup: Lookup, columns: &[(&str, &str, &str)]) -> TargetTable {
        let described = |(name, kind, flags): &(&str, &str, &str)| Column {
            name: (*name).to_owned(),
            type_oid: 25,
            type_modifier: -1,
            type_name: (*kind).to_owned(),
            base_type_name: (*kind).to_owned(),
            catalog_type: (*kind).to_owned(),
            base_catalog_type: (*kind).to_owned(),
            category: 'S',
            not_null: false,
            identity: flags.contains('k'),
            unique: flags.contains('k'),
        };
        let name = TableName { schema: "s".into(), name: "t".into() };
        let source = Table {
            name: name.clone(),
            relation_id: 1,
            replica_identity: if lookup == Lookup::Key { ReplicaIdentity::Default } else { ReplicaIdentity::Full },
            columns: columns.iter().map(described).collect(),
        };
        TargetTable {
            name: name.quoted(),
            columns: columns
                .iter()
                .map(|(name, kind, flags)| TargetColumn {
                    name: format!("\"{name}\""),
                    type_name: format!("pg_catalog.{kind}"),
                    equals: "operator(pg_catalog.=)".into(),
                    always_identity: flags.contains('a'),
                })
                .collect(),
            lookup,
            key: columns
                .iter()
                .enumerate()
                .filter(|(_, column)| column.2.contains('k'))
                .map(|(position, _)| position)
                .collect(),
            reorderable: true,
            filtered: false,
            source: Arc::new(source),
        }
    }

    fn shape(set: &[bool], old: bool) -> UpdateShape {
        UpdateShape { set: set.into(), old }
    }

    #[test]
    fn update_by_key_leaves_an_unchanged_column_alone() {
        let table = table(Lookup::Key, &[("id", "int8", "k"), ("a", "text", ""), ("b", "varchar", "")]);
        insta::assert_snapshot!(update(&table, &shape(&[true, true, false], false)), @r#"with hit as (update only "s"."t" as t set "a" = $1 where t."id" operator(pg_catalog.=) ($2::text)::pg_catalog.int8 returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = 1)::int4) from hit"#);
    }

    #[test]
    fn update_of_the_key_is_found_by_the_old_one() {
        let table = table(Lookup::Key, &[("id", "int8", "k"), ("a", "text", "")]);
        insta::assert_snapshot!(update(&table, &shape(&[true, true], true)), @r#"with hit as (update only "s"."t" as t set "id" = $1, "a" = $2 where t."id" operator(pg_catalog.=) ($3::text)::pg_catalog.int8 returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = 1)::int4) from hit"#);
    }

    #[test]
    fn update_of_a_table_of_only_key_columns_still_must_find_its_row() {
        let table = table(Lookup::Key, &[("z", "int4", "k"), ("a", "int4", "k")]);
        insta::assert_snapshot!(update(&table, &shape(&[true, true], false)), @r#"with hit as (update only "s"."t" as t set "z" = t."z" where t."z" operator(pg_catalog.=) ($1::text)::pg_catalog.int4 and t."a" operator(pg_catalog.=) ($2::text)::pg_catalog.int4 returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = 1)::int4) from hit"#);
    }

    #[test]
    fn update_under_full_takes_exactly_one_of_equal_rows() {
        let table = table(Lookup::WholeRow, &[("a", "json", ""), ("b", "numeric", "")]);
        insta::assert_snapshot!(update(&table, &shape(&[true, false], true)), @r#"with hit as (update only "s"."t" as t set "a" = $1 where t.ctid = (select w.ctid from only "s"."t" as w where w."a"::text is not distinct from (($2::text)::pg_catalog.json)::text and w."b"::text is not distinct from (($3::text)::pg_catalog.numeric)::text limit 1) returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = 1)::int4) from hit"#);
    }

    #[test]
    fn update_of_an_always_identity_deletes_and_inserts() {
        let table = table(Lookup::Key, &[("id", "int8", "ka"), ("a", "text", ""), ("big", "text", "")]);
        insta::assert_snapshot!(update(&table, &shape(&[true, true, false], true)), @r#"with prior as (delete from only "s"."t" as t where t."id" operator(pg_catalog.=) ($3::text)::pg_catalog.int8 returning t.*), hit as (insert into "s"."t" ("id", "a", "big") overriding system value select ($1::text)::pg_catalog.int8, ($2::text)::pg_catalog.text, prior."big" from prior returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = 1)::int4) from hit"#);
    }

    #[test]
    fn many_at_once() {
        let table = table(Lookup::Key, &[("z", "int8", "k"), ("a", "bpchar", "k"), ("v", "text", "")]);
        insta::assert_snapshot!(update_many(&table, &shape(&[true, true, true], false)), @r#"with hit as (update only "s"."t" as t set "v" = u.s0::pg_catalog.text from unnest($1::text[], $2::text[], $3::text[]) as u (k0, k1, s0) where t."z" operator(pg_catalog.=) u.k0::pg_catalog.int8 and t."a" operator(pg_catalog.=) u.k1::pg_catalog.bpchar returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = $4::int8)::int4) from hit"#);
        insta::assert_snapshot!(delete_many(&table), @r#"with hit as (delete from only "s"."t" as t using unnest($1::text[], $2::text[]) as u (k0, k1) where t."z" operator(pg_catalog.=) u.k0::pg_catalog.int8 and t."a" operator(pg_catalog.=) u.k1::pg_catalog.bpchar returning 1) select pg_catalog.width_bucket(0::float8, 0::float8, 1::float8, (count(*) = $3::int8)::int4) from hit"#);
    }

    #[test]
    fn inserts() {
        let table = table(Lookup::Key, &[("id", "int8", "k"), ("a", "text", "")]);
        insta::assert_snapshot!(insert(&table), @r#"insert into "s"."t" ("id", "a") overriding system value values ($1, $2)"#);
        insta::assert_snapshot!(upsert(&table), @r#"insert into "s"."t" ("id", "a") overriding system value values ($1, $2) on conflict ("id") do update set "a" = excluded."a""#);
        insta::assert_snapshot!(copy_statement(&table.source), @r#"copy "s"."t" ("id", "a") from stdin"#);
        insta::assert_snapshot!(truncate([&table, &table], true), @r#"truncate only "s"."t", only "s"."t" restart identity"#);
    }
}
