//! Splits Rust source into tokens. Comments and white space are dropped.

/// Two-character operators that have to stay together: a path separator is not two colons, and
/// the `>` of an arrow closes no generic argument.
const LONG_OPERATORS: &[&str] = &["::", "->", "=>"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Identifier,
    Lifetime,
    StringLiteral,
    /// A number or a character.
    OtherLiteral,
    Operator,
    Open,
    Close,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    /// As written, with the quotes of a string.
    pub(crate) text: &'a str,
    /// The line on which it starts, counted from 1.
    pub(crate) line: usize,
}

impl<'a> Token<'a> {
    /// The text between the quotes of a string literal; escapes are left as they are.
    pub(crate) fn string_value(&self) -> Option<&'a str> {
        if self.kind != TokenKind::StringLiteral {
            return None;
        }
        let (start, end) = (self.text.find('"')?, self.text.rfind('"')?);
        self.text.get(start + 1..end)
    }

    pub(crate) fn is_identifier(&self) -> bool {
        self.kind == TokenKind::Identifier
    }
}

pub(crate) fn tokenize(text: &str) -> Vec<Token<'_>> {
    let mut reader = TokenReader { text, position: 0, line: 1 };
    std::iter::from_fn(|| reader.next_token()).collect()
}

/// For each opening delimiter the position of its closing one; every other token has its own
/// position. An unclosed delimiter ends with the file.
pub(crate) fn closing_positions(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..tokens.len()).collect();
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Open => open.push(at),
            TokenKind::Close => {
                if let Some(start) = open.pop() {
                    positions[start] = at;
                }
            }
            _ => {}
        }
    }
    for start in open {
        positions[start] = tokens.len() - 1;
    }
    positions
}

struct TokenReader<'a> {
    text: &'a str,
    position: usize,
    line: usize,
}

impl<'a> TokenReader<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        self.skip_blanks_and_comments();
        let rest = &self.text[self.position..];
        let first = rest.chars().next()?;
        let (kind, length) = match first {
            '"' => (TokenKind::StringLiteral, string_length(rest)),
            '\'' => read_quote(rest),
            '0'..='9' => (TokenKind::OtherLiteral, number_length(rest)),
            '(' | '[' | '{' => (TokenKind::Open, 1),
            ')' | ']' | '}' => (TokenKind::Close, 1),
            _ if is_identifier_char(first) => read_word(rest),
            _ => (TokenKind::Operator, operator_length(rest, first)),
        };
        let token = Token { kind, text: &rest[..length], line: self.line };
        self.advance(length);
        Some(token)
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            let rest = &self.text[self.position..];
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                block_comment_length(rest)
            } else {
                rest.len() - rest.trim_start().len()
            };
            if length == 0 {
                return;
            }
            self.advance(length);
        }
    }

    fn advance(&mut self, length: usize) {
        let end = self.position + length;
        self.line += self.text[self.position..end].matches('\n').count();
        self.position = end;
    }
}

fn is_identifier_char(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

fn identifier_length(rest: &str) -> usize {
    rest.find(|it| !is_identifier_char(it)).unwrap_or(rest.len())
}

fn operator_length(rest: &str, first: char) -> usize {
    let is_long = LONG_OPERATORS.iter().any(|it| rest.starts_with(it));
    if is_long { 2 } else { first.len_utf8() }
}

/// An identifier, or a literal with a prefix such as `b"…"`, `r#"…"#` or `r#type`.
fn read_word(rest: &str) -> (TokenKind, usize) {
    let length = identifier_length(rest);
    let (word, after) = rest.split_at(length);
    match word {
        "b" | "c" if after.starts_with('"') => {
            (TokenKind::StringLiteral, length + string_length(after))
        }
        "b" if after.starts_with('\'') => (TokenKind::OtherLiteral, length + read_quote(after).1),
        "r" | "br" | "cr" => match raw_string_length(after) {
            Some(raw) => (TokenKind::StringLiteral, length + raw),
            None if after.starts_with('#') => {
                (TokenKind::Identifier, length + 1 + identifier_length(&after[1..]))
            }
            None => (TokenKind::Identifier, length),
        },
        _ => (TokenKind::Identifier, length),
    }
}

/// The length of a string that starts at its opening quote.
fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, it) in rest.char_indices().skip(1) {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a raw string that starts behind its `r`; none if it is not one.
fn raw_string_length(after: &str) -> Option<usize> {
    let hashes = after.len() - after.trim_start_matches('#').len();
    let content = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = content.find(&end).map_or(content.len(), |it| it + end.len());
    Some(hashes + 1 + length)
}

/// A character literal or a lifetime.
fn read_quote(rest: &str) -> (TokenKind, usize) {
    let mut chars = rest.chars().skip(1);
    let (first, second) = (chars.next(), chars.next());
    if first == Some('\\') {
        // The character behind the backslash may itself be a quote.
        let escaped = second.map_or(0, char::len_utf8);
        let from = (2 + escaped).min(rest.len());
        let end = rest[from..].find('\'').map_or(rest.len(), |it| from + it + 1);
        return (TokenKind::OtherLiteral, end);
    }
    match (first, second) {
        (Some(first), Some('\'')) => (TokenKind::OtherLiteral, first.len_utf8() + 2),
        _ => (TokenKind::Lifetime, 1 + identifier_length(&rest[1..])),
    }
}

/// A dot belongs to a number only before a digit: `0..2` and `1.max(2)` are not numbers.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(it) = bytes.get(length) {
        let is_fraction = *it == b'.' && bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
        if !it.is_ascii_alphanumeric() && *it != b'_' && !is_fraction {
            break;
        }
        length += 1;
    }
    length
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokenize(source).iter().map(|it| it.text).collect()
    }

    #[test]
    fn comments_are_dropped_and_lines_are_counted() {
        let tokens = tokenize("// a \"b\n/* c /* d */ e */ f\n\n  g");
        let found: Vec<_> = tokens.iter().map(|it| (it.text, it.line)).collect();
        assert_eq!(found, [("f", 2), ("g", 4)]);
    }

    #[test]
    fn strings_are_single_tokens_whatever_they_contain() {
        let source = r##"a("x\"{", b"y", r#"z"{"#, '{', '\'', b'"')"##;
        let expected = ["a", "(", r#""x\"{""#, ",", "b\"y\"", ",", r##"r#"z"{"#"##];
        assert_eq!(texts(source)[..7], expected);
        assert_eq!(texts(source)[8..], ["'{'", ",", r"'\''", ",", "b'\"'", ")"]);
        let values: Vec<_> = tokenize(source).iter().filter_map(Token::string_value).collect();
        assert_eq!(values, [r#"x\"{"#, "y", "z\"{"]);
    }

    #[test]
    fn lifetimes_numbers_and_paths_are_distinguished() {
        assert_eq!(texts("&'a crate::b"), ["&", "'a", "crate", "::", "b"]);
        assert_eq!(texts("0..2 1.5e3 1.max(r#type)")[..4], ["0", ".", ".", "2"]);
        assert_eq!(texts("1.5e3 1.max(r#type)"), ["1.5e3", "1", ".", "max", "(", "r#type", ")"]);
        assert_eq!(texts("a->b=>c"), ["a", "->", "b", "=>", "c"]);
    }

    #[test]
    fn closing_positions_match_nested_delimiters() {
        let tokens = tokenize("a(b[c]{d})(");
        assert_eq!(closing_positions(&tokens), [0, 9, 2, 5, 4, 5, 8, 7, 8, 9, 10]);
    }
}
