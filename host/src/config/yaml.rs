//! YAML text to nodes that know where they stand.
//!
//! The parser gives events; this builds the tree from them itself, because the ready-made trees do too much: they resolve
//! aliases (a small file can then become a huge tree), join or overwrite duplicate keys, and recurse as deep as the file does.
//! Here anchors, aliases, tags and further documents are refused, duplicates are kept for the reader to report, and depth
//! is bounded.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as Marks};

use super::span::{Span, Spanned};

/// How deep a file may be nested. Arguments of a mask are free in form; everything else needs six levels.
const DEPTH_MAX: usize = 32;

/// A node of the tree.
pub(super) struct Node {
    /// Where it stands. A block's span is that of its first character only.
    pub(super) span: Span,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a node is.
pub(super) enum Kind {
    /// A text, and whether it was written without quotes, so that `10`, `true` and nothing mean more than their letters.
    Scalar {
        /// The text after unquoting.
        text: String,
        /// Whether it stood without quotes.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping in the order of the file, duplicate keys included.
    Mapping(Vec<(Spanned<String>, Node)>),
}

/// Why a text is no tree.
#[derive(Debug)]
pub(super) struct YamlError {
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) remedy: Option<&'static str>,
}

impl YamlError {
    fn new(span: Span, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { span, message: message.into(), remedy: Some(remedy) }
    }
}

/// Finds bytes, line and column of the parser's marks, which count characters.
pub(super) struct Places<'t> {
    text: &'t str,
    /// Byte of each character, and of the end.
    bytes: Vec<u32>,
    /// Byte at which each line starts.
    lines: Vec<u32>,
}

impl<'t> Places<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let position = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
        let bytes = text.char_indices().map(|(byte, _)| position(byte)).chain([position(text.len())]).collect();
        let lines = [0].into_iter().chain(text.match_indices('\n').map(|(byte, _)| position(byte + 1))).collect();
        Self { text, bytes, lines }
    }

    /// The span of some bytes; both must be at a character's start.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        let line = self.lines.partition_point(|first| *first as usize <= start);
        // Searched, not counted: a file of one long line has as many nodes as characters.
        let character = |byte: usize| self.bytes.partition_point(|each| (*each as usize) < byte);
        let column = character(start) - character(self.lines[line - 1] as usize) + 1;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Span { line: number(line), column: number(column), start: number(start), end: number(end.max(start)) }
    }

    fn byte(&self, character: usize) -> usize {
        self.bytes.get(character).map_or(self.text.len(), |byte| *byte as usize)
    }

    fn of(&self, marks: Marks) -> Span {
        let (start, end) = (self.byte(marks.start.index()), self.byte(marks.end.index()));
        // The mark of an empty or indented node can stand behind the blanks that follow it.
        let trimmed = self.text.get(start..end).map_or(end, |covered| start + covered.trim_end().len());
        self.span(start, trimmed)
    }

    /// The parser ends a quoted scalar only behind the blanks and comment after it, so its closing quote is looked for here.
    fn of_scalar(&self, marks: Marks, style: ScalarStyle) -> Span {
        let whole = self.of(marks);
        let covered = &self.text[whole.bytes()];
        let mut inner = covered.char_indices().skip(1).peekable();
        let quote = match style {
            ScalarStyle::SingleQuoted => '\'',
            ScalarStyle::DoubleQuoted => '"',
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => return whole,
        };
        while let Some((at, character)) = inner.next() {
            let doubled = quote == '\'' && inner.peek().is_some_and(|(_, next)| *next == quote);
            if quote == '"' && character == '\\' || character == quote && doubled {
                inner.next();
            } else if character == quote {
                let start = whole.bytes().start;
                return self.span(start, start + at + 1);
            }
        }
        whole
    }

    /// One character at a place where a block begins.
    fn first_of(&self, marks: Marks) -> Span {
        let start = marks.start.index();
        self.span(self.byte(start), self.byte(start + 1))
    }
}

/// Something begun and not ended.
enum Open {
    Sequence(Span, Vec<Node>),
    /// With the key whose value is still to come.
    Mapping(Span, Vec<(Spanned<String>, Node)>, Option<Spanned<String>>),
}

/// Parses a text into the tree of its one document.
pub(super) fn parse(text: &str) -> Result<Node, YamlError> {
    let places = Places::new(text);
    refuse_control_characters(text, &places)?;
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, marks) = event.map_err(|error| scan_error(text, &places, &error))?;
        let node = match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Nothing => continue,
            Event::DocumentStart(_) if root.is_some() => {
                let remedy = "write one file for each document";
                return Err(YamlError::new(places.first_of(marks), "the file holds a second document", remedy));
            }
            Event::DocumentStart(_) => continue,
            Event::Alias(_) => return Err(anchor_error(places.of(marks))),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_extras(anchor, tag.is_some(), places.of(marks))?;
                let plain = style == ScalarStyle::Plain;
                Node { span: places.of_scalar(marks, style), kind: Kind::Scalar { text: text.into_owned(), plain } }
            }
            Event::SequenceStart(anchor, tag) => {
                begin(&mut open, Open::Sequence(places.first_of(marks), Vec::new()), anchor, tag.is_some())?;
                continue;
            }
            Event::MappingStart(anchor, tag) => {
                begin(&mut open, Open::Mapping(places.first_of(marks), Vec::new(), None), anchor, tag.is_some())?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::Sequence(span, items)) => Node { span, kind: Kind::Sequence(items) },
                Some(Open::Mapping(span, entries, _)) => Node { span, kind: Kind::Mapping(entries) },
                None => continue,
            },
        };
        match open.last_mut() {
            None => root = Some(node),
            Some(parent) => place(parent, node)?,
        }
    }
    root.ok_or_else(|| YamlError::new(places.span(0, 0), "the file is empty", "see the documentation for a first one"))
}

/// Begins a list or mapping.
fn begin(open: &mut Vec<Open>, begun: Open, anchor: usize, tagged: bool) -> Result<(), YamlError> {
    let (Open::Sequence(span, _) | Open::Mapping(span, ..)) = &begun;
    refuse_extras(anchor, tagged, *span)?;
    if open.len() >= DEPTH_MAX {
        let message = format!("the file is nested more than {DEPTH_MAX} levels deep");
        return Err(YamlError::new(*span, message, "nothing in these files needs that; check the indentation"));
    }
    if let Some(Open::Mapping(_, _, None)) = open.last() {
        return Err(YamlError::new(
            *span,
            "a key must be a text",
            "put the key in quotes if it begins with `[` or `{`",
        ));
    }
    open.push(begun);
    Ok(())
}

/// Puts a finished node into what it belongs to.
fn place(parent: &mut Open, node: Node) -> Result<(), YamlError> {
    match parent {
        Open::Sequence(_, items) => items.push(node),
        Open::Mapping(_, entries, waiting) => match waiting.take() {
            Some(key) => entries.push((key, node)),
            None => match node.kind {
                Kind::Scalar { text, .. } => *waiting = Some(Spanned::new(text, node.span)),
                Kind::Sequence(_) | Kind::Mapping(_) => {
                    return Err(YamlError::new(
                        node.span,
                        "a key must be a text",
                        "write the key as one word or in quotes",
                    ));
                }
            },
        },
    }
    Ok(())
}

fn refuse_extras(anchor: usize, tagged: bool, span: Span) -> Result<(), YamlError> {
    if anchor != 0 {
        return Err(anchor_error(span));
    }
    if tagged {
        return Err(YamlError::new(
            span,
            "YAML tags (`!…`) are not used here",
            "leave the tag out; quote a text that begins with `!`",
        ));
    }
    Ok(())
}

fn anchor_error(span: Span) -> YamlError {
    let message =
        "YAML anchors and aliases (`&…`, `*…`, `<<`) are not used here: every decision stands where it applies";
    YamlError::new(span, message, "write the value out; quote a text that begins with `&` or `*`")
}

fn refuse_control_characters(text: &str, places: &Places<'_>) -> Result<(), YamlError> {
    let forbidden = |character: char| character.is_control() && !matches!(character, '\n' | '\r' | '\t' | '\u{85}');
    let Some((start, character)) = text.char_indices().find(|(_, character)| forbidden(*character)) else {
        return Ok(());
    };
    let what =
        if character == '\0' { "a NUL character".to_owned() } else { format!("the control character {character:?}") };
    let span = places.span(start, start + character.len_utf8());
    Err(YamlError::new(
        span,
        format!("the file holds {what}"),
        "write it as an escape in double quotes if it is meant, else remove it",
    ))
}

/// Words the parser's own error for people; its position is kept.
fn scan_error(text: &str, places: &Places<'_>, error: &ScanError) -> YamlError {
    let character = error.marker().index();
    let (start, end) = (places.byte(character), places.byte(character + 1));
    let span = places.span(start, end);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[line_start..];
    let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let remedy =
        if indentation.contains('\t') { Some("indent with spaces: YAML does not allow tabs there") } else { None };
    YamlError { span, message: format!("this is not valid YAML: {}", error.info()), remedy }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
