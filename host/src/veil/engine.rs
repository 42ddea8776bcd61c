//! The WebAssembly engine, set once, and the clock that backs its deadlines.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::{Config, Engine};

use crate::config::Limits;
use crate::error::{Error, Kind, Result};

/// How often the epoch moves. A deadline is exact to one tick.
const TICK: Duration = Duration::from_millis(50);

/// The stack of a guest. Rust guests use a few kilobytes; recursion that needs more is a defect, and a small stack keeps it
/// cheap to find.
const WASM_STACK_BYTES: usize = 512 * 1024;

/// What a guest may use. The defaults are those of the job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestLimits {
    /// Linear memory of an instance, in bytes.
    pub memory_bytes: u64,
    /// Fuel of a call apart from its rows.
    pub fuel_base: u64,
    /// Fuel for each row.
    pub fuel_per_row: u64,
    /// The wall-clock backstop of one call.
    pub deadline: Duration,
    /// Output bytes for each input byte.
    pub output_factor: u64,
    /// Output bytes of a call besides.
    pub output_bytes_extra: u64,
}

/// What a job file's `limits` say.
impl From<&Limits> for GuestLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            memory_bytes: limits.guest_memory.bytes(),
            fuel_base: limits.fuel_base,
            fuel_per_row: limits.fuel_per_row,
            deadline: limits.guest_deadline,
            output_factor: limits.output_factor,
            output_bytes_extra: limits.output_extra.bytes(),
        }
    }
}

impl Default for GuestLimits {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl GuestLimits {
    /// The fuel of a call over so many rows.
    pub(super) fn fuel(&self, rows: usize) -> u64 {
        self.fuel_base.saturating_add(self.fuel_per_row.saturating_mul(rows as u64))
    }

    /// The most bytes that a call may return for its input.
    pub(super) fn output_bytes(&self, input_bytes: usize) -> usize {
        let factor = self.output_factor.saturating_mul(input_bytes as u64);
        usize::try_from(factor.saturating_add(self.output_bytes_extra)).unwrap_or(usize::MAX)
    }

    /// The deadline in ticks of the epoch. Never zero: that fires at once.
    pub(super) fn deadline_ticks(&self) -> u64 {
        let ticks = self.deadline.as_nanos().div_ceil(TICK.as_nanos());
        u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(1)
    }
}

/// The engine of a process. Guests of one job share it; clones are the same engine.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    engine: Engine,
    limits: GuestLimits,
    ticker: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Sandbox {
    /// Sets the engine up and starts its clock.
    ///
    /// # Errors
    /// [`Kind::Internal`] when the platform has no compiler or no thread can be started.
    pub fn new(limits: GuestLimits) -> Result<Sandbox> {
        let engine =
            Engine::new(&config()).map_err(|_| Error::new(Kind::Internal, "setting up the WebAssembly engine"))?;
        let ticker = start_ticker(&engine)?;
        Ok(Sandbox(Arc::new(Inner { engine, limits, ticker: Some(ticker) })))
    }

    /// What guests may use.
    #[must_use]
    pub fn limits(&self) -> &GuestLimits {
        &self.0.limits
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.0.engine
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticker.take() {
            drop(stop);
            // The thread only sleeps and counts; were it to panic, deadlines would be the one thing lost.
            let _ = thread.join();
        }
    }
}

/// Every setting that decides what a guest can do, each with its reason.
fn config() -> Config {
    let mut config = Config::new();
    config
        // Guests are components; core modules have no types to check at the door.
        .wasm_component_model(true)
        // The limit that ends every loop, and the same one each time: fuel does not depend on the machine's load.
        .consume_fuel(true)
        // The backstop, for what fuel does not see.
        .epoch_interruption(true)
        // The bits of a NaN differ between processors; a mask that printed them would differ too.
        .cranelift_nan_canonicalization(true)
        // Relaxed SIMD may differ between processors unless it is told not to.
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        // A backtrace names the guest's own symbols and costs time on every trap. Kinds and places are ours.
        .wasm_backtrace_max_frames(None)
        // A 64-bit memory could ask for more address space than there is; no toolchain for components makes one.
        .wasm_memory64(false)
        // Sizes of pages other than 64 KiB would change what the memory limit counts.
        .wasm_custom_page_sizes(false);
    config
}

fn start_ticker(engine: &Engine) -> Result<(SyncSender<()>, JoinHandle<()>)> {
    let (stop, stopped) = sync_channel::<()>(0);
    let engine = engine.weak();
    let tick = move || {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    };
    let thread = std::thread::Builder::new().name("guest-clock".to_owned()).spawn(tick);
    let thread = thread.map_err(|error| Error::new(Kind::Internal, "starting the guests' clock").because(error))?;
    Ok((stop, thread))
}
