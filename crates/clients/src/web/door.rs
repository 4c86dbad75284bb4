//! An address that is open to HTTP, in the clear on this machine or with TLS.

use crate::address::Address;
use crate::listen::BindError;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

/// Where the certificate chain and its key are, as PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// An open address. Bound before anything else starts, so that a failure is told at once.
#[derive(Debug)]
pub struct Door {
    pub(super) listener: TcpListener,
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
                Ok(Door { listener, address: Address::Http(at) })
            }
            Address::Https(_) if certificate.is_none() => {
                Err(BindError::NeedsCertificate { address: address.clone() })
            }
            _ => Err(BindError::Web { address: address.clone() }),
        }
    }

    /// Where it listens: with the port that was chosen, if it was asked for port 0.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

fn listen(at: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}
