//! Connections of clients. This crate knows frames, but not sessions.
//!
//! Read in this order: [`EndpointAddress`] is the address of a daemon, [`ClientListener`] accepts
//! and authenticates clients (`socket` protects the socket file, `unix_socket` creates it again
//! when it was removed, [`BearerToken`], [`ClientAuthenticator`] and `auth` protect TCP, `tls_stream`
//! adds TLS, `stdio` uses stdin and stdout as a connection), and returns a [`ClientStream`].
//! [`open_connection`] starts reading and writing on a stream (`chunk` and `connection` read,
//! `outgoing_queue` writes) and reports everything as [`ClientEvent`]s over one channel for all
//! connections. The client's side is [`dial_daemon()`], and [`relay_bytes()`], which copies bytes
//! between an editor's pipes and a daemon without interpreting them. `frame_halves` splits a
//! dialed connection into two halves.
//!
//! All async code runs on the runtime it is called on, with one task for each connection. Nothing
//! needs a second thread, and no lock is held across an await.
//!
//! **Invariant:** frames are accepted only from authenticated peers: a unix peer has our uid, a TCP
//! peer has the operator's or a tenant's token, and TCP stays on this machine or inside TLS. Only
//! [`ClientListener::bind_open`] accepts every peer of this machine.
//!
//! **Invariant:** each connection reports `Opened` first and `Gone` last, each exactly once,
//! regardless of which side ended it.
//!
//! **Invariant:** every line of a client is reported once and in order, as a frame or as a fault. A
//! full channel stops the reading and never drops anything.
//!
//! **Invariant:** sending never waits. The results of [`ClientHandle::flush`], the values of
//! [`ClientEvent::Wrote`] and the queued bytes add up to the bytes that were sent, as long as the
//! connection is open.
//!
//! **Invariant:** the flags of stdin and stdout are not changed, because other processes share
//! them.

mod address;
mod auth;
mod authenticator;
mod chunk;
mod connection;
mod dial;
mod frame_halves;
mod graceful_close;
mod hex;
mod listen;
mod listen_error;
mod outgoing_queue;
mod proof;
mod relay;
mod socket;
mod socket_path;
mod socket_system;
mod stdio;
mod stream;
mod tls_certificate;
mod tls_stream;
mod token;
mod token_file;
mod unix_socket;

pub use address::{AddressError, EndpointAddress, UNENCRYPTED_WARNING};
pub use auth::AuthRefusal;
pub use authenticator::{ClientAuthenticator, PeerIdentity, TenantIdentity, TenantLookup};
pub use connection::{ClientEvent, ClientHandle, open_connection};
pub use dial::{
    BlockingSocket, CONNECT_TIMEOUT, DialError, HubDialer, dial_daemon, dial_daemon_blocking,
    dial_until_ready,
};
pub use frame_halves::{FrameReceiver, FrameSender};
pub use graceful_close::close_gracefully;
pub use listen::{ClientListener, EXHAUSTED_PAUSE, is_exhausted};
pub use listen_error::{AcceptError, BindError};
pub use relay::{RelayEnd, read_ready, relay_bytes, wait_for_reader_exit, write_all_ready};
pub use socket::remove_stale_socket;
pub use socket_path::{PathTooLong, check_length as check_socket_path};
pub use socket_system::{peer_pid, send_datagram};
pub use stdio::open_stdio;
pub use stream::{ClientStream, UnixPeer, stream_pair};
pub use tls_certificate::{TlsCertificate, TlsCertificateError};
pub use token::{BearerToken, TokenError};
pub use token_file::TokenFile;
