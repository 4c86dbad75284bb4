//! The body of a request with a time limit, and that of a response which ends with its device.

use super::limits::BODY_TIMEOUT;
use crate::login::DeviceSession;
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

/// A streaming body that ends when the device of its request is revoked.
struct DeviceBody {
    body: Body,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Ends a body with its device, unless the body is already complete.
pub(super) fn end_with_device(body: Body, device: DeviceSession) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    Body::new(DeviceBody { body, revoked: Box::pin(device.wait_revoked()) })
}

impl HttpBody for DeviceBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.revoked.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
