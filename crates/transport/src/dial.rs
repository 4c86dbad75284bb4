//! Connects our own commands to a daemon.

use crate::address::{AddressError, EndpointAddress};
use crate::auth::{self, AUTH_TIMEOUT, LINE_BYTES_MAX};
use crate::authenticator::TenantIdentity;
use crate::proof::{self, ChallengeNonce};
use crate::socket;
use crate::socket_path::{PathTooLong, check_length};
use crate::socket_system;
use crate::stream::ClientStream;
use crate::token::BearerToken;
use bytes::BytesMut;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdTcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// A daemon that does not accept a connection within this time hangs.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts to reach a starting daemon, which takes some milliseconds and
/// rarely seconds: the first one at the beginning, the second one after [`EARLY_PHASE`].
const EARLY_RETRY_DELAY: Duration = Duration::from_millis(1);
const RETRY_DELAY: Duration = Duration::from_millis(10);
const EARLY_PHASE: Duration = Duration::from_millis(100);

/// Why a daemon could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    PathTooLong(#[from] PathTooLong),
    #[error("our own commands cannot use `{address}`: name a `unix://` or `tcp://` address")]
    Unsupported { address: EndpointAddress },
    /// No process listens there: the daemon is not running, or not yet.
    #[error("no daemon answers on `{address}`")]
    Absent {
        address: EndpointAddress,
        #[source]
        source: io::Error,
    },
    #[error("cannot reach the daemon on `{address}`")]
    Unreachable {
        address: EndpointAddress,
        #[source]
        source: io::Error,
    },
    /// Our messages may contain secrets and are only for our own daemon.
    #[error("the process that listens on `{address}` has uid {uid}, not ours: use another socket")]
    NotOurs { address: EndpointAddress, uid: u32 },
    /// The token was not sent.
    #[error(
        "the program at `{address}` is not the daemon: it did not prove that it knows the daemon's \
         token, so nothing was sent to it; use the address of the daemon, and restart a daemon that \
         is older than this command"
    )]
    NotTheDaemon { address: EndpointAddress },
    #[error("`{address}` needs the daemon's token")]
    NeedsToken { address: EndpointAddress },
    #[error("no daemon answered on `{address}` within {} ms", within.as_millis())]
    Late {
        address: EndpointAddress,
        within: Duration,
        #[source]
        source: Box<DialError>,
    },
    #[error("the daemon on `{address}` did not start: {why}")]
    NotStarted { address: EndpointAddress, why: String },
}

impl DialError {
    /// Whether starting a daemon would help.
    pub fn is_absent(&self) -> bool {
        matches!(self, DialError::Absent { .. })
    }

    /// Whether the queue of the socket had no room within [`CONNECT_TIMEOUT`].
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        matches!(self, DialError::Unreachable { source, .. } if full.contains(&source.kind()))
    }
}

/// A connection for blocking code.
#[derive(Debug)]
pub enum BlockingSocket {
    Unix(StdUnixStream),
    Tcp(StdTcpStream),
}

/// Connects to the hub on behalf of the operator or of a tenant.
#[derive(Debug, Clone)]
pub struct HubDialer {
    hub: EndpointAddress,
    tenant: Option<TenantIdentity>,
}

impl HubDialer {
    pub fn new(hub: EndpointAddress, tenant: Option<TenantIdentity>) -> HubDialer {
        HubDialer { hub, tenant }
    }

    /// The tenant on whose behalf it connects.
    pub fn tenant_name(&self) -> Option<&str> {
        self.tenant.as_ref().map(|it| &*it.name)
    }

    /// A new connection on which at most the tenant's binding was sent.
    pub async fn dial(&self) -> Result<ClientStream, DialError> {
        let stream = dial_daemon(&self.hub, None).await?;
        if let Some(tenant) = &self.tenant {
            stream
                .write_first_line(&tenant.prepend_binding(b""))
                .map_err(|source| dial_error(&self.hub, source))?;
        }
        Ok(stream)
    }
}

impl From<EndpointAddress> for HubDialer {
    fn from(hub: EndpointAddress) -> HubDialer {
        HubDialer::new(hub, None)
    }
}

/// Connects to a daemon on the current runtime. TCP needs the token.
pub async fn dial_daemon(
    address: &EndpointAddress,
    token: Option<&BearerToken>,
) -> Result<ClientStream, DialError> {
    address.require_private()?;
    match address {
        EndpointAddress::Unix(path) => {
            let stream = connect_unix(address, path, None)?;
            let failed = |source| dial_error(address, source);
            Ok(UnixStream::from_std(stream).map_err(failed)?.into())
        }
        EndpointAddress::Tcp(at) => {
            let token = token.ok_or_else(|| DialError::NeedsToken { address: address.clone() })?;
            let connected = match timeout(CONNECT_TIMEOUT, TcpStream::connect(at)).await {
                Ok(connected) => connected,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            let mut stream = connected.map_err(|source| dial_error(address, source))?;
            let exchanged = exchange_proofs(&mut stream, token).await;
            exchanged.map_err(|it| it.into_dial_error(address))?;
            Ok(stream.into())
        }
        EndpointAddress::Http(_) | EndpointAddress::Https(_) | EndpointAddress::Stdio => {
            Err(DialError::Unsupported { address: address.clone() })
        }
    }
}

/// [`dial_daemon`] without a runtime.
pub fn dial_daemon_blocking(
    address: &EndpointAddress,
    token: Option<&BearerToken>,
) -> Result<BlockingSocket, DialError> {
    address.require_private()?;
    match address {
        EndpointAddress::Unix(path) => {
            connect_unix(address, path, Some(CONNECT_TIMEOUT)).map(BlockingSocket::Unix)
        }
        EndpointAddress::Tcp(at) => {
            let token = token.ok_or_else(|| DialError::NeedsToken { address: address.clone() })?;
            let connected = StdTcpStream::connect_timeout(at, CONNECT_TIMEOUT);
            let stream = connected.map_err(|source| dial_error(address, source))?;
            exchange_proofs_blocking(&stream, token).map_err(|it| it.into_dial_error(address))?;
            Ok(BlockingSocket::Tcp(stream))
        }
        EndpointAddress::Http(_) | EndpointAddress::Https(_) | EndpointAddress::Stdio => {
            Err(DialError::Unsupported { address: address.clone() })
        }
    }
}

/// Dials until a daemon answers, at most for `within`. `check` is called before each further
/// attempt; its error ends the wait, for example if the started daemon has already exited.
pub fn dial_until_ready(
    address: &EndpointAddress,
    token: Option<&BearerToken>,
    within: Duration,
    mut check: impl FnMut() -> Result<(), String>,
) -> Result<BlockingSocket, DialError> {
    let begun = Instant::now();
    loop {
        let source = match dial_daemon_blocking(address, token) {
            Err(error) if error.is_absent() => Box::new(error),
            dialled => return dialled,
        };
        check().map_err(|why| DialError::NotStarted { address: address.clone(), why })?;
        let waited = begun.elapsed();
        let left = within.saturating_sub(waited);
        if left.is_zero() {
            return Err(DialError::Late { address: address.clone(), within, source });
        }
        let pause = if waited < EARLY_PHASE { EARLY_RETRY_DELAY } else { RETRY_DELAY };
        thread::sleep(pause.min(left));
    }
}

fn connect_unix(
    address: &EndpointAddress,
    path: &Path,
    connect_timeout: Option<Duration>,
) -> Result<StdUnixStream, DialError> {
    check_length(path)?;
    let failed = |source| dial_error(address, source);
    let stream = StdUnixStream::from(socket::connect(path, connect_timeout).map_err(failed)?);
    let uid = socket_system::peer_uid(&stream).map_err(failed)?;
    if uid == socket::our_uid() {
        Ok(stream)
    } else {
        Err(DialError::NotOurs { address: address.clone(), uid })
    }
}

/// Why the peer was not accepted as the daemon.
enum ProofError {
    /// It did not answer in time, or without a valid proof.
    NoProof,
    System(io::Error),
}

impl ProofError {
    fn into_dial_error(self, address: &EndpointAddress) -> DialError {
        match self {
            ProofError::NoProof => DialError::NotTheDaemon { address: address.clone() },
            ProofError::System(source) => dial_error(address, source),
        }
    }
}

impl From<io::Error> for ProofError {
    fn from(source: io::Error) -> ProofError {
        ProofError::System(source)
    }
}

/// Requires a proof from the daemon, and then proves to it that we have the token. A new socket has
/// room for each line.
async fn exchange_proofs(stream: &mut TcpStream, token: &BearerToken) -> Result<(), ProofError> {
    refuse_self_connection(stream.local_addr()?, stream.peer_addr()?)?;
    stream.set_nodelay(true)?;
    let nonce = ChallengeNonce::random()?;
    stream.write_all(proof::challenge_line(&nonce).as_bytes()).await?;
    let mut buffer = BytesMut::new();
    let read = timeout(AUTH_TIMEOUT, auth::next_line(stream, &mut buffer)).await;
    let Ok(Ok(answer)) = read else { return Err(ProofError::NoProof) };
    let response = proof::proof_line(nonce, &answer, auth::METHOD, token);
    let response = response.ok_or(ProofError::NoProof)?;
    Ok(stream.write_all(response.as_bytes()).await?)
}

/// [`exchange_proofs`] without a runtime.
fn exchange_proofs_blocking(
    mut stream: &StdTcpStream,
    token: &BearerToken,
) -> Result<(), ProofError> {
    refuse_self_connection(stream.local_addr()?, stream.peer_addr()?)?;
    stream.set_nodelay(true)?;
    let nonce = ChallengeNonce::random()?;
    stream.write_all(proof::challenge_line(&nonce).as_bytes())?;
    // The daemon sends only this line until it has our response.
    stream.set_read_timeout(Some(AUTH_TIMEOUT))?;
    let mut answer = Vec::new();
    let read = BufReader::new(stream.take(LINE_BYTES_MAX as u64)).read_until(b'\n', &mut answer);
    read.map_err(|_| ProofError::NoProof)?;
    stream.set_read_timeout(None)?;
    let response = proof::proof_line(nonce, &answer, auth::METHOD, token);
    let response = response.ok_or(ProofError::NoProof)?;
    Ok(stream.write_all(response.as_bytes())?)
}

/// Refuses a connection to ourselves: a client that repeatedly dials a free port of this machine
/// may get that port as its own local port.
fn refuse_self_connection(local: SocketAddr, peer: SocketAddr) -> io::Result<()> {
    if local == peer { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(()) }
}

fn dial_error(address: &EndpointAddress, source: io::Error) -> DialError {
    let address = address.clone();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            DialError::Absent { address, source }
        }
        _ => DialError::Unreachable { address, source },
    }
}

impl BlockingSocket {
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            BlockingSocket::Unix(stream) => stream.shutdown(how),
            BlockingSocket::Tcp(stream) => stream.shutdown(how),
        }
    }

    /// Moves it to the current runtime.
    pub fn into_stream(self) -> io::Result<ClientStream> {
        match self {
            BlockingSocket::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(UnixStream::from_std(stream)?.into())
            }
            BlockingSocket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(TcpStream::from_std(stream)?.into())
            }
        }
    }
}

impl From<StdUnixStream> for BlockingSocket {
    fn from(stream: StdUnixStream) -> BlockingSocket {
        BlockingSocket::Unix(stream)
    }
}

impl AsFd for BlockingSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            BlockingSocket::Unix(stream) => stream.as_fd(),
            BlockingSocket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &BlockingSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            BlockingSocket::Unix(stream) => (&*stream).read(buffer),
            BlockingSocket::Tcp(stream) => (&*stream).read(buffer),
        }
    }
}

impl Write for &BlockingSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            BlockingSocket::Unix(stream) => (&*stream).write(bytes),
            BlockingSocket::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
