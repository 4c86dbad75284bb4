//! What a client hears: the streams of a connection as server-sent events. And how it leaves.

use super::connection::Connection;
use super::limits::STILL_HERE;
use super::{CONNECTION_ID, SESSION_ID, Shared, refuse, unknown_connection};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::Stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Interval, interval};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies of the nginx kind not to collect events before they pass them on.
const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) async fn listen(shared: &Shared, headers: &HeaderMap) -> Response {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    if !accepts.into_iter().any(|it| it.to_ascii_lowercase().contains("text/event-stream")) {
        return refuse(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream");
    }
    let Some(id) = headers.get(CONNECTION_ID) else {
        return refuse(StatusCode::BAD_REQUEST, "the header Acp-Connection-Id is missing");
    };
    let Some(connection) = shared.connections.find(id) else { return unknown_connection() };
    let Ok(session) = headers.get(SESSION_ID).map(HeaderValue::to_str).transpose() else {
        return refuse(StatusCode::BAD_REQUEST, "Acp-Session-Id is no plain text");
    };
    // What is no text cannot be an id of ours: it is answered as any other that is unknown.
    let last = headers.get(LAST_EVENT_ID).map(|it| it.to_str().unwrap_or("?"));
    let Some(entered) = connection.enter(session, last) else {
        return refuse(StatusCode::NOT_FOUND, "too many session streams are open");
    };
    let events = Events {
        connection: Arc::clone(&connection),
        session: session.map(str::to_owned),
        number: entered.number,
        still_here: still_here(),
    };
    if let Some(ask) = &entered.ask {
        tracing::debug!(session, last, "a stream is told again from the journal");
        if connection.say(ask).await.is_err() {
            return unknown_connection();
        }
    }
    let mut response = Response::new(Body::from_stream(events));
    let answer = response.headers_mut();
    let event_stream = HeaderValue::from_static("text/event-stream");
    answer.insert(header::CONTENT_TYPE, event_stream);
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.insert(NO_BUFFER, HeaderValue::from_static("no"));
    answer.insert(CONNECTION_ID, id.clone());
    answer.extend(headers.get(SESSION_ID).map(|it| (SESSION_ID, it.clone())));
    response
}

pub(super) async fn on_delete(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let Some(id) = headers.get(CONNECTION_ID) else {
        return refuse(StatusCode::BAD_REQUEST, "the header Acp-Connection-Id is missing");
    };
    let Some(connection) = shared.connections.forget(id) else { return unknown_connection() };
    connection.end();
    StatusCode::ACCEPTED.into_response()
}

/// The body of a stream: it takes from the mailbox what its client takes from it.
struct Events {
    connection: Arc<Connection>,
    session: Option<String>,
    number: u64,
    still_here: Interval,
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let taken = self.connection.poll_take(cx, self.session.as_deref(), self.number);
        if let Poll::Ready(piece) = taken {
            self.still_here.reset();
            return Poll::Ready(piece.map(Ok));
        }
        self.still_here.poll_tick(cx).map(|_| Some(Ok(Bytes::from_static(b":\n\n"))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.leave(self.session.as_deref(), self.number);
    }
}

fn still_here() -> Interval {
    let mut interval = interval(STILL_HERE);
    interval.reset();
    interval
}
