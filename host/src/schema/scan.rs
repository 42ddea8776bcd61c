//! Where SQL text begins and ends: statements, strings, quoted names and comments, as the server's own scanner sees them.
//!
//! Only for text that `pg_dump` wrote, with `standard_conforming_strings` on. A name or a literal may hold anything, a line
//! that looks like a comment of `pg_dump` included, so nothing here searches for text without knowing what it is inside of.
//! Rules: the manual, "4.1. Lexical Structure".

/// A piece of a dump, outside of any statement or one whole statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A comment line, without its dashes.
    Comment(&'a str),
    /// A statement without its semicolon.
    Statement(&'a str),
}

/// A word, name, literal or other mark inside a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An unquoted word.
    Word(&'a str),
    /// A quoted name, with its quotes.
    Quoted(&'a str),
    /// A string literal of any kind.
    Literal,
    /// Any other character.
    Mark(char),
}

/// Splits a dump. Lines for `psql` itself (`\restrict`, from 15.14 on) are left out.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('\\') || rest.starts_with("--") {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            if let Some(comment) = line.strip_prefix("--") {
                found.push(Piece::Comment(comment.trim()));
            }
            rest = after.trim_start();
            continue;
        }
        let end =
            Tokens::new(rest).find(|(_, token)| *token == Token::Mark(';')).map_or(rest.len(), |(start, _)| start);
        found.push(Piece::Statement(rest[..end].trim_end()));
        rest = rest[end..].trim_start_matches(';').trim_start();
    }
    found
}

/// The tokens of a statement, each with the position where it starts. Blanks and comments are left out.
pub(super) struct Tokens<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        Tokens { text, position: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Moves over blanks and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if trimmed.starts_with("--") {
                self.position += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.position += trimmed.find("*/").map_or(trimmed.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    /// The length of a quoted text that begins with `quote` at the start of `text`; a doubled quote stands for one.
    fn quoted(text: &str, quote: char, backslash: bool) -> usize {
        let mut characters = text.char_indices().skip(1).peekable();
        while let Some((position, character)) = characters.next() {
            if backslash && character == '\\' {
                characters.next();
            } else if character == quote {
                if characters.peek().is_none_or(|(_, next)| *next != quote) {
                    return position + 1;
                }
                characters.next();
            }
        }
        text.len()
    }

    /// The length of a dollar-quoted string at the start of `text`, if there is one.
    fn dollar_quoted(text: &str) -> Option<usize> {
        let tag_end = text[1..].find('$')? + 2;
        let tag = &text[..tag_end];
        let name = &tag[1..tag_end - 1];
        let is_tag = name.chars().all(|character| character == '_' || character.is_alphanumeric());
        if !is_tag || name.starts_with(|character: char| character.is_ascii_digit()) {
            return None;
        }
        Some(text[tag_end..].find(tag).map_or(text.len(), |end| tag_end + end + tag_end))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<(usize, Token<'a>)> {
        self.skip_blank();
        let start = self.position;
        let rest = self.rest();
        let first = rest.chars().next()?;
        let (token, length) = match first {
            '"' => {
                let length = Tokens::quoted(rest, '"', false);
                (Token::Quoted(&rest[..length]), length)
            }
            '\'' => (Token::Literal, Tokens::quoted(rest, '\'', false)),
            'E' | 'e' if rest[1..].starts_with('\'') => (Token::Literal, 1 + Tokens::quoted(&rest[1..], '\'', true)),
            '$' => match Tokens::dollar_quoted(rest) {
                Some(length) => (Token::Literal, length),
                None => (Token::Mark('$'), 1),
            },
            first if is_word(first) => {
                let length = rest.find(|next| !is_word(next) && next != '$').unwrap_or(rest.len());
                (Token::Word(&rest[..length]), length)
            }
            other => (Token::Mark(other), other.len_utf8()),
        };
        self.position += length;
        Some((start, token))
    }
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_ascii_alphanumeric() || !character.is_ascii()
}

/// A name as the server keeps it, from how `pg_dump` writes it: quoted, or already in lower case.
pub(super) fn unquote(token: Token<'_>) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.to_owned()),
        Token::Quoted(quoted) => {
            quoted.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).map(|inner| inner.replace("\"\"", "\""))
        }
        Token::Literal | Token::Mark(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inside_a_literal_or_name_ends_a_statement() {
        let statements = [
            "SELECT 'a;--\n-- TOC entry 1 (class 2 OID 3)\n;'';'",
            r#"SELECT "a;""--;""#,
            r"SELECT E'it\';', 'back\'",
            "SELECT $tag$;$$;$tag$, a$b$c",
            "SELECT 1 /* ; */ + 2 -- ;\n + 3",
            "CREATE TABLE \"line\nbreak;\" (a int)",
        ];
        let dump =
            statements.map(|statement| format!("--\n-- Name: x\n--\n\n{statement};\n\n\\restrict abc;\n")).concat();
        let found: Vec<_> = pieces(&dump)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Statement(statement) => Some(statement),
                Piece::Comment(_) => None,
            })
            .collect();
        assert_eq!(found, statements);
        assert_eq!(pieces(&dump).len(), statements.len() * 4);
    }

    #[test]
    fn tokens_are_those_of_the_server() {
        let shown: Vec<_> =
            Tokens::new("\"a\"\"b\".c DEFAULT 'x''y'::text, E'\\'' $1 ué").map(|(_, token)| token).collect();
        assert_eq!(
            shown,
            [
                Token::Quoted("\"a\"\"b\""),
                Token::Mark('.'),
                Token::Word("c"),
                Token::Word("DEFAULT"),
                Token::Literal,
                Token::Mark(':'),
                Token::Mark(':'),
                Token::Word("text"),
                Token::Mark(','),
                Token::Literal,
                Token::Mark('$'),
                Token::Word("1"),
                Token::Word("ué"),
            ]
        );
        assert_eq!(unquote(shown[0]).as_deref(), Some("a\"b"));
    }

    #[test]
    fn unfinished_text_ends_where_it_ends() {
        for text in ["'", "\"", "E'\\", "$a$", "$", "--", "/*", "e'", "\\", ""] {
            assert!(pieces(text).len() <= 1, "{text}");
        }
    }
}
