//! What a request is answered with when it cannot be served: a status, a stable code, a sentence.

use crate::rest::hub::Trouble;
use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Stable names: programs read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Code {
    /// The request cannot be understood.
    BadRequest,
    /// It can, but what it asks for is not allowed or does not fit.
    ValidationFailed,
    /// Whoever runs the daemon has not allowed it to this client, or to this page.
    Forbidden,
    NotFound,
    FileNotFound,
    MethodNotAllowed,
    /// Somebody was faster, or it is over.
    Conflict,
    /// The first request with this `Idempotency-Key` is still opening its session.
    IdempotencyKeyInUse,
    /// This `Idempotency-Key` was used for another request.
    IdempotencyKeyReused,
    PayloadTooLarge,
    UnsupportedMediaType,
    /// Too much at once.
    RateLimited,
    /// The agent is not on this machine, or cannot be started.
    AgentUnavailable,
    AgentAuthRequired,
    /// The agent failed, or refused.
    AgentExecutionFailed,
    /// The agent, or the daemon, ended in the middle.
    AgentConnectionDropped,
    /// The hub cannot be reached.
    UpstreamUnavailable,
    InternalError,
}

impl Code {
    fn status(self) -> StatusCode {
        match self {
            Code::BadRequest | Code::ValidationFailed | Code::FileNotFound => {
                StatusCode::BAD_REQUEST
            }
            Code::Forbidden => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::Conflict | Code::IdempotencyKeyInUse => StatusCode::CONFLICT,
            Code::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            // The request was good, and we are well: what it depends on is not there.
            Code::AgentUnavailable | Code::AgentAuthRequired => StatusCode::FAILED_DEPENDENCY,
            Code::AgentExecutionFailed | Code::AgentConnectionDropped => StatusCode::BAD_GATEWAY,
            Code::UpstreamUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed a little later.
    fn retryable(self) -> bool {
        matches!(self, Code::RateLimited | Code::UpstreamUnavailable | Code::IdempotencyKeyInUse)
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({ "code": "NOT_FOUND", "message": "no session `s-7f3abcdefghi`" }))]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    /// What happened, why, and the way out.
    pub(crate) message: String,
    /// The same request may succeed a little later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) retryable: bool,
    /// What else is known; for people who look closer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}

/// The body of every answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ApiError,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> ApiError {
        let retryable = code.retryable();
        ApiError { code, message: message.into(), retryable, details: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> ApiError {
        ApiError::new(Code::BadRequest, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(Code::ValidationFailed, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(Code::NotFound, message)
    }

    /// An error that an agent or the hub answered with: a JSON-RPC error object.
    pub(crate) fn of_answer(error: &Value) -> ApiError {
        let name = error.pointer("/data/jackfield/code").and_then(Value::as_str);
        let message = error["message"].as_str().unwrap_or("the agent gave no reason").to_owned();
        let code = match (name, error["code"].as_i64()) {
            (Some("session_not_found" | "ask_not_found" | "prompt_not_waiting"), _) => {
                Code::NotFound
            }
            (Some("ask_settled" | "fenced"), _) => Code::Conflict,
            (Some("key_reused"), _) => Code::IdempotencyKeyReused,
            (Some("key_in_use"), _) => Code::IdempotencyKeyInUse,
            (Some("invalid_params" | "invalid_request" | "no_agent"), _) => Code::BadRequest,
            (Some("not_allowed"), _) => Code::Forbidden,
            (Some("overloaded" | "quota"), _) => Code::RateLimited,
            (Some("stopping" | "storage_failing"), _) => Code::UpstreamUnavailable,
            (Some("agent_not_started" | "agent_suspended" | "cannot_resume"), _) => {
                Code::AgentUnavailable
            }
            (Some("agent_gone" | "interrupted"), _) => Code::AgentConnectionDropped,
            (Some("internal"), _) => Code::InternalError,
            (None, Some(AUTH_REQUIRED)) => Code::AgentAuthRequired,
            _ => Code::AgentExecutionFailed,
        };
        let details = error.get("data").filter(|it| !it.is_null()).cloned();
        ApiError { details, ..ApiError::new(code, message) }
    }
}

/// ACP's own code for it.
const AUTH_REQUIRED: i64 = -32000;

impl From<Trouble> for ApiError {
    fn from(trouble: Trouble) -> ApiError {
        match trouble {
            Trouble::Refused(error) => ApiError::of_answer(&error),
            other => {
                let way = "it may be about to stop or to start: try again";
                ApiError::new(Code::UpstreamUnavailable, format!("{other}; {way}"))
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

    fn of(fault: &Fault) -> (u16, ApiError) {
        let error = ApiError::of_answer(&serde_json::from_str(&fault.to_json()).unwrap());
        (error.code.status().as_u16(), error)
    }

    #[test]
    fn a_fault_of_the_hub_has_a_status_and_keeps_its_sentence_and_details() {
        let (status, error) = of(&Fault::SessionNotFound { session: "s-1".into() });
        assert_eq!((status, error.code), (404, Code::NotFound));
        assert_eq!(error.message, "no session `s-1`");
        assert_eq!(error.details.unwrap()["jackfield"]["code"], "session_not_found");
        let text = String::new;
        let settled = Fault::AskSettled { session: text(), ask: text(), how: text() };
        assert_eq!(of(&settled).0, 409);
        assert_eq!(of(&Fault::Overloaded { what: text() }).0, 429);
        assert!(of(&Fault::Stopping).1.retryable);
        assert_eq!(of(&Fault::KeyReused { key: text(), session: text() }).0, 422);
        let in_use = of(&Fault::KeyInUse { key: text() });
        assert_eq!((in_use.0, in_use.1.retryable), (409, true));
        let gone = Fault::AgentGone { agent: text(), status: text(), stderr: text() };
        assert_eq!(of(&gone).0, 502);
    }

    #[test]
    fn an_error_of_the_agents_own_is_its_failure_unless_it_wants_a_login() {
        let login = ApiError::of_answer(&json!({ "code": -32000, "message": "log in" }));
        assert_eq!((login.code, login.message.as_str()), (Code::AgentAuthRequired, "log in"));
        let other = ApiError::of_answer(&json!({ "code": -32603, "message": "boom" }));
        assert_eq!(other.code, Code::AgentExecutionFailed);
    }

    #[test]
    fn the_body_names_the_code_and_leaves_out_what_is_not_known() {
        let body = ErrorBody { error: ApiError::bad("message required") };
        let expected = json!({ "error": { "code": "BAD_REQUEST", "message": "message required" } });
        assert_eq!(serde_json::to_value(body).unwrap(), expected);
    }
}
