//! REST and server-sent events in front of a daemon: an ACP client of it, and nothing more.

use axum::{Router, routing::get};
use jackfield_clients::Address;

/// What the API is told when it starts.
#[derive(Debug, Clone)]
pub struct Front {
    /// The hub, which is dialled for every client.
    pub hub: Address,
}

/// All routes.
pub fn routes(front: &Front) -> Router {
    let _ = front;
    Router::new().route("/healthz", get(async || "ok\n"))
}
