//! Why an address cannot be listened on, and why a client was not accepted.

use crate::address::{AddressError, EndpointAddress};
use crate::auth::AuthRefusal;
use crate::socket_path::PathTooLong;
use crate::tls_certificate::TlsCertificateError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("folder `{folder}` does not exist: create it with `mkdir -m 700`")]
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
        "folder `{folder}` belongs to uid {owner} and has mode {mode:o}: other users could replace \
         the socket; use a folder that only you can write to"
    )]
    FolderNotSafe { folder: PathBuf, owner: u32, mode: u32 },
    #[error(transparent)]
    PathTooLong(#[from] PathTooLong),
    #[error("`{path}` exists and is not a socket: move it, or listen elsewhere")]
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
        address: EndpointAddress,
        #[source]
        source: io::Error,
    },
    #[error("`tcp://{address}` needs a token: anyone on this machine could connect")]
    NeedsToken { address: SocketAddr },
    #[error("`{address}` is an HTTP address, which only a daemon serves")]
    Web { address: EndpointAddress },
    #[error("`{address}` needs a certificate: set `cert` and `key` under [http] in config.toml")]
    NeedsCertificate { address: EndpointAddress },
    #[error("the certificate of `{address}` cannot be used")]
    Certificate {
        address: EndpointAddress,
        #[source]
        source: Box<TlsCertificateError>,
    },
}

/// Why [`ClientListener::accept`](crate::ClientListener::accept) returned no stream. The listener
/// keeps working.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("{} on `{address}` was refused", describe_client(*peer))]
    Refused {
        address: EndpointAddress,
        /// `None` on a unix socket.
        peer: Option<SocketAddr>,
        #[source]
        why: AuthRefusal,
    },
    #[error("failed to accept a client on `{address}`")]
    Failed {
        address: EndpointAddress,
        #[source]
        source: io::Error,
    },
}

/// Why a client was not accepted, without the address of the listener.
pub(crate) enum AcceptFailure {
    Peer(Option<SocketAddr>, AuthRefusal),
    System(io::Error),
}

fn describe_client(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "a client".to_owned(), |it| format!("the client at {it}"))
}
