//! Authenticates clients over TCP and HTTP: the operator by the daemon's own token, and tenants by
//! tokens that another component looks up. A tenant cannot choose its name: the daemon sends it to
//! the hub before the client's first frame.

use crate::token::BearerToken;
use crate::token_file::TokenFile;
use bytes::{Bytes, BytesMut};
use std::{fmt, sync::Arc};

/// Returns the tenant of a token; `None` for an unknown token.
pub type TenantLookup = Arc<dyn Fn(&str) -> Option<TenantIdentity> + Send + Sync>;

/// A tenant that was authenticated by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantIdentity {
    pub name: Arc<str>,
    /// The frame that binds the connection to the tenant in the hub, before the client's frames.
    pub binding: Bytes,
}

impl TenantIdentity {
    /// The binding, followed by what the client has already sent.
    pub(crate) fn prepend_binding(&self, early_bytes: &[u8]) -> Bytes {
        let mut line = BytesMut::with_capacity(self.binding.len() + 1 + early_bytes.len());
        line.extend_from_slice(&self.binding);
        line.extend_from_slice(b"\n");
        line.extend_from_slice(early_bytes);
        line.freeze()
    }
}

/// The identity of an authenticated peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerIdentity {
    /// The user who can read the token file.
    Operator,
    Tenant(TenantIdentity),
}

/// Identifies clients by their tokens.
#[derive(Clone)]
pub struct ClientAuthenticator {
    own: OwnToken,
    tenants: Option<TenantLookup>,
}

/// The source of the daemon's own token.
#[derive(Clone)]
enum OwnToken {
    Fixed(BearerToken),
    File(Arc<TokenFile>),
}

impl ClientAuthenticator {
    /// Accepts the daemon's own token, which may be replaced at any time, and those of tenants.
    pub fn new(own: TokenFile, tenants: Option<TenantLookup>) -> ClientAuthenticator {
        ClientAuthenticator { own: OwnToken::File(Arc::new(own)), tenants }
    }

    /// The current value of the daemon's own token.
    pub fn own_token(&self) -> BearerToken {
        match &self.own {
            OwnToken::Fixed(token) => token.clone(),
            OwnToken::File(file) => file.token(),
        }
    }

    /// The identity of the peer that presents this token.
    pub fn identify(&self, shown: &str) -> Option<PeerIdentity> {
        if self.own_token().matches(shown) {
            return Some(PeerIdentity::Operator);
        }
        let find_tenant = self.tenants.as_ref()?;
        find_tenant(shown).map(PeerIdentity::Tenant)
    }
}

impl From<&BearerToken> for ClientAuthenticator {
    fn from(own: &BearerToken) -> ClientAuthenticator {
        ClientAuthenticator { own: OwnToken::Fixed(own.clone()), tenants: None }
    }
}

impl fmt::Debug for ClientAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientAuthenticator(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_is_identified_only_by_its_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = TokenFile::open(&path).unwrap();
        let own = BearerToken::read(&path).unwrap();
        let tenant = TenantIdentity { name: "acme".into(), binding: Bytes::from_static(b"{}") };
        let known = tenant.clone();
        let find_tenant: TenantLookup =
            Arc::new(move |shown| (shown == "letmein").then(|| known.clone()));
        let keys = ClientAuthenticator::new(file, Some(find_tenant));
        assert_eq!(keys.identify(own.reveal()), Some(PeerIdentity::Operator));
        assert_eq!(keys.identify("letmein"), Some(PeerIdentity::Tenant(tenant.clone())));
        assert_eq!(keys.identify("letmein "), None);
        let next = BearerToken::replace(&path).unwrap();
        assert_eq!(
            [keys.identify(own.reveal()), keys.identify(next.reveal())],
            [None, Some(PeerIdentity::Operator)]
        );
        assert_eq!(ClientAuthenticator::from(&own).identify("letmein"), None);
        assert_eq!(tenant.prepend_binding(b"hello"), "{}\nhello");
        assert_eq!(format!("{keys:?}"), "ClientAuthenticator(***)");
    }
}
