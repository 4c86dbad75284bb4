//! Secrets inside one word: keys, passwords in addresses, assignments, elements of XML.

use super::{
    keys::KeySearch,
    lead::PrecedingWord,
    names::{self, NameKind},
    scanner::{ScanMode, SecretScanner, is_quote},
    value::{accepts_quoted, is_placeholder, is_scheme, secret_at},
};
use std::ops::Range;

/// Of a word before `=` or `:`, so much is looked at for a name.
pub(super) const NAME_SEARCHED_MAX: usize = 80;
/// Of an address, so much is looked at for a password that has a `/` in it.
const PASSWORD_SEARCHED_MAX: usize = 256;
/// Of what stands before `</password>`, so much is looked at.
const ELEMENT_BYTES_MAX: usize = 512;
/// A user without a password in an address is a token if it is so long and has a digit.
const USER_TOKEN_MIN: usize = 20;
/// The key that `PuTTY` wrote follows.
pub(super) const PRIVATE_LINES: &str = "Private-Lines:";
/// What the second field of a line of `.pgpass` is.
const PGPASS_PORTS: [&str; 4] = ["5432", "5433", "6432", "*"];

impl SecretScanner {
    /// The value of a telling name, from `at` on; returns where it ends if there is one.
    pub(super) fn assign(
        &mut self,
        word: &str,
        at: usize,
        kind: NameKind,
        spaced: bool,
        hidden: &mut Vec<Range<usize>>,
    ) -> Option<usize> {
        let bare = word[at..].trim_start_matches(|c| is_quote(c) || c == '\\');
        if kind == NameKind::Header && is_scheme(bare) {
            let all = bare.eq_ignore_ascii_case("digest") || bare.contains("HMAC");
            self.lead = PrecedingWord::Value(if all { NameKind::Cookie } else { NameKind::Header });
            return Some(word.len());
        }
        let secret = secret_at(word, at, kind, spaced)?;
        let end = secret.hidden.end;
        hidden.push(secret.hidden);
        if let Some(quote) = secret.until {
            self.mode = ScanMode::Quoted(quote);
        } else if kind == NameKind::Cookie && end == word.len() {
            self.mode = ScanMode::Line;
        }
        Some(end)
    }

    /// Keys, addresses with passwords and assignments inside a word.
    pub(super) fn search(&mut self, word: &str, from: usize, hidden: &mut Vec<Range<usize>>) {
        let bytes = word.as_bytes();
        let mut keys = KeySearch::default();
        let mut at = from;
        while at < bytes.len() {
            let begins = match at {
                0 => !self.joined,
                _ => !bytes[at - 1].is_ascii_alphanumeric() && word.is_char_boundary(at),
            };
            if begins && let Some(key) = keys.key_at(word, at) {
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
                b'>' => self.open_element(word, at, hidden),
                b'<' => close_element(word, at, hidden),
                b'~' => azure_secret(word, at, hidden),
                _ => at + 1,
            };
        }
        if self.signed && hidden.is_empty() {
            hidden.extend(pgpass(word));
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
        if next == word.len() {
            return next;
        }
        let searched = word.floor_char_boundary(at.saturating_sub(NAME_SEARCHED_MAX));
        let before = &word[searched..at];
        let name = names::name_before(before);
        let kind = match name {
            "name" | "key" => {
                let value = &word[next..];
                let value = value.trim_start_matches(|c| is_quote(c) || c == '\\');
                let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let value = &value[..value.find(|c| !is_name(c)).unwrap_or(value.len())];
                self.context.set_pair(names::kind(value));
                None
            }
            "value" => self.context.pair(),
            // The working directory.
            "PWD" if word[next..].starts_with('/') => None,
            _ if names::is_signature(name) && is_parameter(before, name) => Some(NameKind::Token),
            _ => names::kind(name),
        };
        let spaced = word.as_bytes()[at] == b':';
        kind.and_then(|it| self.assign(word, next, it, spaced, hidden)).unwrap_or(next)
    }

    /// A `>` stands here. If it ends `<password>`, what follows is hidden, up to the next tag.
    fn open_element(&mut self, word: &str, at: usize, hidden: &mut Vec<Range<usize>>) -> usize {
        let next = at + 1;
        let searched = word.floor_char_boundary(at.saturating_sub(NAME_SEARCHED_MAX));
        let before = &word[searched..at];
        let name = names::name_before(before);
        let opened = before[..before.len() - name.len()].ends_with(['<', ':']);
        let Some(kind) = names::kind(name).filter(|_| opened) else { return next };
        let rest = &word[next..];
        let phrase = matches!(kind, NameKind::Password | NameKind::Variable);
        match rest.find('<') {
            Some(length) if rest[length..].starts_with("</") => {
                if accepts_quoted(&rest[..length], kind) {
                    hidden.push(next..next + length);
                }
                next + length
            }
            // A pass phrase goes on; `<password>@host` in a manual does not.
            None if phrase && rest.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                hidden.push(next..word.len());
                self.mode = ScanMode::Quoted('<');
                word.len()
            }
            _ => next,
        }
    }
}

/// A `<` stands here. If it begins `</password>`, what stands before it is hidden: the tag that opened
/// it may have attributes.
fn close_element(word: &str, at: usize, hidden: &mut Vec<Range<usize>>) -> usize {
    let next = at + 1;
    let Some(rest) = word[next..].strip_prefix('/') else { return next };
    let length = rest.bytes().take(NAME_SEARCHED_MAX).position(|it| it == b'>');
    let name = length.and_then(|it| rest.get(..it)).unwrap_or_default();
    let name = name.rsplit(':').next().unwrap_or_default();
    let Some(kind) = names::kind(name) else { return next };
    let done = hidden.last().map_or(0, |it| it.end);
    let searched = word.floor_char_boundary(at.saturating_sub(ELEMENT_BYTES_MAX)).max(done);
    let start = word[searched..at].rfind('>').map(|it| searched + it + 1);
    if let Some(start) = start.filter(|it| accepts_quoted(&word[*it..at], kind)) {
        hidden.push(start..at);
    }
    next
}

/// A `~` stands here. A client secret of Azure has it behind three characters, a digit and a `Q`.
fn azure_secret(word: &str, at: usize, hidden: &mut Vec<Range<usize>>) -> usize {
    let is_body = |it: &u8| it.is_ascii_alphanumeric() || b"_~.-".contains(it);
    let bytes = word.as_bytes();
    let fits = 5 <= at
        && bytes[at - 1] == b'Q'
        && bytes[at - 2].is_ascii_digit()
        && bytes[at - 5..at - 2].iter().all(is_body)
        && hidden.last().is_none_or(|it| it.end <= at - 5);
    let length = bytes[at..].iter().take_while(|it| is_body(it)).count();
    if fits && 30 <= length {
        hidden.push(at - 5..at + length);
    }
    at + if fits { length } else { 1 }
}

/// Behind the sign of an assignment at the beginning of `text`: `=`, `:` or `:=`.
pub(super) fn after_sign(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(":=").or_else(|| text.strip_prefix(['=', ':']))?;
    (!rest.starts_with(['=', ':', '>', '~'])).then_some(text.len() - rest.len())
}

/// Whether the name that `before` ends with is that of a parameter in a URL.
fn is_parameter(before: &str, name: &str) -> bool {
    before[..before.len() - name.len()].ends_with(['?', '&', ';'])
}

/// The password in the address whose host part begins at `from`, or the token in place of a user.
fn password_in(word: &str, from: usize) -> Option<Range<usize>> {
    let rest = &word[from..];
    let is_end = |c: char| is_quote(c) || matches!(c, '?' | '#' | '<' | '>' | '\\' | ')');
    let host = &rest[..rest.find(|c| is_end(c) || c == '/').unwrap_or(rest.len())];
    let user = match host.rfind('@') {
        Some(at) => &host[..at],
        None => user_with_slash(rest, host, is_end)?,
    };
    // `docker://image:tag@sha256:…` names an image.
    if rest[user.len()..].starts_with("@sha256:") {
        return None;
    }
    let password = user.find(':').map_or(0, |it| it + 1)..user.len();
    if password.start == 0 && !is_token(user) {
        return None;
    }
    let value = &user[password.clone()];
    // `$PASSWORD` and `{password}` stand for one; `$4me` does not.
    let is_variable = |it: &str| !it.contains(|c: char| c.is_ascii_lowercase());
    let is_named = value.strip_prefix('$').is_some_and(is_variable)
        || value.starts_with('{') && value.ends_with('}')
        || value.bytes().all(|it| it == b'*');
    let fits = !value.is_empty() && !is_named;
    fits.then(|| from + password.start..from + password.end)
}

/// Whether what stands in place of a user is none.
fn is_token(user: &str) -> bool {
    USER_TOKEN_MIN <= user.len()
        && user.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
        && user.contains(|c: char| c.is_ascii_digit())
}

/// A user and a password that has a `/` in it. `host:8080/@scope` is none: it has a port.
fn user_with_slash<'a>(rest: &'a str, host: &str, is_end: fn(char) -> bool) -> Option<&'a str> {
    let (_, port) = host.split_once(':')?;
    if port.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let searched = &rest[..rest.floor_char_boundary(PASSWORD_SEARCHED_MAX)];
    let searched = &searched[..searched.find(is_end).unwrap_or(searched.len())];
    searched.rfind('@').map(|it| &rest[..it])
}

/// The last field of `host:port:database:user:password`.
fn pgpass(word: &str) -> Option<Range<usize>> {
    let fields: Vec<&str> = word.splitn(5, ':').collect();
    let [host, port, _, user, password] = fields[..] else { return None };
    let fits = PGPASS_PORTS.contains(&port)
        && !host.contains(['/', '"', '='])
        && ![user, password].contains(&"")
        && !is_placeholder(password);
    fits.then(|| word.len() - password.len()..word.len())
}
