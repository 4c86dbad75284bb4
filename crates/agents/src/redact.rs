//! Taking secrets and terminal escapes out of what an agent printed.

use std::iter::Peekable;
use std::str::Chars;

const HIDDEN: &str = "***";
/// Shorter values are words like `true`, and hiding them would hide half the text.
const VALUE_BYTES_MIN: usize = 6;
const SECRET_NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
/// How well-known keys begin. What follows must look like a key too.
const KEY_PREFIXES: [&str; 12] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "hf_",
    "AKIA",
    "AIza",
];
const KEY_BYTES_MIN: usize = 8;
const BEARER: &str = "bearer ";

/// Knows the secrets one agent was given.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value which contains another is hidden whole.
    values: Vec<String>,
}

impl Redactor {
    pub fn new(env: &[(String, String)]) -> Redactor {
        let mut values: Vec<String> = env
            .iter()
            .filter(|(name, _)| {
                let name = name.to_ascii_uppercase();
                SECRET_NAMES.iter().any(|secret| name.contains(secret))
            })
            // A key file in a variable may be printed line by line.
            .flat_map(|(_, value)| value.lines().map(str::trim))
            .filter(|value| VALUE_BYTES_MIN <= value.len())
            .map(str::to_owned)
            .collect();
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Redactor { values }
    }

    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.values {
            if text.contains(value) {
                text = text.replace(value, HIDDEN);
            }
        }
        hide_keys(&text)
    }
}

/// Hides what looks like a key, whoever it belongs to.
fn hide_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_word = false;
    while let Some(next) = rest.chars().next() {
        if !in_word && let Some((shown, hidden)) = key_at(rest) {
            out.push_str(&rest[..shown]);
            out.push_str(HIDDEN);
            rest = &rest[shown + hidden..];
            in_word = true;
            continue;
        }
        out.push(next);
        in_word = is_key_char(next);
        rest = &rest[next.len_utf8()..];
    }
    out
}

/// If a key starts here: how many bytes to show, and how many to hide behind them.
fn key_at(rest: &str) -> Option<(usize, usize)> {
    if rest.get(..BEARER.len()).is_some_and(|word| word.eq_ignore_ascii_case(BEARER)) {
        let secret = &rest[BEARER.len()..];
        let hidden = secret.find(|c: char| c.is_whitespace() || "\"',".contains(c));
        let hidden = hidden.unwrap_or(secret.len());
        return (0 < hidden).then_some((BEARER.len(), hidden));
    }
    let prefix = KEY_PREFIXES.iter().find(|prefix| rest.starts_with(**prefix))?;
    let body = &rest[prefix.len()..];
    let hidden = body.find(|c: char| !is_key_char(c)).unwrap_or(body.len());
    (KEY_BYTES_MIN <= hidden).then_some((prefix.len(), hidden))
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Text for people: no colors, no cursor movements, no titles; a lone return starts a new line.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\x1b' => skip_escape(&mut chars),
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            '\n' | '\t' => out.push(next),
            _ if next.is_control() => {}
            _ => out.push(next),
        }
    }
    out
}

fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next_if(|c| !c.is_control()) {
        // Parameters, then one letter.
        Some('[') => {
            while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
            chars.next_if(|c| ('@'..='~').contains(c));
        }
        // A title or a link: up to the bell or the string terminator, on this line.
        Some(']' | 'P' | '_' | '^') => {
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(&[
            ("OPENAI_API_KEY".into(), "abcdef-123".into()),
            ("my_token".into(), "abcdef-123-longer".into()),
            ("CERT_KEY".into(), "-----BEGIN-----\nQUJDREVG\n".into()),
            ("KEYBOARD".into(), "us".into()),
            ("HOME".into(), "/home/someone".into()),
        ])
    }

    #[test]
    fn values_of_secret_variables_are_hidden_and_others_are_not() {
        let text =
            redactor().redact("key=abcdef-123 t=abcdef-123-longer QUJDREVG us /home/someone");
        assert_eq!(text, "key=*** t=*** *** us /home/someone");
    }

    #[test]
    fn well_known_keys_are_hidden_whoever_they_belong_to() {
        let text = redactor().redact(
            "Authorization: Bearer eyJ.x.y, \"sk-proj-12345678\" task-123456789 ask-1234567890 \
             ghp_abcdefgh1234 sk-short bearer",
        );
        assert_eq!(
            text,
            "Authorization: Bearer ***, \"sk-***\" task-123456789 ask-1234567890 ghp_*** sk-short \
             bearer"
        );
    }

    #[test]
    fn escapes_are_taken_out_and_the_text_stays() {
        let text = "\x1b]0;title\x07\x1b[1;31mred\x1b[0m\r\n10%\r20%\x1b]8;;http://x\x1b\\\u{0}\n";
        assert_eq!(plain(text), "red\n10%\n20%\n");
        assert_eq!(plain("\x1b[\u{e4}\x1b"), "\u{e4}");
    }
}
