//! The lists of models, in the format of each API.

use serde_json::{Value, json};

use super::{dialect::CREATED, http::HttpRequest};

const MODELS: [&str; 2] = ["fake-model", "fake-model-mini"];

/// How a provider formats a model and a list of models.
struct ListFormat {
    one: fn(id: &str) -> Value,
    list: fn(Vec<Value>) -> Value,
}

const OPENAI: ListFormat = ListFormat {
    one: |id| {
        json!({
            "id": id, "object": "model", "created": CREATED, "owned_by": "fake",
            "context_length": 200_000, "max_tokens": 8192,
        })
    },
    // codex also uses this endpoint and reads `models`, which may be empty but not absent.
    list: |models| json!({"object": "list", "data": models, "models": []}),
};

const ANTHROPIC: ListFormat = ListFormat {
    one: |id| {
        json!({
            "type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z",
        })
    },
    list: |models| {
        let (first, last) = (MODELS[0], MODELS[MODELS.len() - 1]);
        json!({"data": models, "has_more": false, "first_id": first, "last_id": last})
    },
};

const GEMINI: ListFormat = ListFormat {
    one: |id| {
        json!({
            "name": format!("models/{id}"), "displayName": id, "inputTokenLimit": 200_000,
            "outputTokenLimit": 8192,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    },
    list: |models| json!({"models": models}),
};

/// The response to `GET …/models` or `GET …/models/ID`; `None` for other requests.
pub(crate) fn models(request: &HttpRequest) -> Option<Value> {
    let path = request.path.trim_end_matches('/');
    let format = list_format_of(request);
    if path.ends_with("/models") {
        return Some((format.list)(MODELS.iter().map(|it| (format.one)(it)).collect()));
    }
    let (head, id) = path.rsplit_once('/')?;
    (request.method == "GET" && head.ends_with("/models")).then(|| (format.one)(id))
}

/// Recognizes the provider by headers and paths that only its clients use.
fn list_format_of(request: &HttpRequest) -> ListFormat {
    if request.path.contains("/v1beta") || request.header("x-goog-api-key").is_some() {
        return GEMINI;
    }
    if request.header("anthropic-version").is_some() { ANTHROPIC } else { OPENAI }
}
