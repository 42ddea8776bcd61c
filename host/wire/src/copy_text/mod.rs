//! Rows of COPY in text format, as `COPY … TO STDOUT` sends them and `COPY … FROM STDIN` takes them.
//!
//! Section "COPY", File Formats, Text Format, with its defaults: fields end with a tab, rows with a newline, NULL is `\N`.
//! Inside a value the server writes backslash, tab, newline and their like as backslash sequences, so a raw tab or newline is
//! always a separator and can be searched for without reading what lies between.

mod escape;
mod split;

pub use escape::{escape_into, unescape_into};
pub use split::{Field, RowSplitter, split_row};

/// What stands for NULL in a field. A value that reads `\N` itself is written with its backslash doubled.
pub const NULL: &[u8] = b"\\N";
/// What stands between two fields of a row.
pub const FIELD_SEPARATOR: u8 = b'\t';
/// What ends a row.
pub const ROW_END: u8 = b'\n';
/// A row that is none: the end of the data. Protocol 3.0 says the same with CopyDone, and servers send only that.
pub const END_MARKER: &[u8] = b"\\.";
