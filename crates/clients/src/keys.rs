//! Who may come in over TCP and HTTP: whoever shows the daemon's own token, and guests, for whom somebody
//! else vouches. A guest speaks in a name that it cannot choose: whoever lets it in says it first.

use crate::token::Token;
use crate::token_file::TokenFile;
use bytes::{Bytes, BytesMut};
use std::{fmt, sync::Arc};

/// Says whose a token is, if it is anybody's.
pub type Vouch = Arc<dyn Fn(&str) -> Option<Guest> + Send + Sync>;

/// Somebody who is let in in a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub name: Arc<str>,
    /// The frame that tells the hub so, before the guest says anything.
    pub binding: Bytes,
}

impl Guest {
    /// What is said first, and then what the guest has said already.
    pub(crate) fn before(&self, early: &[u8]) -> Bytes {
        let mut line = BytesMut::with_capacity(self.binding.len() + 1 + early.len());
        line.extend_from_slice(&self.binding);
        line.extend_from_slice(b"\n");
        line.extend_from_slice(early);
        line.freeze()
    }
}

/// Who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever can read the token file.
    Operator,
    Guest(Guest),
}

/// Every token that lets somebody in.
#[derive(Clone)]
pub struct Keys {
    own: OwnToken,
    guests: Option<Vouch>,
}

/// Where the daemon's own token comes from.
#[derive(Clone)]
enum OwnToken {
    Fixed(Token),
    File(Arc<TokenFile>),
}

impl Keys {
    /// The daemon's own token, which may be replaced at any time, and those of guests.
    pub fn new(own: TokenFile, guests: Option<Vouch>) -> Keys {
        Keys { own: OwnToken::File(Arc::new(own)), guests }
    }

    /// The daemon's own token as it is now.
    pub(crate) fn own(&self) -> Token {
        match &self.own {
            OwnToken::Fixed(token) => token.clone(),
            OwnToken::File(file) => file.token(),
        }
    }

    pub(crate) fn who(&self, shown: &str) -> Option<Who> {
        if self.own().matches(shown) {
            return Some(Who::Operator);
        }
        let vouch = self.guests.as_ref()?;
        vouch(shown).map(Who::Guest)
    }
}

impl From<&Token> for Keys {
    fn from(own: &Token) -> Keys {
        Keys { own: OwnToken::Fixed(own.clone()), guests: None }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_known_by_its_token_and_only_by_that() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = TokenFile::open(&path).unwrap();
        let own = Token::read(&path).unwrap();
        let guest = Guest { name: "acme".into(), binding: Bytes::from_static(b"{}") };
        let vouched = guest.clone();
        let vouch: Vouch = Arc::new(move |shown| (shown == "letmein").then(|| vouched.clone()));
        let keys = Keys::new(file, Some(vouch));
        assert_eq!(keys.who(own.reveal()), Some(Who::Operator));
        assert_eq!(keys.who("letmein"), Some(Who::Guest(guest.clone())));
        assert_eq!(keys.who("letmein "), None);
        let next = Token::replace(&path).unwrap();
        assert_eq!([keys.who(own.reveal()), keys.who(next.reveal())], [None, Some(Who::Operator)]);
        assert_eq!(Keys::from(&own).who("letmein"), None);
        assert_eq!(guest.before(b"hello"), "{}\nhello");
        assert_eq!(format!("{keys:?}"), "Keys(***)");
    }
}
