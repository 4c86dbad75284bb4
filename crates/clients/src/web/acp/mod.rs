//! ACP at `/acp`: over WebSocket, and as streamable HTTP.

use crate::address::Address;
use axum::Router;

/// The routes of the protocol; each connection dials the hub.
pub fn acp(hub: &Address) -> Router {
    let _ = hub;
    Router::new()
}
