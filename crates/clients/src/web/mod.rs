//! The web front: HTTP, WebSocket and TLS in front of a daemon.
//!
//! Read in this order: [`Door`] is an address that is open, [`Guard`] says who is let in, [`serve`]
//! takes connections and lets a [`Router`] answer them; [`acp()`] makes the routes of the protocol
//! itself. Everything else that is served comes from outside, as a router.
//!
//! The front is only a client: for each of its own clients it dials the daemon's socket.

mod acp;
mod door;
mod guard;
mod serve;

pub use acp::acp;
pub use axum::Router;
pub use door::{Certificate, Door};
pub use guard::Guard;
pub use serve::serve;
