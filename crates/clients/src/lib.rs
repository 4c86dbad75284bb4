//! The right edge: connections of clients. Knows frames, never sessions.
//!
//! Read in this order: [`Address`] says where a daemon is, [`Listener`] lets clients in (`socket`
//! guards the socket file, `unix_door` creates it again when it is gone, [`Token`], [`Keys`] and `auth`
//! guard TCP, `secure` puts TLS around it, `stdio` makes a connection of our own pipes), a [`Stream`] is what comes out of it. [`open`] starts reading and writing on a stream
//! (`chunk` and `conn` read, `outbox` writes) and tells everything as [`ClientEvent`]s over one
//! channel for all connections. The other side is [`dial()`], and [`relay()`], which carries bytes
//! between an editor's pipes and a daemon without looking at them. [`web`] is a front of its own: it
//! speaks HTTP to clients and dials the daemon for them (`talk` is a dialled connection as two halves).
//!
//! Everything async runs on the runtime it is called on, one task for each connection; nothing
//! needs a second thread, and no lock is held while anything waits.
//!
//! **Invariant:** nobody is heard who was not let in: a unix peer has our uid, a TCP peer knows the
//! token or is a guest, and TCP stays on this machine or inside TLS. Only who asks for [`Listener::bind_open`] hears
//! all of this machine.
//!
//! **Invariant:** in a connection's life `Opened` comes first and `Gone` last, each once, whoever
//! ended it and however.
//!
//! **Invariant:** every line of a client is told once and in order, as a frame or as a fault. A
//! channel that is full stops the reading, never drops anything.
//!
//! **Invariant:** sending never waits. What [`ConnHandle::flush`] returned, what
//! [`ClientEvent::Wrote`] told and what is still queued add up to what was sent, as long as the
//! connection lives.
//!
//! **Invariant:** the flags of stdin and stdout are not touched: others share them.

mod address;
mod auth;
mod chunk;
mod conn;
mod dial;
mod farewell;
mod hex;
mod keys;
mod listen;
mod outbox;
mod proof;
mod relay;
mod secure;
mod socket;
mod stdio;
mod stream;
mod talk;
mod token;
mod token_file;
mod unix_door;
pub mod web;

pub use address::{Address, AddressError};
pub use auth::Refusal;
pub use conn::{ClientEvent, ConnHandle, open};
pub use dial::{CONNECT_WITHIN, DialError, Dialer, Socket, dial, dial_blocking, dial_until_up};
pub use keys::{Guest, Keys, Vouch};
pub use listen::{AcceptError, BindError, Listener};
pub use relay::{Ended, relay};
pub use socket::{PathTooLong, remove_stale_socket};
pub use stdio::stdio;
pub use stream::{Stream, UnixPeer, pair};
pub use talk::{Hearing, Speaking};
pub use token::{Token, TokenError};
pub use token_file::TokenFile;
