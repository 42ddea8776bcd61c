//! `check` on real servers: every finding that a server can provoke is provoked once, by one change to a job that passes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pgveil::check::{self, Finding, Grade, Plan, Report};
use pgveil::config::{SchemaMode, TableName};
use pgveil::schema::HiddenColumns;
use pgveil_tests::{Major, Pair, Result, on_every_version};

use crate::schema::{Ends, wait};

/// A schema and a job in which nothing is wrong.
const GOOD: &str = "CREATE TABLE public.users (id int PRIMARY KEY, email text UNIQUE, name text);
    CREATE TABLE public.orders (id int PRIMARY KEY, user_id int REFERENCES public.users, note text);
    CREATE PUBLICATION shop FOR TABLE public.users, public.orders";

/// The same on the target, as `schema.mode: existing` wants it.
const GOOD_TARGET: &str = "CREATE TABLE public.users (id int PRIMARY KEY, email text UNIQUE, name text);
    CREATE TABLE public.orders (id int PRIMARY KEY, user_id int, note text)";

/// A database as it was before: quicker than another one.
const EMPTY: &str = "DROP PUBLICATION IF EXISTS shop; DROP SCHEMA public CASCADE; CREATE SCHEMA public";

/// A job that may be changed before it is checked.
struct Trial {
    publication: &'static str,
    slot: String,
    tables: Vec<&'static str>,
    schema_mode: SchemaMode,
    pg_dump: PathBuf,
    hidden: HiddenColumns,
    filtered: BTreeSet<TableName>,
    user: Option<&'static str>,
}

impl Trial {
    fn new(schema_mode: SchemaMode) -> Result<Trial> {
        Ok(Trial {
            publication: "shop",
            slot: "pgveil_check".to_owned(),
            tables: vec!["public.users", "public.orders"],
            schema_mode,
            pg_dump: Major::client_program("pg_dump")?,
            hidden: hidden(&[("users", "email")]),
            filtered: BTreeSet::new(),
            user: None,
        })
    }

    fn run(&self, source_url: &str, target_url: &str) -> Result<Report> {
        let tables = self.tables.iter().map(|name| name.parse()).collect::<std::result::Result<Vec<TableName>, _>>()?;
        let plan = Plan {
            job_id: "shop",
            publication: self.publication,
            create_publication: false,
            slot: &self.slot,
            tables: &tables,
            schema_mode: self.schema_mode,
            pg_dump: Some(&self.pg_dump),
            copy_workers: 2,
            wal_retention_alarm: 0,
            require_tls: true,
            hidden: &self.hidden,
            filtered: &self.filtered,
        };
        let as_user = |url: &str| match self.user {
            None => url.to_owned(),
            Some(user) => format!("postgresql://{user}@{}", url.split_once('@').map_or("", |(_, rest)| rest)),
        };
        wait(async {
            let mut ends = Ends::connect(&as_user(source_url), &as_user(target_url)).await?;
            let source = (&ends.source_endpoint, &mut ends.source);
            let target = (&ends.target_endpoint, &mut ends.target);
            Ok(check::run(&plan, source, target, Vec::new()).await?)
        })
    }
}

fn hidden(columns: &[(&str, &str)]) -> HiddenColumns {
    let mut hidden: HiddenColumns = BTreeMap::new();
    for (table, column) in columns {
        hidden.entry(TableName::new("public", *table)).or_default().insert((*column).to_owned());
    }
    hidden
}

/// What is not as it should be. The shared clusters keep WAL without limit, which is always told.
fn complaints(report: &Report) -> Vec<(Grade, &'static str, &str)> {
    let told = |finding: &&Finding| finding.grade != Grade::Pass && finding.id != "source-wal-keep";
    report.findings.iter().filter(told).map(|finding| (finding.grade, finding.id, finding.subject.as_str())).collect()
}

use Grade::{Fail, Warn};

/// A statement, and the grade, id and subject of each finding that it leads to.
type Case = (&'static str, &'static [(Grade, &'static str, &'static str)]);

/// A change at the source, and all that `check` then says.
const AT_SOURCE: [Case; 17] = [
    ("SELECT 1", &[]),
    ("DROP PUBLICATION shop", &[(Fail, "publication", "publication shop")]),
    ("ALTER PUBLICATION shop DROP TABLE public.orders", &[(Fail, "publication-tables", "publication shop")]),
    (
        "CREATE TABLE public.more (id int PRIMARY KEY); ALTER PUBLICATION shop ADD TABLE public.more",
        &[(Fail, "publication-tables", "publication shop")],
    ),
    (
        "ALTER PUBLICATION shop SET (publish = 'insert, update')",
        &[(Warn, "publication-operations", "publication shop")],
    ),
    (
        "DROP PUBLICATION shop; CREATE PUBLICATION shop FOR ALL TABLES",
        &[(Warn, "publication-open", "publication shop")],
    ),
    ("ALTER TABLE public.users REPLICA IDENTITY NOTHING", &[(Fail, "table-identity", "table public.users")]),
    // K11
    (
        "ALTER TABLE public.orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id) DEFERRABLE",
        &[(Fail, "table-identity", "table public.orders")],
    ),
    (
        "ALTER TABLE public.orders DROP CONSTRAINT orders_pkey; ALTER PUBLICATION shop SET (publish = 'insert, truncate')",
        &[(Warn, "publication-operations", "publication shop"), (Warn, "table-identity", "table public.orders")],
    ),
    (
        "ALTER PUBLICATION shop SET TABLE public.users (id, email), public.orders",
        &[(Fail, "table-column-list", "table public.users")],
    ),
    (
        "ALTER PUBLICATION shop SET TABLE public.users WHERE (id > 0), public.orders",
        &[(Fail, "table-row-filter", "table public.users")],
    ),
    ("CREATE TABLE public.below () INHERITS (public.orders)", &[(Warn, "table-inheritance", "table public.orders")]),
    (
        "CREATE TABLE public.outside (id int PRIMARY KEY); ALTER TABLE public.orders ADD FOREIGN KEY (id) REFERENCES public.outside",
        &[(Warn, "table-foreign-key", "table public.orders")],
    ),
    (
        "CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end';
         CREATE TRIGGER t BEFORE INSERT ON public.users FOR EACH ROW EXECUTE FUNCTION public.f()",
        &[(Warn, "table-triggers", "table public.users")],
    ),
    // M02, M24
    ("CREATE UNIQUE INDEX ON public.users (lower(email))", &[(Warn, "policy-unique-expression", "table public.users")]),
    (
        "ALTER TABLE public.users ADD CHECK (email LIKE '%@%'), ALTER email SET DEFAULT 'jane@example.org'",
        &[(Warn, "policy-check-constraint", "table public.users"), (Warn, "policy-default", "table public.users")],
    ),
    (
        "CREATE FUNCTION public.g() RETURNS int LANGUAGE sql AS 'select 1'; ALTER TABLE public.users ADD n int DEFAULT public.g()",
        &[(Fail, "target-needs", "target")],
    ),
];

/// Likewise for a change on the target.
const ON_TARGET: [Case; 15] = [
    ("SELECT 1", &[]),
    ("DROP TABLE public.orders", &[(Fail, "target-table", "table public.orders")]),
    ("INSERT INTO public.users VALUES (1)", &[(Fail, "target-table-rows", "table public.users")]),
    ("ALTER TABLE public.users DROP name", &[(Fail, "target-column", "table public.users")]),
    ("ALTER TABLE public.users ALTER name TYPE varchar(10)", &[(Fail, "target-column", "table public.users")]),
    ("ALTER TABLE public.users ALTER name SET NOT NULL", &[(Fail, "target-column", "table public.users")]),
    ("ALTER TABLE public.users ADD extra int NOT NULL", &[(Fail, "target-column", "table public.users")]),
    ("ALTER TABLE public.users ADD extra int", &[(Warn, "target-column", "table public.users")]),
    (
        "ALTER TABLE public.users DROP name, ADD name text GENERATED ALWAYS AS (email) STORED",
        &[(Fail, "target-column", "table public.users")],
    ),
    (
        "ALTER TABLE public.users DROP email, ADD email text UNIQUE",
        &[(Warn, "target-column-order", "table public.users")],
    ),
    ("ALTER TABLE public.orders DROP CONSTRAINT orders_pkey", &[(Warn, "target-column", "table public.orders")]),
    ("ALTER TABLE public.orders SET UNLOGGED", &[(Fail, "target-unlogged", "table public.orders")]),
    ("CREATE RULE r AS ON INSERT TO public.orders DO ALSO NOTHING", &[(Warn, "target-rules", "table public.orders")]),
    // P14
    (
        "CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end';
         CREATE TRIGGER t BEFORE INSERT ON public.users FOR EACH ROW EXECUTE FUNCTION public.f();
         ALTER TABLE public.users ENABLE ALWAYS TRIGGER t",
        &[(Warn, "target-triggers", "table public.users")],
    ),
    (
        "DROP TABLE public.orders; CREATE VIEW public.orders AS SELECT 1 AS id, 1 AS user_id, ''::text AS note",
        &[(Fail, "target-column", "table public.orders")],
    ),
];

on_every_version! {
    /// Each change at the source has its finding, and no other.
    fn each_fault_at_the_source_is_found(major) {
        let pair = Pair::of(major, "check_source")?;
        for (change, expected) in AT_SOURCE {
            pair.source.execute(&format!("{EMPTY}; {GOOD}; {change}"))?;
            let report = Trial::new(SchemaMode::PgDump)?.run(&pair.source.url(), &pair.target.url())?;
            assert_eq!(complaints(&report), expected, "{change}\n{}", report.to_text(false));
        }
    }

    /// Each change on the target has its finding, and no other.
    fn each_fault_on_the_target_is_found(major) {
        let pair = Pair::of(major, "check_target")?;
        pair.source.execute(GOOD)?;
        for (change, expected) in ON_TARGET {
            pair.target.execute(&format!("{EMPTY}; {GOOD_TARGET}; {change}"))?;
            let report = Trial::new(SchemaMode::Existing)?.run(&pair.source.url(), &pair.target.url())?;
            let mut found = complaints(&report);
            found.sort_by_key(|(_, id, _)| *id);
            assert_eq!(found, expected, "{change}\n{}", report.to_text(false));
        }
    }

    /// P01 and its kin: what cannot be replicated is refused by name.
    fn kinds_of_tables_that_are_not_supported_are_named(major) {
        let pair = Pair::of(major, "check_kinds")?;
        pair.source.execute("CREATE TABLE public.parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
            CREATE TABLE public.leaf PARTITION OF public.parted FOR VALUES FROM (0) TO (10);
            CREATE PUBLICATION leaves FOR TABLE public.parted;
            CREATE PUBLICATION root FOR TABLE public.parted WITH (publish_via_partition_root)")?;
        for (publication, table, id) in [("leaves", "public.leaf", "table-partition"), ("root", "public.parted", "table-partitioned")] {
            let trial = Trial { publication, tables: vec![table], ..Trial::new(SchemaMode::PgDump)? };
            let report = trial.run(&pair.source.url(), &pair.target.url())?;
            assert_eq!(complaints(&report), [(Fail, id, format!("table {table}").as_str())], "{}", report.to_text(false));
            assert_eq!(report.exit_code(), 3);
        }
    }

    /// A role without rights is told each right that it lacks, with the statement that grants it; nothing is made meanwhile.
    fn missing_rights_are_named(major) {
        let pair = Pair::of(major, "check_rights")?;
        let role = "DO $$ BEGIN CREATE ROLE check_weak LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$";
        pair.execute(role)?;
        pair.source.execute(GOOD)?;
        pair.source.execute("GRANT SELECT ON public.orders TO check_weak; ALTER TABLE public.orders ENABLE ROW LEVEL SECURITY")?;
        let trial = Trial { user: Some("check_weak"), ..Trial::new(SchemaMode::PgDump)? };
        let report = trial.run(&pair.source.url(), &pair.target.url())?;
        assert_eq!(complaints(&report), [
            (Fail, "source-role-replication", "source"),
            (Fail, "table-row-security", "table public.orders"),
            (Fail, "table-readable", "table public.users"),
            (Fail, "target-create", "target"),
            (Fail, "target-replica-role", "target"),
            (Fail, "target-schema-create", "target"),
        ]);
        let replica = report.findings.iter().find(|finding| finding.id == "target-replica-role").unwrap();
        pair.target.execute(&replica.remedy)?;
        let report = trial.run(&pair.source.url(), &pair.target.url())?;
        assert!(!complaints(&report).iter().any(|(_, id, _)| *id == "target-replica-role"));
        pair.target.execute("REVOKE SET ON PARAMETER session_replication_role FROM check_weak")?;

        pair.target.execute(GOOD_TARGET)?;
        pair.target.execute("GRANT SELECT, INSERT ON public.users, public.orders TO check_weak; ALTER TABLE public.users ENABLE ROW LEVEL SECURITY")?;
        let trial = Trial { user: Some("check_weak"), ..Trial::new(SchemaMode::Existing)? };
        let report = trial.run(&pair.source.url(), &pair.target.url())?;
        for expected in [(Fail, "target-table-rights", "table public.orders"), (Fail, "target-row-security", "table public.users")] {
            assert!(complaints(&report).contains(&expected), "{}", report.to_text(false));
        }
        assert_eq!(pair.target.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'pgveil'")?, "0");
    }

    /// A slot of our name that we did not make is somebody's: never taken over, never dropped.
    fn a_foreign_slot_is_refused(major) {
        let pair = Pair::of(major, "check_slot")?;
        pair.source.execute(GOOD)?;
        let slot = format!("foreign_{}", std::process::id());
        pair.source.execute(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"))?;
        let trial = Trial { slot: slot.clone(), ..Trial::new(SchemaMode::PgDump)? };
        let report = trial.run(&pair.source.url(), &pair.target.url())?;
        assert_eq!(complaints(&report), [(Fail, "source-slot", format!("slot {slot}").as_str())]);
    }

    /// Foreign keys whose ends are masked differently, filtered tables without a key, the same database twice, no pg_dump.
    fn contradictions_of_the_job_are_found(major) {
        let pair = Pair::of(major, "check_job")?;
        pair.source.execute(GOOD)?;
        let (source, target) = (pair.source.url(), pair.target.url());
        let trial = || Trial::new(SchemaMode::PgDump);
        for (hidden, grade) in [(hidden(&[("users", "id")]), Fail), (hidden(&[("orders", "user_id")]), Warn)] {
            let report = Trial { hidden, ..trial()? }.run(&source, &target)?;
            assert_eq!(complaints(&report), [(grade, "policy-foreign-key", "table public.orders")]);
        }
        let report = trial()?.run(&source, &source)?;
        let mut ids: Vec<_> = complaints(&report).into_iter().map(|(_, id, _)| id).collect();
        ids.dedup();
        assert_eq!(ids, ["target-other-database", "target-table-empty"]);
        let report = Trial { pg_dump: "/nowhere/pg_dump".into(), ..trial()? }.run(&source, &target)?;
        assert_eq!(complaints(&report), [(Fail, "tool-pg-dump", "pg_dump")]);

        pair.target.execute("CREATE TABLE public.users (); CREATE VIEW public.orders AS SELECT 1 AS id")?;
        let report = trial()?.run(&source, &target)?;
        let expected = [(Fail, "target-table", "table public.orders"), (Warn, "target-table-empty", "table public.users")];
        assert_eq!(complaints(&report), expected);

        pair.target.execute(&format!("{EMPTY}; {GOOD_TARGET}; ALTER TABLE public.orders DROP CONSTRAINT orders_pkey"))?;
        let filtered = BTreeSet::from([TableName::new("public", "orders")]);
        let report = Trial { filtered, ..Trial::new(SchemaMode::Existing)? }.run(&source, &target)?;
        assert_eq!(complaints(&report), [(Fail, "target-column", "table public.orders")]);
    }
}

/// T44: bytes without an encoding are refused at the source; a target that lacks characters is refused as well.
#[test]
fn encodings_that_lose_characters_are_refused() -> Result<()> {
    let pair = Pair::of(Major::V18, "check_encoding")?;
    let database = |server: &pgveil_tests::Database, name: &str, encoding: &str| -> Result<String> {
        let name = format!("{name}_{}", std::process::id());
        server.execute(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"))?;
        Ok(server.server().url(&name))
    };
    pair.source.execute(GOOD)?;
    let latin = database(&pair.target, "check_latin", "LATIN1")?;
    let ascii = database(&pair.source, "check_ascii", "SQL_ASCII")?;
    let trial = Trial::new(SchemaMode::PgDump)?;
    let report = trial.run(&pair.source.url(), &latin)?;
    assert_eq!(complaints(&report), [(Fail, "target-encoding", "target")]);
    let report = trial.run(&ascii, &pair.target.url());
    // A session in UTF8 with such a database may be refused as a whole, which is as good.
    let found = report.map(|report| complaints(&report).iter().any(|(_, id, _)| *id == "source-encoding"));
    pair.source.execute(&format!("DROP DATABASE check_ascii_{} WITH (FORCE)", std::process::id()))?;
    pair.target.execute(&format!("DROP DATABASE check_latin_{} WITH (FORCE)", std::process::id()))?;
    assert!(found.unwrap_or(true));
    Ok(())
}

/// P12: what is computed from masked columns must not arrive from the source (`publish_generated_columns`, 18).
#[test]
fn published_generated_columns_are_refused() -> Result<()> {
    let pair = Pair::of(Major::V18, "check_generated")?;
    pair.source.execute(GOOD)?;
    pair.source.execute(
        "ALTER TABLE public.users ADD shout text GENERATED ALWAYS AS (upper(email)) STORED,
             ADD whisper text GENERATED ALWAYS AS (lower(email)) VIRTUAL;
         ALTER PUBLICATION shop SET (publish_generated_columns = stored)",
    )?;
    let trial = Trial::new(SchemaMode::PgDump)?;
    let report = trial.run(&pair.source.url(), &pair.target.url())?;
    assert_eq!(complaints(&report), [(Fail, "publication-generated", "publication shop")]);
    pair.source.execute("ALTER PUBLICATION shop SET (publish_generated_columns = none)")?;
    let report = trial.run(&pair.source.url(), &pair.target.url())?;
    assert_eq!(complaints(&report), []);
    assert_eq!(report.findings.iter().filter(|finding| finding.id == "policy-generated").count(), 2);
    Ok(())
}
