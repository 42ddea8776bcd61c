//! Errors and warnings about a file: all of them at once, each with its place, its field, and what to do.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;

use super::redact::hide_secrets;
use super::span::{SourceFile, Span};

/// The most diagnostics that are printed; a file that is not a policy at all may have thousands.
const PRINTED_MAX: usize = 50;

/// The most diagnostics that are kept, for the same reason.
const KEPT_MAX: usize = 1_000;

/// The most bytes of source that are shown for one diagnostic. Places further apart are named by their line.
const SHOWN_BYTES_MAX: usize = 8 << 10;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is taken; somebody should look.
    Warning,
}

/// One error or warning about a file.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub file: Arc<SourceFile>,
    /// The place, when there is one in the file.
    pub span: Option<Span>,
    /// The field, as a path from the top of the file: `tables."public.users".columns.email`. Empty for the whole file.
    pub field: String,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// Other places that matter, each with what it is: "first decided here".
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// An error without place or remedy yet.
    pub fn error(file: &Arc<SourceFile>, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: Arc::clone(file),
            span: None,
            field: field.into(),
            message: message.into(),
            remedy: None,
            related: Vec::new(),
        }
    }

    /// A warning without place or remedy yet.
    pub fn warning(file: &Arc<SourceFile>, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, field, message) }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds another place that matters.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    fn render(&self, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let path = self.file.path.display().to_string();
        let message = hide_secrets(&self.message);
        let group = Group::with_title(level.primary_title(message.as_ref()));
        let Some(span) = self.span else {
            return self.close(group.element(Origin::path(&path)), &[], renderer);
        };
        let all: Vec<Span> = self.related.iter().map(|(span, _)| *span).chain([span]).collect();
        let (near, far) = if self.lines(&all).len() <= SHOWN_BYTES_MAX {
            (&self.related[..], &[][..])
        } else {
            (&[][..], &self.related[..])
        };
        let lines = if far.is_empty() { self.lines(&all) } else { self.lines(&[span]) };
        if lines.len() > SHOWN_BYTES_MAX {
            let origin = Origin::path(&path).line(span.line as usize).char_column(span.column as usize);
            return self.close(group.element(origin), far, renderer);
        }
        let first_line = all
            .iter()
            .filter(|each| lines.start <= each.bytes().start && each.bytes().start <= lines.end)
            .map(|each| each.line)
            .min();
        let shown = hide_secrets(&self.file.text[lines.clone()]).into_owned();
        let place = |span: Span| shorten(&self.file.text, span, &lines);
        let mut snippet = Snippet::source(shown.as_str())
            .path(&path)
            .line_start(first_line.unwrap_or(span.line) as usize)
            .annotation(AnnotationKind::Primary.span(place(span)).label(self.field.as_str()));
        for (span, label) in near {
            snippet = snippet.annotation(AnnotationKind::Context.span(place(*span)).label(label.as_str()));
        }
        self.close(group.element(snippet), far, renderer)
    }

    fn close(&self, mut group: Group<'_>, far: &[(Span, String)], renderer: &Renderer) -> String {
        for (span, label) in far {
            group = group.element(Level::NOTE.message(format!("{label}: line {}", span.line)));
        }
        if let Some(remedy) = &self.remedy {
            group = group.element(Level::HELP.message(hide_secrets(remedy).into_owned()));
        }
        renderer.render(&[group])
    }

    /// The whole lines in which some places begin.
    fn lines(&self, spans: &[Span]) -> Range<usize> {
        let text = &self.file.text;
        let start = spans.iter().map(|span| span.bytes().start).min().unwrap_or(0);
        let end = spans.iter().map(|span| span.bytes().start).max().unwrap_or(0);
        let start = text[..start].rfind('\n').map_or(0, |position| position + 1);
        start..text[end..].find('\n').map_or(text.len(), |position| end + position)
    }

    fn json(&self) -> DiagnosticJson<'_> {
        DiagnosticJson {
            severity: self.severity,
            file: self.file.path.display().to_string(),
            line: self.span.map(|span| span.line),
            column: self.span.map(|span| span.column),
            field: &self.field,
            message: hide_secrets(&self.message).into_owned(),
            remedy: self.remedy.as_deref().map(|remedy| hide_secrets(remedy).into_owned()),
        }
    }
}

/// Cuts a span at the end of its line, for a caret under a whole block says nothing, and moves it into the shown lines.
fn shorten(text: &str, span: Span, lines: &Range<usize>) -> Range<usize> {
    let bytes = span.bytes();
    let covered = text[bytes.clone()].find(['\n', '\r']).map_or(bytes.end, |length| bytes.start + length);
    bytes.start - lines.start..covered - lines.start
}

#[derive(Serialize)]
struct DiagnosticJson<'a> {
    severity: Severity,
    file: String,
    line: Option<u32>,
    column: Option<u32>,
    field: &'a str,
    message: String,
    remedy: Option<String>,
}

/// All that was found wrong with one or more files.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Adds one. Past a thousand nothing is added: the file is refused anyhow.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        // A warning never takes the place of an error.
        if self.0.len() < KEPT_MAX || diagnostic.severity == Severity::Error && !self.has_errors() {
            self.0.push(diagnostic);
        }
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: Diagnostics) {
        self.0.extend(other.0);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether anything refuses the file.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Each of them, as they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Sorts by file and place, errors that have no place first.
    pub fn sort(&mut self) {
        self.0.sort_by(|left, right| {
            let key =
                |each: &Diagnostic| (each.file.path.clone(), each.span.map(|span| (span.start, Reverse(span.end))));
            key(left).cmp(&key(right))
        });
    }

    /// The text for people: each with its source line and a caret.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut parts: Vec<String> =
            self.0.iter().take(PRINTED_MAX).map(|diagnostic| diagnostic.render(&renderer)).collect();
        if self.0.len() > PRINTED_MAX {
            parts.push(format!("… and {} more", self.0.len() - PRINTED_MAX));
        }
        parts.join("\n\n")
    }

    /// The form for programs: an array of objects with severity, file, line, column, field, message and remedy.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let all: Vec<DiagnosticJson<'_>> = self.0.iter().map(Diagnostic::json).collect();
        serde_json::to_value(all).unwrap_or_default()
    }
}

/// The text for people, without colour.
impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
