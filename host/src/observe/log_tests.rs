//! Who may log, and how it looks.
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::{Arc, Mutex};

use super::*;

/// A writer that several loggers share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs the same events under a filter and gives what was written.
fn logged(filter: &str, format: LogFormat) -> String {
    let written = Shared::default();
    let writer = written.clone();
    let subscriber = subscriber(filter.parse().unwrap(), format, move || writer.clone());
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(target: "pgveil::source", table = "public.users", rows = 3, "copied");
        tracing::trace!(target: "pgveil::veil", "detail");
        tracing::info!(target: "pgveil_wire", "from a crate of ours");
        tracing::error!(target: "rustls", "canary");
        tracing::error!(target: "tokio_postgres::query", "canary");
        tracing::error!(target: "pgveilish", "canary");
    });
    let bytes = written.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn libraries_never_log_whatever_the_filter() {
    for filter in ["trace", "info", "trace,pgveil=trace"] {
        for format in [LogFormat::Text { color: false }, LogFormat::Json] {
            let text = logged(filter, format);
            assert!(!text.contains("canary"), "{filter}: {text}");
            assert!(text.contains("copied") && text.contains("from a crate of ours"), "{filter}: {text}");
        }
    }
}

#[test]
fn filters_choose_level_and_target() {
    let messages = |filter| {
        let text = logged(filter, LogFormat::Text { color: false });
        ["copied", "detail", "from a crate"].into_iter().filter(|message| text.contains(message)).collect::<Vec<_>>()
    };
    assert_eq!(messages("info"), ["copied", "from a crate"]);
    assert_eq!(messages("trace"), ["copied", "detail", "from a crate"]);
    assert_eq!(messages("warn,pgveil::veil=trace"), ["detail"]);
    assert_eq!(messages("off"), Vec::<&str>::new());
}

#[test]
fn what_is_no_filter_is_refused() {
    for wrong in ["", "debgu", "pgveil=loud", "rustls=trace", "info,tokio=debug", "trace;x"] {
        assert_eq!(wrong.parse::<LogFilter>(), Err(LogFilterError), "{wrong}");
    }
}

#[test]
fn json_lines_are_objects() {
    let text = logged("info", LogFormat::Json);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["target"], "pgveil::source");
    assert_eq!(first["level"], "INFO");
    assert_eq!(first["message"], "copied");
    assert_eq!(first["rows"], 3);
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn text_has_no_escape_sequences_without_color() {
    assert!(!logged("trace", LogFormat::Text { color: false }).contains('\x1b'));
    assert!(logged("trace", LogFormat::Text { color: true }).contains('\x1b'));
}

#[test]
fn times_are_utc() {
    // Each agrees with `date -u -d @N`.
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00.007Z"),
        (951_782_399, "2000-02-28T23:59:59.007Z"),
        (951_782_400, "2000-02-29T00:00:00.007Z"),
        (951_868_800, "2000-03-01T00:00:00.007Z"),
        (1_735_689_599, "2024-12-31T23:59:59.007Z"),
        (4_107_542_400, "2100-03-01T00:00:00.007Z"),
    ] {
        let mut written = String::new();
        write_utc(&mut written, seconds, 7).unwrap();
        assert_eq!(written, expected);
    }
}
