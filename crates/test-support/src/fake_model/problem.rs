//! Errors, as providers describe them.

use serde_json::{Value, json};

use super::dialect::Asked;

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    /// What Anthropic calls its kind.
    pub(crate) kind: &'static str,
    /// What `OpenAI` calls it.
    pub(crate) code: &'static str,
    /// What Google calls it.
    pub(crate) rpc_status: &'static str,
    pub(crate) message: &'static str,
}

const PROBLEMS: &[Problem] = &[
    Problem {
        status: 400,
        kind: "invalid_request_error",
        code: "context_length_exceeded",
        rpc_status: "INVALID_ARGUMENT",
        message: "prompt is too long: 250000 tokens > 200000 maximum (fake 400)",
    },
    Problem {
        status: 401,
        kind: "authentication_error",
        code: "invalid_api_key",
        rpc_status: "UNAUTHENTICATED",
        message: "Incorrect API key provided: test-***. (fake 401)",
    },
    Problem {
        status: 403,
        kind: "permission_error",
        code: "forbidden",
        rpc_status: "PERMISSION_DENIED",
        message: "Forbidden (fake 403)",
    },
    Problem {
        status: 404,
        kind: "not_found_error",
        code: "model_not_found",
        rpc_status: "NOT_FOUND",
        message: "The model does not exist (fake 404)",
    },
    Problem {
        status: 429,
        kind: "rate_limit_error",
        code: "rate_limit_exceeded",
        rpc_status: "RESOURCE_EXHAUSTED",
        message: "Rate limit reached (fake 429)",
    },
    Problem {
        status: 500,
        kind: "api_error",
        code: "server_error",
        rpc_status: "INTERNAL",
        message: "The server had an error (fake 500)",
    },
    Problem {
        status: 529,
        kind: "overloaded_error",
        code: "overloaded",
        rpc_status: "UNAVAILABLE",
        message: "Overloaded (fake 529)",
    },
];

/// The problem for a status; any other one is described like 500.
pub(crate) fn problem_of(status: u16) -> &'static Problem {
    let known = PROBLEMS.iter().find(|it| it.status == status);
    known.or(PROBLEMS.iter().find(|it| it.status == 500)).expect("500 is in the table")
}

/// The shape both APIs of `OpenAI` share. A bad key is an invalid request there.
pub(crate) fn openai_error(_: &Asked<'_>, problem: &Problem) -> Value {
    let kind = if problem.status == 401 { "invalid_request_error" } else { problem.kind };
    let error = json!({
        "message": problem.message, "type": kind, "param": null, "code": problem.code,
    });
    json!({"error": error})
}
