//! The wire APIs the server speaks. A new one is a file like `chat.rs` and a row here.

use std::io;

use serde_json::{Value, json};

use super::{chat, reply::Reply, script::Script, talk::Talk};

/// One wire API.
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    /// Whether a POST to this path is meant for it; any prefix may stand before.
    pub(crate) serves: fn(path: &str) -> bool,
    pub(crate) streams: fn(path: &str, body: &Value) -> bool,
    pub(crate) read: fn(body: &Value) -> Talk,
    /// The answer in one piece. `id` is unique; what stands before it is the dialect's business.
    pub(crate) whole: fn(body: &Value, script: &Script, id: &str) -> Value,
    /// The answer in events, the closing ones included.
    pub(crate) stream:
        fn(body: &Value, script: &Script, id: &str, &mut Reply<'_>) -> io::Result<()>,
    pub(crate) error: fn(&Problem) -> Value,
}

pub(crate) const DIALECTS: &[Dialect] = &[chat::DIALECT];

/// An error as providers describe it.
pub(crate) struct Problem {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
}

const PROBLEMS: &[Problem] = &[
    problem(
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "prompt is too long: 250000 tokens > 200000 maximum (fake 400)",
    ),
    problem(
        401,
        "authentication_error",
        "invalid_api_key",
        "Incorrect API key provided: test-***. (fake 401)",
    ),
    problem(403, "permission_error", "forbidden", "Forbidden (fake 403)"),
    problem(404, "not_found_error", "model_not_found", "The model does not exist (fake 404)"),
    problem(429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached (fake 429)"),
    problem(500, "api_error", "server_error", "The server had an error (fake 500)"),
    problem(529, "overloaded_error", "overloaded", "Overloaded (fake 529)"),
];

const fn problem(
    status: u16,
    kind: &'static str,
    code: &'static str,
    message: &'static str,
) -> Problem {
    Problem { status, kind, code, message }
}

/// The problem for a status; any other one is described like 500.
pub(crate) fn problem_of(status: u16) -> &'static Problem {
    let known = PROBLEMS.iter().find(|it| it.status == status);
    known.or(PROBLEMS.iter().find(|it| it.status == 500)).expect("500 is in the table")
}

/// A model as the lists of several providers show it.
pub(crate) fn model_json(id: &str) -> Value {
    json!({
        "id": id, "object": "model", "type": "model", "created": 1_700_000_000, "owned_by": "fake",
        "display_name": id, "context_length": 200_000, "max_tokens": 8192,
    })
}
