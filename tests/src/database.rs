//! A database for one test, and the questions a test asks it.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use postgres::{Client, SimpleQueryMessage};

use crate::{
    Result,
    cluster::{SUPERUSER, Server},
    shared::{self, Role},
    version::Major,
    wait,
};

/// A row as text, NULL as `None`, in the order of the query's columns.
pub type Row = Vec<Option<String>>;

/// A database of one test. Dropping it drops the database, with the slots that decode it.
#[derive(Debug)]
pub struct Database {
    server: Server,
    name: String,
}

impl Database {
    /// A fresh database on the shared source cluster of this version. `purpose` is part of its name.
    ///
    /// # Errors
    /// The cluster cannot be started, or refuses.
    pub fn on_source(major: Major, purpose: &str) -> Result<Self> {
        Self::create(&shared::server(major, Role::Source)?, purpose)
    }

    /// A fresh database on the shared target cluster of this version.
    ///
    /// # Errors
    /// As [`on_source`](Self::on_source).
    pub fn on_target(major: Major, purpose: &str) -> Result<Self> {
        Self::create(&shared::server(major, Role::Target)?, purpose)
    }

    /// A fresh database on a server.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn create(server: &Server, purpose: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{purpose}_{}_{number}", std::process::id());
        // `template0` is never connected to, so that tests may create databases at the same time.
        let sql = format!("CREATE DATABASE {} TEMPLATE template0", quote_identifier(&name));
        server.connect(SUPERUSER)?.batch_execute(&sql)?;
        Ok(Self { server: server.clone(), name })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server it is on.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Its URL, for the superuser.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// A session of one's own: for transactions that stay open, notifications, COPY.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn connect(&self) -> Result<Client> {
        self.server.connect(&self.name)
    }

    /// Runs statements in a session of their own: one transaction, unless they hold `BEGIN` and `COMMIT`.
    ///
    /// # Errors
    /// A statement fails; the error holds the server's message, which may show values.
    pub fn execute(&self, sql: &str) -> Result<()> {
        Ok(self.connect()?.batch_execute(sql).map_err(|error| describe(sql, &error))?)
    }

    /// The rows of a query, as text.
    ///
    /// # Errors
    /// The query fails.
    pub fn rows(&self, sql: &str) -> Result<Vec<Row>> {
        rows(&mut self.connect()?, sql)
    }

    /// The first column of the first row.
    ///
    /// # Errors
    /// The query fails, gives no row, or gives NULL.
    pub fn value(&self, sql: &str) -> Result<String> {
        let first = self.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        first.ok_or_else(|| format!("no value: {sql}").into())
    }

    /// Asks until the first column of the first row is `expected`.
    ///
    /// # Errors
    /// `limit` has passed (the error shows the last answer), or the query fails.
    pub fn wait_for(&self, sql: &str, expected: &str, limit: Duration) -> Result<()> {
        let mut client = self.connect()?;
        let mut last = None;
        let outcome = wait::until(sql, limit, || {
            last = rows(&mut client, sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
            Ok((last.as_deref() == Some(expected)).then_some(()))
        });
        outcome.map_err(|error| format!("{error}; expected {expected:?}, last answer {last:?}").into())
    }

    /// The position up to which the server has written WAL.
    ///
    /// # Errors
    /// The query fails.
    pub fn wal_position(&self) -> Result<String> {
        self.value("SELECT pg_current_wal_lsn()")
    }

    /// Whether `confirmed_flush_lsn` of a slot reaches a position within `limit`.
    ///
    /// # Errors
    /// It does not.
    pub fn wait_for_slot(&self, slot: &str, position: &str, limit: Duration) -> Result<()> {
        let sql = format!(
            "SELECT confirmed_flush_lsn >= {}::pg_lsn FROM pg_replication_slots WHERE slot_name = {}",
            quote_literal(position),
            quote_literal(slot)
        );
        self.wait_for(&sql, "t", limit)
    }

    fn remove(&self) -> Result<()> {
        let mut client = self.server.connect(SUPERUSER)?;
        let name = quote_literal(&self.name);
        client.batch_execute(&format!(
            "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE database = {name} AND active"
        ))?;
        client.batch_execute(&format!(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = {name}"
        ))?;
        // A prepared transaction would keep the database; it may only be ended from inside.
        let prepared = rows(&mut client, &format!("SELECT gid FROM pg_prepared_xacts WHERE database = {name}"))?;
        for gid in prepared.into_iter().flatten().flatten() {
            self.connect()?.batch_execute(&format!("ROLLBACK PREPARED {}", quote_literal(&gid)))?;
        }
        Ok(client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", quote_identifier(&self.name)))?)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A stopped server cannot answer, and a failed test leaves its cluster in any state: nothing to do about it here.
        let _ = self.remove();
    }
}

/// A source and a target database for one job.
#[derive(Debug)]
pub struct Pair {
    /// The end that is read.
    pub source: Database,
    /// The end that is written.
    pub target: Database,
}

impl Pair {
    /// Fresh databases on the shared clusters of one version.
    ///
    /// # Errors
    /// A cluster cannot be started, or refuses.
    pub fn of(major: Major, purpose: &str) -> Result<Self> {
        Self::between(major, major, purpose)
    }

    /// Fresh databases on the shared clusters of two versions.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn between(source: Major, target: Major, purpose: &str) -> Result<Self> {
        Ok(Self { source: Database::on_source(source, purpose)?, target: Database::on_target(target, purpose)? })
    }

    /// Runs the same statements at both ends.
    ///
    /// # Errors
    /// The first statement that fails.
    pub fn execute(&self, sql: &str) -> Result<()> {
        self.source.execute(sql)?;
        self.target.execute(sql)
    }
}

/// The rows of a query, as text: the simple protocol gives every type as text.
///
/// # Errors
/// The query fails; the error holds the server's message.
pub fn rows(client: &mut Client, sql: &str) -> Result<Vec<Row>> {
    let messages = client.simple_query(sql).map_err(|error| describe(sql, &error))?;
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()),
        _ => None,
    });
    Ok(rows.collect())
}

/// An identifier as SQL writes it.
#[must_use]
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text literal as SQL writes it, with `standard_conforming_strings` on.
#[must_use]
pub fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn describe(sql: &str, error: &postgres::Error) -> String {
    let reason = error.as_db_error().map_or_else(
        || error.to_string(),
        |refusal| {
            let detail = refusal.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{}: {}{detail}", refusal.code().code(), refusal.message())
        },
    );
    format!("{reason}\n  in: {sql}")
}
