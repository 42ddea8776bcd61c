//! What the tests on real PostgreSQL clusters are made of.
//!
//! | module | gives |
//! | --- | --- |
//! | [`version`] | which major versions are tested, and where their programs are |
//! | [`cluster`] | a [`Cluster`](cluster::Cluster) of one's own: started, stopped in every way there is, restarted |
//! | [`shared`] | one source and one target cluster a version, shared by all test processes |
//! | [`database`] | a fresh [`Database`](database::Database) for one test, and the questions a test asks it |
//! | [`tls`] | a certificate authority made for one cluster |
//! | [`proxy`] | a TCP [`Proxy`](proxy::Proxy) that cuts, stalls and slows either direction |
//! | [`runner`] | the built `pgveil` binary, run with a job and a policy |
//! | [`compare`] | the contents of source and target, side by side, through a native copy of the masks |
//! | [`leak`] | where in a folder given byte strings occur |
//! | [`wait`] | bounded waiting for a condition |
//!
//! A test that only needs tables takes a [`Pair`](database::Pair) of fresh databases on the shared clusters. A test that
//! stops a server, changes its settings, scans its files or keeps a transaction open for long (which would hold up every
//! `CREATE_REPLICATION_SLOT` of the same cluster) takes a cluster of its own.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that fails here has failed"))]

pub mod cluster;
pub mod compare;
pub mod database;
pub mod leak;
pub mod proxy;
pub mod runner;
pub mod shared;
pub mod tls;
pub mod version;
pub mod wait;

mod account;
#[cfg(test)]
mod real;

/// What the harness returns: its errors are read by a person in a failed test, never matched on.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

pub use cluster::{Cluster, Stop};
pub use database::{Database, Pair};
pub use proxy::{Direction, Proxy};
pub use runner::Job;
pub use version::Major;

/// Defines one test a PostgreSQL version: `name::v15`, `name::v16` and so on, each given its [`Major`]. A version that
/// `PGVEIL_TEST_PG` leaves out passes without doing anything, and says so.
///
/// ```
/// pgveil_tests::on_every_version! {
///     fn answers(major) {
///         let source = pgveil_tests::Database::on_source(major, "answers")?;
///         assert_eq!(source.value("SELECT 1")?, "1");
///     }
/// }
/// ```
#[macro_export]
macro_rules! on_every_version {
    ($($(#[$attribute:meta])* fn $name:ident($major:ident) $body:block)+) => {
        $(
            mod $name {
                use super::*;
                fn body($major: $crate::Major) -> $crate::Result<()> {
                    $body
                    Ok(())
                }
                $crate::on_every_version!(@one $(#[$attribute])* body v15 V15);
                $crate::on_every_version!(@one $(#[$attribute])* body v16 V16);
                $crate::on_every_version!(@one $(#[$attribute])* body v17 V17);
                $crate::on_every_version!(@one $(#[$attribute])* body v18 V18);
            }
        )+
    };
    (@one $(#[$attribute:meta])* $body:ident $test:ident $major:ident) => {
        $(#[$attribute])*
        #[test]
        fn $test() -> $crate::Result<()> {
            if $crate::version::is_tested($crate::Major::$major)? { $body($crate::Major::$major) } else { Ok(()) }
        }
    };
}
