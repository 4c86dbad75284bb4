//! The web front: HTTP, WebSocket and TLS in front of a daemon.
//!
//! Read in this order: [`limits`] has every limit. [`WebListener`] listens on an address (`tls` has
//! its certificate). [`RequestGuard`] decides which requests are accepted: `host` has the names
//! that we answer to, `origin` the web pages that may send requests, `request_refusal` the
//! responses to other requests. [`serve_http`] accepts connections (`limited_stream`), as far as
//! the `connection_limiter` permits, and lets [`TenantRoutes`] handle their requests (`body`).
//! [`acp_routes()`] creates the routes of ACP; all other routes are passed in as a router.
//!
//! The web front is only a client: for each of its own clients it dials the daemon's socket.
//!
//! **Invariant:** no request reaches a route before the request guard has accepted it, and no route
//! sees the token.
//!
//! **Invariant:** no response may be stored by a cache: `serve` sets the header on each response.
//!
//! **Invariant:** the resources of unauthenticated peers are limited in number, bytes and time, and
//! unauthenticated peers never exclude authenticated ones.

mod acp;
mod body;
mod connection_limiter;
mod host;
mod limited_stream;
pub mod limits;
mod origin;
mod request_guard;
mod request_refusal;
mod serve;
mod tenant_routes;
#[cfg(test)]
mod tests;
mod tls;
mod web_listener;

pub use acp::acp_routes;
pub use axum::Router;
pub use host::{HttpHost, InvalidHost};
pub use origin::{InvalidOrigin, WebOrigin};
pub use request_guard::RequestGuard;
pub use serve::{TokenPresented, serve_http};
pub use tenant_routes::TenantRoutes;
pub use tls::{CertificateError, TlsCertificate};
pub use web_listener::WebListener;
