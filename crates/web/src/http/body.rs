//! The body of a request with a time limit.

use super::limits::BODY_TIMEOUT;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// A body that must arrive within [`BODY_TIMEOUT`].
#[derive(Debug)]
struct TimedBody {
    incoming: Incoming,
    late: Pin<Box<Sleep>>,
}

/// Why a body is incomplete.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the body did not arrive within {} s", BODY_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the body could not be read")]
    Broken(#[source] hyper::Error),
}

/// Adds the time limit, unless the body is empty.
pub(super) fn with_time_limit(incoming: Incoming) -> Body {
    if incoming.is_end_stream() {
        return Body::empty();
    }
    Body::new(TimedBody { incoming, late: Box::pin(tokio::time::sleep(BODY_TIMEOUT)) })
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|it| it.map_err(BodyError::Broken))),
            Poll::Pending => self.late.as_mut().poll(cx).map(|()| Some(Err(BodyError::TimedOut))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
