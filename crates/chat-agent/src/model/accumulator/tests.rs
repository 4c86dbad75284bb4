//! Tests of the accumulator: the formats and defects that are known from real servers.

use super::{InStreamError, ResponseAccumulator};
use crate::model::{FinishReason, ModelResponse, ModelTokenUsage, ModelToolCall, ResponseDelta};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns the response, and the emitted deltas, where consecutive deltas of a kind are joined.
fn accumulate(payloads: &[String]) -> Result<(ModelResponse, Vec<String>), InStreamError> {
    let mut accumulator =
        ResponseAccumulator::new(vec!["read".to_owned(), "list".to_owned()], "call_x");
    let mut deltas: Vec<String> = Vec::new();
    let mut on_delta = |delta: ResponseDelta<'_>| {
        let (kind, text) = match delta {
            ResponseDelta::Text(text) => ("text ".to_owned(), text),
            ResponseDelta::Thought(text) => ("thought ".to_owned(), text),
            ResponseDelta::ToolCall { index, id, name, fragment } => {
                (format!("{index} {id} {name} "), fragment)
            }
        };
        match deltas.last_mut() {
            Some(last) if last.starts_with(&kind) => last.push_str(text),
            _ => deltas.push(kind + text),
        }
    };
    for payload in payloads {
        accumulator.push(payload, &mut on_delta)?;
    }
    let response = accumulator.finish(&mut on_delta);
    Ok((response, deltas))
}

fn chunk(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

fn text(text: &str) -> String {
    chunk(&json!({"content": text}))
}

fn ended(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn done() -> String {
    "[DONE]".to_owned()
}

fn response(payloads: &[String]) -> ModelResponse {
    accumulate(payloads).unwrap().0
}

fn call(id: &str, name: &str, arguments: &str) -> ModelToolCall {
    let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
    ModelToolCall { id, name, arguments }
}

#[test]
fn response_joins_the_text_up_to_the_end_marker() {
    let payloads = [text("Hel"), text("lo"), ended("stop"), done(), text("!")];
    let (response, deltas) = accumulate(&payloads).unwrap();
    assert_eq!((response.text.as_str(), response.finish_reason), ("Hello", FinishReason::Stop));
    assert_eq!(deltas, ["text Hello"]);
}

#[test]
fn invalid_payloads_and_a_missing_end_marker_are_tolerated() {
    let bad = ["", " ", "{", "null", "7", "{\"choices\":null}", "{\"choices\":[]}"];
    let mut payloads: Vec<String> = bad.map(str::to_owned).to_vec();
    payloads.insert(3, text("a"));
    assert_eq!(response(&payloads).text, "a");
}

#[test]
fn finish_reasons_are_mapped() {
    let finish = |it| response(&[text("a"), ended(it)]).finish_reason;
    let reasons = ["stop", "tool_calls", "function_call", "length", "content_filter", "eos"];
    let stop = FinishReason::Stop;
    let expected = [stop, stop, stop, FinishReason::Length, FinishReason::Refusal, stop];
    assert_eq!(reasons.map(finish), expected);
}

#[test]
fn thoughts_are_read_from_fields_parts_and_tags() {
    let both = json!({"reasoning_content": "hm", "reasoning": "hm", "content": null});
    let parts = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so"},
    ]});
    for payloads in [
        vec![chunk(&both), text("so")],
        vec![chunk(&json!({"reasoning": "hm"})), text("so")],
        vec![chunk(&parts)],
        vec![text("<"), text("think>\nhm</think>\n\nso")],
    ] {
        let response = response(&payloads);
        assert_eq!(
            (response.thought.as_str(), response.text.as_str()),
            ("hm", "so"),
            "{payloads:?}"
        );
    }
}

#[test]
fn call_fragments_are_joined_and_an_empty_list_is_ignored() {
    let entry = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}});
    let fragment =
        |it: &str| chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": it}}]}));
    let payloads = [
        chunk(&json!({"role": "assistant", "content": null, "tool_calls": []})),
        chunk(&json!({"tool_calls": [entry]})),
        fragment("{\"path\":"),
        fragment("\"x\"}"),
        ended("tool_calls"),
        done(),
    ];
    let (response, deltas) = accumulate(&payloads).unwrap();
    assert_eq!(response.calls, [call("a", "read", "{\"path\":\"x\"}")]);
    assert_eq!(deltas, ["0 a read {\"path\":\"x\"}"]);
    let old = [chunk(&json!({"function_call": {"name": "read", "arguments": "{}"}}))];
    assert_eq!(self::response(&old).calls, [call("call_x_0", "read", "{}")]);
}

#[test]
fn call_without_a_name_is_garbled() {
    let entry = json!({"index": 0, "id": "a", "function": {"arguments": "{\"a\":1}"}});
    let response = response(&[chunk(&json!({"tool_calls": [entry]}))]);
    assert_eq!((response.calls, response.garbled.as_deref()), (vec![], Some("{\"a\":1}")));
}

#[test]
fn last_token_usage_is_used() {
    let usage = |output: u64| {
        let thought = json!({"reasoning_tokens": 2});
        let cached = json!({"cached_tokens": 3});
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": output,
            "completion_tokens_details": thought, "prompt_tokens_details": cached,
            "cost": 0.0042}})
        .to_string()
    };
    let none = json!({"choices": [], "usage": null}).to_string();
    let response = response(&[usage(1), text("a"), usage(7), none]);
    assert_eq!(
        response.tokens,
        Some(ModelTokenUsage {
            input: 5,
            output: 7,
            thought: 2,
            cached: 3,
            cost_nanos: Some(4_200_000)
        })
    );
}

#[test]
fn response_without_streaming_is_read() {
    let function = json!({"name": "read", "arguments": "{}"});
    let message = json!({"role": "assistant", "content": "hi", "reasoning_content": "hm",
        "tool_calls": [{"id": "a", "type": "function", "function": function}]});
    let whole = json!({"object": "chat.completion", "usage": {"prompt_tokens": 1},
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let response = response(&[whole.to_string()]);
    assert_eq!((response.text.as_str(), response.thought.as_str()), ("hi", "hm"));
    assert_eq!(
        (response.calls, response.tokens.unwrap().input),
        (vec![call("a", "read", "{}")], 1)
    );
}

#[test]
fn other_choices_are_ignored() {
    let two = json!({"choices": [
        {"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}},
    ]});
    assert_eq!(response(&[two.to_string()]).text, "a");
}

#[test]
fn error_payload_ends_the_stream() {
    let status = |payload: Value| accumulate(&[text("a"), payload.to_string()]).unwrap_err().status;
    assert_eq!(status(json!({"error": {"message": "no", "code": 429}})), Some(429));
    assert_eq!(status(json!({"error": {"message": "no", "code": "503"}})), Some(503));
    assert_eq!(status(json!({"error": {"message": "no", "code": "overloaded"}})), None);
    assert_eq!(status(json!({"error": "no"})), None);
    assert_eq!(status(json!({"object": "error", "message": "no", "code": 400})), Some(400));
    assert!(accumulate(&[json!({"error": null, "choices": []}).to_string()]).is_ok());
}

#[test]
fn calls_in_the_text_are_used_unless_the_server_parsed_them() {
    let text_call = r#"<tool_call>{"name":"read","arguments":{"p":1}}</tool_call>"#;
    let (response, deltas) = accumulate(&[text("Now. "), text(text_call)]).unwrap();
    assert_eq!((response.text.as_str(), response.garbled), ("Now. ", None));
    assert_eq!(response.calls, [call("call_x_0", "read", "{\"p\":1}")]);
    assert!(response.has_text_calls);
    assert_eq!(deltas, ["text Now. ", "0 call_x_0 read {\"p\":1}"]);
    let entry =
        json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"p\":1}"}});
    let parsed = self::response(&[text(text_call), chunk(&json!({"tool_calls": [entry]}))]);
    assert!(!parsed.has_text_calls);
    assert_eq!(parsed.calls, [call("a", "read", "{\"p\":1}")]);
}

#[test]
fn accumulator_reports_output_and_unexpected_format() {
    let state = |payload: &str| {
        let mut accumulator = ResponseAccumulator::new(Vec::new(), "");
        accumulator.push(payload, &mut |_| {}).unwrap();
        (accumulator.has_output(), accumulator.has_unexpected_format())
    };
    assert_eq!(state(&chunk(&json!({"role": "assistant", "content": ""}))), (false, false));
    assert_eq!(state(&text("a")), (true, false));
    assert_eq!(state("{\"models\":[]}"), (false, true));
    assert_eq!(state("[DONE]"), (true, false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The boundaries of tokens must not affect the result.
    #[test]
    fn fragmentation_does_not_change_the_response(
        words in prop::collection::vec(prop::sample::select(vec![
            "<think>", "</think>", "<tool_call>", "</tool_call>", "{\"name\":\"read\",\"arguments\":{}}",
            "```json\n", "\n```", "```", "\n", "[TOOL_CALLS]", "[", "{", "<", "é", "hello ", "{\"a\":1}",
            "<function=read>", "</function>", "<|python_tag|>", "{\"name\":\"x\"}",
        ]), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let whole = words.concat();
        let places: Vec<usize> = whole.char_indices().map(|(at, _)| at).chain([whole.len()]).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|it| places[it.index(places.len())]).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let fragments: Vec<String> = cuts.windows(2).map(|it| text(&whole[it[0]..it[1]])).collect();
        let single: Vec<String> = whole.chars().map(|it| text(&it.to_string())).collect();
        let expected = accumulate(&[text(&whole)]).unwrap();
        prop_assert_eq!(&accumulate(&fragments).unwrap(), &expected);
        prop_assert_eq!(&accumulate(&single).unwrap(), &expected);
        // The emitted text is the text of the response.
        let emitted: String = expected.1.iter().filter_map(|it| it.strip_prefix("text ")).collect();
        prop_assert_eq!(emitted, expected.0.text);
    }

    #[test]
    fn argument_fragments_are_joined(arguments in any::<String>(), step in 1_usize..5) {
        let chars: Vec<char> = arguments.chars().collect();
        let mut payloads = vec![chunk(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read"}}]}))];
        for piece in chars.chunks(step) {
            let piece: String = piece.iter().collect();
            payloads.push(chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})));
        }
        let expected = if arguments.trim().is_empty() { "{}" } else { &arguments };
        prop_assert_eq!(response(&payloads).calls, [call("a", "read", expected)]);
    }

    #[test]
    fn no_payload_makes_the_accumulator_panic(payloads in prop::collection::vec(any::<String>(), 0..5)) {
        let _ = accumulate(&payloads);
    }
}
