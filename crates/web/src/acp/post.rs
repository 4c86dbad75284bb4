//! The messages that a client posts: `initialize`, which opens a connection, and then one at a
//! time.

use super::http_connection::HttpConnection;
use super::{AcpState, CONNECTION_ID, SESSION_ID, message, random_id};
use super::{refusal_response, unknown_connection, unreachable_hub};
use crate::http::limits::ACP_BODY_BYTES_MAX;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use jackfield_protocol::{Fault, Frame, Kind, acp::Method};
use std::sync::Arc;

pub(super) async fn on_post(
    State(state): State<Arc<AcpState>>,
    request: Request<Body>,
) -> Response {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        return refusal_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type must be application/json",
        );
    }
    let frame = match read_frame(&head.headers, body).await {
        Ok(frame) => frame,
        Err(refusal) => return refusal,
    };
    let connection = head.headers.get(CONNECTION_ID);
    match (frame.known_method(), connection) {
        (Some(Method::Initialize), None) if frame.kind() == Kind::Request => {
            open_connection(&state, frame).await
        }
        (Some(Method::Initialize), Some(_)) => {
            refusal_response(StatusCode::BAD_REQUEST, "this connection is already initialized")
        }
        (_, None) => {
            refusal_response(StatusCode::BAD_REQUEST, "the header Acp-Connection-Id is missing")
        }
        (_, Some(id)) => forward_frame(&state, id, head.headers.get(SESSION_ID), frame).await,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Reads the whole body as one message.
async fn read_frame(headers: &HeaderMap, body: Body) -> Result<Frame, Response> {
    let too_long = || {
        refusal_response(StatusCode::PAYLOAD_TOO_LARGE, "the message exceeds the limit of 16 MiB")
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    // Refused before it is read if the length is known.
    if length.and_then(|it| it.parse().ok()).is_some_and(|it: usize| ACP_BODY_BYTES_MAX < it) {
        return Err(too_long());
    }
    let mut text = BytesMut::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let cut_off = |_| refusal_response(StatusCode::BAD_REQUEST, "the body is incomplete");
        let piece = piece.map_err(cut_off)?;
        if ACP_BODY_BYTES_MAX < text.len() + piece.len() {
            return Err(too_long());
        }
        text.extend_from_slice(&piece);
    }
    Frame::parse(text.freeze()).map_err(|malformed| {
        let refusal = Frame::error_for("null", &Fault::from(malformed));
        json_response(StatusCode::BAD_REQUEST, refusal.bytes().clone())
    })
}

/// Opens a connection. The hub's response to `initialize` is the response to the request.
async fn open_connection(state: &Arc<AcpState>, initialize: Frame) -> Response {
    if !state.connections.has_room() {
        return refusal_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections are open; close some",
        );
    }
    let hub = match state.hub.dial().await {
        Ok(hub) => hub,
        Err(error) => return unreachable_hub(&error),
    };
    let connection = HttpConnection::open(state, hub, random_id());
    state.connections.add(&connection);
    let pending = PendingConnection(Some(&connection));
    let request = message::request_sequence_numbers(initialize);
    let Ok(answer) = connection.initialize(&request).await else {
        return refusal_response(StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping");
    };
    pending.confirm();
    let mut response = json_response(StatusCode::OK, answer.bytes().clone());
    response.headers_mut().insert(CONNECTION_ID, connection.id.clone());
    response
}

/// A connection whose id the client does not know yet. If the request is dropped, it is closed.
struct PendingConnection<'a>(Option<&'a HttpConnection>);

impl PendingConnection<'_> {
    fn confirm(mut self) {
        self.0 = None;
    }
}

impl Drop for PendingConnection<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.close();
        }
    }
}

async fn forward_frame(
    state: &AcpState,
    id: &HeaderValue,
    session: Option<&HeaderValue>,
    frame: Frame,
) -> Response {
    let Some(connection) = state.connections.find(id) else { return unknown_connection() };
    let session = match session.map(HeaderValue::to_str) {
        Some(Err(_)) => {
            return refusal_response(StatusCode::BAD_REQUEST, "Acp-Session-Id is not plain text");
        }
        Some(Ok(session)) => Some(session),
        None => None,
    };
    let (frame, session) = match message::resolve_session(frame, session) {
        Ok(resolved) => resolved,
        Err(why) => return refusal_response(StatusCode::BAD_REQUEST, why),
    };
    match connection.post(&frame, session).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => unknown_connection(),
    }
}

fn json_response(status: StatusCode, text: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
