//! Builds the body of a request and remembers the fields that a server does not support.

use super::ModelRequest;
use crate::ChatSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Fields that a server may reject and that a request can do without.
const OPTIONAL_FIELDS: [&str; 5] =
    ["stream_options", "tools", "reasoning_effort", "temperature", "max_tokens"];
/// The name that newer `OpenAI` models use instead of `max_tokens`.
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
/// Words in the error message of a server that does not support a field.
const REJECTION_PHRASES: [&str; 9] = [
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "not implemented",
    "invalid parameter",
    "requires --",
];

/// Pairs of a model and a field that must be left out of its requests.
#[derive(Debug, Default)]
pub(super) struct RejectedFields(BTreeSet<(String, &'static str)>);

impl RejectedFields {
    pub(super) fn contains(&self, model: &str, field: &'static str) -> bool {
        self.0.contains(&(model.to_owned(), field))
    }

    /// Records the field of `body` that the server rejected. Returns `None` if the error is about
    /// something else or the field was recorded before.
    pub(super) fn record(
        &mut self,
        body: &Value,
        status: u16,
        server_message: &str,
    ) -> Option<&'static str> {
        let field = find_rejected_field(body, status, server_message)?;
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        self.0.insert((model, field)).then_some(field)
    }
}

pub(super) fn build_body(
    request: &ModelRequest,
    settings: &ChatSettings,
    rejected: &RejectedFields,
) -> Value {
    let mut body = Map::new();
    let mut add = |field: &'static str, value: Option<Value>| {
        if let Some(value) = value
            && !rejected.contains(&request.model, field)
        {
            body.insert(field.to_owned(), value);
        }
    };
    add("model", Some(json!(request.model)));
    add("messages", Some(json!(request.messages)));
    add("stream", Some(json!(true)));
    add("stream_options", Some(json!({"include_usage": true})));
    add("tools", (!request.tools.is_empty()).then(|| json!(request.tools)));
    add("reasoning_effort", request.effort.as_ref().map(|it| json!(it)));
    add("temperature", settings.temperature.map(|it| json!(it)));
    add("max_tokens", settings.max_tokens.map(|it| json!(it)));
    if rejected.contains(&request.model, "max_tokens") {
        add(MAX_COMPLETION_TOKENS, settings.max_tokens.map(|it| json!(it)));
    }
    Value::Object(body)
}

/// Returns the field of the request that the server does not support.
fn find_rejected_field(body: &Value, status: u16, server_message: &str) -> Option<&'static str> {
    // llama.cpp answers 500 where others answer 400.
    if !matches!(status, 400 | 422 | 500 | 501) {
        return None;
    }
    let message = server_message.to_lowercase();
    // vLLM without a parser names its own missing option instead of the field.
    if message.contains("--tool-call-parser") && body.get("tools").is_some() {
        return Some("tools");
    }
    if !REJECTION_PHRASES.iter().any(|it| message.contains(it)) {
        return None;
    }
    let is_named = |field: &str| {
        let mut names = message.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        names.any(|it| it == field)
    };
    OPTIONAL_FIELDS.into_iter().find(|it| body.get(*it).is_some() && is_named(it))
}

#[cfg(test)]
mod tests {
    use super::{RejectedFields, build_body};
    use crate::{ChatSettings, model::ModelRequest};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn request() -> ModelRequest {
        let tool = json!({"type": "function", "function": {"name": "read"}});
        ModelRequest {
            model: "m".to_owned(),
            messages: vec![json!({"role": "user", "content": "hi"})],
            tools: vec![tool],
            effort: Some("low".to_owned()),
        }
    }

    fn settings(max_tokens: Option<u64>, temperature: Option<f64>) -> ChatSettings {
        let (mut settings, _) = ChatSettings::from_variables(|_| None);
        (settings.max_tokens, settings.temperature) = (max_tokens, temperature);
        settings
    }

    fn build(rejected: &RejectedFields) -> Value {
        build_body(&request(), &settings(Some(9), Some(0.5)), rejected)
    }

    #[test]
    fn body_has_the_configured_fields() {
        let tool = json!({"type": "function", "function": {"name": "read"}});
        let expected = json!({
            "model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true,
            "stream_options": {"include_usage": true}, "tools": [tool],
            "reasoning_effort": "low", "temperature": 0.5, "max_tokens": 9,
        });
        assert_eq!(build(&RejectedFields::default()), expected);
        let bare = ModelRequest { model: "m".to_owned(), ..ModelRequest::default() };
        let bare = build_body(&bare, &settings(None, None), &RejectedFields::default());
        let expected = json!({"model": "m", "messages": [], "stream": true,
            "stream_options": {"include_usage": true}});
        assert_eq!(bare, expected);
    }

    #[test]
    fn rejected_field_is_left_out_of_later_requests() {
        for (status, message, field) in [
            (400, "registry.ollama.ai/library/gemma does not support tools", "tools"),
            (400, "Unrecognized request argument supplied: stream_options", "stream_options"),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                "stream_options",
            ),
            (
                400,
                "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
                "tools",
            ),
            (500, "tools param requires --jinja flag", "tools"),
            (
                400,
                "Unsupported value: 'temperature' does not support 0.5 with this model.",
                "temperature",
            ),
        ] {
            let mut rejected = RejectedFields::default();
            assert_eq!(
                rejected.record(&build(&rejected), status, message),
                Some(field),
                "{message}"
            );
            assert!(build(&rejected).get(field).is_none(), "{message}");
            assert!(!rejected.contains("another model", field));
        }
    }

    #[test]
    fn rejected_max_tokens_is_sent_as_max_completion_tokens() {
        let mut rejected = RejectedFields::default();
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        assert_eq!(rejected.record(&build(&rejected), 400, message), Some("max_tokens"));
        let body = build(&rejected);
        assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(9)));
    }

    #[test]
    fn other_errors_do_not_reject_a_field() {
        for (status, message) in [
            (400, "Invalid schema for function 'read' in tools[0]"),
            (400, "this model's maximum context length is 4096 tokens"),
            (404, "the model does not support tools"),
        ] {
            let mut rejected = RejectedFields::default();
            assert_eq!(rejected.record(&build(&rejected), status, message), None, "{message}");
        }
        let mut rejected = RejectedFields::default();
        let body = build(&rejected);
        assert!(rejected.record(&body, 400, "tools are not supported").is_some());
        assert!(
            rejected.record(&body, 400, "tools are not supported").is_none(),
            "the field was already recorded"
        );
    }

    proptest! {
        #[test]
        fn body_has_only_the_configured_fields(
            model in "[a-z0-9:/.-]{1,12}",
            texts in prop::collection::vec(any::<String>(), 0..4),
            max_tokens in prop::option::of(1_u64..1_000_000),
            temperature in prop::option::of(0.0_f64..2.0),
            effort in prop::option::of("[a-z]{1,6}"),
        ) {
            let messages = texts.iter().map(|it| json!({"role": "user", "content": it})).collect();
            let request = ModelRequest { model: model.clone(), messages, tools: Vec::new(), effort: effort.clone() };
            let settings = settings(max_tokens, temperature);
            let body = build_body(&request, &settings, &RejectedFields::default());
            prop_assert_eq!(&body["model"], &json!(model));
            prop_assert_eq!(&body["messages"], &json!(request.messages));
            prop_assert_eq!(&body["stream"], &json!(true));
            prop_assert_eq!(body.get("max_tokens").cloned(), max_tokens.map(|it| json!(it)));
            prop_assert_eq!(body.get("temperature").cloned(), temperature.map(|it| json!(it)));
            prop_assert_eq!(body.get("reasoning_effort").cloned(), effort.map(|it| json!(it)));
            prop_assert!(body.get("tools").is_none());
        }
    }
}
