//! How far the copy is, for people and for programs: bars on a terminal, plain lines elsewhere, JSON lines with `--json`.
//!
//! Names and numbers only; nothing here ever sees a row.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

/// How often plain and JSON lines tell of a table that is being copied.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// The bar of a table whose size is known. Rate and time left are of rows.
const BAR: &str = "{prefix:28!}  {bar:24}  {human_pos:>11} rows  {msg:>11}  {per_sec:>14}  {eta:>5} left";

/// The same for a table that the source never analysed: how many rows it has is not known.
const SPINNER: &str = "{prefix:28!}  {spinner}  {human_pos:>11} rows  {msg:>11}  {per_sec:>14}";

/// How progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bars on standard error.
    Bars,
    /// A line every few seconds, on standard error.
    Lines,
    /// JSON lines on standard output.
    Json,
}

impl Style {
    /// What fits the process's output.
    #[must_use]
    pub fn choose(json: bool) -> Style {
        match (json, std::io::stderr().is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::Bars,
            (false, false) => Style::Lines,
        }
    }
}

/// What is told of one table. Counters are updated by several workers at once.
struct TableProgress {
    name: String,
    rows_expected: u64,
    rows: AtomicU64,
    bytes: AtomicU64,
    drawn: Mutex<Drawn>,
}

/// What was told last.
#[derive(Default)]
struct Drawn {
    started: Option<Instant>,
    line: Option<Instant>,
    bar: Option<ProgressBar>,
}

/// The progress of one copy.
pub struct Progress {
    style: Style,
    bars: MultiProgress,
    tables: Vec<TableProgress>,
}

impl Progress {
    /// For tables by name, each with the number of rows that is expected; 0 when nobody knows.
    #[must_use]
    pub fn new(style: Style, tables: impl IntoIterator<Item = (String, u64)>) -> Progress {
        let hidden = style != Style::Bars;
        let bars = MultiProgress::with_draw_target(if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        let tables = tables.into_iter().map(|(name, rows_expected)| TableProgress {
            name,
            rows_expected,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            drawn: Mutex::default(),
        });
        Progress { style, bars, tables: tables.collect() }
    }

    /// Tells something that is no table's progress.
    pub fn notice(&self, text: &str) {
        match self.style {
            Style::Bars => self.bars.suspend(|| line(std::io::stderr(), text)),
            Style::Lines => line(std::io::stderr(), text),
            Style::Json => line(std::io::stdout(), &json!({ "event": "notice", "text": text }).to_string()),
        }
    }

    /// More rows of a table are on the target: so many rows read from the source, of so many bytes.
    pub fn advance(&self, table: usize, rows: u64, bytes: u64) {
        let Some(table) = self.tables.get(table) else { return };
        let rows = table.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        let bytes = table.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Ok(mut drawn) = table.drawn.lock() else { return };
        let now = Instant::now();
        let started = *drawn.started.get_or_insert(now);
        match self.style {
            Style::Bars => {
                let bar = drawn.bar.get_or_insert_with(|| self.add_bar(table));
                // An estimate that turns out too low grows, so that a bar is never full before its end.
                bar.set_length(table.rows_expected.max(rows));
                bar.set_position(rows);
                bar.set_message(HumanBytes(bytes).to_string());
            }
            Style::Lines | Style::Json => {
                let last = *drawn.line.get_or_insert(now);
                if now.duration_since(last) >= LINE_INTERVAL {
                    drawn.line = Some(now);
                    self.tell(table, rows, bytes, now.duration_since(started), false);
                }
            }
        }
    }

    /// All rows of a table are on the target.
    pub fn finish(&self, table: usize) {
        let Some(table) = self.tables.get(table) else { return };
        let Ok(mut drawn) = table.drawn.lock() else { return };
        if let Some(bar) = drawn.bar.take() {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
        let elapsed = drawn.started.map(|started| started.elapsed()).unwrap_or_default();
        self.tell(table, table.rows.load(Ordering::Relaxed), table.bytes.load(Ordering::Relaxed), elapsed, true);
    }

    fn add_bar(&self, table: &TableProgress) -> ProgressBar {
        let template = if table.rows_expected == 0 { SPINNER } else { BAR };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bars.add(ProgressBar::new(table.rows_expected).with_style(style).with_prefix(table.name.clone()))
    }

    /// One line about a table.
    fn tell(&self, table: &TableProgress, rows: u64, bytes: u64, elapsed: Duration, done: bool) {
        let rate = rate(rows, elapsed);
        let left = (!done).then(|| seconds_left(table.rows_expected, rows, rate)).flatten();
        if self.style == Style::Json {
            let event = json!({
                "event": if done { "table_copied" } else { "table_progress" }, "table": table.name, "rows": rows, "rows_expected": table.rows_expected,
                "bytes": bytes, "rows_per_second": rate, "seconds": elapsed.as_secs_f64(), "seconds_left": left,
            });
            line(std::io::stdout(), &event.to_string());
            return;
        }
        let (count, size, rate) = (HumanCount(rows), HumanBytes(bytes), HumanCount(rate));
        let text = if done {
            format!("{}: copied {count} rows, {size}, in {:.1} s", table.name, elapsed.as_secs_f64())
        } else {
            let expected = if table.rows_expected >= rows {
                format!(" of about {}", HumanCount(table.rows_expected))
            } else {
                String::new()
            };
            let left = left.map(|seconds| format!(", about {seconds} s left")).unwrap_or_default();
            format!("{}: {count}{expected} rows, {size}, {rate} rows/s{left}", table.name)
        };
        self.notice(&text);
    }
}

/// Rows a second so far.
fn rate(rows: u64, elapsed: Duration) -> u64 {
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    rows.saturating_mul(1000) / milliseconds
}

/// `None` when the expectation is unknown or was passed.
fn seconds_left(expected: u64, rows: u64, rate: u64) -> Option<u64> {
    expected.checked_sub(rows).filter(|left| *left > 0)?.checked_div(rate)
}

/// Writes a line; a reader that went away is no reason to stop copying.
fn line(mut output: impl std::io::Write, text: &str) {
    let _ = writeln!(output, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_hold_for_odd_numbers() {
        assert_eq!(rate(500, Duration::from_secs(2)), 250);
        assert_eq!(rate(7, Duration::ZERO), 7000, "no division by zero in the first millisecond");
        assert_eq!(seconds_left(1000, 500, 250), Some(2));
        assert_eq!(seconds_left(0, 500, 250), None, "never analysed");
        assert_eq!(seconds_left(400, 500, 250), None, "estimate passed");
        assert_eq!(seconds_left(1000, 0, 0), None, "no rate yet");
    }

    #[test]
    fn the_templates_are_valid() {
        assert!(ProgressStyle::with_template(BAR).is_ok() && ProgressStyle::with_template(SPINNER).is_ok());
    }
}
