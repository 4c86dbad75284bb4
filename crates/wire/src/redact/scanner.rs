//! Reads a text once, a character at a time, and decides what of it is secret as soon as a word is
//! whole. Between words it remembers only what a word can be the beginning of.

use super::{
    keys,
    names::{self, Kind},
    value::{is_credential, is_scheme, secret_at},
};
use std::ops::Range;

/// So much of the text, in order, and whether it is to be hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) bytes: usize,
    pub(super) hidden: bool,
}

/// A word of this length is looked at before it ends: an image in base64 has no end in sight.
const WORD_BYTES_MAX: usize = 16 << 10;
/// So far back a place is looked for where no key is cut in two.
const CUT_BYTES_MAX: usize = 4 << 10;
/// Of what follows the first line of a private key, if the last line never comes.
const BLOCK_BYTES_MAX: usize = 16 << 10;
/// Of a word before `=` or `:`, so much is looked at for a name.
const NAME_SEARCHED_MAX: usize = 80;
const BLOCK_BEGIN: &str = "-----BEGIN";
const BLOCK_BEGUN: &str = "KEY-----";
const BLOCK_END: &str = "-----END";
/// `-----BEGIN OPENSSH PRIVATE KEY-----` and the like.
const BLOCK_WORDS_MAX: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Scanner {
    word: String,
    /// The word has a `=` or a `:`, so a value may follow that is not ASCII.
    signed: bool,
    /// The word goes on where a longer one was cut.
    joined: bool,
    mode: Mode,
    lead: Lead,
}

/// Where the next character stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Text,
    /// In a private key, for at most so many bytes.
    Block(usize),
    /// In a secret that ends with this quote, or with the line.
    Quoted(char),
    /// In a secret that ends with the line.
    Line,
    /// In a key that was longer than a word may be.
    Key,
}

/// What the word before makes of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Lead {
    #[default]
    Nothing,
    /// It ended with a telling name; a sign may follow.
    Name(Kind),
    /// It ended with a telling name and a sign.
    Value(Kind),
    Bearer,
    /// So many words since a block began, and whether the last was `PRIVATE`.
    Begin(u8, bool),
}

impl Scanner {
    pub(super) fn feed(&mut self, c: char, runs: &mut Vec<Run>) {
        if c.is_whitespace() || !c.is_ascii() && !self.signed {
            self.close(runs);
            return self.gap(c, runs);
        }
        self.signed |= matches!(c, '=' | ':');
        self.word.push(c);
        if WORD_BYTES_MAX <= self.word.len() {
            self.cut(runs);
        }
    }

    pub(super) fn finish(&mut self, runs: &mut Vec<Run>) {
        self.close(runs);
        *self = Scanner::default();
    }

    /// Decides now, and for the worst: the rest of the word is hidden too.
    pub(super) fn give_up(&mut self, runs: &mut Vec<Run>) {
        if self.word.is_empty() {
            return;
        }
        runs.push(Run { bytes: self.word.len(), hidden: true });
        self.word.clear();
        (self.signed, self.joined) = (false, true);
        if self.mode == Mode::Text {
            self.mode = Mode::Key;
        }
    }

    /// What stands between words.
    fn gap(&mut self, c: char, runs: &mut Vec<Run>) {
        match &mut self.mode {
            Mode::Text => {}
            Mode::Block(left) => *left = left.saturating_sub(c.len_utf8()),
            Mode::Quoted(_) | Mode::Line if c != '\n' => {}
            Mode::Quoted(_) | Mode::Line | Mode::Key => self.mode = Mode::Text,
        }
        if c == '\n' || !c.is_whitespace() {
            self.lead = Lead::Nothing;
        }
        runs.push(Run { bytes: c.len_utf8(), hidden: self.mode != Mode::Text });
    }

    fn close(&mut self, runs: &mut Vec<Run>) {
        if !self.word.is_empty() {
            let word = std::mem::take(&mut self.word);
            self.look_at(&word, runs);
            self.word = word;
            self.word.clear();
        }
        (self.signed, self.joined) = (false, false);
    }

    fn cut(&mut self, runs: &mut Vec<Run>) {
        let from = self.word.floor_char_boundary(self.word.len() - CUT_BYTES_MAX);
        let is_break = |c: char| c.is_ascii() && !keys::is_key_char(c) && c != '.';
        let cut = self.word[from..].rfind(is_break).map_or(self.word.len(), |it| from + it + 1);
        let rest = self.word.split_off(cut);
        let word = std::mem::replace(&mut self.word, rest);
        let open = self.look_at(&word, runs);
        if open && self.mode == Mode::Text {
            self.mode = Mode::Key;
        }
        self.joined = word.ends_with(|c: char| c.is_ascii_alphanumeric());
        self.signed = self.word.contains(['=', ':']);
    }

    /// Decides about a word; true if what it hides reaches to its end.
    fn look_at(&mut self, word: &str, runs: &mut Vec<Run>) -> bool {
        let mut hidden = Vec::new();
        let mut at = self.go_on(word, &mut hidden);
        let lead = std::mem::take(&mut self.lead);
        if at == 0 {
            at = self.follow(lead, word, &mut hidden);
        }
        self.search(word, at, &mut hidden);
        if self.mode == Mode::Text && self.lead == Lead::Nothing {
            self.lead = lead_of(word);
        }
        emit(word, &hidden, runs);
        hidden.last().is_some_and(|it| it.end == word.len())
    }

    /// The rest of a secret that began before; returns where it ends.
    fn go_on(&mut self, word: &str, hidden: &mut Vec<Range<usize>>) -> usize {
        let (end, next) = match self.mode {
            Mode::Text => return 0,
            Mode::Key => {
                let end = keys::run(word);
                (end, (end < word.len()).then_some(end))
            }
            Mode::Block(left) => {
                if let Some(end) = word.find(BLOCK_END) {
                    (end, Some(end + BLOCK_END.len()))
                } else {
                    let left = left.saturating_sub(word.len());
                    self.mode = if left == 0 { Mode::Text } else { Mode::Block(left) };
                    (word.len(), None)
                }
            }
            Mode::Quoted(quote) => end_of(word, |c| c == quote),
            Mode::Line => end_of(word, is_quote),
        };
        hidden.push(0..end);
        if next.is_some() {
            self.mode = Mode::Text;
        }
        next.unwrap_or(word.len())
    }

    /// What the word before has led up to; returns where the search goes on.
    fn follow(&mut self, lead: Lead, word: &str, hidden: &mut Vec<Range<usize>>) -> usize {
        match lead {
            Lead::Nothing => 0,
            Lead::Value(kind) => self.assign(word, 0, kind, true, hidden).unwrap_or(0),
            Lead::Name(kind) => match after_sign(word) {
                Some(at) if at == word.len() => {
                    self.lead = Lead::Value(kind);
                    at
                }
                Some(at) => self.assign(word, at, kind, true, hidden).unwrap_or(at),
                None => 0,
            },
            Lead::Bearer => {
                let end = word.find(|c| is_quote(c) || matches!(c, ',' | ';' | '\\' | ')'));
                let value = &word[..end.unwrap_or(word.len())];
                let fits = is_credential(value);
                hidden.extend(fits.then_some(0..value.len()));
                if fits { value.len() } else { 0 }
            }
            Lead::Begin(_, true) if word.contains(BLOCK_BEGUN) => {
                let at = word.find(BLOCK_BEGUN).map_or(0, |it| it + BLOCK_BEGUN.len());
                let end = word[at..].find(BLOCK_END);
                hidden.push(at..end.map_or(word.len(), |it| at + it));
                if end.is_none() {
                    self.mode = Mode::Block(BLOCK_BYTES_MAX);
                }
                end.map_or(word.len(), |it| at + it + BLOCK_END.len())
            }
            Lead::Begin(words, _) => {
                if words < BLOCK_WORDS_MAX {
                    self.lead = Lead::Begin(words + 1, word == "PRIVATE");
                }
                0
            }
        }
    }

    /// The value of a telling name, from `at` on; returns where it ends if there is one.
    fn assign(
        &mut self,
        word: &str,
        at: usize,
        kind: Kind,
        spaced: bool,
        hidden: &mut Vec<Range<usize>>,
    ) -> Option<usize> {
        let bare = word[at..].trim_start_matches(|c| is_quote(c) || c == '\\');
        if kind == Kind::Header && is_scheme(bare) {
            let all = bare.eq_ignore_ascii_case("digest") || bare.contains("HMAC");
            self.lead = Lead::Value(if all { Kind::Cookie } else { Kind::Header });
            return Some(word.len());
        }
        let secret = secret_at(word, at, kind, spaced)?;
        let end = secret.hidden.end;
        hidden.push(secret.hidden);
        if let Some(quote) = secret.until {
            self.mode = Mode::Quoted(quote);
        } else if kind == Kind::Cookie && end == word.len() {
            self.mode = Mode::Line;
        }
        Some(end)
    }

    /// Keys, addresses with passwords and assignments inside a word.
    fn search(&mut self, word: &str, from: usize, hidden: &mut Vec<Range<usize>>) {
        let bytes = word.as_bytes();
        let mut at = from;
        while at < bytes.len() {
            let begins = match at {
                0 => !self.joined,
                _ => !bytes[at - 1].is_ascii_alphanumeric() && word.is_char_boundary(at),
            };
            if begins && let Some(key) = keys::key_at(word, at) {
                at = key.end;
                hidden.push(key);
                continue;
            }
            at = match bytes[at] {
                b':' if word[at..].starts_with("://") => {
                    let password = password_in(word, at + 3);
                    let next = password.as_ref().map_or(at + 3, |it| it.end);
                    hidden.extend(password);
                    next
                }
                b'=' | b':' => self.sign(word, at, hidden),
                _ => at + 1,
            };
        }
    }

    /// A `=` or a `:` stands here; returns where to go on.
    fn sign(&mut self, word: &str, at: usize, hidden: &mut Vec<Range<usize>>) -> usize {
        let Some(signs) = after_sign(&word[at..]) else {
            // `==`, `::` and the like assign nothing.
            let is_sign = |c: char| matches!(c, '=' | ':' | '>');
            return at + word[at..].find(|c| !is_sign(c)).unwrap_or(word.len() - at);
        };
        let next = at + signs;
        let searched = word.floor_char_boundary(at.saturating_sub(NAME_SEARCHED_MAX));
        let kind = names::kind(names::name_before(&word[searched..at]));
        match kind.filter(|_| next < word.len()) {
            Some(kind) => {
                let spaced = word.as_bytes()[at] == b':';
                self.assign(word, next, kind, spaced, hidden).unwrap_or(next)
            }
            None => next,
        }
    }
}

/// What a word can be the beginning of.
fn lead_of(word: &str) -> Lead {
    if word.ends_with(BLOCK_BEGIN) {
        return Lead::Begin(0, false);
    }
    let name = word.trim_end_matches(['=', ':']);
    let sign = &word[name.len()..];
    let searched = name.floor_char_boundary(name.len().saturating_sub(NAME_SEARCHED_MAX));
    let named = names::name_before(&name[searched..]);
    match (names::kind(named), sign) {
        (Some(kind), "=" | ":" | ":=") => Lead::Value(kind),
        // A flag: its value is the next argument.
        (Some(kind), "") if named.starts_with("--") => Lead::Value(kind),
        (Some(kind), "") => Lead::Name(kind),
        _ if named.eq_ignore_ascii_case("bearer") => Lead::Bearer,
        _ => Lead::Nothing,
    }
}

/// Behind the sign of an assignment at the beginning of `text`: `=`, `:` or `:=`.
fn after_sign(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(":=").or_else(|| text.strip_prefix(['=', ':']))?;
    (!rest.starts_with(['=', ':', '>', '~'])).then_some(text.len() - rest.len())
}

/// The password in the address whose host part begins at `from`.
fn password_in(word: &str, from: usize) -> Option<Range<usize>> {
    let rest = &word[from..];
    let ends = |c: char| is_quote(c) || matches!(c, '/' | '?' | '#' | '<' | '>' | '\\' | ')');
    let host = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let user = &host[..host.rfind('@')?];
    let password = user.find(':')? + 1;
    (password < user.len()).then_some(from + password..from + user.len())
}

/// Where a secret ends that this quote ends, and where the text goes on.
fn end_of(word: &str, is_end: impl Fn(char) -> bool) -> (usize, Option<usize>) {
    match word.find(is_end) {
        Some(end) => (word[..end].trim_end_matches('\\').len(), Some(end + 1)),
        None => (word.len(), None),
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

fn emit(word: &str, hidden: &[Range<usize>], runs: &mut Vec<Run>) {
    let mut at = 0;
    for range in hidden.iter().filter(|it| !it.is_empty()) {
        if at < range.start {
            runs.push(Run { bytes: range.start - at, hidden: false });
        }
        runs.push(Run { bytes: range.len(), hidden: true });
        at = range.end;
    }
    if at < word.len() {
        runs.push(Run { bytes: word.len() - at, hidden: false });
    }
}
