//! ACP at `/acp`: over WebSocket, and as streamable HTTP.
//!
//! Read in this order: `ws` carries messages between a WebSocket and the hub. Over HTTP a `post`
//! opens a `connection`, which speaks with the hub for all later requests (`connections` finds it
//! again); what the hub says goes by the `switchboard` to a `stream`, and waits in its `mailbox` until
//! a `get` reads it. Every event has an id, a `cursor`; who comes back with one goes on
//! behind it, if need be with a `retelling` from the journal. `message` is what is read in messages,
//! `pulse` says who is still there, `limits` holds every bound.
//!
//! **Invariant:** a frame is handed to a reader once, unless the reader says that it did not get it.
//!
//! **Invariant:** what nobody reads has a bound; then the hub is not read on, and keeps the rest.

mod connection;
mod connections;
mod cursor;
mod get;
mod limits;
mod mailbox;
mod message;
mod post;
mod pulse;
mod retelling;
mod stream;
mod switchboard;
mod ws;

use self::limits::WS_READ_BYTES;
use super::limits::ACP_BODY_BYTES_MAX;
use crate::dial::{DialError, Dialer};
use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use connections::Connections;
use std::sync::Arc;

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// What all requests share.
#[derive(Debug)]
struct Shared {
    hub: Dialer,
    connections: Connections,
}

/// The protocol itself; each connection dials the hub.
pub fn acp(hub: &Dialer) -> Router {
    let shared = Arc::new(Shared { hub: hub.clone(), connections: Connections::default() });
    let methods = get(on_get).post(post::on_post).delete(get::on_delete);
    Router::new().route("/acp", methods).with_state(shared)
}

/// A WebSocket, or a stream of events.
async fn on_get(
    State(shared): State<Arc<Shared>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    headers: HeaderMap,
) -> Response {
    let wanted = headers.get(header::UPGRADE).and_then(|it| it.to_str().ok());
    match upgrade {
        Ok(upgrade) => self::upgrade(&shared, upgrade).await,
        Err(refusal) if wanted.is_some_and(|it| it.eq_ignore_ascii_case("websocket")) => {
            refusal.into_response()
        }
        Err(_) => get::listen(&shared, &headers).await,
    }
}

async fn upgrade(shared: &Shared, upgrade: WebSocketUpgrade) -> Response {
    let hub = match shared.hub.dial().await {
        Ok(hub) => hub,
        Err(error) => return unreachable_hub(&error),
    };
    let upgrade = upgrade.max_message_size(ACP_BODY_BYTES_MAX).max_frame_size(ACP_BODY_BYTES_MAX);
    let upgrade = upgrade.read_buffer_size(WS_READ_BYTES).protocols(["acp"]);
    let mut response = upgrade.on_upgrade(move |socket| ws::carry(socket, hub));
    response.headers_mut().insert(CONNECTION_ID, random_id());
    response
}

/// 128 bits nobody can guess: whoever knows the id of a connection speaks for it.
fn random_id() -> HeaderValue {
    let mut bytes = [0; 16];
    // The token could not have been made without it.
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    HeaderValue::from_str(&format!("{:032x}", u128::from_ne_bytes(bytes))).expect("hex digits")
}

fn unreachable_hub(error: &DialError) -> Response {
    tracing::warn!(%error, "the web front cannot reach its hub");
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon takes no connection now; try again")
}

fn unknown_connection() -> Response {
    refuse(StatusCode::NOT_FOUND, "no such connection, or it has ended; say `initialize` again")
}

fn refuse(status: StatusCode, why: &'static str) -> Response {
    (status, format!("{why}\n")).into_response()
}
