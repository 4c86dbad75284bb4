//! Extractors for bodies, queries and paths. Every rejection is an [`ApiError`].

use crate::rest::error::{ApiError, ErrorCode};
use axum::{
    extract::{
        FromRequest, FromRequestParts, Path, Query, Request,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::{StatusCode, request::Parts},
};
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::ToSchema;

/// A JSON body.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<JsonBody<T>, ApiError> {
        let read = axum::Json::<T>::from_request(request, state).await;
        read.map(|axum::Json(it)| JsonBody(it)).map_err(|it| reject_body(&it))
    }
}

fn reject_body(rejection: &JsonRejection) -> ApiError {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::UnsupportedMediaType,
        StatusCode::UNPROCESSABLE_ENTITY => ErrorCode::ValidationFailed,
        _ => ErrorCode::BadRequest,
    };
    ApiError::new(code, rejection.body_text())
}

/// The query parameters of a URL.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<QueryParams<T>, ApiError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let reject = |it: QueryRejection| ApiError::invalid(it.body_text());
        read.map(|Query(it)| QueryParams(it)).map_err(reject)
    }
}

/// The parameters in the path.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathParams<T>, ApiError> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        // A path with an invalid parameter names a resource that cannot exist.
        let reject = |it: PathRejection| ApiError::not_found(it.body_text());
        read.map(|Path(it)| PathParams(it)).map_err(reject)
    }
}

/// The number of an event or a turn. JSON numbers of the API have 63 bits.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct LogNumber(pub(crate) u64);

impl TryFrom<u64> for LogNumber {
    type Error = String;

    fn try_from(number: u64) -> Result<LogNumber, String> {
        let is_valid = i64::try_from(number).is_ok();
        is_valid.then_some(LogNumber(number)).ok_or_else(|| format!("{number} is too large"))
    }
}

/// A boolean query parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
pub(crate) enum QueryFlag {
    #[default]
    #[serde(rename = "0")]
    Zero,
    #[serde(rename = "false")]
    False,
    #[serde(rename = "1")]
    One,
    #[serde(rename = "true")]
    True,
}

impl QueryFlag {
    pub(crate) fn is_set(self) -> bool {
        matches!(self, QueryFlag::One | QueryFlag::True)
    }
}

/// The `Last-Event-ID` header, which browsers send when they reconnect.
#[derive(Debug)]
pub(crate) struct LastEventId(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for LastEventId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<LastEventId, ApiError> {
        let header = parts.headers.get("last-event-id");
        let invalid = |_| ApiError::invalid("`Last-Event-ID` is not a valid event id");
        let header = header.map(|it| it.to_str().map(str::to_owned).map_err(invalid));
        header.transpose().map(LastEventId)
    }
}

impl LastEventId {
    /// The position to start after. The header takes precedence, because a reconnecting client has read
    /// more than `after` in its URL says. Both must be valid ids.
    pub(crate) fn resolve_position<T>(
        self,
        after: Option<&str>,
        parse: impl Fn(&str) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        let after = after.map(&parse).transpose()?;
        let last = self.0.filter(|it| !it.is_empty());
        Ok(last.as_deref().map(&parse).transpose()?.or(after))
    }
}
