//! The other side of a listener: how our own commands reach a daemon.

use crate::address::{Address, AddressError};
use crate::auth::{self, LINE_BYTES_MAX, LINE_WITHIN};
use crate::keys::Guest;
use crate::proof::{self, Nonce};
use crate::socket::{self, PathTooLong};
use crate::stream::Stream;
use crate::token::Token;
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

/// A daemon that does not accept a connection for so long hangs.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks for a daemon that starts: it takes some milliseconds, rarely seconds.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
const LOOK_AGAIN_LATER: Duration = Duration::from_millis(10);
const LATER: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    PathTooLong(#[from] PathTooLong),
    #[error(
        "`{address}` cannot be dialled by our own commands: name a `unix://` or `tcp://` address"
    )]
    Undialled { address: Address },
    /// Nobody listens there: the daemon is not running, or not yet.
    #[error("no daemon answers on `{address}`")]
    Absent {
        address: Address,
        #[source]
        source: io::Error,
    },
    #[error("cannot reach the daemon on `{address}`")]
    Unreachable {
        address: Address,
        #[source]
        source: io::Error,
    },
    /// What we say may hold secrets: it is for our own daemon only.
    #[error("whoever listens on `{address}` is uid {uid}, not us: use another socket")]
    NotOurs { address: Address, uid: u32 },
    /// The token was not sent.
    #[error(
        "the program at `{address}` is not the daemon: it did not prove that it knows the daemon's \
         token, so it was told nothing; use the address of the daemon, and restart a daemon that is \
         older than this command"
    )]
    NotTheDaemon { address: Address },
    #[error("`{address}` needs the daemon's token")]
    NeedsToken { address: Address },
    #[error("no daemon answered on `{address}` within {} ms", within.as_millis())]
    Late {
        address: Address,
        within: Duration,
        #[source]
        source: Box<DialError>,
    },
    #[error("the daemon on `{address}` did not start: {why}")]
    NotStarted { address: Address, why: String },
}

impl DialError {
    /// Whether starting a daemon would help.
    pub fn is_absent(&self) -> bool {
        matches!(self, DialError::Absent { .. })
    }

    /// Whether the queue of the socket had no room within [`CONNECT_WITHIN`].
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        matches!(self, DialError::Unreachable { source, .. } if full.contains(&source.kind()))
    }
}

/// A connection for blocking code.
#[derive(Debug)]
pub enum Socket {
    Unix(StdUnixStream),
    Tcp(StdTcpStream),
}

/// The way to the hub for a front that comes for others: as itself, or in the name of a guest.
#[derive(Debug, Clone)]
pub struct Dialer {
    hub: Address,
    guest: Option<Guest>,
}

impl Dialer {
    pub fn new(hub: Address, guest: Option<Guest>) -> Dialer {
        Dialer { hub, guest }
    }

    /// A connection on which nothing has been said, but for whom it is.
    pub async fn dial(&self) -> Result<Stream, DialError> {
        let stream = dial(&self.hub, None).await?;
        if let Some(guest) = &self.guest {
            stream.begin(&guest.before(b"")).map_err(|source| unreachable(&self.hub, source))?;
        }
        Ok(stream)
    }
}

impl From<Address> for Dialer {
    fn from(hub: Address) -> Dialer {
        Dialer::new(hub, None)
    }
}

/// Connects to a daemon on the current runtime. TCP needs the token.
pub async fn dial(address: &Address, token: Option<&Token>) -> Result<Stream, DialError> {
    address.require_private()?;
    match address {
        Address::Unix(path) => {
            let stream = connect_unix(address, path, None)?;
            let unreachable = |source| unreachable(address, source);
            Ok(UnixStream::from_std(stream).map_err(unreachable)?.into())
        }
        Address::Tcp(at) => {
            let token = token.ok_or_else(|| DialError::NeedsToken { address: address.clone() })?;
            let connected = match timeout(CONNECT_WITHIN, TcpStream::connect(at)).await {
                Ok(connected) => connected,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            let mut stream = connected.map_err(|source| unreachable(address, source))?;
            let proved = introduce(&mut stream, token).await;
            proved.map_err(|it| it.at(address))?;
            Ok(stream.into())
        }
        Address::Http(_) | Address::Https(_) | Address::Stdio => {
            Err(DialError::Undialled { address: address.clone() })
        }
    }
}

/// [`dial`] without a runtime.
pub fn dial_blocking(address: &Address, token: Option<&Token>) -> Result<Socket, DialError> {
    address.require_private()?;
    match address {
        Address::Unix(path) => connect_unix(address, path, Some(CONNECT_WITHIN)).map(Socket::Unix),
        Address::Tcp(at) => {
            let token = token.ok_or_else(|| DialError::NeedsToken { address: address.clone() })?;
            let connected = StdTcpStream::connect_timeout(at, CONNECT_WITHIN);
            let stream = connected.map_err(|source| unreachable(address, source))?;
            introduce_blocking(&stream, token).map_err(|it| it.at(address))?;
            Ok(Socket::Tcp(stream))
        }
        Address::Http(_) | Address::Https(_) | Address::Stdio => {
            Err(DialError::Undialled { address: address.clone() })
        }
    }
}

/// Dials until a daemon answers, at most for `within`. `check` is asked before each further look:
/// an error from it ends the wait, as when the daemon that was started has ended already.
pub fn dial_until_up(
    address: &Address,
    token: Option<&Token>,
    within: Duration,
    mut check: impl FnMut() -> Result<(), String>,
) -> Result<Socket, DialError> {
    let begun = Instant::now();
    loop {
        let source = match dial_blocking(address, token) {
            Err(error) if error.is_absent() => Box::new(error),
            dialled => return dialled,
        };
        check().map_err(|why| DialError::NotStarted { address: address.clone(), why })?;
        let waited = begun.elapsed();
        let left = within.saturating_sub(waited);
        if left.is_zero() {
            return Err(DialError::Late { address: address.clone(), within, source });
        }
        let pause = if waited < LATER { LOOK_AGAIN } else { LOOK_AGAIN_LATER };
        thread::sleep(pause.min(left));
    }
}

fn connect_unix(
    address: &Address,
    path: &Path,
    patience: Option<Duration>,
) -> Result<StdUnixStream, DialError> {
    socket::check_length(path)?;
    let failed = |source| unreachable(address, source);
    let stream = StdUnixStream::from(socket::connect(path, patience).map_err(failed)?);
    let uid = socket::peer_uid(&stream).map_err(failed)?;
    if uid == socket::our_uid() {
        Ok(stream)
    } else {
        Err(DialError::NotOurs { address: address.clone(), uid })
    }
}

/// Why the other side is not known to be the daemon.
enum NotProved {
    /// It answered something else, or nothing in time.
    Stranger,
    System(io::Error),
}

impl NotProved {
    fn at(self, address: &Address) -> DialError {
        match self {
            NotProved::Stranger => DialError::NotTheDaemon { address: address.clone() },
            NotProved::System(source) => unreachable(address, source),
        }
    }
}

impl From<io::Error> for NotProved {
    fn from(source: io::Error) -> NotProved {
        NotProved::System(source)
    }
}

/// Has the daemon prove itself, and then proves to it that we know the token. A fresh socket has room for
/// each line.
async fn introduce(stream: &mut TcpStream, token: &Token) -> Result<(), NotProved> {
    refuse_ourselves(stream.local_addr()?, stream.peer_addr()?)?;
    stream.set_nodelay(true)?;
    let nonce = Nonce::random()?;
    stream.write_all(proof::challenge(&nonce).as_bytes()).await?;
    let mut buffer = BytesMut::new();
    let read = timeout(LINE_WITHIN, auth::next_line(stream, &mut buffer)).await;
    let Ok(Ok(answer)) = read else { return Err(NotProved::Stranger) };
    let response = proof::response(nonce, &answer, auth::METHOD, token);
    let response = response.ok_or(NotProved::Stranger)?;
    Ok(stream.write_all(response.as_bytes()).await?)
}

/// [`introduce`] without a runtime.
fn introduce_blocking(mut stream: &StdTcpStream, token: &Token) -> Result<(), NotProved> {
    refuse_ourselves(stream.local_addr()?, stream.peer_addr()?)?;
    stream.set_nodelay(true)?;
    let nonce = Nonce::random()?;
    stream.write_all(proof::challenge(&nonce).as_bytes())?;
    // The daemon says no more than this line until it has our answer.
    stream.set_read_timeout(Some(LINE_WITHIN))?;
    let mut answer = Vec::new();
    let read = BufReader::new(stream.take(LINE_BYTES_MAX as u64)).read_until(b'\n', &mut answer);
    read.map_err(|_| NotProved::Stranger)?;
    stream.set_read_timeout(None)?;
    let response = proof::response(nonce, &answer, auth::METHOD, token);
    let response = response.ok_or(NotProved::Stranger)?;
    Ok(stream.write_all(response.as_bytes())?)
}

/// Who dials a free port of this machine again and again is given that very port as its own one
/// day, and is connected to itself.
fn refuse_ourselves(local: SocketAddr, peer: SocketAddr) -> io::Result<()> {
    if local == peer { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(()) }
}

fn unreachable(address: &Address, source: io::Error) -> DialError {
    let address = address.clone();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            DialError::Absent { address, source }
        }
        _ => DialError::Unreachable { address, source },
    }
}

impl Socket {
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.shutdown(how),
            Socket::Tcp(stream) => stream.shutdown(how),
        }
    }

    /// Moves it to the current runtime.
    pub fn into_stream(self) -> io::Result<Stream> {
        match self {
            Socket::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(UnixStream::from_std(stream)?.into())
            }
            Socket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(TcpStream::from_std(stream)?.into())
            }
        }
    }
}

impl From<StdUnixStream> for Socket {
    fn from(stream: StdUnixStream) -> Socket {
        Socket::Unix(stream)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).read(buffer),
            Socket::Tcp(stream) => (&*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).write(bytes),
            Socket::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
