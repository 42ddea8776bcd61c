//! A table of the job as the target has it: how its columns are written in SQL, and how a row is found.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::quote_ident;
use crate::error::{Error, Kind, Result};
use crate::postgres::Session;
use crate::relation::{ReplicaIdentity, Table};

/// One column, ready to be put into statements.
#[derive(Clone, Debug)]
pub(crate) struct TargetColumn {
    /// The quoted name.
    pub(crate) name: String,
    /// The type, schema-qualified and without a modifier: a cast to `varchar(10)` would cut silently, an assignment
    /// to the column refuses.
    pub(crate) type_name: String,
    /// The equality operator of the column's index, schema-qualified: `search_path` is empty, and `citext = citext`
    /// must not become `text = text`.
    pub(crate) equals: String,
    /// `GENERATED ALWAYS AS IDENTITY`: an UPDATE may not set it.
    pub(crate) always_identity: bool,
}

/// How an update or delete finds its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// By the replica identity's columns, which are unique.
    Key,
    /// By the whole old row, one of several equal rows.
    WholeRow,
}

/// A table on the target.
#[derive(Clone, Debug)]
pub(crate) struct TargetTable {
    /// The source's description; columns are in its order.
    pub(crate) source: Arc<Table>,
    /// The quoted, qualified name.
    pub(crate) name: String,
    /// One for each column of `source`.
    pub(crate) columns: Vec<TargetColumn>,
    /// How rows are found.
    pub(crate) lookup: Lookup,
    /// The columns that rows are found by.
    pub(crate) key: Vec<usize>,
    /// Whether rows may be changed in any order within a run: no unique index or exclusion constraint but the key's.
    pub(crate) reorderable: bool,
    /// Whether the policy filters the table: the target then lacks rows that the source has.
    pub(crate) filtered: bool,
}

const COLUMNS: &str = "
select a.attrelid, a.attname, a.attidentity,
       pg_catalog.quote_ident(tn.nspname) || '.' || pg_catalog.quote_ident(t.typname) as type_name,
       (select pg_catalog.quote_ident(n.nspname)
          from pg_catalog.pg_index i
          join pg_catalog.pg_opclass c on c.oid = i.indclass[pg_catalog.array_position(i.indkey::int2[], a.attnum)]
          join pg_catalog.pg_amop o on o.amopfamily = c.opcfamily and o.amopstrategy = 3
               and o.amoplefttype = c.opcintype and o.amoprighttype = c.opcintype
          join pg_catalog.pg_operator p on p.oid = o.amopopr
          join pg_catalog.pg_namespace n on n.oid = p.oprnamespace
         where i.indrelid = a.attrelid and i.indisunique and a.attnum = any (i.indkey::int2[])
         order by i.indisprimary desc limit 1) as equals_schema
  from pg_catalog.pg_attribute a
  join pg_catalog.pg_type t on t.oid = a.atttypid
  join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
 where a.attrelid = (select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where n.nspname = $1 and c.relname = $2)
   and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
 order by a.attnum";

const UNIQUE_INDEXES: &str = "
select i.indexrelid, i.indisprimary, i.indkey,
       (select pg_catalog.string_agg(a.attname, E'\\x01' order by a.attname) from pg_catalog.pg_attribute a
         where a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[])) as names
  from pg_catalog.pg_index i
 where i.indrelid = (select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where n.nspname = $1 and c.relname = $2)
   and (i.indisunique or i.indisexclusion)";

impl TargetTable {
    /// Reads what the target's catalogue says of the table.
    pub(crate) async fn read(target: &mut Session, source: Arc<Table>, filtered: bool) -> Result<TargetTable> {
        let parameters = [Some(source.name.schema.as_str()), Some(source.name.name.as_str())];
        let mut found = HashMap::new();
        for row in target.query(COLUMNS, &parameters).await? {
            let name = row.text("attname")?;
            let column = TargetColumn {
                name: quote_ident(name),
                type_name: row.text("type_name")?.to_owned(),
                equals: format!("operator({}.=)", row.optional("equals_schema")?.unwrap_or("pg_catalog")),
                always_identity: row.text("attidentity")? == "a",
            };
            found.insert(name.to_owned(), column);
        }
        let columns = source
            .columns
            .iter()
            .map(|column| {
                found.remove(&column.name).ok_or_else(|| {
                    Error::new(
                        Kind::RelationChanged,
                        format!("target: table {}: column {} is missing or generated", source.name, column.name),
                    )
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let indexes = target.query(UNIQUE_INDEXES, &parameters).await?;
        let mut names = Vec::with_capacity(indexes.len());
        let mut primary = None;
        for row in &indexes {
            let index = row.optional("names")?.unwrap_or_default().to_owned();
            if row.text("indisprimary")? == "t" {
                primary = Some(index.clone());
            }
            names.push(index);
        }
        let whole_row = source.replica_identity == ReplicaIdentity::Full;
        let key = match (&primary, whole_row) {
            // Under FULL the primary key, when there is one, finds the row's candidates by an index.
            (Some(primary), true) => primary.split('\u{1}').filter_map(|name| source.column(name)).collect(),
            (None, true) => Vec::new(),
            (_, false) => source.identity_columns().collect::<Vec<_>>(),
        };
        let mut identity: Vec<&str> = key.iter().map(|position| source.columns[*position].name.as_str()).collect();
        identity.sort_unstable();
        let identity = identity.join("\u{1}");
        Ok(TargetTable {
            name: source.name.quoted(),
            columns,
            lookup: if whole_row { Lookup::WholeRow } else { Lookup::Key },
            key,
            reorderable: !whole_row && names.iter().all(|index| *index == identity),
            filtered,
            source,
        })
    }
}
