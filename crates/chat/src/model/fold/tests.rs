//! Tests of the fold: every habit and every defect of a stream that servers are known for.

use super::{Complaint, Fold};
use crate::model::{Answer, Call, Delta, Finish, Tokens};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What comes of these payloads, and what was heard on the way, joined by kind.
fn folded(payloads: &[String]) -> Result<(Answer, Vec<String>), Complaint> {
    let mut fold = Fold::new(vec!["read".to_owned(), "list".to_owned()], "call_x");
    let mut told: Vec<String> = Vec::new();
    let mut heard = |delta: Delta<'_>| {
        let (kind, text) = match delta {
            Delta::Text(text) => ("text ".to_owned(), text),
            Delta::Thought(text) => ("thought ".to_owned(), text),
            Delta::Call { index, id, name, piece } => (format!("{index} {id} {name} "), piece),
        };
        match told.last_mut() {
            Some(last) if last.starts_with(&kind) => last.push_str(text),
            _ => told.push(kind + text),
        }
    };
    for payload in payloads {
        fold.push(payload, &mut heard)?;
    }
    let answer = fold.finish(&mut heard);
    Ok((answer, told))
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

fn answer(payloads: &[String]) -> Answer {
    folded(payloads).unwrap().0
}

fn call(id: &str, name: &str, arguments: &str) -> Call {
    let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
    Call { id, name, arguments }
}

#[test]
fn an_answer_is_its_pieces_and_what_follows_the_end_is_not() {
    let payloads = [text("Hel"), text("lo"), ended("stop"), done(), text("!")];
    let (answer, heard) = folded(&payloads).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("Hello", Finish::Stop));
    assert_eq!(heard, ["text Hello"]);
}

#[test]
fn a_stream_may_end_without_a_word_and_with_bad_ones_in_it() {
    let bad = ["", " ", "{", "null", "7", "{\"choices\":null}", "{\"choices\":[]}"];
    let mut payloads: Vec<String> = bad.map(str::to_owned).to_vec();
    payloads.insert(3, text("a"));
    assert_eq!(answer(&payloads).text, "a");
}

#[test]
fn every_reason_to_stop_is_known() {
    let finish = |it| answer(&[text("a"), ended(it)]).finish;
    let reasons = ["stop", "tool_calls", "function_call", "length", "content_filter", "eos"];
    let stop = Finish::Stop;
    let expected = [stop, stop, stop, Finish::Length, Finish::Refusal, stop];
    assert_eq!(reasons.map(finish), expected);
}

#[test]
fn thoughts_come_in_fields_in_parts_and_in_tags() {
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
        let answer = answer(&payloads);
        assert_eq!((answer.thought.as_str(), answer.text.as_str()), ("hm", "so"), "{payloads:?}");
    }
}

#[test]
fn calls_are_joined_and_an_empty_list_of_them_is_none() {
    let entry = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}});
    let piece =
        |it: &str| chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": it}}]}));
    let payloads = [
        chunk(&json!({"role": "assistant", "content": null, "tool_calls": []})),
        chunk(&json!({"tool_calls": [entry]})),
        piece("{\"path\":"),
        piece("\"x\"}"),
        ended("tool_calls"),
        done(),
    ];
    let (answer, heard) = folded(&payloads).unwrap();
    assert_eq!(answer.calls, [call("a", "read", "{\"path\":\"x\"}")]);
    assert_eq!(heard, ["0 a read {\"path\":\"x\"}"]);
    let old = [chunk(&json!({"function_call": {"name": "read", "arguments": "{}"}}))];
    assert_eq!(self::answer(&old).calls, [call("call_x_0", "read", "{}")]);
}

#[test]
fn a_call_without_a_name_is_told_as_what_could_not_be_read() {
    let entry = json!({"index": 0, "id": "a", "function": {"arguments": "{\"a\":1}"}});
    let answer = answer(&[chunk(&json!({"tool_calls": [entry]}))]);
    assert_eq!((answer.calls, answer.garbled.as_deref()), (vec![], Some("{\"a\":1}")));
}

#[test]
fn the_last_count_of_tokens_is_the_one_that_counts() {
    let usage = |output: u64| {
        let thought = json!({"reasoning_tokens": 2});
        let cached = json!({"cached_tokens": 3});
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": output,
            "completion_tokens_details": thought, "prompt_tokens_details": cached}})
        .to_string()
    };
    let none = json!({"choices": [], "usage": null}).to_string();
    let answer = answer(&[usage(1), text("a"), usage(7), none]);
    assert_eq!(answer.tokens, Some(Tokens { input: 5, output: 7, thought: 2, cached: 3 }));
}

#[test]
fn a_whole_answer_is_one_too() {
    let function = json!({"name": "read", "arguments": "{}"});
    let message = json!({"role": "assistant", "content": "hi", "reasoning_content": "hm",
        "tool_calls": [{"id": "a", "type": "function", "function": function}]});
    let whole = json!({"object": "chat.completion", "usage": {"prompt_tokens": 1},
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let answer = answer(&[whole.to_string()]);
    assert_eq!((answer.text.as_str(), answer.thought.as_str()), ("hi", "hm"));
    assert_eq!((answer.calls, answer.tokens.unwrap().input), (vec![call("a", "read", "{}")], 1));
}

#[test]
fn other_choices_are_not_mixed_in() {
    let two = json!({"choices": [
        {"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}},
    ]});
    assert_eq!(answer(&[two.to_string()]).text, "a");
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let status = |payload: Value| folded(&[text("a"), payload.to_string()]).unwrap_err().status;
    assert_eq!(status(json!({"error": {"message": "no", "code": 429}})), Some(429));
    assert_eq!(status(json!({"error": {"message": "no", "code": "503"}})), Some(503));
    assert_eq!(status(json!({"error": {"message": "no", "code": "overloaded"}})), None);
    assert_eq!(status(json!({"error": "no"})), None);
    assert_eq!(status(json!({"object": "error", "message": "no", "code": 400})), Some(400));
    assert!(folded(&[json!({"error": null, "choices": []}).to_string()]).is_ok());
}

#[test]
fn calls_in_the_text_count_unless_the_server_read_them_itself() {
    let written = r#"<tool_call>{"name":"read","arguments":{"p":1}}</tool_call>"#;
    let (answer, heard) = folded(&[text("Now. "), text(written)]).unwrap();
    assert_eq!((answer.text.as_str(), answer.garbled), ("Now. ", None));
    assert_eq!(answer.calls, [call("call_x_0", "read", "{\"p\":1}")]);
    assert!(answer.written);
    assert_eq!(heard, ["text Now. ", "0 call_x_0 read {\"p\":1}"]);
    let entry =
        json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"p\":1}"}});
    let read = self::answer(&[text(written), chunk(&json!({"tool_calls": [entry]}))]);
    assert!(!read.written);
    assert_eq!(read.calls, [call("a", "read", "{\"p\":1}")]);
}

#[test]
fn a_fold_knows_whether_it_has_begun_and_whether_it_read_anything() {
    let state = |payload: &str| {
        let mut fold = Fold::new(Vec::new(), "");
        fold.push(payload, &mut |_| {}).unwrap();
        (fold.has_begun(), fold.is_foreign())
    };
    assert_eq!(state(&chunk(&json!({"role": "assistant", "content": ""}))), (false, false));
    assert_eq!(state(&text("a")), (true, false));
    assert_eq!(state("{\"models\":[]}"), (false, true));
    assert_eq!(state("[DONE]"), (true, false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// How a model cuts its text into tokens never shows.
    #[test]
    fn a_text_in_pieces_is_the_text(
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
        let pieces: Vec<String> = cuts.windows(2).map(|it| text(&whole[it[0]..it[1]])).collect();
        let single: Vec<String> = whole.chars().map(|it| text(&it.to_string())).collect();
        let expected = folded(&[text(&whole)]).unwrap();
        prop_assert_eq!(&folded(&pieces).unwrap(), &expected);
        prop_assert_eq!(&folded(&single).unwrap(), &expected);
        // What is heard is what the answer has.
        let heard: String = expected.1.iter().filter_map(|it| it.strip_prefix("text ")).collect();
        prop_assert_eq!(heard, expected.0.text);
    }

    #[test]
    fn arguments_in_pieces_are_the_arguments(arguments in any::<String>(), step in 1_usize..5) {
        let chars: Vec<char> = arguments.chars().collect();
        let mut payloads = vec![chunk(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read"}}]}))];
        for piece in chars.chunks(step) {
            let piece: String = piece.iter().collect();
            payloads.push(chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})));
        }
        let expected = if arguments.trim().is_empty() { "{}" } else { &arguments };
        prop_assert_eq!(answer(&payloads).calls, [call("a", "read", expected)]);
    }

    #[test]
    fn no_payload_breaks_the_fold(payloads in prop::collection::vec(any::<String>(), 0..5)) {
        let _ = folded(&payloads);
    }
}
