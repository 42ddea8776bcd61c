//! Takes the defaults of masked columns out of a `CREATE TABLE`: a default may be a value like any other.

use super::scan::{Token, Tokens, unquote};

/// What may follow a default in a column definition of `pg_dump`, whose expressions are parenthesised.
const AFTER_DEFAULT: [&str; 3] = ["NOT", "CONSTRAINT", "COLLATE"];

/// The statement without the `DEFAULT` of the columns for which `masked` says so. Everything else stays byte for byte.
pub(super) fn strip(create_table: &str, masked: impl Fn(&str) -> bool) -> String {
    let mut kept = String::with_capacity(create_table.len());
    let mut copied = 0;
    for (start, end) in defaults(create_table, masked) {
        kept.push_str(create_table[copied..start].trim_end());
        copied = end;
        if !create_table[end..].starts_with([',', '\n', ')']) {
            kept.push(' ');
        }
    }
    kept.push_str(&create_table[copied..]);
    kept
}

/// Where in the column list a column's definition is being read.
enum At {
    /// Before the definition's first token.
    Start,
    /// In the definition of a column that is masked.
    Masked,
    /// In its default, which began at the position.
    Default(usize),
    /// In anything else.
    Other,
}

/// The ranges of those defaults, the word `DEFAULT` included.
fn defaults(create_table: &str, masked: impl Fn(&str) -> bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut depth, mut at) = (0_usize, At::Other);
    for (start, token) in Tokens::new(create_table) {
        let ends_definition = depth == 1 && matches!(token, Token::Mark(',' | ')'));
        let ends_default = depth == 1 && matches!(token, Token::Word(word) if AFTER_DEFAULT.contains(&word));
        at = match at {
            At::Default(from) if ends_definition || ends_default => {
                found.push((from, start - blanks_before(create_table, start, token)));
                if ends_definition { next_definition(token) } else { At::Masked }
            }
            _ if ends_definition => next_definition(token),
            At::Start => match token {
                Token::Word("CONSTRAINT") => At::Other,
                name => {
                    if unquote(name).is_some_and(|name| masked(&name)) {
                        At::Masked
                    } else {
                        At::Other
                    }
                }
            },
            At::Masked if depth == 1 && token == Token::Word("DEFAULT") => At::Default(start),
            At::Other if depth == 0 && token == Token::Mark('(') => At::Start,
            other => other,
        };
        match token {
            Token::Mark('(' | '[') => depth += 1,
            Token::Mark(')' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

fn next_definition(token: Token<'_>) -> At {
    if token == Token::Mark(',') { At::Start } else { At::Other }
}

/// The blanks before a word belong to the default that goes; those before `,` and `)` keep the layout.
fn blanks_before(text: &str, start: usize, token: Token<'_>) -> usize {
    match token {
        Token::Mark(_) => text[..start].len() - text[..start].trim_end().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"CREATE TABLE public."users (" (
    id bigint NOT NULL,
    email public.citext DEFAULT 'a, b) NOT NULL'::public.citext NOT NULL,
    "DEFAULT" text DEFAULT 'x''y'::text,
    name character varying(40) DEFAULT (lower('A'::text))::character varying COLLATE pg_catalog."C",
    age integer DEFAULT 3,
    tags text[] DEFAULT ARRAY['a'::text, 'b'::text] CONSTRAINT nn NOT NULL,
    spare text DEFAULT 'kept'::text,
    CONSTRAINT email CHECK ((email <> 'DEFAULT'::text)),
    last text DEFAULT NULL::character varying
)
WITH (fillfactor='70')"#;

    #[test]
    fn the_defaults_of_masked_columns_go_and_nothing_else() {
        let masked = ["email", "DEFAULT", "name", "tags", "last", "id"];
        insta::assert_snapshot!(strip(TABLE, |name| masked.contains(&name)), @r#"
        CREATE TABLE public."users (" (
            id bigint NOT NULL,
            email public.citext NOT NULL,
            "DEFAULT" text,
            name character varying(40) COLLATE pg_catalog."C",
            age integer DEFAULT 3,
            tags text[] CONSTRAINT nn NOT NULL,
            spare text DEFAULT 'kept'::text,
            CONSTRAINT email CHECK ((email <> 'DEFAULT'::text)),
            last text
        )
        WITH (fillfactor='70')
        "#);
        assert_eq!(strip(TABLE, |_| false), TABLE);
    }
}
