//! Accepts clients on stdio, a Unix socket or TCP, with or without TLS.

use crate::serve_error::ServeError;
use jackfield_protocol::chain;
use jackfield_transport::{
    BearerToken, ClientAuthenticator, ClientListener, ClientStream, EndpointAddress,
    TlsCertificate, UNENCRYPTED_WARNING,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// How clients reach the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusTransport {
    /// One client, on stdin and stdout.
    Stdio,
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A client that connected.
#[derive(Debug)]
pub(crate) struct AcceptedClient {
    pub(crate) stream: ClientStream,
    /// The client showed no token: it may be a browser that a web page sent here.
    pub(crate) is_unauthenticated: bool,
}

/// The listening socket, or stdio.
#[derive(Debug)]
pub(crate) struct BusListener {
    listener: ClientListener,
    is_unauthenticated: bool,
}

impl BusListener {
    /// On loopback TCP the token is checked if there is one; other addresses require a token and
    /// TLS, unless the user permitted unencrypted connections.
    pub(crate) fn open(
        transport: &BusTransport,
        token: Option<&BearerToken>,
        certificate: Option<&TlsCertificate>,
        insecure: bool,
    ) -> Result<BusListener, ServeError> {
        let address = match transport {
            BusTransport::Stdio => EndpointAddress::Stdio,
            BusTransport::Unix(path) => EndpointAddress::Unix(path.clone()),
            BusTransport::Tcp(at) => EndpointAddress::Tcp(*at),
        };
        let bound = match (transport, certificate, token) {
            (BusTransport::Tcp(at), Some(certificate), Some(token)) => {
                ClientListener::bind_tls(*at, certificate, &ClientAuthenticator::from(token))
            }
            (BusTransport::Tcp(at), Some(_), None) => {
                return Err(ServeError::NeedsToken { address: *at });
            }
            (BusTransport::Tcp(at), None, token) if insecure => {
                let authenticator = token.map(ClientAuthenticator::from);
                ClientListener::bind_insecure(*at, authenticator.as_ref())
            }
            (BusTransport::Tcp(_), None, Some(token)) => {
                ClientListener::bind(&address, Some(&ClientAuthenticator::from(token)))
            }
            _ => ClientListener::bind_open(&address),
        };
        let listener = bound.map_err(|source| ServeError::Listen { address, source })?;
        if certificate.is_none() && listener.address().require_private().is_err() {
            tracing::warn!(address = %listener.address(), "{UNENCRYPTED_WARNING}");
        }
        let is_unauthenticated = matches!(transport, BusTransport::Tcp(_)) && token.is_none();
        Ok(BusListener { listener, is_unauthenticated })
    }

    pub(crate) fn address(&self) -> &EndpointAddress {
        self.listener.address()
    }

    /// Accepts clients until the loop has ended.
    pub(crate) async fn accept_clients(mut self, clients: mpsc::Sender<AcceptedClient>) {
        loop {
            match self.listener.accept().await {
                Ok(stream) => {
                    let client =
                        AcceptedClient { stream, is_unauthenticated: self.is_unauthenticated };
                    if clients.send(client).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::warn!(error = chain(&error), "failed to accept a client"),
            }
        }
    }
}
