//! The one error type, and the one table that says what each kind means for the job.
//!
//! An error names places: files, tables, columns, constraints, LSNs, SQLSTATEs. It never holds a row's value, nor any
//! text that a server or a guest wrote, for both may quote values.
//!
//! Everything that is not known to be transient halts ([`Reaction::Halt`]).

use std::error::Error as StdError;
use std::fmt;

/// What the job does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Connect again with backoff and go on from the checkpoint.
    Retry,
    /// Stop. The reason stays in the job's state.
    Halt,
}

/// The state that a halt leaves behind (`pgveil.job.state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltState {
    /// Resumable once mended.
    Error,
    /// Continuity cannot be proven: only a new snapshot helps.
    ResyncRequired,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident => $reaction:ident, $state:ident, $exit:literal, $text:literal, $remedy:literal;)+) => {
        /// What went wrong. Each kind has its reaction, exit code and remedy in one table below.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[doc = $doc])+ $name,)+ }

        impl Kind {
            /// Every kind, in the table's order.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)+];

            /// The name, stable, as JSON output and the job's state carry it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Kind::$name => stringify!($name),)+ }
            }

            /// Retry or halt.
            #[must_use]
            pub fn reaction(self) -> Reaction {
                match self { $(Kind::$name => Reaction::$reaction,)+ }
            }

            /// The state after a halt.
            #[must_use]
            pub fn halt_state(self) -> HaltState {
                match self { $(Kind::$name => HaltState::$state,)+ }
            }

            /// The exit code (design: 1 runtime, 2 files, 3 preflight, 4 resynchronise, 5 unsupported, 6 guest).
            #[must_use]
            pub fn exit_code(self) -> u8 {
                match self { $(Kind::$name => $exit,)+ }
            }

            /// One clause that says what happened.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Kind::$name => $text,)+ }
            }

            /// What the operator does next.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(Kind::$name => $remedy,)+ }
            }
        }
    };
}

kinds! {
    // === transient: the only kinds that are tried again ===
    /// A connection broke or could not be made.
    ConnectionLost => Retry, Error, 1, "the connection was lost", "Check the network and that the server runs; the job goes on by itself when it answers.";
    /// The server starts, stops or recovers (57P01, 57P02, 57P03).
    ServerRestarting => Retry, Error, 1, "the server is starting or shutting down", "Wait for the server; the job goes on by itself.";
    /// No connection slot was free (53300).
    TooManyConnections => Retry, Error, 1, "the server has no connection free", "Raise max_connections or close other sessions; the job tries again by itself.";
    /// The slot is still held by a walsender (55006), as after a lost connection.
    SlotActive => Retry, Error, 1, "the slot is in use by another walsender", "Stop the other consumer of this slot; after a lost connection it frees itself within wal_sender_timeout.";
    /// The server gave up a statement that may be repeated (40001, 40P01, 55P03).
    Contention => Retry, Error, 1, "the server gave up a statement because of concurrent work", "Nothing to do: the transaction is tried again. If it stays, look for long locks on the target's tables.";

    // === configuration and files: exit 2 ===
    /// The job file is wrong.
    JobFile => Halt, Error, 2, "the job file is not valid", "Mend the named field; `pgveil check` shows all of them.";
    /// The policy file is wrong.
    PolicyFile => Halt, Error, 2, "the policy file is not valid", "Mend the named place in the policy file.";
    /// The command line is wrong.
    Usage => Halt, Error, 2, "the command cannot be done as given", "See `pgveil --help`.";
    /// An environment variable is missing or not usable.
    Environment => Halt, Error, 2, "an environment variable is missing or not usable", "Set the named variable; URLs and keys come from the environment only.";
    /// A connection URL is wrong.
    Url => Halt, Error, 2, "the connection URL is not valid", "Write it as postgresql://user@host:port/database?sslmode=verify-full.";

    // === preflight: exit 3 ===
    /// A prerequisite is not met.
    Preflight => Halt, Error, 3, "a prerequisite is not met", "Run `pgveil check`: it lists every prerequisite with its remedy.";
    /// The password or role was refused (28000, 28P01).
    Authentication => Halt, Error, 3, "the server refused the role or its password", "Check user, password and pg_hba.conf; a wrong password is never tried again.";
    /// TLS could not be set up as asked.
    Tls => Halt, Error, 3, "TLS could not be set up as asked", "Check sslmode, sslrootcert and the server's certificate.";
    /// The role lacks a right (42501).
    Permission => Halt, Error, 3, "the role lacks a right", "Grant it; `pgveil check` names the statement.";
    /// Another process runs this job.
    JobLocked => Halt, Error, 3, "another process runs this job", "Stop it first, or wait: its lock ends with its session.";
    /// The job was not bootstrapped, or is half bootstrapped.
    NotReady => Halt, Error, 3, "the job is not in a state that allows this", "See `pgveil status`; a first start is `pgveil bootstrap`, starting over is `pgveil bootstrap --restart-snapshot`.";
    /// pg_dump or psql is missing or failed.
    SchemaTool => Halt, Error, 3, "the schema tool failed", "Install pg_dump of at least the source's version, or set schema.mode to existing.";

    // === continuity: exit 4 ===
    /// The slot is gone.
    SlotMissing => Halt, ResyncRequired, 4, "the slot does not exist on the source", "Changes may be lost: `pgveil bootstrap --restart-snapshot` copies anew.";
    /// The server invalidated the slot or removed its WAL.
    SlotLost => Halt, ResyncRequired, 4, "the source no longer has the WAL that the slot needs", "Raise max_slot_wal_keep_size, then `pgveil bootstrap --restart-snapshot`.";
    /// The slot is ahead of the checkpoint.
    SlotAdvanced => Halt, ResyncRequired, 4, "the slot was advanced past the checkpoint by another consumer", "Find the other consumer, then `pgveil bootstrap --restart-snapshot`.";
    /// Not the server that the snapshot came from.
    SourceChanged => Halt, ResyncRequired, 4, "the source is not the one that the checkpoint belongs to", "Point the job at the original source, or `pgveil bootstrap --restart-snapshot`.";
    /// The rules that masked the copied rows changed.
    FingerprintChanged => Halt, ResyncRequired, 4, "policy, guest or key changed since the rows were copied", "Put the former policy, guests and keys back, or `pgveil bootstrap --restart-snapshot`, or, if rows may stay as they were masked, `pgveil run --accept-policy-change`.";

    // === changes that cannot be followed: exit 5 ===
    /// A relation changed.
    RelationChanged => Halt, Error, 5, "a table changed its shape at the source", "Decide: alter the target, name new columns in the policy, then `pgveil run`.";
    /// A row came for a table outside the job.
    UnknownRelation => Halt, Error, 5, "the stream carries a table that the job does not know", "Make the publication and the job's tables equal, then `pgveil bootstrap --restart-snapshot` if rows were missed.";
    /// An update or delete found no row.
    RowMissing => Halt, Error, 5, "an update or delete found no row on the target", "Something else wrote to the target: compare the table, mend the row, then `pgveil run`; or `pgveil bootstrap --restart-snapshot`.";
    /// The target refused a row.
    TargetRefused => Halt, Error, 5, "the target refused a statement", "Look up the SQLSTATE and the constraint; mend the target's schema or the policy, then `pgveil run`.";
    /// The target's checkpoint is not the one this process wrote.
    CheckpointMoved => Halt, Error, 5, "the checkpoint was moved by another process", "Make sure that only one process runs this job, then `pgveil run`.";
    /// The update lacks a value that is needed.
    UnchangedNeeded => Halt, Error, 5, "an out-of-line value that is needed was not sent", "Set REPLICA IDENTITY FULL on the table, or bind the mask to other columns.";
    /// A value is not what the type, the table or the batch allows.
    SourceData => Halt, Error, 5, "the source sent something that cannot be carried over", "See the named table; nothing of the transaction was applied.";
    /// The server refused a statement of ours.
    ServerRefused => Halt, Error, 5, "the server refused a statement", "Look up the SQLSTATE in the PostgreSQL manual, appendix A.";

    // === guests: exit 6 ===
    /// The component was refused before it ran.
    GuestRefused => Halt, Error, 6, "the guest was refused", "Build it for the world pgveil:policy this host offers, with no other imports.";
    /// bind refused the arguments, or describe does not list the function.
    GuestBind => Halt, Error, 6, "the guest does not accept this binding", "See `pgveil check` for what the function accepts.";
    /// The guest trapped.
    GuestTrap => Halt, Error, 6, "the guest trapped", "Mend the guest, then `pgveil run`, with --accept-policy-change where the target holds rows that the former guest masked.";
    /// The guest used up its fuel.
    GuestFuel => Halt, Error, 6, "the guest ran out of fuel", "Mend the guest, or raise limits.fuel_per_row.";
    /// The guest asked for more memory than allowed.
    GuestMemory => Halt, Error, 6, "the guest reached its memory limit", "Mend the guest, or raise limits.guest_memory.";
    /// The guest ran past its deadline.
    GuestDeadline => Halt, Error, 6, "the guest ran past its deadline", "Mend the guest, or raise limits.guest_deadline.";
    /// The guest returned a fault.
    GuestFault => Halt, Error, 6, "the guest refused a row", "See the fault's code and column; mend the guest or the policy.";
    /// The guest's output is not acceptable.
    GuestOutput => Halt, Error, 6, "the guest returned something that is not allowed", "Mend the guest: its output must have the batch's rows and valid values.";
    /// Two runs of the same batch differ.
    GuestNotDeterministic => Halt, Error, 6, "the guest gave two outputs for one input", "Remove time, randomness and state between rows from the guest.";

    // === the rest: exit 1 ===
    /// The server broke the protocol.
    Protocol => Halt, Error, 1, "the server sent something outside the protocol", "Check that the URL leads to PostgreSQL itself, not to a pooler.";
    /// A file could not be read or written.
    File => Halt, Error, 1, "a file could not be read or written", "Check the path and its rights.";
    /// A fault in pgveil.
    Internal => Halt, Error, 1, "pgveil has a fault", "Please report it with the log; no row was let through.";
}

/// An error of the job: a kind, the place, and what caused it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    place: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of everything that can fail in the host.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error at a place. The place names things (a table, a file, an LSN), never a value.
    pub fn new(kind: Kind, place: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, place: place.into(), source: None }))
    }

    /// Attaches the cause. The cause's own text is shown: it must not carry values either.
    #[must_use]
    pub fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Error {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Puts a wider place in front: `table public.users: column email: …`.
    #[must_use]
    pub fn within(mut self, place: impl fmt::Display) -> Error {
        self.0.place = if self.0.place.is_empty() { place.to_string() } else { format!("{place}: {}", self.0.place) };
        self
    }

    /// Says the place anew, where the caller knows it better.
    #[must_use]
    pub fn placed(mut self, place: impl Into<String>) -> Error {
        self.0.place = place.into();
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Where.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// Whether the job may try again by itself.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.kind.reaction() == Reaction::Retry
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.place.is_empty() {
            formatter.write_str(self.0.kind.text())
        } else {
            write!(formatter, "{}: {}", self.0.place, self.0.kind.text())
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<pgveil_wire::WireError> for Error {
    fn from(error: pgveil_wire::WireError) -> Error {
        Error::new(Kind::Protocol, "").because(error)
    }
}
