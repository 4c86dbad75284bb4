//! The words of a text that cannot be analyzed for certain. Deny and ask rules search in them.

use super::{ShellWord, WordKind, program, program_name};
use std::{iter::Peekable, str::Chars};

/// Characters after which a command may begin.
const COMMAND_SEPARATORS: &str = ";&|(`{\n";

/// The words of a text, split in two ways: one ends words at every quote, brace and operator; the
/// other removes quotes and keeps the characters that a shell would expand.
pub(crate) fn loose_words(text: &str) -> [Vec<ShellWord>; 2] {
    let text = decode_quotes(text);
    [split_at_every_sign(&text), split_without_quotes(&text)]
}

fn split_at_every_sign(text: &str) -> Vec<ShellWord> {
    let ends = |it: char| it.is_whitespace() || "'\"`$(){}<>|;&=,:!\\\0".contains(it);
    let word = |it: &str| ShellWord { text: it.to_owned(), kind: WordKind::Fixed, is_start: false };
    text.split(ends).filter(|it| !it.is_empty()).map(word).collect()
}

fn split_without_quotes(text: &str) -> Vec<ShellWord> {
    let mut words: Vec<ShellWord> = Vec::new();
    let mut word = String::new();
    let mut begins = true;
    let mut end = |word: &mut String, begins: &mut bool| {
        if word.is_empty() {
            return;
        }
        let text = std::mem::take(word);
        let kind = match text.as_str() {
            it if it.contains('$') || it.contains('{') => WordKind::Open,
            it if it.contains(['*', '?', '[']) => WordKind::Glob,
            _ => WordKind::Fixed,
        };
        let word = ShellWord { text, kind, is_start: *begins };
        *begins =
            program::is_assignment(&word) || program::precedes_command(program_name(&word.text));
        words.push(word);
    };
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\'' | '"' => {}
            '\\' => {
                chars.next_if_eq(&'\n');
            }
            // The output of a substitution could be any program.
            '$' if chars.peek() == Some(&'(') && word.is_empty() && begins => {
                word.push('$');
                end(&mut word, &mut begins);
                begins = true;
            }
            '`' if word.is_empty() && begins => {
                word.push('$');
                end(&mut word, &mut begins);
                begins = true;
            }
            // `${X}` can have any value, and a brace alone begins a group.
            '{' if word.ends_with('$') => skip_braces(&mut chars),
            '{' if chars.peek().is_none_or(|it| it.is_whitespace()) => {
                end(&mut word, &mut begins);
                begins = true;
            }
            _ if next.is_whitespace() || ";&|<>()`\0".contains(next) => {
                end(&mut word, &mut begins);
                begins |= COMMAND_SEPARATORS.contains(next);
            }
            _ => word.push(next),
        }
    }
    end(&mut word, &mut begins);
    words
}

/// Skips the rest of `${…}`; the other split has its words.
fn skip_braces(chars: &mut Peekable<Chars<'_>>) {
    let mut depth = 1;
    while let Some(next) = chars.next_if(|it| depth > 0 && !it.is_whitespace()) {
        match next {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// Decodes the escapes in `$'…'`, and drops the dollar sign of `$"…"`.
fn decode_quotes(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(quoted) = rest.strip_prefix('\'') {
            decoded.push('\'');
            rest = decode_until_quote(quoted, &mut decoded);
            decoded.push('\'');
        } else if !rest.starts_with('"') {
            decoded.push('$');
        }
    }
    decoded.push_str(rest);
    decoded
}

/// Decodes up to the closing quote. Returns the text after it.
fn decode_until_quote<'a>(text: &'a str, decoded: &mut String) -> &'a str {
    let mut chars = text.char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '\'' => return &text[at + 1..],
            '\\' => {
                let Some((_, escape)) = chars.next() else { break };
                let (radix, digits, skipped) = match escape {
                    'x' => (16, 2, 0),
                    'u' => (16, 4, 0),
                    'U' => (16, 8, 0),
                    '0'..='7' => (8, 3, 1),
                    'n' | 't' | 'r' | 'v' | 'f' => {
                        decoded.push(' ');
                        continue;
                    }
                    other => {
                        decoded.push(other);
                        continue;
                    }
                };
                let from = at + 2 - skipped;
                let digits = text[from..].chars().take(digits);
                let digits: String = digits.take_while(|it| it.is_digit(radix)).collect();
                let code = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32);
                decoded.extend(code);
                for _ in 0..digits.len().saturating_sub(skipped) {
                    chars.next();
                }
            }
            other => decoded.push(other),
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_with_escapes_are_decoded() {
        for text in ["$'r\\x6d'", "$'\\162\\155'", "$'\\u0072m'", "r$'\\x6d'", "$\"r\"m", "$'rm"] {
            let [_, words] = loose_words(text);
            assert_eq!(words[0].text, "rm", "{text}");
        }
    }

    #[test]
    fn first_word_of_each_command_is_marked() {
        let starts = |text: &str| {
            let [_, words] = loose_words(text);
            let starts = words.into_iter().filter(|it| it.is_start).map(|it| it.text);
            starts.collect::<Vec<_>>()
        };
        assert_eq!(starts("echo $X; $Y a | b"), ["echo", "$Y", "b"]);
        assert_eq!(starts("if a; then b; fi"), ["if", "a", "then", "b", "fi"]);
        assert_eq!(starts("A=1 sudo $X"), ["A=1", "sudo", "$X"]);
        assert_eq!(starts("$(x) a"), ["$", "x"]);
        assert_eq!(starts("{ ${X} a; }"), ["$", "}"]);
    }
}
