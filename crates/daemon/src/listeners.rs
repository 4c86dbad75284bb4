//! The addresses on which a daemon listens.

use crate::boot_error::BootError;
use jackfield_protocol::chain;
use jackfield_transport::{ClientAuthenticator, ClientListener, ClientStream, EndpointAddress};
use std::{os::fd::OwnedFd, path::Path};
use tokio::sync::mpsc;

/// Opens all addresses and accepts clients on them. `own` is the socket in the runtime directory; a
/// socket that a service manager passed replaces the address with the same path.
pub(crate) fn open_listeners(
    addresses: Vec<EndpointAddress>,
    own: &Path,
    passed: Option<OwnedFd>,
    insecure: bool,
    authenticator: &ClientAuthenticator,
    accepted: &mpsc::Sender<ClientStream>,
) -> Result<Vec<EndpointAddress>, BootError> {
    let passed = passed.map(ClientListener::adopt).transpose().map_err(BootError::PassedSocket)?;
    let mut listeners = Vec::new();
    for address in addresses {
        if passed.as_ref().is_some_and(|it| *it.address() == address) {
            continue;
        }
        let listener = match &address {
            EndpointAddress::Unix(path) if path == own => ClientListener::bind_own(path),
            EndpointAddress::Tcp(at) if insecure => {
                ClientListener::bind_insecure(*at, Some(authenticator))
            }
            _ => ClientListener::bind(&address, Some(authenticator)),
        };
        listeners.push(listener.map_err(|source| BootError::Listen { address, source })?);
    }
    listeners.extend(passed);
    let bound = listeners.iter().map(|it| it.address().clone()).collect();
    for listener in listeners {
        tokio::spawn(accept_clients(listener, accepted.clone()));
    }
    Ok(bound)
}

/// Accepts clients until the loop has ended.
pub(crate) async fn accept_clients(
    mut listener: ClientListener,
    accepted: mpsc::Sender<ClientStream>,
) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                if accepted.send(stream).await.is_err() {
                    return;
                }
            }
            Err(error) => tracing::warn!(error = chain(&error), "failed to accept a client"),
        }
    }
}
