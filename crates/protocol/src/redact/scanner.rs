//! Reads a text once, a character at a time, and decides what of it is secret as soon as a word is
//! whole. Between words it remembers only what a word can be the beginning of.

use super::{
    context::LineContext,
    keys,
    lead::{self, PrecedingWord},
    search::PRIVATE_LINES,
};
use std::ops::Range;

/// The next bytes of the text, and whether they are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScannedRun {
    pub(super) bytes: usize,
    pub(super) hidden: bool,
}

/// A word of this length is looked at before it ends: an image in base64 has no end in sight.
const WORD_BYTES_MAX: usize = 16 << 10;
/// So far back a place is looked for where no key is cut in two.
const CUT_BYTES_MAX: usize = 4 << 10;
/// Of what follows the first line of a private key, if the last line never comes.
pub(super) const BLOCK_BYTES_MAX: usize = 16 << 10;
/// The last line of a private key in PEM, and of one that `PuTTY` wrote.
pub(super) const BLOCK_END: &str = "-----END";
const PRIVATE_LINES_END: &str = "Private-MAC";

#[derive(Debug, Default)]
pub(super) struct SecretScanner {
    word: String,
    /// So much of the word was decided on before it was whole: it is not hidden.
    shown: usize,
    /// The word has a `=` or a `:`, so a value may follow that is not ASCII.
    pub(super) signed: bool,
    /// The word goes on where a longer one was cut.
    pub(super) joined: bool,
    pub(super) mode: ScanMode,
    pub(super) lead: PrecedingWord,
    pub(super) context: LineContext,
}

/// What the next character belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ScanMode {
    #[default]
    Text,
    /// In a private key, for at most so many bytes, up to this word.
    Block { bytes_left: usize, end: &'static str },
    /// In a secret that ends with this character, or with the line.
    Quoted(char),
    /// In a secret that ends with the line.
    Line,
    /// In a key that was longer than a word may be.
    Key,
    /// In a word that is hidden up to its end.
    HiddenWord,
}

impl SecretScanner {
    pub(super) fn feed(&mut self, c: char, runs: &mut Vec<ScannedRun>) {
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

    pub(super) fn finish(&mut self, runs: &mut Vec<ScannedRun>) {
        self.close(runs);
        *self = SecretScanner::default();
    }

    /// Decides on the word that is not whole yet, if no more text can make a secret of what is there.
    pub(super) fn pause(&mut self, runs: &mut Vec<ScannedRun>) {
        if !self.may_become_secret() {
            push(runs, self.word.len() - self.shown, false);
            self.shown = self.word.len();
        }
    }

    /// Decides on it in any case: if it may become a secret, it is hidden, and so is its rest.
    pub(super) fn give_up(&mut self, runs: &mut Vec<ScannedRun>) {
        self.pause(runs);
        if self.word.len() == self.shown {
            return;
        }
        push(runs, self.word.len() - self.shown, true);
        self.word.clear();
        self.shown = 0;
        (self.signed, self.joined) = (false, true);
        if self.mode == ScanMode::Text {
            self.mode = ScanMode::HiddenWord;
        }
    }

    /// Whether more text can lead to a part of the word being hidden. Errs on the safe side.
    fn may_become_secret(&self) -> bool {
        let word = self.word.as_str();
        if word.is_empty() {
            return false;
        }
        let lead = match self.lead {
            PrecedingWord::Nothing => false,
            PrecedingWord::Name(_) => word.starts_with(['=', ':']),
            _ => true,
        };
        let inner = &word[..word.len() - 1];
        // A sign at the very end has no value yet; a backslash may belong to a quote.
        self.mode != ScanMode::Text
            || lead
            || self.shown == 0 && word.starts_with('-')
            || word.contains(['<', '>', '\\'])
            || !inner.is_ascii()
            || inner.contains(['=', ':'])
            || keys::may_become_key(word)
    }

    /// What stands between words.
    fn gap(&mut self, c: char, runs: &mut Vec<ScannedRun>) {
        match &mut self.mode {
            ScanMode::Text => {}
            ScanMode::Block { bytes_left, .. } => {
                *bytes_left = bytes_left.saturating_sub(c.len_utf8());
            }
            ScanMode::Quoted(_) | ScanMode::Line if c != '\n' => {}
            ScanMode::Quoted(_) | ScanMode::Line | ScanMode::Key | ScanMode::HiddenWord => {
                self.mode = ScanMode::Text;
            }
        }
        if c == '\n' {
            self.context.end_line();
        }
        if c == '\n' || !c.is_whitespace() {
            self.lead = PrecedingWord::Nothing;
        }
        push(runs, c.len_utf8(), self.mode != ScanMode::Text);
    }

    fn close(&mut self, runs: &mut Vec<ScannedRun>) {
        if !self.word.is_empty() {
            let word = std::mem::take(&mut self.word);
            self.look_at(&word, runs);
            self.word = word;
            self.word.clear();
        }
        (self.signed, self.joined) = (false, false);
    }

    fn cut(&mut self, runs: &mut Vec<ScannedRun>) {
        let from = self.word.floor_char_boundary(self.word.len() - CUT_BYTES_MAX);
        let is_break = |c: char| c.is_ascii() && !keys::is_key_char(c) && c != '.';
        let cut = self.word[from..].rfind(is_break).map_or(self.word.len(), |it| from + it + 1);
        let rest = self.word.split_off(cut);
        let word = std::mem::replace(&mut self.word, rest);
        let open = self.look_at(&word, runs);
        if open && self.mode == ScanMode::Text {
            self.mode = ScanMode::Key;
        }
        self.joined = word.ends_with(|c: char| c.is_ascii_alphanumeric());
        self.signed = self.word.contains(['=', ':']);
    }

    /// Decides about a word; true if what it hides reaches to its end.
    fn look_at(&mut self, word: &str, runs: &mut Vec<ScannedRun>) -> bool {
        let mut hidden = Vec::new();
        let mut at = self.go_on(word, &mut hidden);
        let lead = std::mem::take(&mut self.lead);
        if at == 0 {
            at = self.follow(lead, word, &mut hidden);
        }
        if at == 0 {
            at = self.attached(word, &mut hidden);
        }
        let next = self.context.read(word);
        self.search(word, at, &mut hidden);
        if self.mode == ScanMode::Text && word == PRIVATE_LINES {
            self.mode = ScanMode::Block { bytes_left: BLOCK_BYTES_MAX, end: PRIVATE_LINES_END };
        }
        if self.mode == ScanMode::Text && self.lead == PrecedingWord::Nothing {
            let is_open = next != PrecedingWord::Nothing;
            self.lead = if is_open { next } else { lead::lead_of(word, self.context.pair()) };
        }
        self.emit(word, &hidden, runs);
        hidden.last().is_some_and(|it| it.end == word.len())
    }

    /// The rest of a secret that began before; returns where it ends.
    fn go_on(&mut self, word: &str, hidden: &mut Vec<Range<usize>>) -> usize {
        let (end, next) = match self.mode {
            ScanMode::Text => return 0,
            ScanMode::Key => {
                let end = keys::run(word);
                (end, (end < word.len()).then_some(end))
            }
            ScanMode::HiddenWord => (word.len(), None),
            ScanMode::Block { bytes_left, end } => {
                if let Some(at) = word.find(end) {
                    (at, Some(at + end.len()))
                } else {
                    let bytes_left = bytes_left.saturating_sub(word.len());
                    let over = bytes_left == 0;
                    self.mode =
                        if over { ScanMode::Text } else { ScanMode::Block { bytes_left, end } };
                    (word.len(), None)
                }
            }
            ScanMode::Quoted(quote) => end_of(word, |c| c == quote),
            ScanMode::Line => end_of(word, is_quote),
        };
        hidden.push(0..end);
        if next.is_some() {
            self.mode = ScanMode::Text;
        }
        next.unwrap_or(word.len())
    }

    /// Says what of a word is hidden, without what was decided on before.
    fn emit(&mut self, word: &str, hidden: &[Range<usize>], runs: &mut Vec<ScannedRun>) {
        let mut at = self.shown.min(word.len());
        self.shown -= at;
        for range in hidden {
            push(runs, range.start.saturating_sub(at), false);
            push(runs, range.end.saturating_sub(range.start.max(at)), true);
            at = at.max(range.end);
        }
        push(runs, word.len() - at, false);
    }
}

/// Adds to the last run if it is of the same kind: an ordinary text of any length has one.
fn push(runs: &mut Vec<ScannedRun>, bytes: usize, hidden: bool) {
    match runs.last_mut() {
        _ if bytes == 0 => {}
        Some(last) if last.hidden == hidden => last.bytes += bytes,
        _ => runs.push(ScannedRun { bytes, hidden }),
    }
}

/// Where a secret ends that this character ends, and where the text goes on.
fn end_of(word: &str, is_end: impl Fn(char) -> bool) -> (usize, Option<usize>) {
    match word.find(is_end) {
        Some(end) => (word[..end].trim_end_matches('\\').len(), Some(end + 1)),
        None => (word.len(), None),
    }
}

pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}
