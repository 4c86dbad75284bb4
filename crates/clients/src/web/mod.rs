//! The web front: HTTP, WebSocket and TLS in front of a daemon.
//!
//! Read in this order: [`limits`] holds every bound. [`Door`] is an address that is open (`tls` is
//! its certificate). [`Porter`] says who is let in: `host` are the names we answer to, `origin` the
//! pages that may talk to us, `refused` what the others hear. [`serve`] takes connections (`conn`),
//! for which there is `room`, and lets [`Routes`] answer their requests (`body`). [`acp()`] makes
//! the routes of the protocol itself; everything else that is served comes from outside, as a
//! router.
//!
//! The front is only a client: for each of its own clients it dials the daemon's socket.
//!
//! **Invariant:** no request reaches a route before the porter has let it in, and none carries the
//! token further.
//!
//! **Invariant:** no answer may be stored by a cache: `serve` says so on each.
//!
//! **Invariant:** what a peer without the token can make us hold is bounded, in number, bytes and
//! time, and it never keeps out one who has the token.

mod acp;
mod body;
mod conn;
mod door;
mod host;
pub mod limits;
mod origin;
mod porter;
mod refused;
mod room;
mod routes;
mod serve;
#[cfg(test)]
mod tests;
mod tls;

pub use acp::acp;
pub use axum::Router;
pub use door::Door;
pub use host::{Host, NoHost};
pub use origin::{NoOrigin, Origin};
pub use porter::Porter;
pub use routes::Routes;
pub use serve::{TokenShown, serve};
pub use tls::{Certificate, CertificateError};
