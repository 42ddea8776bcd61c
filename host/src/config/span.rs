//! Where in a file something was written.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A file as it was read, kept for as long as anything may have to point into it.
///
/// A policy or job file holds no values, and no secrets unless by mistake, so its lines may be shown; what looks like a secret
/// is starred when they are.
#[derive(PartialEq, Eq)]
pub struct SourceFile {
    /// The path as the operator or the naming file wrote it, resolved against the directory of the naming file.
    pub path: PathBuf,
    /// The whole text, without a byte order mark.
    pub text: String,
}

/// The path alone: the text is long, and somebody may have pasted a secret into it.
impl fmt::Debug for SourceFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SourceFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A stretch of a [`SourceFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of the file that the span covers.
    #[must_use]
    pub fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value together with the place where it was written, so that a check made later, against a guest or a database,
/// can still point at the file.
///
/// Two are equal when their values are, wherever they were written.
#[derive(Debug, Clone, Copy)]
pub struct Spanned<T> {
    /// What was written.
    pub value: T,
    /// Where.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Joins a value with its place.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// Changes the value and keeps the place.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: change(self.value), span: self.span }
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

/// In a file a spanned value is written as the value alone.
impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
