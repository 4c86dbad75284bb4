//! Error responses: an HTTP status, a stable code and a message.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use jackfield_hub_client::{ErrorResponse, HubClientError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A stable error code for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = Code)]
pub(crate) enum ErrorCode {
    /// The request is malformed.
    BadRequest,
    /// The request is well-formed, but a value is not allowed.
    ValidationFailed,
    /// The daemon's configuration does not allow this to the client or its origin.
    Forbidden,
    NotFound,
    FileNotFound,
    MethodNotAllowed,
    /// Another client was faster, or the object has ended.
    Conflict,
    /// The first request with this `Idempotency-Key` is still opening its session.
    IdempotencyKeyInUse,
    /// This `Idempotency-Key` was used for another request.
    IdempotencyKeyReused,
    PayloadTooLarge,
    UnsupportedMediaType,
    /// Too many requests at once.
    RateLimited,
    /// The agent is not installed, or failed to start.
    AgentUnavailable,
    AgentAuthRequired,
    /// The agent failed or refused.
    AgentExecutionFailed,
    /// The agent or the daemon exited during the run.
    AgentConnectionDropped,
    /// The hub cannot be reached.
    UpstreamUnavailable,
    InternalError,
}

impl ErrorCode {
    fn status(self) -> StatusCode {
        match self {
            ErrorCode::BadRequest | ErrorCode::ValidationFailed | ErrorCode::FileNotFound => {
                StatusCode::BAD_REQUEST
            }
            ErrorCode::Forbidden => StatusCode::FORBIDDEN,
            ErrorCode::NotFound => StatusCode::NOT_FOUND,
            ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorCode::Conflict | ErrorCode::IdempotencyKeyInUse => StatusCode::CONFLICT,
            ErrorCode::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            // The request and the daemon are fine; a dependency is missing.
            ErrorCode::AgentUnavailable | ErrorCode::AgentAuthRequired => {
                StatusCode::FAILED_DEPENDENCY
            }
            ErrorCode::AgentExecutionFailed | ErrorCode::AgentConnectionDropped => {
                StatusCode::BAD_GATEWAY
            }
            ErrorCode::UpstreamUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed later.
    fn is_retryable(self) -> bool {
        matches!(
            self,
            ErrorCode::RateLimited
                | ErrorCode::UpstreamUnavailable
                | ErrorCode::IdempotencyKeyInUse
        )
    }
}

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({ "code": "NOT_FOUND", "message": "no session `s-7f3abcdefghi`" }))]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    /// What failed, why, and how to resolve it.
    pub(crate) message: String,
    /// The same request may succeed later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) retryable: bool,
    /// Further details, for human readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}

/// The body of every error response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ApiError,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        let retryable = code.is_retryable();
        ApiError { code, message: message.into(), retryable, details: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(ErrorCode::BadRequest, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(ErrorCode::ValidationFailed, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(ErrorCode::NotFound, message)
    }

    /// Converts an error response of an agent or of the hub.
    pub(crate) fn from_response(error: &ErrorResponse) -> ApiError {
        let message = error.message().unwrap_or("the agent gave no reason").to_owned();
        let code = match (error.error_name(), error.code()) {
            ("session_not_found" | "ask_not_found" | "prompt_not_waiting", _) => {
                ErrorCode::NotFound
            }
            ("ask_settled" | "fenced", _) => ErrorCode::Conflict,
            ("key_reused", _) => ErrorCode::IdempotencyKeyReused,
            ("key_in_use", _) => ErrorCode::IdempotencyKeyInUse,
            ("invalid_params" | "invalid_request" | "no_agent", _) => ErrorCode::BadRequest,
            ("not_allowed", _) => ErrorCode::Forbidden,
            ("overloaded" | "quota", _) => ErrorCode::RateLimited,
            ("stopping" | "storage_failing", _) => ErrorCode::UpstreamUnavailable,
            ("agent_not_started" | "agent_suspended" | "cannot_resume", _) => {
                ErrorCode::AgentUnavailable
            }
            ("agent_gone" | "interrupted", _) => ErrorCode::AgentConnectionDropped,
            ("internal", _) => ErrorCode::InternalError,
            ("", AUTH_REQUIRED) => ErrorCode::AgentAuthRequired,
            _ => ErrorCode::AgentExecutionFailed,
        };
        let details = Some(error.data()).filter(|it| !it.is_null()).cloned();
        ApiError { details, ..ApiError::new(code, message) }
    }
}

/// The JSON-RPC error code of ACP for a required login.
const AUTH_REQUIRED: i64 = -32000;

impl From<HubClientError> for ApiError {
    fn from(error: HubClientError) -> ApiError {
        match error {
            HubClientError::Refused(error) => ApiError::from_response(&error),
            other => {
                let hint = "the daemon may be starting or stopping: try again";
                ApiError::new(ErrorCode::UpstreamUnavailable, format!("{other}; {hint}"))
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let mut response = (status, Json(ErrorBody { error: self })).into_response();
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_protocol::Fault;
    use serde_json::json;

    fn convert_object(error: Value) -> ApiError {
        ApiError::from_response(&ErrorResponse::new(error))
    }

    fn convert(fault: &Fault) -> (u16, ApiError) {
        let error = convert_object(serde_json::from_str(&fault.to_json()).unwrap());
        (error.code.status().as_u16(), error)
    }

    #[test]
    fn hub_fault_has_a_status_and_keeps_message_and_details() {
        let (status, error) = convert(&Fault::SessionNotFound { session: "s-1".into() });
        assert_eq!((status, error.code), (404, ErrorCode::NotFound));
        assert_eq!(error.message, "no session `s-1`");
        assert_eq!(error.details.unwrap()["jackfield"]["code"], "session_not_found");
        let text = String::new;
        let settled = Fault::AskSettled { session: text(), ask: text(), how: text() };
        assert_eq!(convert(&settled).0, 409);
        assert_eq!(convert(&Fault::Overloaded { what: text() }).0, 429);
        assert!(convert(&Fault::Stopping).1.retryable);
        assert_eq!(convert(&Fault::KeyReused { key: text(), session: text() }).0, 422);
        let in_use = convert(&Fault::KeyInUse { key: text() });
        assert_eq!((in_use.0, in_use.1.retryable), (409, true));
        let gone = Fault::AgentGone { agent: text(), status: text(), stderr: text() };
        assert_eq!(convert(&gone).0, 502);
    }

    #[test]
    fn agent_error_is_a_failure_unless_it_requires_a_login() {
        let login = convert_object(json!({ "code": -32000, "message": "log in" }));
        assert_eq!((login.code, login.message.as_str()), (ErrorCode::AgentAuthRequired, "log in"));
        let other = convert_object(json!({ "code": -32603, "message": "boom" }));
        assert_eq!(other.code, ErrorCode::AgentExecutionFailed);
    }

    #[test]
    fn error_body_has_the_code_and_omits_empty_members() {
        let body = ErrorBody { error: ApiError::bad_request("message required") };
        let expected = json!({ "error": { "code": "BAD_REQUEST", "message": "message required" } });
        assert_eq!(serde_json::to_value(body).unwrap(), expected);
    }
}
