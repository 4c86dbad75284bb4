//! The body of a request that has to come within its time.

use super::limits::BODY_WITHIN;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// A body of which a part may be missing for only so long.
#[derive(Debug)]
struct Timed {
    incoming: Incoming,
    late: Pin<Box<Sleep>>,
}

/// Why a body ended before its end.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the body did not come within {} s", BODY_WITHIN.as_secs())]
    Late,
    #[error("the body could not be read")]
    Broken(#[source] hyper::Error),
}

/// The body, with a clock if there is one to wait for.
pub(super) fn timed(incoming: Incoming) -> Body {
    if incoming.is_end_stream() {
        return Body::empty();
    }
    Body::new(Timed { incoming, late: Box::pin(tokio::time::sleep(BODY_WITHIN)) })
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|it| it.map_err(BodyError::Broken))),
            Poll::Pending => self.late.as_mut().poll(cx).map(|()| Some(Err(BodyError::Late))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
