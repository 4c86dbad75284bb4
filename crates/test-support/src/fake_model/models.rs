//! The lists of models, each API's own.

use serde_json::{Value, json};

use super::{dialect::CREATED, http::HttpRequest};

const MODELS: [&str; 2] = ["fake-model", "fake-model-mini"];

/// How a provider describes a model, and how it lists several.
struct Shape {
    one: fn(id: &str) -> Value,
    list: fn(Vec<Value>) -> Value,
}

const OPENAI: Shape = Shape {
    one: |id| {
        json!({
            "id": id, "object": "model", "created": CREATED, "owned_by": "fake",
            "context_length": 200_000, "max_tokens": 8192,
        })
    },
    // codex asks here too and reads `models`, which it may find empty but not absent.
    list: |models| json!({"object": "list", "data": models, "models": []}),
};

const ANTHROPIC: Shape = Shape {
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

const GEMINI: Shape = Shape {
    one: |id| {
        json!({
            "name": format!("models/{id}"), "displayName": id, "inputTokenLimit": 200_000,
            "outputTokenLimit": 8192,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    },
    list: |models| json!({"models": models}),
};

/// The answer to `GET …/models` or `GET …/models/ID`; `None` if it is neither.
pub(crate) fn models(request: &HttpRequest) -> Option<Value> {
    let path = request.path.trim_end_matches('/');
    let shape = shape_of(request);
    if path.ends_with("/models") {
        return Some((shape.list)(MODELS.iter().map(|it| (shape.one)(it)).collect()));
    }
    let (head, id) = path.rsplit_once('/')?;
    (request.method == "GET" && head.ends_with("/models")).then(|| (shape.one)(id))
}

/// Told by what only the clients of one provider send.
fn shape_of(request: &HttpRequest) -> Shape {
    if request.path.contains("/v1beta") || request.header("x-goog-api-key").is_some() {
        return GEMINI;
    }
    if request.header("anthropic-version").is_some() { ANTHROPIC } else { OPENAI }
}
