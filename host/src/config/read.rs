//! Walking a tree of nodes into typed structs, collecting every error on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::settings::Setting;
use super::span::{SourceFile, Span, Spanned};
use super::suggest::nearest;
use super::yaml::{Kind, Node};

/// A node with its path and the place where errors about it point.
#[derive(Clone)]
pub(super) struct Cursor<'n> {
    pub(super) node: &'n Node,
    /// The node itself when it is a text, else the key it stands at.
    pub(super) span: Span,
    /// The path from the top of the file.
    pub(super) path: String,
}

impl<'n> Cursor<'n> {
    /// The top of a file.
    pub(super) fn top(node: &'n Node) -> Self {
        Self { node, span: node.span, path: String::new() }
    }

    fn child(&self, key: &Spanned<String>, node: &'n Node) -> Self {
        let span = match &node.kind {
            Kind::Scalar { text, .. } if !text.is_empty() => node.span,
            _ => key.span,
        };
        Self { node, span, path: join(&self.path, &key.value) }
    }

    /// Whether nothing is written here: `key:` with nothing behind it.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.node.kind, Kind::Scalar { text, plain: true } if text.is_empty() || text == "~")
    }

    /// The text, if it is one.
    pub(super) fn scalar(&self) -> Option<&'n str> {
        match &self.node.kind {
            Kind::Scalar { text, .. } => Some(text),
            Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }

    /// The node in words, for "expected …, found …".
    pub(super) fn found(&self) -> String {
        match &self.node.kind {
            _ if self.is_empty() => "nothing".to_owned(),
            Kind::Scalar { text, .. } => code(text),
            Kind::Sequence(_) => "a list".to_owned(),
            Kind::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// The entries of a mapping whose keys are fixed.
pub(super) struct Fields<'n> {
    span: Span,
    path: String,
    entries: BTreeMap<&'n str, (Span, Cursor<'n>)>,
}

impl<'n> Fields<'n> {
    /// Entries that were picked from a mapping with free keys.
    pub(super) fn new(at: &Cursor<'_>, entries: Vec<(&'n Spanned<String>, Cursor<'n>)>) -> Self {
        let entries = entries.into_iter().map(|(key, cursor)| (key.value.as_str(), (key.span, cursor))).collect();
        Self { span: at.span, path: at.path.clone(), entries }
    }

    /// The entry, if it was written.
    pub(super) fn get(&self, key: &str) -> Option<Cursor<'n>> {
        self.entries.get(key).map(|(_, cursor)| cursor.clone())
    }

    /// The entry, if something was written in it: a section whose lines are all commented out is as good as none.
    pub(super) fn section(&self, key: &str) -> Option<Cursor<'n>> {
        self.get(key).filter(|cursor| !cursor.is_empty())
    }

    /// Where the entry's key stands.
    pub(super) fn key_span(&self, key: &str) -> Option<Span> {
        self.entries.get(key).map(|(span, _)| *span)
    }
}

/// Collects what is wrong with one file.
pub(super) struct Reader {
    pub(super) file: Arc<SourceFile>,
    pub(super) diagnostics: Diagnostics,
}

impl Reader {
    pub(super) fn new(file: &Arc<SourceFile>) -> Self {
        Self { file: Arc::clone(file), diagnostics: Diagnostics::default() }
    }

    /// Reports an error at a node.
    pub(super) fn error(&mut self, at: &Cursor<'_>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file, at.path.as_str(), message).at(at.span));
    }

    /// Reports an error at a node, with what to do about it.
    pub(super) fn error_with(&mut self, at: &Cursor<'_>, message: impl Into<String>, remedy: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file, at.path.as_str(), message).at(at.span).remedy(remedy));
    }

    /// Reports that a node is of the wrong kind.
    pub(super) fn expected(&mut self, at: &Cursor<'_>, expected: &str) {
        let name = last(&at.path);
        self.error(at, format!("{name} must be {expected}, found {}", at.found()));
    }

    /// The entries of a mapping with fixed keys. Unknown and duplicate keys are reported; the first of duplicates counts.
    pub(super) fn mapping<'n>(&mut self, at: &Cursor<'n>, keys: &[&str]) -> Option<Fields<'n>> {
        let mut entries = BTreeMap::new();
        for (key, cursor) in self.entries(at)? {
            if keys.contains(&key.value.as_str()) {
                entries.insert(key.value.as_str(), (key.span, cursor));
            } else {
                self.unknown_key(key, &cursor.path, keys);
            }
        }
        Some(Fields { span: at.span, path: at.path.clone(), entries })
    }

    /// The entries of a mapping with free keys, in the order of the file. Duplicates are reported and left out.
    pub(super) fn entries<'n>(&mut self, at: &Cursor<'n>) -> Option<Vec<(&'n Spanned<String>, Cursor<'n>)>> {
        let Kind::Mapping(written) = &at.node.kind else {
            self.expected(at, "a mapping");
            return None;
        };
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        let mut entries = Vec::new();
        for (key, node) in written {
            let cursor = at.child(key, node);
            match seen.insert(&key.value, key.span) {
                None => entries.push((key, cursor)),
                Some(first) => self.duplicate(key, &cursor.path, first),
            }
        }
        Some(entries)
    }

    /// The items of a list.
    pub(super) fn items<'n>(&mut self, at: &Cursor<'n>) -> Option<Vec<Cursor<'n>>> {
        let Kind::Sequence(nodes) = &at.node.kind else {
            self.expected(at, "a list");
            return None;
        };
        let item = |(position, node): (usize, &'n Node)| {
            let path = format!("{}[{position}]", at.path);
            Cursor { node, span: if matches!(node.kind, Kind::Scalar { .. }) { node.span } else { at.span }, path }
        };
        Some(nodes.iter().enumerate().map(item).collect())
    }

    /// An entry that must be there.
    pub(super) fn required<'n>(&mut self, fields: &Fields<'n>, key: &str, what: &str) -> Option<Cursor<'n>> {
        let found = fields.get(key).filter(|cursor| !cursor.is_empty());
        if found.is_none() {
            let path = join(&fields.path, key);
            let span = fields.key_span(key).unwrap_or(fields.span);
            let message = format!("{} is missing", code(key));
            self.diagnostics.push(Diagnostic::error(&self.file, path, message).at(span).remedy(format!("add {what}")));
        }
        found
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, at: &Cursor<'_>) -> Option<Spanned<String>> {
        match at.scalar() {
            Some(text) if !text.is_empty() && !at.is_empty() => Some(Spanned::new(text.to_owned(), at.span)),
            _ => {
                self.expected(at, "a text");
                None
            }
        }
    }

    /// A list of texts that are not empty and not repeated.
    pub(super) fn texts(&mut self, at: &Cursor<'_>) -> Option<Vec<Spanned<String>>> {
        let items = self.items(at)?;
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let mut texts = Vec::new();
        for item in items {
            let Some(text) = self.text(&item) else { continue };
            match seen.insert(text.value.clone(), text.span) {
                None => texts.push(text),
                Some(first) => self.duplicate(&text, &item.path, first),
            }
        }
        Some(texts)
    }

    /// A text written two ways is one of a few words.
    pub(super) fn word<T: Copy>(&mut self, at: &Cursor<'_>, words: &[(&str, T)]) -> Option<T> {
        let written = at.scalar().unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == written).map(|(_, value)| *value);
        if found.is_none() {
            let allowed: Vec<String> = words.iter().map(|(word, _)| code(word)).collect();
            let message = format!("{} must be {}, found {}", last(&at.path), allowed.join(" or "), at.found());
            match nearest(written, words.iter().map(|(word, _)| *word)) {
                Some(near) => self.error_with(at, message, format!("did you mean {}?", code(near))),
                None => self.error(at, message),
            }
        }
        found
    }

    /// A setting within its range, or its default when it is not written or wrong.
    pub(super) fn setting<S: Setting>(&mut self, at: Option<Cursor<'_>>, default: S, range: Option<(S, S)>) -> S {
        let Some(at) = at else { return default };
        let Some(value) = at.scalar().filter(|_| !at.is_empty()).and_then(S::read) else {
            self.expected(&at, S::EXPECTED);
            return default;
        };
        if let Some((least, most)) = range
            && !(least <= value && value <= most)
        {
            let allowed =
                if least == most { least.show() } else { format!("from {} to {}", least.show(), most.show()) };
            self.error(&at, format!("{} must be {allowed}, found {}", last(&at.path), at.found()));
            return default;
        }
        value
    }

    fn unknown_key(&mut self, key: &Spanned<String>, path: &str, keys: &[&str]) {
        let error = Diagnostic::error(&self.file, path, format!("{} is not known here", code(&key.value))).at(key.span);
        let remedy = match nearest(&key.value, keys.iter().copied()) {
            Some(near) => format!("did you mean {}?", code(near)),
            None => format!("known are {}", keys.iter().map(|key| code(key)).collect::<Vec<_>>().join(", ")),
        };
        self.diagnostics.push(error.remedy(remedy));
    }

    fn duplicate(&mut self, again: &Spanned<String>, path: &str, first: Span) {
        let message = format!("{} is written twice", code(&again.value));
        let error = Diagnostic::error(&self.file, path, message).at(again.span).related(first, "first here");
        self.diagnostics.push(error.remedy("remove one of them"));
    }
}

/// Shows a text from a file: in backticks, on one line, not too long.
pub(super) fn code(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    let mut shown: String = text.chars().take(SHOWN_MAX).flat_map(escape).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Escapes what would not show as itself; quotes stay as they are.
pub(super) fn escape(character: char) -> impl Iterator<Item = char> {
    let quote = matches!(character, '"' | '\'');
    let escaped = (!quote).then(|| character.escape_debug());
    escaped.into_iter().flatten().chain(quote.then_some(character))
}

/// Adds a key to a path, quoted unless it is a plain word.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '-'));
    let key = if plain { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The last part of a path, for the beginning of a sentence.
fn last(path: &str) -> String {
    if path.is_empty() {
        return "the file".to_owned();
    }
    // A quoted part may hold dots itself.
    let start = match path.strip_suffix('"') {
        Some(rest) => rest.rfind(".\"").map_or(0, |at| at + 1),
        None => path.rfind('.').map_or(0, |at| at + 1),
    };
    format!("`{}`", &path[start..])
}
