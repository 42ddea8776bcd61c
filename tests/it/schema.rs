//! The source's schema on the target: everything that the tables need, nothing that they must not tell.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

use pgveil::apply::schema::read_tables as read_target;
use pgveil::config::TableName;
use pgveil::postgres::{Endpoint, Session, Side};
use pgveil::schema::{
    DumpTool, Existing, HiddenColumns, LeftOut, Request, ToolEnvironment, after_data, before_data, compare,
    verify_existing,
};
use pgveil::source::schema::{SourceCatalog, read_tables};
use pgveil_tests::{Major, Pair, Result, on_every_version};
use tokio::runtime::Runtime;

const PUBLICATION: &str = "p'ub";

/// Runs a future to its end. One runtime for all: a session belongs to the one it was made on.
pub(crate) fn wait<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(future)
}

/// Sessions on both ends, as a bootstrap has them.
pub(crate) struct Ends {
    pub(crate) source_endpoint: Endpoint,
    pub(crate) target_endpoint: Endpoint,
    pub(crate) source: Session,
    pub(crate) target: Session,
}

impl Ends {
    pub(crate) async fn connect(source_url: &str, target_url: &str) -> Result<Ends> {
        let source_endpoint = Endpoint::parse(Side::Source, source_url, true)?;
        let target_endpoint = Endpoint::parse(Side::Target, target_url, true)?;
        Ok(Ends {
            source: Session::connect(&source_endpoint, "test").await?,
            target: Session::connect(&target_endpoint, "test").await?,
            source_endpoint,
            target_endpoint,
        })
    }
}

fn hidden() -> HiddenColumns {
    let columns = ["email", "first", "full name", "note"].map(str::to_owned);
    BTreeMap::from([(TableName::new("public", "users"), BTreeSet::from(columns))])
}

/// Both steps, under an exported snapshot.
async fn carry_over(pair: &Pair, existing: Existing) -> Result<(Ends, SourceCatalog, Vec<LeftOut>)> {
    let mut ends = Ends::connect(&pair.source.url(), &pair.target.url()).await?;
    let mut exporting = Session::connect(&ends.source_endpoint, "snapshot").await?;
    exporting.batch("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
    let rows = exporting.batch("SELECT pg_catalog.pg_export_snapshot() AS name").await?;
    let snapshot = rows[0].text("name")?;
    let catalog = read_tables(&mut ends.source, PUBLICATION).await?;
    let tool = DumpTool::find(Some(&Major::client_program("pg_dump")?)).await?;
    let environment = ToolEnvironment::new(&ends.source_endpoint, &pair.source.url());
    let request = Request {
        tool: &tool,
        environment: &environment,
        snapshot: Some(snapshot),
        catalog: &catalog,
        hidden: &hidden(),
        existing,
    };
    let prepared = before_data(&mut ends.source, &mut ends.target, &request).await?;
    let left_out = after_data(&mut ends.source, &mut ends.target, prepared).await?;
    Ok((ends, catalog, left_out))
}

/// The schema as `pg_dump` tells it, one statement a line, without what differs from dump to dump.
fn dumped(url: &str) -> Result<BTreeSet<String>> {
    let output = Command::new(Major::client_program("pg_dump")?)
        .args(["--schema-only", "--no-owner", "--dbname", url])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let statements = text.split(";\n").map(|statement| {
        let lines =
            statement.lines().filter(|line| !line.is_empty() && !line.starts_with("--") && !line.starts_with('\\'));
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(statements.filter(|statement| !statement.is_empty()).collect())
}

/// Without the defaults of its masked columns.
const USERS: &str = "CREATE TABLE public.users (
    id bigint NOT NULL,
    email public.citext NOT NULL,
    first text NOT NULL,
    last text DEFAULT 'kept, for it passes'::text,
    full_name text GENERATED ALWAYS AS (((first || ' '::text) || last)) STORED,
    \"full name\" character varying(40) COLLATE pg_catalog.\"C\",
    note text,
    mood a.t DEFAULT 'it''s'::a.t,
    created timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT users_note_check CHECK (((note <> 'a,b'::text) AND (length(note) < 99)))
)";

const ONLY_ON_TARGET: &str = r#"CREATE DOMAIN public."b\u0131" AS public.short
CREATE DOMAIN public.short AS character varying(7) COLLATE pg_catalog."C""#;

/// First lines. `a.orders`: the foreign key to a table outside the job.
const ONLY_AT_SOURCE: &str = r#"ALTER TABLE ONLY a.orders
ALTER TABLE ONLY public.ab
ALTER TABLE ONLY public.outside
ALTER TABLE public.users ENABLE ROW LEVEL SECURITY
COMMENT ON COLUMN public.users.email IS 'canary in a comment'
CREATE DOMAIN public."b\u0131" AS public.short DEFAULT 'canary in a domain'::character varying
CREATE DOMAIN public.short AS character varying(7) COLLATE pg_catalog."C" DEFAULT 'canary in a domain'::character varying
CREATE FUNCTION public.trg() RETURNS trigger
CREATE POLICY everyone ON public.users USING ((first <> 'canary in a policy'::text))
CREATE STATISTICS public.statistics ON first, last FROM public.users
CREATE TABLE public.ab (
CREATE TABLE public.outside (
CREATE TABLE public.users (
CREATE TRIGGER audit AFTER INSERT ON public.users FOR EACH ROW EXECUTE FUNCTION public.trg()"#;

const LEFT_OUT: &str = r#"foreign key points_outside of table a.orders
default of column email of table public.users
default of column first of table public.users
default of column full name of table public.users
policy everyone of table public.users
row-level security of table public.users
extended statistics statistics of table public.users
trigger audit of table public.users
default of domain public.short
default of domain public."b\u0131""#;

on_every_version! {
    /// N01, N02, N04, T21, T22, M24: the target's schema is the source's, apart from what is listed here.
    fn everything_arrives_and_nothing_more(major) {
        let pair = Pair::of(major, "schema_round")?;
        pair.source.execute(include_str!("schema_source.sql"))?;
        let (mut ends, catalog, left_out) = wait(carry_over(&pair, Existing::KeepRows))?;

        let (source, target) = (dumped(&pair.source.url())?, dumped(&pair.target.url())?);
        let table = |statements: &BTreeSet<String>| {
            statements.iter().find(|statement| statement.starts_with("CREATE TABLE public.users")).cloned().unwrap_or_default()
        };
        assert_eq!(table(&target), USERS);
        let only_there: Vec<_> = target.difference(&source).filter(|statement| !statement.contains("TABLE public.users")).cloned().collect();
        assert_eq!(only_there.join("
"), ONLY_ON_TARGET);
        let only_here: Vec<_> = source.difference(&target).filter(|statement| !statement.contains("PUBLICATION")).map(|statement| {
            statement.lines().next().unwrap_or_default().to_owned()
        }).collect();
        assert_eq!(only_here.join("\n"), ONLY_AT_SOURCE);
        let everything = target.iter().cloned().collect::<String>();
        assert!(!everything.contains("canary"), "{everything}");

        let left: Vec<_> = left_out.iter().map(|left| left.what.as_str()).collect();
        assert_eq!(left.join("\n"), LEFT_OUT);
        for (sequence, value) in [("public.loose_seq", "500 t"), ("public.users_id_seq", "105 f"), ("a.orders_id_seq", "1 t")] {
            assert_eq!(pair.target.value(&format!("SELECT last_value || ' ' || is_called::text::char FROM {sequence}"))?, value, "{sequence}");
        }
        wait(async {
            let names: Vec<_> = catalog.tables.iter().map(|found| found.table.name.clone()).collect();
            let there = read_target(&mut ends.target, &names).await?;
            for found in &catalog.tables {
                let differences = compare(found, &there[&found.table.name], false);
                assert!(differences.iter().all(|difference| !difference.refuses), "{}: {differences:?}", found.table.name);
            }
            verify_existing(&mut ends.target, &catalog, &BTreeSet::new()).await?;
            Ok(())
        })?;
    }

    /// Tables with rows are never touched unasked; empty ones, and asked for, are made anew.
    fn tables_with_rows_are_kept(major) {
        let pair = Pair::of(major, "schema_rows")?;
        pair.source.execute(include_str!("schema_source.sql"))?;
        wait(carry_over(&pair, Existing::KeepRows))?;
        wait(carry_over(&pair, Existing::KeepRows))?;
        pair.target.execute("INSERT INTO a.idx VALUES (1, 2, 'three')")?;
        let refused = wait(carry_over(&pair, Existing::KeepRows)).map(drop).unwrap_err().to_string();
        assert!(refused.contains("table a.idx: has rows already"), "{refused}");
        assert_eq!(pair.target.value("SELECT count(*) FROM a.idx")?, "1");
        wait(carry_over(&pair, Existing::Replace))?;
        assert_eq!(pair.target.value("SELECT count(*) FROM a.idx")?, "0");
    }

    /// A type of the same name with other values would take rows in wrongly; whatever fails leaves nothing behind.
    fn another_type_of_the_same_name_is_refused(major) {
        let pair = Pair::of(major, "schema_type")?;
        pair.source.execute(include_str!("schema_source.sql"))?;
        pair.target.execute("CREATE SCHEMA a; CREATE TYPE a.t AS ENUM ('x')")?;
        let refused = wait(carry_over(&pair, Existing::KeepRows)).map(drop).unwrap_err().to_string();
        assert!(refused.contains("type a.t: differs"), "{refused}");
        pair.target.execute("DROP TYPE a.t; CREATE TABLE a.pair (x int)")?;
        let refused = wait(carry_over(&pair, Existing::KeepRows)).map(drop).unwrap_err().to_string();
        assert!(refused.contains("type a.pair"), "{refused}");
        assert_eq!(pair.target.value("SELECT count(*) FROM pg_class WHERE relname IN ('users', 'orders')")?, "0");
    }
}
