//! The grammar of JSON: passes over tokens and whole values, names nothing.

#![expect(clippy::inline_always, reason = "a third of the time of a pass, measured")]

use super::{DEPTH_MAX, ScanResult};
use crate::malformed::MalformedFrame;

/// The text violates the grammar; [`JsonScanner::wrong`] says how. Empty, so that the answer of a step
/// fits a register: the steps are the hub's hottest code.
pub(super) struct GrammarError;

pub(super) type ScanStep<T = ()> = Result<T, GrammarError>;

/// A position in a text, and what was found before it.
pub(super) struct JsonScanner<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) found: ScanResult,
    pub(super) wrong: MalformedFrame,
}

impl<'a> JsonScanner<'a> {
    pub(super) fn new(text: &'a str) -> JsonScanner<'a> {
        let wrong = MalformedFrame::NoKind;
        JsonScanner { text, bytes: text.as_bytes(), at: 0, found: ScanResult::default(), wrong }
    }

    /// The next byte; 0 at the end, which no token starts with.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[cold]
    pub(super) fn expected<T>(&mut self, what: &'static str) -> ScanStep<T> {
        self.wrong = MalformedFrame::NotJson { at: self.at, expected: what };
        Err(GrammarError)
    }

    #[inline]
    pub(super) fn eat(&mut self, byte: u8, what: &'static str) -> ScanStep {
        if self.peek() != byte {
            return self.expected(what);
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over the space between two tokens, of which most messages hold none.
    #[inline(always)]
    pub(super) fn space(&mut self) {
        if self.peek() <= b' ' {
            self.more_space();
        }
    }

    fn more_space(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => self.found.has_line_breaks = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    pub(super) fn end(&mut self) -> ScanStep {
        self.space();
        if self.at < self.bytes.len() { self.expected("the end") } else { Ok(()) }
    }

    #[inline(always)]
    pub(super) fn colon(&mut self) -> ScanStep {
        self.space();
        self.eat(b':', "`:`")?;
        self.space();
        Ok(())
    }

    /// Passes over one value, whatever it is, inside `depth` open objects. Nesting is a bit for
    /// each level, not a stack.
    pub(super) fn skip(&mut self, depth: u32) -> ScanStep {
        let mut open = depth;
        let mut objects: u128 = 0;
        loop {
            match self.peek() {
                bracket @ (b'{' | b'[') => {
                    if open == DEPTH_MAX {
                        self.wrong = MalformedFrame::TooDeep;
                        return Err(GrammarError);
                    }
                    open += 1;
                    objects = objects << 1 | u128::from(bracket == b'{');
                    self.at += 1;
                    self.space();
                    // In ASCII the closing bracket stands two after the opening one.
                    if self.peek() != bracket + 2 {
                        if bracket == b'{' {
                            self.string("a key")?;
                            self.colon()?;
                        }
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // A value or an empty container lies behind us: leave what ends here.
            loop {
                if open == depth {
                    return Ok(());
                }
                self.space();
                match (self.peek(), objects & 1) {
                    (b'}', 1) | (b']', 0) => {
                        self.at += 1;
                        open -= 1;
                        objects >>= 1;
                    }
                    (b',', in_object) => {
                        self.at += 1;
                        self.space();
                        if in_object == 1 {
                            self.string("a key")?;
                            self.colon()?;
                        }
                        break;
                    }
                    (_, 1) => return self.expected("`,` or `}`"),
                    _ => return self.expected("`,` or `]`"),
                }
            }
        }
    }

    /// Passes over a value that holds no other.
    pub(super) fn scalar(&mut self) -> ScanStep {
        match self.peek() {
            b'"' => self.string("a string").map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.expected("a value"),
        }
    }

    fn word(&mut self, word: &'static str) -> ScanStep {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return self.expected(word);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> ScanStep {
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> ScanStep {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if start == self.at { self.expected("a digit") } else { Ok(()) }
    }

    /// Passes over a string; says whether it holds an escape.
    #[inline(always)]
    pub(super) fn string(&mut self, what: &'static str) -> ScanStep<bool> {
        self.eat(b'"', what)?;
        // Most keys end within the first look.
        if let Some(eight) = self.bytes[self.at..].first_chunk::<8>() {
            let special = special_bytes(u64::from_le_bytes(*eight));
            let length = special.trailing_zeros() as usize / 8;
            if eight.get(length) == Some(&b'"') {
                self.at += length + 1;
                return Ok(false);
            }
        }
        self.long_string()
    }

    /// The rest of a string whose end was not in sight.
    fn long_string(&mut self) -> ScanStep<bool> {
        let mut escaped = false;
        loop {
            self.plain();
            match self.peek() {
                b'"' => break,
                b'\\' => self.escape()?,
                _ => return self.expected("the rest of a string"),
            }
            escaped = true;
        }
        self.at += 1;
        Ok(escaped)
    }

    /// Passes over what needs no look in a string, eight bytes at a time.
    #[inline]
    fn plain(&mut self) {
        let (bytes, mut at) = (self.bytes, self.at);
        while let Some(eight) = bytes[at..].first_chunk::<8>() {
            let special = special_bytes(u64::from_le_bytes(*eight));
            if special != 0 {
                self.at = at + special.trailing_zeros() as usize / 8;
                return;
            }
            at += 8;
        }
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        self.at = at + bytes[at..].iter().position(is_special).unwrap_or(bytes.len() - at);
    }

    fn escape(&mut self) -> ScanStep {
        self.at += 1;
        match self.peek() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_ascii_hexdigit() {
                        return self.expected("a hexadecimal digit");
                    }
                    self.at += 1;
                }
            }
            _ => return self.expected("an escape"),
        }
        Ok(())
    }
}

/// Marks the top bit of the bytes that end a run of plain text: `"`, `\` and control characters.
/// Each subtraction sets that bit where the byte was below the bound (bytes that are not ASCII are
/// masked out), and perhaps, by a borrow, in bytes above such a one: the lowest mark is right.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * 0x22)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * 0x5C)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & (ONES * 0x80)
}
