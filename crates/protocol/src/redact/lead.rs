//! What a word means for the next one.

use super::{
    context::is_wrapping,
    names::{self, NameKind},
    scanner::{BLOCK_BYTES_MAX, BLOCK_END, ScanMode, SecretScanner, is_quote},
    search::{NAME_SEARCHED_MAX, after_sign},
    value::{is_credential, is_encoded_login, is_placeholder},
};
use std::ops::Range;

const BLOCK_BEGIN: &str = "-----BEGIN";
const BLOCK_BEGUN: &str = "-----";
/// `-----BEGIN PGP PRIVATE KEY BLOCK-----` and the like.
const BLOCK_WORDS_MAX: u8 = 5;
/// One of these makes a block a private one; the last is in keys of `OpenVPN`.
const BLOCK_PRIVATE: [&str; 3] = ["PRIVATE", "SECRET", "Static"];

/// What the preceding word means for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PrecedingWord {
    #[default]
    Nothing,
    /// It ended with a telling name; a sign may follow.
    Name(NameKind),
    /// It ended with a telling name and a sign.
    Value(NameKind),
    Bearer,
    Basic,
    /// So many words since a block began, and whether one said that it is private.
    Begin(u8, bool),
    /// The next word is a password.
    Whole,
    /// The next word is a password behind a colon, or has none.
    BehindColon,
    /// The next word is the name of something that has a `value`.
    PairName,
}

impl SecretScanner {
    /// What the word before has led up to; returns where the search goes on.
    pub(super) fn follow(
        &mut self,
        lead: PrecedingWord,
        word: &str,
        hidden: &mut Vec<Range<usize>>,
    ) -> usize {
        match lead {
            PrecedingWord::Nothing => 0,
            PrecedingWord::Value(kind) => self.assign(word, 0, kind, true, hidden).unwrap_or(0),
            PrecedingWord::Name(kind) => match after_sign(word) {
                Some(at) if at == word.len() => {
                    self.lead = PrecedingWord::Value(kind);
                    at
                }
                Some(at) => self.assign(word, at, kind, true, hidden).unwrap_or(at),
                None => 0,
            },
            PrecedingWord::Bearer => hide_if(word, is_credential, hidden),
            PrecedingWord::Basic => hide_if(word, is_encoded_login, hidden),
            PrecedingWord::Begin(count, private) => self.begin_block(count, private, word, hidden),
            PrecedingWord::Whole => self.hide_argument(word, 0, hidden),
            PrecedingWord::BehindColon => {
                let at = word.find(':').map_or(word.len(), |it| it + 1);
                if at < word.len() { self.hide_argument(word, at, hidden) } else { 0 }
            }
            PrecedingWord::PairName => {
                self.context.set_pair(names::kind(word.trim_matches(is_wrapping)));
                0
            }
        }
    }

    fn begin_block(
        &mut self,
        count: u8,
        private: bool,
        word: &str,
        hidden: &mut Vec<Range<usize>>,
    ) -> usize {
        let begun = word.find(BLOCK_BEGUN).filter(|_| private);
        let Some(at) = begun.map(|it| it + BLOCK_BEGUN.len()) else {
            if count < BLOCK_WORDS_MAX && !word.contains(BLOCK_BEGUN) {
                let private = private || BLOCK_PRIVATE.contains(&word);
                self.lead = PrecedingWord::Begin(count + 1, private);
            }
            return 0;
        };
        let end = word[at..].find(BLOCK_END);
        hidden.push(at..end.map_or(word.len(), |it| at + it));
        if end.is_none() {
            self.mode = ScanMode::Block { bytes_left: BLOCK_BYTES_MAX, end: BLOCK_END };
        }
        end.map_or(word.len(), |it| at + it + BLOCK_END.len())
    }

    /// Hides an argument of a command, from `at` on, without the quotes around it.
    fn hide_argument(&mut self, word: &str, at: usize, hidden: &mut Vec<Range<usize>>) -> usize {
        let before = word[..at].chars().find(|c| is_quote(*c));
        let inner = word[at..].trim_start_matches(|c| is_quote(c) || c == '\\');
        let start = word.len() - inner.len();
        let quote = before.or_else(|| word[at..start].chars().find(|c| is_quote(*c)));
        let end = match quote {
            Some(quote) => inner.find(quote).map(|it| start + it),
            None => Some(start + inner.trim_end_matches(is_wrapping).len()),
        };
        let range = start..end.unwrap_or(word.len());
        if range.is_empty() || is_placeholder(&word[range.clone()]) {
            return 0;
        }
        if let (Some(quote), None) = (quote, end) {
            self.mode = ScanMode::Quoted(quote);
        }
        hidden.push(range.clone());
        range.end
    }

    /// A password that stands in one word with the flag of a command.
    pub(super) fn attached(&mut self, word: &str, hidden: &mut Vec<Range<usize>>) -> usize {
        let Some(range) = self.context.attached(word) else { return 0 };
        let end = range.end;
        hidden.push(range);
        end
    }
}

/// Hides the beginning of the word, up to a quote or the like, if it is a secret.
fn hide_if(word: &str, test: fn(&str) -> bool, hidden: &mut Vec<Range<usize>>) -> usize {
    let end = word.find(|c| is_quote(c) || matches!(c, ',' | ';' | '\\' | ')'));
    let value = &word[..end.unwrap_or(word.len())];
    if !test(value) {
        return 0;
    }
    hidden.push(0..value.len());
    value.len()
}

/// What a word can be the beginning of; `pair` is the kind of the next `value`.
pub(super) fn lead_of(word: &str, pair: Option<NameKind>) -> PrecedingWord {
    if word.ends_with(BLOCK_BEGIN) {
        return PrecedingWord::Begin(0, false);
    }
    let name = word.trim_end_matches(['=', ':']);
    let sign = &word[name.len()..];
    let searched = name.floor_char_boundary(name.len().saturating_sub(NAME_SEARCHED_MAX));
    let named = names::name_before(&name[searched..]);
    match (names::kind(named), sign) {
        (Some(kind), "=" | ":" | ":=") => PrecedingWord::Value(kind),
        // A flag: its value is the next argument.
        (Some(kind), "") if named.starts_with("--") => PrecedingWord::Value(kind),
        (Some(kind), "") => PrecedingWord::Name(kind),
        (None, ":") if matches!(named, "name" | "key") => PrecedingWord::PairName,
        (None, ":") if named == "value" => {
            pair.map_or(PrecedingWord::Nothing, PrecedingWord::Value)
        }
        _ if named.eq_ignore_ascii_case("bearer") => PrecedingWord::Bearer,
        _ if named.eq_ignore_ascii_case("basic") => PrecedingWord::Basic,
        _ => PrecedingWord::Nothing,
    }
}
