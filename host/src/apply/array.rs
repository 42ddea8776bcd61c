//! PostgreSQL's array text format, for the arrays of text that set-based statements take (manual section 8.15.6).

use bytes::{BufMut, BytesMut};
use memchr::memchr2_iter;

/// Begins an array.
pub(super) fn begin(out: &mut BytesMut) {
    out.put_u8(b'{');
}

/// Appends an element, `None` for NULL. Always quoted, so the word NULL and the empty string stay what they are.
pub(super) fn element(out: &mut BytesMut, first: bool, value: Option<&[u8]>) {
    if !first {
        out.put_u8(b',');
    }
    let Some(value) = value else {
        out.put_slice(b"NULL");
        return;
    };
    out.put_u8(b'"');
    let mut written = 0;
    for position in memchr2_iter(b'"', b'\\', value) {
        out.put_slice(&value[written..position]);
        out.put_u8(b'\\');
        written = position;
    }
    out.put_slice(&value[written..]);
    out.put_u8(b'"');
}

/// Ends the array.
pub(super) fn end(out: &mut BytesMut) {
    out.put_u8(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[Option<&str>]) -> String {
        let mut out = BytesMut::new();
        begin(&mut out);
        for (position, value) in values.iter().enumerate() {
            element(&mut out, position == 0, value.map(str::as_bytes));
        }
        end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn null_the_word_null_and_empty_differ() {
        insta::assert_snapshot!(written(&[None, Some("NULL"), Some("")]), @r#"{NULL,"NULL",""}"#);
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        insta::assert_snapshot!(written(&[Some(r#"a"b\c"#), Some(r"\"), Some("{x,y}")]), @r#"{"a\"b\\c","\\","{x,y}"}"#);
    }
}
