//! Logs: to stderr, as text or JSON lines, with UTC times.
//!
//! Only pgveil's own targets are ever enabled, at any level and by any filter: libraries log what they handle, and what they
//! handle here are rows. pgveil's own events carry tables, columns, counts and positions, never values.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::str::FromStr;

use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt as _, FilterFn, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

/// What the target of every event of this program begins with: the names of its crates.
const OWN_TARGETS: &str = "pgveil";

/// Which events are logged: a level (`debug`), or levels by target (`info,pgveil::source=trace`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogFilter(Targets);

/// A text that is no [`LogFilter`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a filter is a level (off, error, warn, info, debug, trace), or levels by target: `info,pgveil::source=trace`")]
pub struct LogFilterError;

impl Default for LogFilter {
    fn default() -> Self {
        Self(Targets::new().with_default(LevelFilter::INFO))
    }
}

impl FromStr for LogFilter {
    type Err = LogFilterError;

    fn from_str(text: &str) -> Result<Self, LogFilterError> {
        let targets: Targets = text.parse().map_err(|_| LogFilterError)?;
        // A bare word that is no level parses as a target: `debgu` would silently log nothing at all.
        let foreign = targets.iter().any(|(target, _)| !is_own(target));
        if foreign || text.trim().is_empty() { Err(LogFilterError) } else { Ok(Self(targets)) }
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people, coloured or not.
    Text {
        /// Whether escape sequences are written. Ask [`stderr_colors`].
        color: bool,
    },
    /// One JSON object a line.
    Json,
}

/// Whether stderr takes colours by itself: it is a terminal, and `NO_COLOR` is not set (<https://no-color.org>).
#[must_use]
pub fn stderr_colors() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Logging was already set up.
#[derive(Debug, Error)]
#[error("logging was set up twice")]
pub struct AlreadySetUp;

/// Sets logging up for the whole process, to stderr.
///
/// # Errors
/// When it was set up before.
pub fn set_up(filter: LogFilter, format: LogFormat) -> Result<(), AlreadySetUp> {
    tracing::subscriber::set_global_default(subscriber(filter, format, io::stderr)).map_err(|_| AlreadySetUp)
}

/// The subscriber with any writer, so that a test can read what is written.
fn subscriber<W>(filter: LogFilter, format: LogFormat, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = own_only().and(filter.0);
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_timer(UtcTime);
    match format {
        LogFormat::Text { color } => {
            // Colours off also escapes control characters that a name may hold.
            Box::new(Registry::default().with(layer.with_ansi(color).with_filter(filter)))
        }
        LogFormat::Json => {
            let layer = layer.json().flatten_event(true).with_current_span(true).with_span_list(false);
            Box::new(Registry::default().with(layer.with_ansi(false).with_filter(filter)))
        }
    }
}

fn own_only() -> FilterFn<fn(&Metadata<'_>) -> bool> {
    filter_fn(|metadata| is_own(metadata.target()))
}

/// `pgveil`, `pgveil::…` and the crates `pgveil_…`, but not a stranger whose name begins alike.
fn is_own(target: &str) -> bool {
    target
        .strip_prefix(OWN_TARGETS)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || rest.starts_with('_'))
}

/// Times as RFC 3339 in UTC with milliseconds: `2026-11-30T08:00:00.000Z`.
struct UtcTime;

impl FormatTime for UtcTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        write_utc(writer, since.as_secs(), since.subsec_millis())
    }
}

/// Writes seconds since 1970 as a date and time, by the civil-from-days algorithm over 400-year eras
/// (<https://howardhinnant.github.io/date_algorithms.html>), with years that begin in March.
fn write_utc(writer: &mut impl fmt::Write, seconds: u64, milliseconds: u32) -> fmt::Result {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_IN_ERA: u64 = 146_097;
    let (days, second) = (seconds / 86_400 + DAYS_TO_1970, seconds % 86_400);
    let (era, day_of_era) = (days / DAYS_IN_ERA, days % DAYS_IN_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    write!(writer, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
