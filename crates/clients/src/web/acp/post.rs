//! What a client posts: the hello that opens a connection, and then one message at a time.

use super::connection::Connection;
use super::{CONNECTION_ID, SESSION_ID, Shared, message, random_id};
use super::{refuse, unknown_connection, unreachable_hub};
use crate::web::limits::ACP_BODY_BYTES_MAX;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use jackfield_wire::{Fault, Frame, Kind};
use std::sync::Arc;

pub(super) async fn on_post(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
    }
    let frame = match read(&head.headers, body).await {
        Ok(frame) => frame,
        Err(refusal) => return refusal,
    };
    let connection = head.headers.get(CONNECTION_ID);
    match (frame.method().as_deref(), connection) {
        (Some("initialize"), None) if frame.kind() == Kind::Request => open(&shared, frame).await,
        (Some("initialize"), Some(_)) => {
            refuse(StatusCode::BAD_REQUEST, "this connection has said `initialize` already")
        }
        (_, None) => refuse(StatusCode::BAD_REQUEST, "the header Acp-Connection-Id is missing"),
        (_, Some(id)) => pass_on(&shared, id, head.headers.get(SESSION_ID), frame).await,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The whole body, as one message.
async fn read(headers: &HeaderMap, body: Body) -> Result<Frame, Response> {
    let too_long = || refuse(StatusCode::PAYLOAD_TOO_LARGE, "a message may have 16 MiB");
    let length = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    // Refused before it is read, where it says how long it is.
    if length.and_then(|it| it.parse().ok()).is_some_and(|it: usize| ACP_BODY_BYTES_MAX < it) {
        return Err(too_long());
    }
    let mut text = BytesMut::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let cut_off = |_| refuse(StatusCode::BAD_REQUEST, "the body is not whole");
        let piece = piece.map_err(cut_off)?;
        if ACP_BODY_BYTES_MAX < text.len() + piece.len() {
            return Err(too_long());
        }
        text.extend_from_slice(&piece);
    }
    Frame::parse(text.freeze()).map_err(|malformed| {
        let refusal = Frame::error_for("null", &Fault::from(malformed));
        json(StatusCode::BAD_REQUEST, refusal.bytes().clone())
    })
}

/// Opens a connection; the answer to the hello is the answer to the request.
async fn open(shared: &Arc<Shared>, hello: Frame) -> Response {
    if !shared.connections.has_room() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open; end some");
    }
    let hub = match shared.hub.dial().await {
        Ok(hub) => hub,
        Err(error) => return unreachable_hub(&error),
    };
    let connection = Connection::open(shared, hub, random_id());
    shared.connections.add(&connection);
    let unborn = Unborn(Some(&connection));
    let Ok(answer) = connection.hello(&message::with_seqs(hello)).await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping");
    };
    unborn.live();
    let mut response = json(StatusCode::OK, answer.bytes().clone());
    response.headers_mut().insert(CONNECTION_ID, connection.id.clone());
    response
}

/// A connection whose id nobody knows yet: if the request is given up, so is the connection.
struct Unborn<'a>(Option<&'a Connection>);

impl Unborn<'_> {
    fn live(mut self) {
        self.0 = None;
    }
}

impl Drop for Unborn<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.end();
        }
    }
}

async fn pass_on(
    shared: &Shared,
    id: &HeaderValue,
    session: Option<&HeaderValue>,
    frame: Frame,
) -> Response {
    let Some(connection) = shared.connections.find(id) else { return unknown_connection() };
    let session = match session.map(HeaderValue::to_str) {
        Some(Err(_)) => return refuse(StatusCode::BAD_REQUEST, "Acp-Session-Id is no plain text"),
        Some(Ok(session)) => Some(session),
        None => None,
    };
    let (frame, session) = match message::about(frame, session) {
        Ok(about) => about,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, why),
    };
    match connection.post(&frame, session).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => unknown_connection(),
    }
}

fn json(status: StatusCode, text: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
