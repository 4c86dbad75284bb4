//! Errors in the formats of the providers.

use serde_json::{Value, json};

use super::dialect::DialectRequest;

#[derive(Debug)]
pub(crate) struct ProviderError {
    pub(crate) status: u16,
    /// Anthropic's `type`.
    pub(crate) kind: &'static str,
    /// `OpenAI`'s `code`.
    pub(crate) code: &'static str,
    /// Google's `status`.
    pub(crate) rpc_status: &'static str,
    pub(crate) message: &'static str,
}

const PROVIDER_ERRORS: &[ProviderError] = &[
    ProviderError {
        status: 400,
        kind: "invalid_request_error",
        code: "context_length_exceeded",
        rpc_status: "INVALID_ARGUMENT",
        message: "prompt is too long: 250000 tokens > 200000 maximum (fake 400)",
    },
    ProviderError {
        status: 401,
        kind: "authentication_error",
        code: "invalid_api_key",
        rpc_status: "UNAUTHENTICATED",
        message: "Incorrect API key provided: test-***. (fake 401)",
    },
    ProviderError {
        status: 403,
        kind: "permission_error",
        code: "forbidden",
        rpc_status: "PERMISSION_DENIED",
        message: "Forbidden (fake 403)",
    },
    ProviderError {
        status: 404,
        kind: "not_found_error",
        code: "model_not_found",
        rpc_status: "NOT_FOUND",
        message: "The model does not exist (fake 404)",
    },
    ProviderError {
        status: 429,
        kind: "rate_limit_error",
        code: "rate_limit_exceeded",
        rpc_status: "RESOURCE_EXHAUSTED",
        message: "Rate limit reached (fake 429)",
    },
    ProviderError {
        status: 500,
        kind: "api_error",
        code: "server_error",
        rpc_status: "INTERNAL",
        message: "The server had an error (fake 500)",
    },
    ProviderError {
        status: 529,
        kind: "overloaded_error",
        code: "overloaded",
        rpc_status: "UNAVAILABLE",
        message: "Overloaded (fake 529)",
    },
];

/// The error of a status; unknown ones are formatted like 500.
pub(crate) fn provider_error_of(status: u16) -> &'static ProviderError {
    let known = PROVIDER_ERRORS.iter().find(|it| it.status == status);
    known.or(PROVIDER_ERRORS.iter().find(|it| it.status == 500)).expect("500 is in the table")
}

/// The format of both APIs of `OpenAI`. An invalid key is an invalid request there.
pub(crate) fn openai_error(_: &DialectRequest<'_>, provider_error: &ProviderError) -> Value {
    let kind =
        if provider_error.status == 401 { "invalid_request_error" } else { provider_error.kind };
    let error = json!({
        "message": provider_error.message, "type": kind, "param": null, "code": provider_error.code,
    });
    json!({"error": error})
}
