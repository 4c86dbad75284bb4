//! Listens for HTTP, unencrypted on this machine or with TLS.

use super::limits::BACKLOG;
use jackfield_transport::{BindError, EndpointAddress, TlsCertificate};
use std::net::{SocketAddr, TcpListener};
use std::{fmt, io};
use tokio_rustls::TlsAcceptor;

/// A listening address. It is bound before anything else starts, so that a failure is reported at
/// once.
pub struct WebListener {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
    address: EndpointAddress,
}

impl WebListener {
    /// Listens on an `http://` or `https://` address; the latter needs the certificate.
    pub fn bind(
        address: &EndpointAddress,
        certificate: Option<&TlsCertificate>,
    ) -> Result<WebListener, BindError> {
        address.require_private()?;
        WebListener::bind_insecure(address, certificate)
    }

    /// [`WebListener::bind`] that also accepts `http://` addresses which other machines can reach:
    /// the user permitted it with `--insecure`.
    pub fn bind_insecure(
        address: &EndpointAddress,
        certificate: Option<&TlsCertificate>,
    ) -> Result<WebListener, BindError> {
        let failed = |source| BindError::Tcp { address: address.clone(), source };
        match address {
            EndpointAddress::Http(at) => {
                let (listener, at) = bind_listener(*at).map_err(failed)?;
                Ok(WebListener { listener, tls: None, address: EndpointAddress::Http(at) })
            }
            EndpointAddress::Https(at) => {
                let needed = || BindError::NeedsCertificate { address: address.clone() };
                let tls = certificate.ok_or_else(needed)?.load(&[b"h2", b"http/1.1"]);
                let unusable = |source| BindError::Certificate { address: address.clone(), source };
                let tls = Some(tls.map_err(Box::new).map_err(unusable)?);
                let (listener, at) = bind_listener(*at).map_err(failed)?;
                Ok(WebListener { listener, tls, address: EndpointAddress::Https(at) })
            }
            _ => Err(BindError::Web { address: address.clone() }),
        }
    }

    /// The address, with the chosen port if port 0 was requested.
    pub fn address(&self) -> &EndpointAddress {
        &self.address
    }
}

impl fmt::Debug for WebListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebListener").field("address", &self.address).finish_non_exhaustive()
    }
}

fn bind_listener(at: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(at)?;
    // A second call, for a longer queue than the standard library's.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}
