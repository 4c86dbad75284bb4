//! Envelopes as they are sent: the form, the times, usage, permissions, and texts put together.

use crate::log::Log;
use jackfield_views::{
    Envelope,
    envelope::{Ev, Role},
};
use serde_json::{Value, json};

fn sent(envelope: &Envelope) -> Value {
    serde_json::to_value(envelope).unwrap()
}

fn evs(envelopes: &[Envelope]) -> Vec<Value> {
    envelopes.iter().map(|it| serde_json::to_value(&it.ev).unwrap()).collect()
}

#[test]
fn an_envelope_has_its_members_in_the_order_of_the_protocol() {
    let answer =
        json!({ "stopReason": "end_turn", "usage": { "inputTokens": 3, "outputTokens": 4 } });
    let log = Log::opened().prompted("Hi").text("Hello").ended("stopped", &answer);
    let envelopes = log.envelopes();
    let text = serde_json::to_string(&envelopes[2]).unwrap();
    let (id, turn) = (&envelopes[2].id, envelopes[2].turn.as_deref().unwrap());
    let expected = format!(
        r#"{{"id":"{id}","time":1030,"role":"agent","turn":"{turn}","ev":{{"t":"text","text":"Hello"}}}}"#
    );
    assert_eq!(text, expected);
    let end = serde_json::to_string(&envelopes[3]).unwrap();
    let id = &envelopes[3].id;
    let usage = r#""usage":{"input_tokens":3,"output_tokens":4}"#;
    let expected = format!(
        r#"{{"id":"{id}","time":1040,"role":"agent","turn":"{turn}",{usage},"ev":{{"t":"turn-end","status":"completed"}}}}"#
    );
    assert_eq!(end, expected);
}

#[test]
fn times_increase_even_where_the_clock_does_not() {
    let mut log = Log::opened().prompted("Hi");
    let frame = log.clone().text("a").facts.pop().unwrap();
    for at in [500, 500, 2000, 2000, 1000, 0] {
        let mut fact = frame.clone();
        for member in ["sessionId", "seq", "at"] {
            fact.as_object_mut().unwrap().shift_remove(member);
        }
        log.put(at, fact);
    }
    let times: Vec<u64> = log.envelopes().iter().map(|it| it.time).collect();
    assert_eq!(times, [1020, 1021, 1022, 1023, 2000, 2001, 2002, 2003]);
}

#[test]
fn usage_is_on_the_end_of_the_turn_with_what_is_known_and_nothing_else() {
    let usage = json!({ "inputTokens": 120, "outputTokens": 5, "totalTokens": 125,
                        "cachedReadTokens": 20, "cachedWriteTokens": 0, "thoughtTokens": 1 });
    let filled = json!({ "sessionUpdate": "usage_update", "used": 125, "size": 200_000 });
    let answer = json!({ "stopReason": "end_turn", "usage": usage });
    let log = Log::opened().prompted("Hi").said(&filled).ended("stopped", &answer);
    let expected = json!({ "input_tokens": 120, "output_tokens": 5, "total_tokens": 125,
                           "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0,
                           "thought_tokens": 1, "context_window": 200_000 });
    assert_eq!(sent(log.envelopes().last().unwrap())["usage"], expected);
    let unknown = Log::opened().prompted("Hi").stopped("end_turn");
    assert_eq!(sent(unknown.envelopes().last().unwrap()).get("usage"), None);
}

#[test]
fn a_permission_is_carried_with_its_call_and_its_options() {
    let log = Log::opened().prompted("Hi").tool("c1", "ls").asked("c1").answered("yes");
    let envelopes = log.envelopes();
    let call = evs(&envelopes)[2]["call"].clone();
    let options = json!([
        { "id": "yes", "name": "Allow", "kind": "allow_once" },
        { "id": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let request = json!({ "t": "permission-request", "ask": 1, "call": call, "name": "Bash",
                          "title": "ls", "args": { "command": "ls" }, "options": options });
    let response = json!({ "t": "permission-response", "ask": 1, "call": call, "option": "yes",
                           "by": "zed" });
    assert_eq!(evs(&envelopes)[3..], [request, response]);
    assert_eq!((envelopes[3].role, envelopes[4].role), (Role::Agent, Role::User));
    assert_eq!(envelopes[3].turn, envelopes[2].turn);
}

#[test]
fn an_ask_that_nobody_answered_has_no_option() {
    let void = json!({ "is": "answered", "ask": 1, "by": "jackfield",
                       "answer": { "void": "the turn is over" } });
    let log = Log::opened().prompted("Hi").tool("c1", "ls").asked("c1").fact(void);
    let Ev::PermissionResponse { option, by, .. } = log.envelopes().pop().unwrap().ev else {
        panic!("no response");
    };
    assert_eq!((option, by.as_str()), (None, "jackfield"));
}

#[test]
fn a_call_that_was_never_made_is_asked_about_and_never_begins() {
    let log = Log::opened().prompted("Hi").asked("index").answered("yes").stopped("end_turn");
    let kinds: Vec<Value> = evs(&log.envelopes()).iter().map(|it| it["t"].clone()).collect();
    let told = ["text", "turn-start", "permission-request", "permission-response", "turn-end"];
    assert_eq!(kinds, told);
}

#[test]
fn a_question_is_a_service_text() {
    let params = json!({ "message": "Which port?", "requestedSchema": {} });
    let frame = json!({ "id": 1, "method": "elicitation/create", "params": params });
    let asked = json!({ "is": "asked", "ask": 1, "frame": frame });
    let answered = json!({ "is": "answered", "ask": 1, "by": "zed",
                           "answer": { "result": { "action": "accept" } } });
    let log = Log::opened().prompted("Hi").fact(asked).fact(answered);
    assert_eq!(evs(&log.envelopes())[2..], [json!({ "t": "service", "text": "Which port?" })]);
}

/// The texts of the agent, each with whether it was thought.
fn texts(log: &Log) -> Vec<(String, bool)> {
    let text = |it: Envelope| match it.ev {
        Ev::Text { text, thinking } if it.role == Role::Agent => Some((text, thinking)),
        _ => None,
    };
    log.whole_envelopes().into_iter().filter_map(text).collect()
}

fn said(texts: &[(&str, bool)]) -> Vec<(String, bool)> {
    texts.iter().map(|(text, thinking)| ((*text).to_owned(), *thinking)).collect()
}

#[test]
fn pieces_are_put_together_until_the_kind_changes_or_the_turn_ends() {
    let log = Log::opened().prompted("Hi").thought("H").thought("m").text("Hel").text("lo");
    assert_eq!(texts(&log), said(&[("Hm", true), ("Hello", false)]));
    assert_eq!(texts(&log.stopped("end_turn")), said(&[("Hm", true), ("Hello", false)]));
}

#[test]
fn pieces_are_told_before_the_tool_and_the_end_that_they_came_before() {
    let log = Log::opened().prompted("Hi").text("I ").text("will").tool("c1", "ls");
    let log = log.tool_done("c1", "a").text("Done").stopped("end_turn");
    let kinds: Vec<Value> = evs(&log.whole_envelopes()).iter().map(|it| it["t"].clone()).collect();
    let told =
        ["text", "turn-start", "text", "tool-call-start", "tool-call-end", "text", "turn-end"];
    assert_eq!(kinds, told);
    assert_eq!(texts(&log), said(&[("I will", false), ("Done", false)]));
}

#[test]
fn line_breaks_at_the_ends_are_taken_off_and_text_of_nothing_else_is_none() {
    let log = Log::opened().prompted("Hi").text("\n\nA\n").text("\nB\n").tool("c1", "ls");
    let log = log.text("\n").text("\n").stopped("end_turn");
    assert_eq!(texts(&log), said(&[("A\n\nB", false)]));
}

#[test]
fn another_message_is_another_text() {
    let piece = |text: &str, message: &str| {
        json!({ "sessionUpdate": "agent_message_chunk", "messageId": message,
                "content": { "type": "text", "text": text } })
    };
    let log = Log::opened().prompted("Hi").said(&piece("A", "1")).said(&piece("B", "1"));
    let log = log.said(&piece("C", "2")).stopped("end_turn");
    assert_eq!(texts(&log), said(&[("AB", false), ("C", false)]));
}

#[test]
fn what_says_nothing_of_the_words_does_not_cut_them() {
    let usage = json!({ "sessionUpdate": "usage_update", "used": 7, "size": 100 });
    let plan = json!({ "sessionUpdate": "plan", "entries": [] });
    let log = Log::opened().prompted("Hi").text("Hel").said(&usage).said(&plan).text("lo");
    assert_eq!(texts(&log.stopped("end_turn")), said(&[("Hello", false)]));
}

#[test]
fn a_text_put_together_has_an_id_of_its_own() {
    let log = Log::opened().prompted("Hi").text("Hel").text("lo").stopped("end_turn");
    let pieces: Vec<String> = log.envelopes().into_iter().map(|it| it.id).collect();
    let whole = log.whole_envelopes();
    assert_eq!(whole.len(), 4);
    assert!(!pieces.contains(&whole[2].id));
    assert_eq!(whole[3].id, pieces[4]);
}
