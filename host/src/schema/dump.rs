//! A dump taken apart, and put in order: what runs before the data, what after it, what is left out.
//!
//! Every statement of `pg_dump --verbose` stands under the catalogue id of its object. Only objects that the catalogue names
//! as the job's own are taken (an allow-list by id), so that whatever a later `pg_dump` may write besides is left out.

use std::collections::{BTreeSet, HashMap};

use super::defaults;
use super::needs::{Object, ObjectKind, Sequence};
use super::scan::{Piece, pieces};
use super::{HiddenColumns, LeftOut, Step};
use crate::config::TableName;
use crate::error::{Error, Kind, Result};

/// The catalogues' own ids, which are the same on every server (`pg_class.oid` of these catalogues).
const PG_CLASS: u32 = 1259;
/// No catalogue: `ALTER SEQUENCE … OWNED BY` and the like.
const NO_CLASS: u32 = 0;

/// How the statements begin that are taken.
const TAKEN: [&str; 4] = ["CREATE ", "ALTER TABLE ", "ALTER SEQUENCE ", "ALTER INDEX "];

/// One entry of a dump.
struct Entry<'a> {
    class: u32,
    id: u32,
    statements: Vec<&'a str>,
}

/// A dump sorted.
pub(super) struct Sorted {
    pub(super) before: Vec<Step>,
    pub(super) after: Vec<Step>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Sorts a dump by what the catalogue says of its objects.
///
/// # Errors
/// [`Kind::SchemaTool`] when there is nothing for one of the tables.
pub(super) fn sort(dump: &str, objects: &[Object], sequences: &[Sequence], hidden: &HiddenColumns) -> Result<Sorted> {
    let tables: BTreeSet<u32> =
        objects.iter().filter(|found| found.kind == ObjectKind::Table).map(|found| found.id).collect();
    let known: HashMap<(u32, u32), &Object> = objects
        .iter()
        .filter(|found| found.kind != ObjectKind::RowSecurity)
        .map(|found| ((found.class, found.id), found))
        .collect();
    let sequences: HashMap<u32, &Sequence> = sequences.iter().map(|sequence| (sequence.0, sequence)).collect();
    let mut sorted = Sorted { before: Vec::new(), after: Vec::new(), left_out: left_out(objects, &tables, hidden) };
    let mut written = BTreeSet::new();
    for entry in entries(dump) {
        let statement = entry.statements.join(";\n");
        let object = known.get(&(entry.class, entry.id)).copied();
        match object {
            Some(table) if table.kind == ObjectKind::Table => {
                let name = table.table_name();
                let is_hidden = |column: &str| hidden.get(&name).is_some_and(|columns| columns.contains(column));
                let statements: Vec<_> =
                    entry.statements.iter().map(|part| without_defaults(part, is_hidden)).collect();
                written.insert(table.id);
                sorted.before.push(Step { what: format!("table {name}"), statement: statements.join(";\n") });
            }
            Some(object) if stays_at_source(object, &tables, hidden) => {}
            Some(object) => {
                let what = object.describe();
                let step = Step { what, statement };
                let before = matches!(object.kind, ObjectKind::Default | ObjectKind::Generated);
                if before { sorted.before.push(step) } else { sorted.after.push(step) }
            }
            None => match (entry.class, sequences.get(&entry.id)) {
                (PG_CLASS, Some(Sequence(_, schema, name))) => {
                    let what = format!("sequence {}", TableName::new(schema.as_str(), name.as_str()));
                    // One that a table owned went with the table; one that stands alone may be there from before.
                    let statement = statement.replacen("CREATE SEQUENCE ", "CREATE SEQUENCE IF NOT EXISTS ", 1);
                    sorted.before.push(Step { what, statement });
                }
                (NO_CLASS, _) if statement.starts_with("ALTER SEQUENCE ") => {
                    sorted.before.push(Step { what: "sequence's owner".to_owned(), statement });
                }
                _ => {}
            },
        }
    }
    match objects.iter().find(|found| found.kind == ObjectKind::Table && !written.contains(&found.id)) {
        None => Ok(sorted),
        Some(missing) => Err(Error::new(
            Kind::SchemaTool,
            format!("source: table {}: pg_dump wrote nothing for it", missing.table_name()),
        )),
    }
}

fn without_defaults(statement: &str, is_hidden: impl Fn(&str) -> bool) -> String {
    if statement.starts_with("CREATE ") { defaults::strip(statement, is_hidden) } else { statement.to_owned() }
}

/// Whether an object of the tables is not made on the target.
fn stays_at_source(object: &Object, tables: &BTreeSet<u32>, hidden: &HiddenColumns) -> bool {
    match object.kind {
        ObjectKind::Table | ObjectKind::Generated | ObjectKind::Constraint | ObjectKind::Index => false,
        ObjectKind::Default => hidden.get(&object.table_name()).is_some_and(|columns| columns.contains(&object.name)),
        ObjectKind::ForeignKey => !tables.contains(&object.other),
        ObjectKind::Trigger
        | ObjectKind::Rule
        | ObjectKind::Policy
        | ObjectKind::RowSecurity
        | ObjectKind::Statistics => true,
    }
}

fn left_out(objects: &[Object], tables: &BTreeSet<u32>, hidden: &HiddenColumns) -> Vec<LeftOut> {
    let why = |kind| match kind {
        ObjectKind::ForeignKey => "it points at a table outside the job",
        ObjectKind::Default => "the column is masked, and a default may be a value like any other",
        ObjectKind::Trigger | ObjectKind::Rule => "what it writes at the source arrives by itself",
        ObjectKind::Policy | ObjectKind::RowSecurity => "roles and rights are the target's own",
        _ => "only tables, keys and indexes are copied",
    };
    objects
        .iter()
        .filter(|object| stays_at_source(object, tables, hidden))
        .map(|object| LeftOut { what: object.describe(), why: why(object.kind) })
        .collect()
}

impl Object {
    pub(super) fn table_name(&self) -> TableName {
        TableName::new(self.schema.as_str(), self.table.as_str())
    }

    /// The object for a report or an error: `index users_email_key of table public.users`.
    fn describe(&self) -> String {
        match self.kind {
            ObjectKind::RowSecurity => format!("{} of table {}", self.kind.noun(), self.table_name()),
            kind => format!("{} {} of table {}", kind.noun(), self.name, self.table_name()),
        }
    }
}

fn entries(dump: &str) -> Vec<Entry<'_>> {
    let mut found: Vec<Entry<'_>> = Vec::new();
    for piece in pieces(dump) {
        match piece {
            Piece::Comment(comment) => found.extend(start(comment)),
            Piece::Statement(statement) => {
                // What stands before the first entry are settings of pg_dump's own; ours are set already.
                if let Some(entry) = found.last_mut().filter(|_| TAKEN.iter().any(|taken| statement.starts_with(taken)))
                {
                    entry.statements.push(statement);
                }
            }
        }
    }
    found.retain(|entry| !entry.statements.is_empty());
    found
}

/// Reads `TOC entry 236 (class 1259 OID 17703)`.
fn start<'a>(comment: &str) -> Option<Entry<'a>> {
    let (_, ids) = comment.strip_prefix("TOC entry ")?.split_once("(class ")?;
    let (class, id) = ids.strip_suffix(')')?.split_once(" OID ")?;
    Some(Entry { class: class.parse().ok()?, id: id.parse().ok()?, statements: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "--
-- PostgreSQL database dump
--
\\restrict x
SET statement_timeout = 0;
--
-- TOC entry 1 (class 1259 OID 10)
-- Name: users; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.users (
    id integer DEFAULT 1,
    email text DEFAULT '
--
-- TOC entry 9 (class 1259 OID 10)
--
DROP TABLE x;'
);
ALTER TABLE ONLY public.users REPLICA IDENTITY FULL;

SET default_tablespace = '';
--
-- TOC entry 2 (class 2606 OID 20)
--
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
--
-- TOC entry 3 (class 2606 OID 21)
--
ALTER TABLE ONLY public.users ADD CONSTRAINT inside FOREIGN KEY (a) REFERENCES public.users(id);
--
-- TOC entry 4 (class 2606 OID 22)
--
ALTER TABLE ONLY public.users ADD CONSTRAINT outside FOREIGN KEY (a) REFERENCES public.other(id);
--
-- TOC entry 5 (class 2620 OID 30)
--
CREATE TRIGGER t AFTER INSERT ON public.users EXECUTE FUNCTION f();
--
-- TOC entry 6 (class 1259 OID 99)
--
CREATE TABLE public.unasked (a int);
--
-- TOC entry 7 (class 0 OID 0)
--
ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;
";

    fn object(class: u32, id: u32, kind: ObjectKind, name: &str, other: u32) -> Object {
        Object { class, id, kind, schema: "public".into(), table: "users".into(), name: name.into(), other }
    }

    #[test]
    fn only_the_jobs_own_objects_are_taken() {
        let objects = [
            object(1259, 10, ObjectKind::Table, "users", 0),
            object(1259, 10, ObjectKind::RowSecurity, "row level security", 0),
            object(2604, 11, ObjectKind::Default, "email", 0),
            object(2606, 20, ObjectKind::Constraint, "users_pkey", 0),
            object(2606, 21, ObjectKind::ForeignKey, "inside", 10),
            object(2606, 22, ObjectKind::ForeignKey, "outside", 98),
            object(2620, 30, ObjectKind::Trigger, "t", 0),
        ];
        let hidden = HiddenColumns::from([(TableName::new("public", "users"), BTreeSet::from(["email".to_owned()]))]);
        let sorted = sort(DUMP, &objects, &[], &hidden).unwrap_or_else(|error| panic!("{error}"));
        let shown = |steps: &[Step]| {
            steps.iter().map(|step| format!("{}: {}", step.what, step.statement)).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(&sorted.before), @r"
        table public.users: CREATE TABLE public.users (
            id integer DEFAULT 1,
            email text
        );
        ALTER TABLE ONLY public.users REPLICA IDENTITY FULL
        ");
        insta::assert_snapshot!(shown(&sorted.after), @r"
        constraint users_pkey of table public.users: ALTER TABLE ONLY public.users
            ADD CONSTRAINT users_pkey PRIMARY KEY (id)
        foreign key inside of table public.users: ALTER TABLE ONLY public.users ADD CONSTRAINT inside FOREIGN KEY (a) REFERENCES public.users(id)
        ");
        let left: Vec<_> = sorted.left_out.iter().map(|left| left.what.as_str()).collect();
        insta::assert_snapshot!(left.join("\n"), @r"
        row-level security of table public.users
        default of column email of table public.users
        foreign key outside of table public.users
        trigger t of table public.users
        ");
    }

    #[test]
    fn a_table_without_a_statement_is_an_error() {
        let objects =
            [object(1259, 10, ObjectKind::Table, "users", 0), object(1259, 12, ObjectKind::Table, "users", 0)];
        let error = sort(DUMP, &objects, &[], &HiddenColumns::new()).err().map(|error| error.kind());
        assert_eq!(error, Some(Kind::SchemaTool));
    }
}
