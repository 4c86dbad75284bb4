//! Where clients come in: stdio, a socket, or TCP, with or without TLS.

use crate::serve::ServeError;
use jackfield_protocol::chain;
use jackfield_transport::TlsCertificate;
use jackfield_transport::{
    Authenticator, BearerToken, ClientListener, ClientStream, EndpointAddress,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// How clients reach the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// One client, on stdin and stdout.
    Stdio,
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A client that came in.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) stream: ClientStream,
    /// Nobody has asked it who it is: it might be a browser that was lured here.
    pub(crate) unproved: bool,
}

#[derive(Debug)]
pub(crate) struct Door {
    listener: ClientListener,
    unproved: bool,
}

impl Door {
    /// On loopback TCP the token is asked for if there is one; elsewhere it is needed, and TLS too.
    pub(crate) fn open(
        transport: &Transport,
        token: Option<&BearerToken>,
        certificate: Option<&TlsCertificate>,
    ) -> Result<Door, ServeError> {
        let address = match transport {
            Transport::Stdio => EndpointAddress::Stdio,
            Transport::Unix(path) => EndpointAddress::Unix(path.clone()),
            Transport::Tcp(at) => EndpointAddress::Tcp(*at),
        };
        let bound = match (transport, certificate, token) {
            (Transport::Tcp(at), Some(certificate), Some(token)) => {
                ClientListener::bind_tls(*at, certificate, &Authenticator::from(token))
            }
            (Transport::Tcp(at), Some(_), None) => {
                return Err(ServeError::NeedsToken { address: *at });
            }
            (Transport::Tcp(at), None, _) if !at.ip().to_canonical().is_loopback() => {
                return Err(ServeError::NotLoopback { address: *at });
            }
            (Transport::Tcp(_), None, Some(token)) => {
                ClientListener::bind(&address, Some(&Authenticator::from(token)))
            }
            _ => ClientListener::bind_open(&address),
        };
        let listener = bound.map_err(|source| ServeError::Listen { address, source })?;
        let unproved = matches!(transport, Transport::Tcp(_)) && token.is_none();
        Ok(Door { listener, unproved })
    }

    pub(crate) fn address(&self) -> &EndpointAddress {
        self.listener.address()
    }

    /// Lets clients in until the loop is gone. A client that is refused is its own concern.
    pub(crate) async fn admit(mut self, arrivals: mpsc::Sender<Arrival>) {
        loop {
            match self.listener.accept().await {
                Ok(stream) => {
                    let arrival = Arrival { stream, unproved: self.unproved };
                    if arrivals.send(arrival).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::warn!(why = chain(&error), "no client was let in"),
            }
        }
    }
}
