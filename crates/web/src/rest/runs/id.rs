//! The id of a run, which contains the id of its session.

use std::fmt;

/// `r-<12 characters of the session id>-<6 random characters>`. For a tenant, `TENANT.` precedes the session
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(String);

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const SESSION_CHARS: usize = 12;
const RANDOM_CHARS: usize = 6;
const TENANT_CHARS_MAX: usize = 32;

impl RunId {
    /// Creates a new id in this session.
    pub(crate) fn new(session: &str) -> RunId {
        let random = random_chars::<RANDOM_CHARS>();
        let (tenant, plain) = session.split_once('.').map_or(("", session), |it| it);
        let dot = if tenant.is_empty() { "" } else { "." };
        let plain = plain.strip_prefix("s-").unwrap_or(plain);
        RunId(format!("r-{tenant}{dot}{plain}-{random}"))
    }

    /// Parses an id; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<RunId> {
        let (session, random) = text.strip_prefix("r-")?.rsplit_once('-')?;
        let is_id_char = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        let fits = |it: &str, chars: usize| it.len() == chars && it.bytes().all(is_id_char);
        let is_tenant = |it: &str| {
            (1..=TENANT_CHARS_MAX).contains(&it.len())
                && it.bytes().all(|it| is_id_char(it) || it == b'-')
        };
        let session = match session.split_once('.') {
            Some((tenant, session)) => is_tenant(tenant).then_some(session)?,
            None => session,
        };
        let is_valid = fits(session, SESSION_CHARS) && fits(random, RANDOM_CHARS);
        is_valid.then(|| RunId(text.to_owned()))
    }

    /// The id of its session.
    pub(crate) fn session(&self) -> String {
        let name = &self.0[2..self.0.len() - RANDOM_CHARS - 1];
        match name.split_once('.') {
            Some((tenant, session)) => format!("{tenant}.s-{session}"),
            None => format!("s-{name}"),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A new session id without a tenant, in the form of the hub.
pub(crate) fn new_session_name() -> String {
    format!("s-{}", random_chars::<SESSION_CHARS>())
}

/// A random name for a file.
pub(crate) fn random_name() -> String {
    random_chars::<8>()
}

fn random_chars<const N: usize>() -> String {
    let mut bytes = [0; N];
    // Creating the access token has already required random bytes.
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    bytes.iter().map(|it| char::from(ALPHABET[usize::from(*it) % ALPHABET.len()])).collect()
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_contains_its_session_and_is_unique() {
        for session in ["s-abcdefghijkl", "acme.s-abcdefghijkl", "a-b-2.s-abcdefghijkl"] {
            let (one, other) = (RunId::new(session), RunId::new(session));
            assert_ne!(one, other);
            assert_eq!(one.session(), session);
            assert_eq!(RunId::parse(one.as_str()), Some(one));
        }
    }

    #[test]
    fn invalid_run_ids_are_rejected() {
        for text in [
            "",
            "r-",
            "r-abcdefghijkl",
            "r-abcdefghijkl-ABCDEF",
            "r-abcdefghijkl-abcdefg",
            "s-abcdefghijkl-abcdef",
            "r-../../../etc-abcdef",
            "r-.abcdefghijkl-abcdef",
            "r-A.abcdefghijkl-abcdef",
            "r-a.b.abcdefghijkl-abcdef",
        ] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }
}
