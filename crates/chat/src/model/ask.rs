//! The body of a request, and what of it a server turned out not to know.

use super::Ask;
use crate::Settings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What a request may have and a server may refuse.
const OPTIONAL: [&str; 5] =
    ["stream_options", "tools", "reasoning_effort", "temperature", "max_tokens"];
/// What newer models of `OpenAI` want instead of `max_tokens`.
const MAX_COMPLETION: &str = "max_completion_tokens";
/// How servers say that they do not know a field.
const REFUSALS: [&str; 9] = [
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

/// The fields that must be left out, by the model that does not know them.
#[derive(Debug, Default)]
pub(super) struct Refused(BTreeSet<(String, &'static str)>);

impl Refused {
    pub(super) fn has(&self, model: &str, field: &'static str) -> bool {
        self.0.contains(&(model.to_owned(), field))
    }

    /// Notes what of `body` the server refused; none if it complained about something else.
    pub(super) fn note(&mut self, body: &Value, status: u16, said: &str) -> Option<&'static str> {
        let field = refused(body, status, said)?;
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        self.0.insert((model, field)).then_some(field)
    }
}

pub(super) fn body(ask: &Ask, settings: &Settings, refused: &Refused) -> Value {
    let mut body = Map::new();
    let mut add = |field: &'static str, value: Option<Value>| {
        if let Some(value) = value
            && !refused.has(&ask.model, field)
        {
            body.insert(field.to_owned(), value);
        }
    };
    add("model", Some(json!(ask.model)));
    add("messages", Some(json!(ask.messages)));
    add("stream", Some(json!(true)));
    add("stream_options", Some(json!({"include_usage": true})));
    add("tools", (!ask.tools.is_empty()).then(|| json!(ask.tools)));
    add("reasoning_effort", ask.effort.as_ref().map(|it| json!(it)));
    add("temperature", settings.temperature.map(|it| json!(it)));
    add("max_tokens", settings.max_tokens.map(|it| json!(it)));
    if refused.has(&ask.model, "max_tokens") {
        add(MAX_COMPLETION, settings.max_tokens.map(|it| json!(it)));
    }
    Value::Object(body)
}

/// Which field of the request the server does not know.
fn refused(body: &Value, status: u16, said: &str) -> Option<&'static str> {
    // llama.cpp answers 500 where others answer 400.
    if !matches!(status, 400 | 422 | 500 | 501) {
        return None;
    }
    let said = said.to_lowercase();
    // vLLM without a parser names the option of its own that is missing.
    if said.contains("--tool-call-parser") && body.get("tools").is_some() {
        return Some("tools");
    }
    if !REFUSALS.iter().any(|it| said.contains(it)) {
        return None;
    }
    let is_named = |field: &str| {
        let mut words = said.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        words.any(|it| it == field)
    };
    OPTIONAL.into_iter().find(|it| body.get(*it).is_some() && is_named(it))
}

#[cfg(test)]
mod tests {
    use super::{Refused, body};
    use crate::{Settings, model::Ask};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn ask() -> Ask {
        let tool = json!({"type": "function", "function": {"name": "read"}});
        Ask {
            model: "m".to_owned(),
            messages: vec![json!({"role": "user", "content": "hi"})],
            tools: vec![tool],
            effort: Some("low".to_owned()),
        }
    }

    fn settings(max_tokens: Option<u64>, temperature: Option<f64>) -> Settings {
        let (mut settings, _) = Settings::read(|_| None);
        (settings.max_tokens, settings.temperature) = (max_tokens, temperature);
        settings
    }

    fn made(refused: &Refused) -> Value {
        body(&ask(), &settings(Some(9), Some(0.5)), refused)
    }

    #[test]
    fn a_request_has_what_was_set() {
        let tool = json!({"type": "function", "function": {"name": "read"}});
        let expected = json!({
            "model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true,
            "stream_options": {"include_usage": true}, "tools": [tool],
            "reasoning_effort": "low", "temperature": 0.5, "max_tokens": 9,
        });
        assert_eq!(made(&Refused::default()), expected);
        let bare = Ask { model: "m".to_owned(), ..Ask::default() };
        let bare = body(&bare, &settings(None, None), &Refused::default());
        let expected = json!({"model": "m", "messages": [], "stream": true,
            "stream_options": {"include_usage": true}});
        assert_eq!(bare, expected);
    }

    #[test]
    fn what_a_server_does_not_know_is_left_out_from_then_on() {
        for (status, said, field) in [
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
            let mut refused = Refused::default();
            assert_eq!(refused.note(&made(&refused), status, said), Some(field), "{said}");
            assert!(made(&refused).get(field).is_none(), "{said}");
            assert!(!refused.has("another model", field));
        }
    }

    #[test]
    fn a_limit_is_told_under_its_other_name_rather_than_not_at_all() {
        let mut refused = Refused::default();
        let said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        assert_eq!(refused.note(&made(&refused), 400, said), Some("max_tokens"));
        let body = made(&refused);
        assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(9)));
    }

    #[test]
    fn another_complaint_leaves_the_request_as_it_is() {
        for (status, said) in [
            (400, "Invalid schema for function 'read' in tools[0]"),
            (400, "this model's maximum context length is 4096 tokens"),
            (404, "the model does not support tools"),
        ] {
            let mut refused = Refused::default();
            assert_eq!(refused.note(&made(&refused), status, said), None, "{said}");
        }
        let mut refused = Refused::default();
        let asked = made(&refused);
        assert!(refused.note(&asked, 400, "tools are not supported").is_some());
        assert!(refused.note(&asked, 400, "tools are not supported").is_none(), "twice the same");
    }

    proptest! {
        #[test]
        fn a_request_is_made_of_the_settings_and_nothing_else(
            model in "[a-z0-9:/.-]{1,12}",
            texts in prop::collection::vec(any::<String>(), 0..4),
            max_tokens in prop::option::of(1_u64..1_000_000),
            temperature in prop::option::of(0.0_f64..2.0),
            effort in prop::option::of("[a-z]{1,6}"),
        ) {
            let messages = texts.iter().map(|it| json!({"role": "user", "content": it})).collect();
            let ask = Ask { model: model.clone(), messages, tools: Vec::new(), effort: effort.clone() };
            let settings = settings(max_tokens, temperature);
            let made = body(&ask, &settings, &Refused::default());
            prop_assert_eq!(&made["model"], &json!(model));
            prop_assert_eq!(&made["messages"], &json!(ask.messages));
            prop_assert_eq!(&made["stream"], &json!(true));
            prop_assert_eq!(made.get("max_tokens").cloned(), max_tokens.map(|it| json!(it)));
            prop_assert_eq!(made.get("temperature").cloned(), temperature.map(|it| json!(it)));
            prop_assert_eq!(made.get("reasoning_effort").cloned(), effort.map(|it| json!(it)));
            prop_assert!(made.get("tools").is_none());
        }
    }
}
