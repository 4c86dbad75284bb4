//! Secrets that are known by how they look: keys of services, JSON web tokens, and the few kinds of
//! tokens that have no prefix.

use super::shapes::{KeyAlphabet, KeyRequirement, KeyShape, shapes_of};
use std::ops::Range;

pub(super) use super::shapes::is_key_char;

/// A base64url part of a JWT is never shorter; the word `eyJ` alone is no secret.
const JWT_PART_MIN: usize = 10;
const JWT_BEGIN: &str = "eyJ";
/// Of a prefix that also begins names of things: so many bytes, or fewer with a digit among them.
const PLAIN_MIN: usize = 20;
/// The longest run of hex digits that a token without a prefix has.
const HEX_RUN_MAX: usize = 40;
/// How much of a word that ends with digits is waited for: more than a number in a sentence.
const TAIL_BYTES_MIN: usize = 4;

/// Finds keys in one word, from left to right.
#[derive(Default)]
pub(super) struct KeySearch {
    /// Up to here no JSON web token can begin: what follows it is known.
    no_jwt_until: usize,
}

impl KeySearch {
    /// If a key starts at `at`: what of the word to hide. The character before `at` is neither a
    /// letter nor a digit.
    pub(super) fn key_at(&mut self, word: &str, at: usize) -> Option<Range<usize>> {
        let rest = &word[at..];
        let first = *rest.as_bytes().first()?;
        if first == b'e' && rest.starts_with(JWT_BEGIN) {
            let jwt = self.jwt_at(rest, at);
            if jwt.is_some() {
                return jwt;
            }
        }
        let found = shapes_of(first).iter().find_map(|it| it.find(rest));
        let found = found.or_else(|| token_without_prefix(rest, first))?;
        Some(at + found.start..at + found.end)
    }

    /// A header, a payload and whatever follows them, each behind a dot.
    fn jwt_at(&mut self, rest: &str, at: usize) -> Option<Range<usize>> {
        if at < self.no_jwt_until {
            return None;
        }
        let first = KeyAlphabet::Token.run(rest);
        let second = rest[first..].strip_prefix('.').map_or(0, |it| KeyAlphabet::Token.run(it));
        if JWT_PART_MIN <= first && JWT_PART_MIN <= second {
            return Some(at..at + KeyAlphabet::Dotted.run(rest));
        }
        if second < JWT_PART_MIN {
            self.no_jwt_until = at + first;
        }
        None
    }
}

impl KeyShape {
    /// The part of `rest` behind the prefix that is to be hidden.
    fn find(&self, rest: &str) -> Option<Range<usize>> {
        let body = rest.strip_prefix(self.prefix)?;
        let length = self.body.run(body);
        if length < self.bytes_min {
            return None;
        }
        let body = &body[..length];
        let has = |test: fn(&char) -> bool| body.chars().any(|c| test(&c));
        let fits = match self.need {
            KeyRequirement::Nothing => true,
            KeyRequirement::DigitIfShort => PLAIN_MIN <= length || has(char::is_ascii_digit),
            KeyRequirement::Digit => has(char::is_ascii_digit),
            KeyRequirement::MixedAndExact => {
                length == self.bytes_min
                    && has(char::is_ascii_digit)
                    && has(char::is_ascii_uppercase)
                    && has(char::is_ascii_lowercase)
            }
        };
        fits.then(|| self.prefix.len()..self.prefix.len() + length)
    }
}

fn token_without_prefix(rest: &str, first: u8) -> Option<Range<usize>> {
    match first {
        b'M' | b'N' | b'O' => discord_bot(rest),
        b'b' if rest.starts_with("bot") => {
            telegram_bot(&rest[3..]).map(|it| it.start + 3..it.end + 3)
        }
        b'p' if rest.starts_with("pat") => airtable(rest),
        b'r' if rest.starts_with("re_") => resend(rest),
        b'0'..=b'9' => telegram_bot(rest).or_else(|| hex_with_suffix(rest)),
        b'a'..=b'f' => hex_with_suffix(rest),
        _ => None,
    }
}

/// The id of the bot in base64, a time of six characters and a signature.
fn discord_bot(rest: &str) -> Option<Range<usize>> {
    let bounded =
        |text: &str, max: usize| text.bytes().take(max + 1).take_while(|it| is_word(*it)).count();
    let id = bounded(rest, 30);
    let behind = rest.get(id..)?.strip_prefix('.')?;
    let time = bounded(behind, 6);
    let signature = KeyAlphabet::Token.run(behind.get(time..)?.strip_prefix('.')?);
    let fits = (18..=30).contains(&id) && time == 6 && 27 <= signature;
    fits.then(|| 0..id + time + signature + 2)
}

/// `123456789:AA…`: the id of the bot is public, what follows is not.
fn telegram_bot(rest: &str) -> Option<Range<usize>> {
    let id = rest.bytes().take(11).take_while(u8::is_ascii_digit).count();
    let token = rest.get(id..)?.strip_prefix(":AA")?;
    let length = KeyAlphabet::Token.run(token);
    ((8..=10).contains(&id) && 30 <= length).then(|| id + 1..id + 3 + length)
}

/// `pat`, 14 characters, a dot, 64 hex digits.
fn airtable(rest: &str) -> Option<Range<usize>> {
    let id = rest.bytes().skip(3).take(15).take_while(u8::is_ascii_alphanumeric).count();
    let secret = KeyAlphabet::Hex.run(rest.get(3 + id..)?.strip_prefix('.')?);
    (id == 14 && 60 <= secret).then(|| 3..3 + id + 1 + secret)
}

/// `re_`, 8 characters, an underscore, 20 or more.
fn resend(rest: &str) -> Option<Range<usize>> {
    let id = rest.bytes().skip(3).take(9).take_while(u8::is_ascii_alphanumeric).count();
    let secret = KeyAlphabet::Plain.run(rest.get(3 + id..)?.strip_prefix('_')?);
    (id == 8 && 20 <= secret).then(|| 3..3 + id + 1 + secret)
}

/// Mailchimp's 32 hex digits before `-us1`, New Relic's 36 or 40 before `NRAL`.
fn hex_with_suffix(rest: &str) -> Option<Range<usize>> {
    let is_hex = |it: &u8| it.is_ascii_hexdigit();
    let length = rest.bytes().take(HEX_RUN_MAX + 1).take_while(is_hex).count();
    let behind = &rest[length..];
    let fits = match length {
        32 => {
            let center = behind.strip_prefix("-us").and_then(|it| it.bytes().next());
            center.is_some_and(|it| it.is_ascii_digit())
        }
        36 | 40 => behind.starts_with("NRAL"),
        _ => false,
    };
    fits.then_some(0..length)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Whether more text could make a key of the end of this word, or of what begins in it.
pub(super) fn may_become_key(word: &str) -> bool {
    let bytes = word.as_bytes();
    let begins = |at: usize| at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    let fits = |at: usize| {
        let Some(rest) = word.get(at..) else { return false };
        let may_be = |prefix: &str| prefix.starts_with(rest) || rest.starts_with(prefix);
        may_be(JWT_BEGIN) || shapes_of(bytes[at]).iter().any(|it| may_be(it.prefix))
    };
    let tail = bytes.iter().rev().take_while(|it| is_word(**it) || b".+/=~".contains(it)).count();
    let has_digit = bytes[bytes.len() - tail..].iter().any(u8::is_ascii_digit);
    TAIL_BYTES_MIN <= tail && has_digit || (0..bytes.len()).any(|at| begins(at) && fits(at))
}

/// How far a key that reaches to the end of what was looked at may go on.
pub(super) fn run(text: &str) -> usize {
    KeyAlphabet::Dotted.run(text)
}
