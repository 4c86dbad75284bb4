//! The HTTP server: which connections and requests are accepted, and which routes handle them.
//!
//! Read in this order: [`limits`] has every limit. [`WebListener`] listens on an address.
//! [`RequestGuard`] decides which requests are accepted: `host` has the names
//! that we answer to, `origin` the web pages that may send requests, `request_refusal` the
//! responses to other requests. [`serve_http`] accepts connections (`limited_stream`), as far as
//! the `connection_limiter` permits, and lets [`TenantRoutes`] handle their requests (`body`).
//! The routes themselves are passed in as a router.
//!
//! **Invariant:** no request reaches a route before the request guard has accepted it, and no route
//! sees the token.
//!
//! **Invariant:** no response except the public files of the console may be stored by a cache:
//! `response_headers` restricts each response.
//!
//! **Invariant:** the resources of unauthenticated peers are limited in number, bytes and time, and
//! unauthenticated peers never exclude authenticated ones.

mod body;
mod connection_limiter;
mod host;
mod limited_stream;
pub mod limits;
mod origin;
mod request_guard;
mod request_refusal;
mod response_headers;
mod serve;
mod tenant_routes;
#[cfg(test)]
mod tests;
mod web_listener;

pub use axum::Router;
pub use host::{HttpHost, InvalidHost};
pub use origin::{InvalidOrigin, WebOrigin};
pub(crate) use request_guard::CONSOLE_PATH;
pub use request_guard::RequestGuard;
pub(crate) use response_headers::StorableResponse;
pub(crate) use serve::PeerAddress;
pub use serve::{TokenPresented, serve_http};
pub use tenant_routes::TenantRoutes;
pub use web_listener::WebListener;
