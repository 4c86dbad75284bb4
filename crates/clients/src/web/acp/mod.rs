//! ACP at `/acp`: over WebSocket, and as streamable HTTP.
//!
//! Read in this order: `ws` carries messages between a WebSocket and the hub. `open` counts who is
//! connected, `pulse` says who is still there.

mod open;
mod pulse;
mod ws;

pub use open::Open;

use crate::address::Address;
use crate::dial::{DialError, dial};
use axum::Router;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Arc;

/// The longest message a client may send: what the hub accepts.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// The longest message of the hub: an agent's longest, inside a notice of ours.
const HEARD_BYTES_MAX: usize = 64 << 20;

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");

/// The routes of the protocol, and who uses them.
#[derive(Debug)]
pub struct Acp {
    pub routes: Router,
    pub open: Open,
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    hub: Address,
    open: Open,
}

/// The protocol itself; each connection dials the hub.
pub fn acp(hub: &Address) -> Acp {
    let open = Open::new();
    let shared = Arc::new(Shared { hub: hub.clone(), open: open.clone() });
    let routes = Router::new().route("/acp", get(on_get)).with_state(shared);
    Acp { routes, open }
}

async fn on_get(State(shared): State<Arc<Shared>>, upgrade: WebSocketUpgrade) -> Response {
    let hub = match dial(&shared.hub, None).await {
        Ok(hub) => hub,
        Err(error) => return unreachable_hub(&error),
    };
    let guest = shared.open.enter();
    let upgrade = upgrade.max_message_size(FRAME_BYTES_MAX).max_frame_size(FRAME_BYTES_MAX);
    let upgrade = upgrade.protocols(["acp"]);
    let mut response = upgrade.on_upgrade(move |socket| ws::carry(socket, hub, guest));
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
    let why = "the daemon takes no connection now; try again, or look into its log\n";
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}
