//! Every bound of the host that is not the job's to set, with its reason. What a job may set has its default and range in
//! `config/job.rs`.

use std::time::Duration;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// The largest message a server may send us: PostgreSQL's own limit on one allocation (`MaxAllocSize`).
pub const MESSAGE_BYTES_MAX: u64 = GIB;

/// The bytes that a window collects before it goes on: large enough that a guest call's fixed cost vanishes, small
/// enough to stay in the second-level cache.
pub const WINDOW_BYTES: u64 = 512 * KIB;

/// The rows of a window. Bounds the fuel of one guest call as well.
pub const WINDOW_ROWS: usize = 4096;

/// The bytes of COPY text that a snapshot batch collects.
pub const COPY_BATCH_BYTES: u64 = 256 * KIB;

/// The rows of a snapshot batch.
pub const COPY_BATCH_ROWS: usize = 2048;

/// What may be on its way between the source's socket and the target's answer (`limits.max_inflight`).
pub const INFLIGHT_BYTES: u64 = 16 * MIB;

/// The whole process's budget for row data (`limits.memory_budget`).
pub const MEMORY_BUDGET: u64 = 128 * MIB;

/// The largest component file that is read.
pub const GUEST_FILE_BYTES_MAX: u64 = 64 * MIB;

/// How often the walsender hears from us at least, whatever else is blocked. A third of the smallest sensible
/// `wal_sender_timeout`.
pub const FEEDBACK_INTERVAL: Duration = Duration::from_secs(1);

/// A walsender that is silent for so long is taken for gone, as PostgreSQL's `wal_receiver_timeout` does by default.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How often the target's flushed position is looked at while transactions are unacknowledged.
pub const DURABLE_POLL: Duration = Duration::from_millis(100);

/// How often an idle source moves the checkpoint.
pub const IDLE_ADVANCE: Duration = Duration::from_secs(1);

/// How long a start waits for the lock of a process that has just ended.
pub const LOCK_WAIT: Duration = Duration::from_secs(3);

/// How often it looks.
pub const LOCK_POLL: Duration = Duration::from_millis(50);

/// How long connecting and authenticating may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most SCRAM iterations a server may ask for: libpq sets 4096 by default; a hostile server could ask for 2³¹.
pub const SCRAM_ITERATIONS_MAX: u32 = 1_000_000;

/// Statements prepared on the apply session before the oldest is closed.
pub const STATEMENTS_MAX: usize = 1024;

/// A run of inserts of at least this many rows goes in by COPY; below, prepared statements are as fast.
pub const COPY_RUN_MIN: usize = 16;

/// A run of updates or deletes of at least this many rows goes in by one set-based statement.
pub const SET_RUN_MIN: usize = 32;

const _: () = assert!(WINDOW_BYTES <= INFLIGHT_BYTES, "a window must fit the in-flight budget");
const _: () = assert!(INFLIGHT_BYTES <= MEMORY_BUDGET, "the stream's share must fit the whole budget");
const _: () = assert!(MESSAGE_BYTES_MAX < (u32::MAX - 2) as u64, "a cell's length and its marks share a u32");
