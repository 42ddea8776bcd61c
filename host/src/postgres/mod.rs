//! The one connection type, shared by source, apply, checkpoint and `check`: PostgreSQL's protocol 3.0 over tokio and
//! rustls ("Frontend/Backend Protocol" in the manual).
//!
//! ```text
//! Endpoint ── connect ──▶ Session ── query, execute, batch
//!                            ├── copy_out ──▶ CopyOut      (borrows)
//!                            ├── copy_in ───▶ CopyIn       (borrows)
//!                            ├── copy_both ─▶ Replication  (consumes)
//!                            └── into_pipeline ▶ PipelineWriter, PipelineReader (consumes)
//! ```
//!
//! Three rules hold in every file:
//!
//! - **A session never lies about where it is.** A call that was dropped half way, or met an error of the network or the
//!   protocol, leaves the session unusable: every later call says so.
//! - **Nothing that a server wrote is shown.** An error of the server becomes a [`ServerError`]: SQLSTATE and names.
//!   Notices are thrown away unread. A [`Row`] has no `Debug`.
//! - **Every text depends on the row alone.** All sessions pin the settings that text output depends on
//!   ([`Session::connect`]), so that snapshot and stream give a mask the same text.

mod auth;
mod cancel;
mod certificate;
mod connect;
mod copy;
mod endpoint;
#[cfg(test)]
mod hostile;
mod incoming;
mod outgoing;
mod parameters;
mod pipeline;
mod replication;
mod row;
mod server_error;
mod session;
mod startup;
mod tls;
mod transport;
mod url;

pub use cancel::Cancel;
pub use copy::{CopyIn, CopyOut};
pub use endpoint::{Endpoint, Side};
pub use pgveil_wire::backend::{ErrorFields as ServerError, Severity, SqlState, TransactionStatus};
pub use pipeline::{PipelineReader, PipelineWriter, Reply};
pub use replication::Replication;
pub use row::Row;
pub use session::Session;
pub use tls::{TlsState, TlsVersion};
