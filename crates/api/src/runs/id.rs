//! The name of a run: it tells the session in whose log the run stands.

use std::fmt;

/// `r-<the session's 12 characters>-<6 of its own>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(String);

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const SESSION_CHARS: usize = 12;
const OWN_CHARS: usize = 6;

impl RunId {
    /// A new one, which nobody has had before.
    pub(crate) fn new(session: &str) -> RunId {
        let mut bytes = [0; OWN_CHARS];
        // The token could not have been made without it.
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        let own: String = bytes
            .iter()
            .map(|it| char::from(ALPHABET[usize::from(*it) % ALPHABET.len()]))
            .collect();
        let session = session.strip_prefix("s-").unwrap_or(session);
        RunId(format!("r-{session}-{own}"))
    }

    /// `None` if no run can be called that.
    pub(crate) fn parse(text: &str) -> Option<RunId> {
        let (session, own) = text.strip_prefix("r-")?.split_once('-')?;
        let fits = |it: &str, chars: usize| {
            it.len() == chars && it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        };
        let fits = fits(session, SESSION_CHARS) && fits(own, OWN_CHARS);
        fits.then(|| RunId(text.to_owned()))
    }

    /// The session it is of.
    pub(crate) fn session(&self) -> String {
        format!("s-{}", &self.0[2..2 + SESSION_CHARS])
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
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
    fn a_run_names_its_session_and_no_other_run() {
        let (one, other) = (RunId::new("s-abcdefghijkl"), RunId::new("s-abcdefghijkl"));
        assert_ne!(one, other);
        assert_eq!(one.session(), "s-abcdefghijkl");
        assert_eq!(RunId::parse(one.as_str()), Some(one));
    }

    #[test]
    fn nothing_else_is_a_run() {
        for text in [
            "",
            "r-",
            "r-abcdefghijkl",
            "r-abcdefghijkl-ABCDEF",
            "r-abcdefghijkl-abcdefg",
            "s-abcdefghijkl-abcdef",
            "r-../../../etc-abcdef",
        ] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }
}
