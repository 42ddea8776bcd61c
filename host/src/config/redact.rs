//! What looks like a secret is not shown, even where it should never have been written: a URL or a key pasted into a file.

use std::borrow::Cow;

/// The fewest hexadecimal digits in a row that may be a key. Digests of components are as long, and are told by their field.
const HEX_DIGITS_MIN: usize = 32;

/// The fewest characters of base64 in a row that may be a key: 32 bytes without padding.
const BASE64_MIN: usize = 43;

/// Replaces what looks like a URL with user information, a password or a key by stars, byte for byte, so that places in the
/// text stay what they were.
pub(super) fn hide_secrets(text: &str) -> Cow<'_, str> {
    let mut hidden = Vec::new();
    for line in text.split_inclusive('\n') {
        let offset = line.as_ptr().addr() - text.as_ptr().addr();
        hide_in_line(line, offset, &mut hidden);
    }
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    hidden.sort_unstable();
    for (start, end) in hidden {
        if end > done {
            shown.push_str(&text[done..start.max(done)]);
            shown.extend(std::iter::repeat_n('*', end - start.max(done)));
            done = end;
        }
    }
    shown.push_str(&text[done..]);
    Cow::Owned(shown)
}

fn hide_in_line(line: &str, offset: usize, hidden: &mut Vec<(usize, usize)>) {
    let mut hide = |start: usize, end: usize| hidden.push((offset + start, offset + end));
    if let Some(middle) = line.find("://") {
        hide(middle + 3, line.trim_end().len().max(middle + 3));
    }
    // ASCII lower-casing keeps every offset.
    let lowered = line.to_ascii_lowercase();
    for word in ["password", "passwd", "secret"] {
        for (start, _) in lowered.match_indices(word) {
            let after = &line[start + word.len()..];
            let value = after.trim_start_matches(['"', '\'', ' ', ':', '=']);
            if value.len() < after.len() && after.contains([':', '=']) {
                hide(line.len() - value.len(), line.trim_end().len().max(line.len() - value.len()));
            }
        }
    }
    if !lowered.contains("blake3") {
        for (start, run) in runs(line) {
            if looks_like_key(run) {
                hide(start, start + run.len());
            }
        }
    }
}

/// Every run of characters that base64 or hexadecimal digits are made of.
fn runs(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split(|character: char| {
        !(character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '-' | '_' | '='))
    })
    .filter(|run| run.len() >= HEX_DIGITS_MIN)
    .map(|run| (run.as_ptr().addr() - line.as_ptr().addr(), run))
}

fn looks_like_key(run: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| run.as_bytes().iter().any(kind);
    let digits = run.bytes().filter(u8::is_ascii_hexdigit).count();
    digits == run.len()
        || run.len() >= BASE64_MIN
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_starred_and_the_rest_is_not() {
        let text = "source: { url: postgres://shop:pa55@db/shop } # é\n\
                    dsn: host=db password=hunter2\n\
                    env: 000102030405060708090a0b0c0d0e0f\n\
                    env: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\
                    acme: { path: a.wasm, blake3: 000102030405060708090a0b0c0d0e0f }\n\
                    public.a_table_with_quite_a_long_name_for_a_table_1: pass\n";
        let shown = hide_secrets(text);
        assert_eq!(shown.len(), text.len());
        insta::assert_snapshot!(shown, @"
        source: { url: postgres://************************
        dsn: host=db password=*******
        env: ********************************
        env: ********************************************
        acme: { path: a.wasm, blake3: 000102030405060708090a0b0c0d0e0f }
        public.a_table_with_quite_a_long_name_for_a_table_1: pass
        ");
    }
}
