//! The streams of a connection as server-sent events, and the request that closes a connection.

use super::http_connection::HttpConnection;
use super::limits::KEEPALIVE_INTERVAL;
use super::{AcpState, CONNECTION_ID, SESSION_ID, refusal_response, unknown_connection};
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
/// Asks proxies such as nginx not to buffer events.
const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) async fn open_event_stream(state: &AcpState, headers: &HeaderMap) -> Response {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    if !accepts.into_iter().any(|it| it.to_ascii_lowercase().contains("text/event-stream")) {
        return refusal_response(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream");
    }
    let Some(id) = headers.get(CONNECTION_ID) else {
        return refusal_response(
            StatusCode::BAD_REQUEST,
            "the header Acp-Connection-Id is missing",
        );
    };
    let Some(connection) = state.connections.find(id) else { return unknown_connection() };
    let Ok(session) = headers.get(SESSION_ID).map(HeaderValue::to_str).transpose() else {
        return refusal_response(StatusCode::BAD_REQUEST, "Acp-Session-Id is not plain text");
    };
    // An id that is not text is handled like any other unknown id.
    let last = headers.get(LAST_EVENT_ID).map(|it| it.to_str().unwrap_or("?"));
    let Some(registration) = connection.add_reader(session, last) else {
        return refusal_response(StatusCode::NOT_FOUND, "too many session streams are open");
    };
    let events = EventStreamBody {
        connection: Arc::clone(&connection),
        session: session.map(str::to_owned),
        number: registration.number,
        keepalive: keepalive_interval(),
    };
    if let Some(request) = &registration.replay_request {
        tracing::debug!(session, last, "replaying a stream from the journal");
        if connection.send(request).await.is_err() {
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

pub(super) async fn on_delete(State(state): State<Arc<AcpState>>, headers: HeaderMap) -> Response {
    let Some(id) = headers.get(CONNECTION_ID) else {
        return refusal_response(
            StatusCode::BAD_REQUEST,
            "the header Acp-Connection-Id is missing",
        );
    };
    let Some(connection) = state.connections.remove(id) else { return unknown_connection() };
    connection.close();
    StatusCode::ACCEPTED.into_response()
}

/// The body of an event stream. It reads the stream as fast as the client reads the body.
struct EventStreamBody {
    connection: Arc<HttpConnection>,
    session: Option<String>,
    number: u64,
    keepalive: Interval,
}

impl Stream for EventStreamBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.connection.poll_chunk(cx, self.session.as_deref(), self.number);
        if let Poll::Ready(chunk) = polled {
            self.keepalive.reset();
            return Poll::Ready(chunk.map(Ok));
        }
        self.keepalive.poll_tick(cx).map(|_| Some(Ok(Bytes::from_static(b":\n\n"))))
    }
}

impl Drop for EventStreamBody {
    fn drop(&mut self) {
        self.connection.remove_reader(self.session.as_deref(), self.number);
    }
}

fn keepalive_interval() -> Interval {
    let mut interval = interval(KEEPALIVE_INTERVAL);
    interval.reset();
    interval
}
