//! Writers at full speed on the tables of [`People`](super::people::People).

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use pgveil_tests::cluster::Server;
use pgveil_tests::{Database, Result, wait};

use super::random::Random;

/// Threads that write until they are stopped. A server that is gone for a while does not end them.
pub struct Writers {
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    /// So many threads, each with rows of its own.
    pub fn start(source: &Database, random: &mut Random, threads: u64) -> Writers {
        let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = (1..=threads).map(|number| {
            let writer = Writer {
                server: source.server().clone(),
                database: source.name().to_owned(),
                random: random.fork(),
                first: number * 1_000_000 + 1,
                next: number * 1_000_000 + 1,
            };
            let (stop, committed) = (stop.clone(), committed.clone());
            std::thread::spawn(move || writer.write(&stop, &committed))
        });
        Writers { threads: threads.collect(), stop, committed }
    }

    /// Waits until they have committed so many more transactions.
    pub fn wait_for_more(&self, transactions: u64) -> Result<()> {
        let wanted = self.committed.load(Ordering::Relaxed) + transactions;
        wait::until("writers to commit", wait::LONG, || {
            Ok((self.committed.load(Ordering::Relaxed) >= wanted).then_some(()))
        })
    }

    /// Stops them; answers how many transactions they committed.
    pub fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.committed.load(Ordering::Relaxed)
    }
}

struct Writer {
    server: Server,
    database: String,
    random: Random,
    first: u64,
    next: u64,
}

impl Writer {
    fn write(mut self, stop: &AtomicBool, committed: &AtomicU64) {
        while !stop.load(Ordering::Relaxed) {
            let Ok(mut client) = self.server.connect(&self.database) else {
                super::pause(std::time::Duration::from_millis(50));
                continue;
            };
            while !stop.load(Ordering::Relaxed) {
                let sql = self.transaction();
                match client.batch_execute(&sql) {
                    Ok(()) => committed.fetch_add(1, Ordering::Relaxed),
                    Err(_) => break,
                };
            }
        }
    }

    /// One transaction of a few changes, some of them rolled back. Then a moment's rest: two cores run everything here.
    fn transaction(&mut self) -> String {
        let mut sql = String::from("begin; ");
        for _ in 0..self.random.within(1..6) {
            self.change(&mut sql);
        }
        if self.random.within(0..10) == 0 {
            sql.push_str("savepoint a; ");
            self.change(&mut sql);
            sql.push_str("rollback to a; ");
        }
        sql.push_str("commit; select pg_sleep(0.003)");
        sql
    }

    fn change(&mut self, sql: &mut String) {
        let id = self.next;
        let some = self.random.within(self.first..self.next + 1);
        let _ = match self.random.within(0..12) {
            0..4 => write!(sql, "insert into person values ({id}, 'w{id}@example.com', repeat('x', {}), 0); ", id % 50),
            4..6 => write!(sql, "insert into visit values ({id}, 'w{id}@example.com', null); "),
            6..8 => write!(
                sql,
                "update person set n = n + 1, email = case when n % 3 = 0 then null else 'u' || n || '@example.com' end where id = {some}; "
            ),
            8 => write!(sql, "update visit set n = coalesce(n, 0) + 1 where id = {some}; "),
            9 => write!(sql, "delete from person where id = {some}; delete from visit where id = {some}; "),
            10 => write!(sql, "update person set id = id + 500000 where id = {some} and id % 1000000 < 500000; "),
            _ => write!(
                sql,
                "insert into person select i, 'b' || i || '@example.com', null, 1 from generate_series({id}, {}) i; ",
                id + 40
            ),
        };
        self.next += 41;
    }
}
