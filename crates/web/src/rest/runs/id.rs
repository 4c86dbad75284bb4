//! The name of a run: it tells the session in whose log the run stands.

use std::fmt;

/// `r-<the session's 12 characters>-<6 of its own>`; a session of a tenant has `TENANT.` before them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(String);

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const SESSION_CHARS: usize = 12;
const OWN_CHARS: usize = 6;
const TENANT_CHARS_MAX: usize = 32;

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
        let (tenant, plain) = session.split_once('.').map_or(("", session), |it| it);
        let dot = if tenant.is_empty() { "" } else { "." };
        let plain = plain.strip_prefix("s-").unwrap_or(plain);
        RunId(format!("r-{tenant}{dot}{plain}-{own}"))
    }

    /// `None` if no run can be called that.
    pub(crate) fn parse(text: &str) -> Option<RunId> {
        let (session, own) = text.strip_prefix("r-")?.rsplit_once('-')?;
        let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        let fits = |it: &str, chars: usize| it.len() == chars && it.bytes().all(plain);
        let of_tenant = |it: &str| {
            (1..=TENANT_CHARS_MAX).contains(&it.len())
                && it.bytes().all(|it| plain(it) || it == b'-')
        };
        let session = match session.split_once('.') {
            Some((tenant, session)) => of_tenant(tenant).then_some(session)?,
            None => session,
        };
        let fits = fits(session, SESSION_CHARS) && fits(own, OWN_CHARS);
        fits.then(|| RunId(text.to_owned()))
    }

    /// The session it is of.
    pub(crate) fn session(&self) -> String {
        let name = &self.0[2..self.0.len() - OWN_CHARS - 1];
        match name.split_once('.') {
            Some((tenant, session)) => format!("{tenant}.s-{session}"),
            None => format!("s-{name}"),
        }
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
        for session in ["s-abcdefghijkl", "acme.s-abcdefghijkl", "a-b-2.s-abcdefghijkl"] {
            let (one, other) = (RunId::new(session), RunId::new(session));
            assert_ne!(one, other);
            assert_eq!(one.session(), session);
            assert_eq!(RunId::parse(one.as_str()), Some(one));
        }
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
            "r-.abcdefghijkl-abcdef",
            "r-A.abcdefghijkl-abcdef",
            "r-a.b.abcdefghijkl-abcdef",
        ] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }
}
