//! Accepts and authenticates clients. No other place decides which clients are accepted.

use crate::address::EndpointAddress;
use crate::auth::{self, AuthRefusal};
use crate::authenticator::ClientAuthenticator;
use crate::listen_error::{AcceptError, AcceptFailure, BindError};
use crate::socket::FolderRequirement;
use crate::stream::ClientStream;
use crate::tls_certificate::TlsCertificate;
use crate::tls_stream;
use crate::unix_socket::{MissingFolder, UnixSocketListener};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use std::{fmt, io, panic};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// The number of peers that may be authenticating at the same time.
const PENDING_MAX: usize = 64;
/// The pause after the system ran out of a resource, so that the loop does not spin.
pub const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Listens on an address. Dropping it closes the address and removes the socket file. A socket file
/// that another process removed is created again.
#[derive(Debug)]
pub struct ClientListener {
    kind: ListenerKind,
    address: EndpointAddress,
}

#[derive(Debug)]
enum ListenerKind {
    Unix(UnixSocketListener),
    Tcp {
        listener: TcpListener,
        /// `None`: every client that reaches the address is accepted.
        credentials: Option<RequiredCredentials>,
        unauthenticated: UnauthenticatedPeers,
    },
    Stdio {
        is_taken: bool,
    },
}

/// The credentials that a TCP peer must present.
#[derive(Clone)]
enum RequiredCredentials {
    Token(ClientAuthenticator),
    Tls(TlsAcceptor, ClientAuthenticator),
}

impl fmt::Debug for RequiredCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequiredCredentials::Token(_) => "Token",
            RequiredCredentials::Tls(..) => "Tls",
        })
    }
}

/// Peers that are authenticating. If there are too many, the oldest is disconnected, so that peers
/// that send nothing cannot block others.
#[derive(Debug, Default)]
struct UnauthenticatedPeers {
    admitting: JoinSet<Result<ClientStream, (SocketAddr, AuthRefusal)>>,
    oldest_first: VecDeque<AbortHandle>,
}

impl UnauthenticatedPeers {
    fn add(&mut self, stream: TcpStream, peer: SocketAddr, credentials: RequiredCredentials) {
        self.oldest_first.retain(|it| !it.is_finished());
        if PENDING_MAX <= self.oldest_first.len()
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            oldest.abort();
        }
        let admitted =
            async move { authenticate(stream, credentials).await.map_err(|why| (peer, why)) };
        self.oldest_first.push_back(self.admitting.spawn(admitted));
    }
}

impl ClientListener {
    /// Listens on `address` on the current runtime. TCP peers need the token; for the others the
    /// system identifies the peer.
    pub fn bind(
        address: &EndpointAddress,
        authenticator: Option<&ClientAuthenticator>,
    ) -> Result<ClientListener, BindError> {
        address.require_private()?;
        match address {
            EndpointAddress::Unix(path) => {
                let listener = UnixSocketListener::bind(
                    path,
                    FolderRequirement::Private,
                    MissingFolder::Report,
                )?;
                Ok(ClientListener { kind: ListenerKind::Unix(listener), address: address.clone() })
            }
            EndpointAddress::Tcp(at) => {
                let authenticator = authenticator.ok_or(BindError::NeedsToken { address: *at })?;
                bind_tcp(*at, Some(RequiredCredentials::Token(authenticator.clone())))
            }
            EndpointAddress::Http(_) | EndpointAddress::Https(_) => {
                Err(BindError::Web { address: address.clone() })
            }
            EndpointAddress::Stdio => Ok(ClientListener {
                kind: ListenerKind::Stdio { is_taken: false },
                address: EndpointAddress::Stdio,
            }),
        }
    }

    /// Listens on a unix socket in a folder of our own, which is created again with the socket if
    /// it was removed.
    pub fn bind_own(path: &Path) -> Result<ClientListener, BindError> {
        let listener =
            UnixSocketListener::bind(path, FolderRequirement::Private, MissingFolder::Create)?;
        Ok(ClientListener {
            kind: ListenerKind::Unix(listener),
            address: EndpointAddress::Unix(path.to_owned()),
        })
    }

    /// Takes over a unix socket that already listens and that another process bound, such as a
    /// service manager. Its file belongs to that process.
    pub fn adopt(socket: OwnedFd) -> Result<ClientListener, BindError> {
        let (listener, path) = UnixSocketListener::adopt(socket)?;
        Ok(ClientListener {
            kind: ListenerKind::Unix(listener),
            address: EndpointAddress::Unix(path),
        })
    }

    /// [`ClientListener::bind`] for a program whose clients have no token and choose the path: on
    /// loopback TCP every process of this machine is accepted, and a socket may be in a folder that
    /// others can enter, such as `/tmp`. The socket itself is still private, and its peers still
    /// have our uid.
    pub fn bind_open(address: &EndpointAddress) -> Result<ClientListener, BindError> {
        address.require_private()?;
        match address {
            EndpointAddress::Unix(path) => {
                let listener =
                    UnixSocketListener::bind(path, FolderRequirement::Safe, MissingFolder::Report)?;
                Ok(ClientListener { kind: ListenerKind::Unix(listener), address: address.clone() })
            }
            EndpointAddress::Tcp(at) => bind_tcp(*at, None),
            _ => ClientListener::bind(address, None),
        }
    }

    /// Listens on TCP at any address, unencrypted: the user permitted it with `--insecure`. Without
    /// an authenticator every client that reaches the address is accepted.
    pub fn bind_insecure(
        at: SocketAddr,
        authenticator: Option<&ClientAuthenticator>,
    ) -> Result<ClientListener, BindError> {
        bind_tcp(at, authenticator.cloned().map(RequiredCredentials::Token))
    }

    /// Listens on TCP at any address, with TLS and the token.
    pub fn bind_tls(
        at: SocketAddr,
        certificate: &TlsCertificate,
        authenticator: &ClientAuthenticator,
    ) -> Result<ClientListener, BindError> {
        let tls = certificate.load(&[]).map_err(|source| BindError::Certificate {
            address: EndpointAddress::Tcp(at),
            source: Box::new(source),
        })?;
        bind_tcp(at, Some(RequiredCredentials::Tls(tls, authenticator.clone())))
    }

    /// The address, with the chosen port if port 0 was requested.
    pub fn address(&self) -> &EndpointAddress {
        &self.address
    }

    /// The next authenticated client. After an error call it again; safe to cancel. Stdio has one
    /// client.
    pub async fn accept(&mut self) -> Result<ClientStream, AcceptError> {
        let accepted = match &mut self.kind {
            ListenerKind::Unix(listener) => listener.accept().await,
            ListenerKind::Tcp { listener, credentials, unauthenticated } => {
                accept_tcp(listener, credentials.as_ref(), unauthenticated).await
            }
            ListenerKind::Stdio { is_taken: true } => pending().await,
            ListenerKind::Stdio { is_taken } => {
                *is_taken = true;
                crate::open_stdio().map_err(AcceptFailure::System)
            }
        };
        match accepted {
            Ok(stream) => Ok(stream),
            Err(AcceptFailure::Peer(peer, why)) => {
                Err(AcceptError::Refused { address: self.address.clone(), peer, why })
            }
            Err(AcceptFailure::System(source)) => {
                if is_exhausted(&source) {
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
                Err(AcceptError::Failed { address: self.address.clone(), source })
            }
        }
    }
}

fn bind_tcp(
    at: SocketAddr,
    credentials: Option<RequiredCredentials>,
) -> Result<ClientListener, BindError> {
    let listen = || {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = EndpointAddress::Tcp(listener.local_addr()?);
        let kind = ListenerKind::Tcp {
            listener,
            credentials,
            unauthenticated: UnauthenticatedPeers::default(),
        };
        Ok(ClientListener { kind, address })
    };
    listen().map_err(|source| BindError::Tcp { address: EndpointAddress::Tcp(at), source })
}

/// Accepts connections and authenticates peers at the same time, so that a silent peer blocks no
/// other.
async fn accept_tcp(
    listener: &TcpListener,
    credentials: Option<&RequiredCredentials>,
    unauthenticated: &mut UnauthenticatedPeers,
) -> Result<ClientStream, AcceptFailure> {
    loop {
        tokio::select! {
            Some(admitted) = unauthenticated.admitting.join_next() => match admitted {
                Ok(admitted) => {
                    return admitted.map_err(|(peer, why)| AcceptFailure::Peer(Some(peer), why));
                }
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            },
            accepted = listener.accept() => {
                let (stream, peer) = accepted.map_err(AcceptFailure::System)?;
                // Frames are written completely, so waiting for more data gains nothing.
                let _ = stream.set_nodelay(true);
                let Some(credentials) = credentials else { return Ok(stream.into()) };
                unauthenticated.add(stream, peer, credentials.clone());
            }
        }
    }
}

async fn authenticate(
    stream: TcpStream,
    credentials: RequiredCredentials,
) -> Result<ClientStream, AuthRefusal> {
    match credentials {
        RequiredCredentials::Token(authenticator) => {
            let (stream, early_bytes) = auth::authenticate_peer(stream, &authenticator).await?;
            Ok(ClientStream { early_bytes, ..stream.into() })
        }
        RequiredCredentials::Tls(tls, authenticator) => {
            tls_stream::authenticate_tls_peer(stream, tls, &authenticator).await
        }
    }
}

pub fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::{BlockingSocket, dial_daemon_blocking};
    use crate::stream::StreamCarrier;
    use crate::token::BearerToken;

    #[tokio::test]
    async fn tcp_disables_nagle_on_both_sides() {
        let dir = tempfile::tempdir().unwrap();
        let token = BearerToken::create_or_read(&dir.path().join("token")).unwrap();
        let address = "tcp://127.0.0.1:0".parse().unwrap();
        let mut listener =
            ClientListener::bind(&address, Some(&ClientAuthenticator::from(&token))).unwrap();
        let at = listener.address().clone();
        let there = tokio::task::spawn_blocking(move || dial_daemon_blocking(&at, Some(&token)));
        let StreamCarrier::Tcp(here) = listener.accept().await.unwrap().carrier else {
            panic!("no TCP");
        };
        let Ok(BlockingSocket::Tcp(there)) = there.await.unwrap() else { panic!("no TCP") };
        assert!(here.nodelay().unwrap() && there.nodelay().unwrap());
        let mut open = ClientListener::bind_open(&address).unwrap();
        let EndpointAddress::Tcp(at) = *open.address() else { panic!("no TCP") };
        let _there = TcpStream::connect(at).await.unwrap();
        let StreamCarrier::Tcp(here) = open.accept().await.unwrap().carrier else {
            panic!("no TCP")
        };
        assert!(here.nodelay().unwrap(), "also without a token");
    }

    #[test]
    fn only_exhausted_resources_cause_a_pause() {
        assert!(is_exhausted(&Errno::MFILE.into()));
        assert!(!is_exhausted(&Errno::CONNABORTED.into()));
        assert!(!is_exhausted(&io::ErrorKind::NotFound.into()));
    }
}
