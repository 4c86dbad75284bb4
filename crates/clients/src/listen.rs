//! Where clients come in. Who is let in is decided here and nowhere else.

use crate::address::{Address, AddressError};
use crate::auth::{self, Refusal};
use crate::keys::Keys;
use crate::secure;
use crate::socket::{Folder, PathTooLong};
use crate::stream::Stream;
use crate::unix_door::{MissingFolder, UnixDoor};
use crate::web::{Certificate, CertificateError};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io, panic};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Peers that may be about to show their token at the same time.
const PENDING_MAX: usize = 64;
/// After the system ran out of something, so that the loop does not spin on it.
pub(crate) const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("there is no folder `{folder}`: make it with `mkdir -m 700`")]
    NoFolder {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("folder `{folder}` belongs to uid {owner}, not to us: use one of your own")]
    FolderNotOurs { folder: PathBuf, owner: u32 },
    #[error("folder `{folder}` is open to others (mode {mode:o}): close it with `chmod 700`")]
    FolderNotPrivate { folder: PathBuf, mode: u32 },
    #[error(
        "folder `{folder}` belongs to uid {owner} and has mode {mode:o}: others could put a socket of \
         theirs in the place of ours; use a folder that only you can write to"
    )]
    FolderNotSafe { folder: PathBuf, owner: u32, mode: u32 },
    #[error(transparent)]
    PathTooLong(#[from] PathTooLong),
    #[error("`{path}` is in the way and not a socket: move it, or listen elsewhere")]
    NotASocket { path: PathBuf },
    #[error("a daemon answers on `{path}`: stop it first, or listen elsewhere")]
    InUse { path: PathBuf },
    #[error("socket `{path}` could not be {attempted}")]
    Io {
        path: PathBuf,
        attempted: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("the socket that was passed to this process cannot be used")]
    PassedSocket {
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on `{address}`")]
    Tcp {
        address: Address,
        #[source]
        source: io::Error,
    },
    #[error("`tcp://{address}` needs a token: anyone on this machine could connect")]
    NeedsToken { address: SocketAddr },
    #[error("`{address}` speaks HTTP, which needs a daemon with a web front")]
    Web { address: Address },
    #[error("`{address}` needs a certificate: set `cert` and `key` under [http] in config.toml")]
    NeedsCertificate { address: Address },
    #[error("`{address}` has no certificate that can be used")]
    Certificate {
        address: Address,
        #[source]
        source: Box<CertificateError>,
    },
}

/// Why [`Listener::accept`] has no stream. The listener goes on.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("{} on `{address}` was refused", client(*peer))]
    Refused {
        address: Address,
        /// `None` on a unix socket.
        peer: Option<SocketAddr>,
        #[source]
        why: Refusal,
    },
    #[error("no client could be accepted on `{address}`")]
    Failed {
        address: Address,
        #[source]
        source: io::Error,
    },
}

/// An address that is open to clients. Dropping it closes it, and removes the socket file. A socket file that
/// something else removed is created again.
#[derive(Debug)]
pub struct Listener {
    door: Door,
    address: Address,
}

#[derive(Debug)]
enum Door {
    Unix(UnixDoor),
    Tcp {
        listener: TcpListener,
        /// `None`: whoever is on this machine may speak.
        check: Option<Check>,
        strangers: Strangers,
    },
    Stdio {
        taken: bool,
    },
}

/// What a TCP peer must show before it is heard.
#[derive(Clone)]
enum Check {
    Token(Keys),
    Tls(TlsAcceptor, Keys),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Check::Token(_) => "Token",
            Check::Tls(..) => "Tls",
        })
    }
}

/// Peers that are about to show what they must. If there are too many, the oldest gives way: one who
/// says nothing keeps nobody out.
#[derive(Debug, Default)]
struct Strangers {
    admitting: JoinSet<Result<Stream, (SocketAddr, Refusal)>>,
    oldest_first: VecDeque<AbortHandle>,
}

impl Strangers {
    fn add(&mut self, stream: TcpStream, peer: SocketAddr, check: Check) {
        self.oldest_first.retain(|it| !it.is_finished());
        if PENDING_MAX <= self.oldest_first.len()
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            oldest.abort();
        }
        let admitted = async move { admit(stream, check).await.map_err(|why| (peer, why)) };
        self.oldest_first.push_back(self.admitting.spawn(admitted));
    }
}

impl Listener {
    /// Opens `address` on the current runtime. TCP needs the token; the others let the system say
    /// who is there.
    pub fn bind(address: &Address, keys: Option<&Keys>) -> Result<Listener, BindError> {
        address.require_private()?;
        match address {
            Address::Unix(path) => {
                let door = UnixDoor::bind(path, Folder::Private, MissingFolder::Report)?;
                Ok(Listener { door: Door::Unix(door), address: address.clone() })
            }
            Address::Tcp(at) => {
                let keys = keys.ok_or(BindError::NeedsToken { address: *at })?;
                bind_tcp(*at, Some(Check::Token(keys.clone())))
            }
            Address::Http(_) | Address::Https(_) => {
                Err(BindError::Web { address: address.clone() })
            }
            Address::Stdio => {
                Ok(Listener { door: Door::Stdio { taken: false }, address: Address::Stdio })
            }
        }
    }

    /// A unix socket in a folder of our own, which is created again with the socket when it was removed.
    pub fn bind_own(path: &Path) -> Result<Listener, BindError> {
        let door = UnixDoor::bind(path, Folder::Private, MissingFolder::Create)?;
        Ok(Listener { door: Door::Unix(door), address: Address::Unix(path.to_owned()) })
    }

    /// Takes over a unix socket that another process bound and that listens already, such as a service
    /// manager. Its file belongs to that process.
    pub fn adopt(socket: OwnedFd) -> Result<Listener, BindError> {
        let (door, path) = UnixDoor::adopt(socket)?;
        Ok(Listener { door: Door::Unix(door), address: Address::Unix(path) })
    }

    /// [`Listener::bind`] for a program whose clients know no token and choose their own places: on loopback
    /// TCP whoever is on this machine may speak, and a socket may lie in a folder that others can
    /// enter, such as `/tmp`. It is still private itself, and its peers still have our uid.
    pub fn bind_open(address: &Address) -> Result<Listener, BindError> {
        address.require_private()?;
        match address {
            Address::Unix(path) => {
                let door = UnixDoor::bind(path, Folder::Safe, MissingFolder::Report)?;
                Ok(Listener { door: Door::Unix(door), address: address.clone() })
            }
            Address::Tcp(at) => bind_tcp(*at, None),
            _ => Listener::bind(address, None),
        }
    }

    /// TCP on any address: inside TLS, and with the token.
    pub fn bind_tls(
        at: SocketAddr,
        certificate: &Certificate,
        keys: &Keys,
    ) -> Result<Listener, BindError> {
        let tls = certificate.load(&[]).map_err(|source| BindError::Certificate {
            address: Address::Tcp(at),
            source: Box::new(source),
        })?;
        bind_tcp(at, Some(Check::Tls(tls, keys.clone())))
    }

    /// Where it listens: with the port that was chosen, if it was asked for port 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next client that may speak. On an error call again; safe to cancel. Stdio has one
    /// client.
    pub async fn accept(&mut self) -> Result<Stream, AcceptError> {
        let accepted = match &mut self.door {
            Door::Unix(door) => door.accept().await,
            Door::Tcp { listener, check, strangers } => {
                accept_tcp(listener, check.as_ref(), strangers).await
            }
            Door::Stdio { taken: true } => pending().await,
            Door::Stdio { taken } => {
                *taken = true;
                crate::stdio().map_err(AcceptFailure::System)
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

fn client(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "a client".to_owned(), |it| format!("the client at {it}"))
}

pub(crate) enum AcceptFailure {
    Peer(Option<SocketAddr>, Refusal),
    System(io::Error),
}

fn bind_tcp(at: SocketAddr, check: Option<Check>) -> Result<Listener, BindError> {
    let listen = || {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = Address::Tcp(listener.local_addr()?);
        let door = Door::Tcp { listener, check, strangers: Strangers::default() };
        Ok(Listener { door, address })
    };
    listen().map_err(|source| BindError::Tcp { address: Address::Tcp(at), source })
}

/// Accepts and waits for tokens at the same time: a peer that says nothing keeps nobody out.
async fn accept_tcp(
    listener: &TcpListener,
    check: Option<&Check>,
    strangers: &mut Strangers,
) -> Result<Stream, AcceptFailure> {
    loop {
        tokio::select! {
            Some(admitted) = strangers.admitting.join_next() => match admitted {
                Ok(admitted) => {
                    return admitted.map_err(|(peer, why)| AcceptFailure::Peer(Some(peer), why));
                }
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            },
            accepted = listener.accept() => {
                let (stream, peer) = accepted.map_err(AcceptFailure::System)?;
                // A frame is sent when it is whole: nothing is gained by waiting for more.
                let _ = stream.set_nodelay(true);
                let Some(check) = check else { return Ok(stream.into()) };
                strangers.add(stream, peer, check.clone());
            }
        }
    }
}

async fn admit(stream: TcpStream, check: Check) -> Result<Stream, Refusal> {
    match check {
        Check::Token(keys) => {
            let (stream, early) = auth::admit(stream, &keys).await?;
            Ok(Stream { early, ..stream.into() })
        }
        Check::Tls(tls, keys) => secure::admit(stream, tls, &keys).await,
    }
}

pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::{Socket, dial_blocking};
    use crate::stream::Carrier;
    use crate::token::Token;

    #[tokio::test]
    async fn tcp_sends_at_once_on_both_sides() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::create_or_read(&dir.path().join("token")).unwrap();
        let address = "tcp://127.0.0.1:0".parse().unwrap();
        let mut listener = Listener::bind(&address, Some(&Keys::from(&token))).unwrap();
        let at = listener.address().clone();
        let there = tokio::task::spawn_blocking(move || dial_blocking(&at, Some(&token)));
        let Carrier::Tcp(here) = listener.accept().await.unwrap().carrier else {
            panic!("no TCP");
        };
        let Ok(Socket::Tcp(there)) = there.await.unwrap() else { panic!("no TCP") };
        assert!(here.nodelay().unwrap() && there.nodelay().unwrap());
        let mut open = Listener::bind_open(&address).unwrap();
        let Address::Tcp(at) = *open.address() else { panic!("no TCP") };
        let _there = TcpStream::connect(at).await.unwrap();
        let Carrier::Tcp(here) = open.accept().await.unwrap().carrier else { panic!("no TCP") };
        assert!(here.nodelay().unwrap(), "also where no token is asked for");
    }

    #[test]
    fn only_a_lack_of_something_is_waited_for() {
        assert!(is_exhausted(&Errno::MFILE.into()));
        assert!(!is_exhausted(&Errno::CONNABORTED.into()));
        assert!(!is_exhausted(&io::ErrorKind::NotFound.into()));
    }
}
