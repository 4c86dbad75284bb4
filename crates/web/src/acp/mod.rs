//! ACP at `/acp`: over WebSocket, and as streamable HTTP.
//!
//! Read in this order: `websocket` relays messages between a WebSocket and the hub.
//! Over HTTP a `post` opens an `http_connection`, which has one connection to the hub
//! for all later requests (`http_connections` has all of them by id). The `stream_router` routes
//! the hub's messages to an `sse_stream`, where a `stream_buffer` holds them until a `get` reads
//! them. Every event has an id, a `cursor`; a reader that returns with one continues after it, if
//! necessary with a `journal_replay`. `message` parses and changes messages, `peer_activity`
//! detects dead peers, `limits` has every limit.
//!
//! **Invariant:** a frame is delivered to a reader once, unless the reader reports that it did not
//! receive it.
//!
//! **Invariant:** unread data is limited. At the limit the hub is not read, and keeps the rest.

mod cursor;
mod get;
mod http_connection;
mod http_connections;
mod journal_replay;
mod limits;
mod message;
mod peer_activity;
mod post;
mod sse_stream;
mod stream_buffer;
mod stream_router;
mod websocket;

use self::limits::WS_READ_BYTES;
use crate::http::limits::ACP_BODY_BYTES_MAX;
use crate::login::DeviceSession;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http_connections::HttpConnections;
use jackfield_transport::{DialError, HubDialer};
use std::sync::Arc;

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// The state that all requests share.
#[derive(Debug)]
struct AcpState {
    hub: HubDialer,
    connections: HttpConnections,
}

/// The routes of ACP. Each connection dials the hub.
pub fn acp_routes(hub: &HubDialer) -> Router {
    let state = Arc::new(AcpState { hub: hub.clone(), connections: HttpConnections::default() });
    let methods = get(on_get).post(post::on_post).delete(get::on_delete);
    Router::new().route("/acp", methods).with_state(state)
}

/// Handles a WebSocket upgrade or a request for an event stream.
async fn on_get(
    State(state): State<Arc<AcpState>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    device: Option<Extension<DeviceSession>>,
    headers: HeaderMap,
) -> Response {
    let wanted = headers.get(header::UPGRADE).and_then(|it| it.to_str().ok());
    match upgrade {
        Ok(upgrade) => self::upgrade(&state, upgrade, device.map(|Extension(it)| it)).await,
        Err(refusal) if wanted.is_some_and(|it| it.eq_ignore_ascii_case("websocket")) => {
            refusal.into_response()
        }
        Err(_) => get::open_event_stream(&state, &headers).await,
    }
}

async fn upgrade(
    state: &AcpState,
    upgrade: WebSocketUpgrade,
    device: Option<DeviceSession>,
) -> Response {
    let hub = match state.hub.dial().await {
        Ok(hub) => hub,
        Err(error) => return unreachable_hub(&error),
    };
    let upgrade = upgrade.max_message_size(ACP_BODY_BYTES_MAX).max_frame_size(ACP_BODY_BYTES_MAX);
    let upgrade = upgrade.read_buffer_size(WS_READ_BYTES).protocols(["acp"]);
    let mut response =
        upgrade.on_upgrade(move |socket| websocket::relay_messages(socket, hub, device));
    response.headers_mut().insert(CONNECTION_ID, random_id());
    response
}

/// A random id of 128 bits. It must not be guessable, because it authorizes requests on the
/// connection.
fn random_id() -> HeaderValue {
    let mut bytes = [0; 16];
    // The token could not have been created without random bytes either.
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    HeaderValue::from_str(&format!("{:032x}", u128::from_ne_bytes(bytes))).expect("hex digits")
}

fn unreachable_hub(error: &DialError) -> Response {
    tracing::warn!(%error, "the web front failed to reach its hub");
    refusal_response(
        StatusCode::SERVICE_UNAVAILABLE,
        "the daemon accepts no connections now; try again",
    )
}

fn unknown_connection() -> Response {
    refusal_response(StatusCode::NOT_FOUND, "unknown or closed connection; send `initialize` again")
}

fn refusal_response(status: StatusCode, why: &'static str) -> Response {
    (status, format!("{why}\n")).into_response()
}
