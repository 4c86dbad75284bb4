//! An address that is open to HTTP, in the clear on this machine or with TLS.

use super::limits::BACKLOG;
use super::tls::Certificate;
use crate::address::Address;
use crate::listen::BindError;
use std::net::{SocketAddr, TcpListener};
use std::{fmt, io};
use tokio_rustls::TlsAcceptor;

/// An open address. Bound before anything else starts, so that a failure is told at once.
pub struct Door {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
    address: Address,
}

impl Door {
    /// Opens an `http://` or `https://` address; the latter needs the certificate.
    pub fn bind(address: &Address, certificate: Option<&Certificate>) -> Result<Door, BindError> {
        address.require_private()?;
        let failed = |source| BindError::Tcp { address: address.clone(), source };
        match address {
            Address::Http(at) => {
                let (listener, at) = listen(*at).map_err(failed)?;
                Ok(Door { listener, tls: None, address: Address::Http(at) })
            }
            Address::Https(at) => {
                let needed = || BindError::NeedsCertificate { address: address.clone() };
                let tls = certificate.ok_or_else(needed)?.load(&[b"h2", b"http/1.1"]);
                let unusable = |source| BindError::Certificate { address: address.clone(), source };
                let tls = Some(tls.map_err(Box::new).map_err(unusable)?);
                let (listener, at) = listen(*at).map_err(failed)?;
                Ok(Door { listener, tls, address: Address::Https(at) })
            }
            _ => Err(BindError::Web { address: address.clone() }),
        }
    }

    /// Where it listens: with the port that was chosen, if it was asked for port 0.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("address", &self.address).finish_non_exhaustive()
    }
}

fn listen(at: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(at)?;
    // Once more, for a longer queue than the standard library asks for.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}
