//! Reading requests: bodies, queries and paths, with every refusal as an [`ApiError`].

use crate::rest::error::{ApiError, Code};
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
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, ApiError> {
        let read = axum::Json::<T>::from_request(request, state).await;
        read.map(|axum::Json(it)| Body(it)).map_err(|it| refused(&it))
    }
}

fn refused(rejection: &JsonRejection) -> ApiError {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::UnsupportedMediaType,
        StatusCode::UNPROCESSABLE_ENTITY => Code::ValidationFailed,
        _ => Code::BadRequest,
    };
    ApiError::new(code, rejection.body_text())
}

/// The query of a URL.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, ApiError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let refused = |it: QueryRejection| ApiError::invalid(it.body_text());
        read.map(|Query(it)| Params(it)).map_err(refused)
    }
}

/// What stands in the path.
#[derive(Debug)]
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named<T>, ApiError> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        // A path that names nothing we could have is a thing that is not there.
        let refused = |it: PathRejection| ApiError::not_found(it.body_text());
        read.map(|Path(it)| Named(it)).map_err(refused)
    }
}

/// A flag in a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
pub(crate) enum Flag {
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

impl Flag {
    pub(crate) fn is_set(self) -> bool {
        matches!(self, Flag::One | Flag::True)
    }
}

/// The id of the last event that a reader has, as browsers say it when they come again.
#[derive(Debug)]
pub(crate) struct LastEventId(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for LastEventId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<LastEventId, ApiError> {
        let said = parts.headers.get("last-event-id");
        let unreadable = |_| ApiError::invalid("`Last-Event-ID` is none of our ids");
        let said = said.map(|it| it.to_str().map(str::to_owned).map_err(unreadable));
        said.transpose().map(LastEventId)
    }
}

impl LastEventId {
    /// Where to begin. A reader that comes again has read more than `after` in its URL says; but what stands there must
    /// be one of our ids, too.
    pub(crate) fn or<T>(
        self,
        after: Option<&str>,
        parse: impl Fn(&str) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        let after = after.map(&parse).transpose()?;
        let last = self.0.filter(|it| !it.is_empty());
        Ok(last.as_deref().map(&parse).transpose()?.or(after))
    }
}
