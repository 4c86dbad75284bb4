//! Envelopes as they are sent: members, times, usage, permissions, and joined texts.

use crate::session_log::SessionLog;
use jackfield_views::{
    Envelope,
    envelope::{EnvelopeEvent, EnvelopeRole},
};
use serde_json::{Value, json};

fn to_json(envelope: &Envelope) -> Value {
    serde_json::to_value(envelope).unwrap()
}

fn event_json(envelopes: &[Envelope]) -> Vec<Value> {
    envelopes.iter().map(|it| serde_json::to_value(&it.ev).unwrap()).collect()
}

#[test]
fn envelope_has_its_members_in_protocol_order() {
    let answer =
        json!({ "stopReason": "end_turn", "usage": { "inputTokens": 3, "outputTokens": 4 } });
    let log = SessionLog::opened().prompted("Hi").text("Hello").ended("stopped", &answer);
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
fn times_increase_even_if_the_clock_does_not() {
    let mut log = SessionLog::opened().prompted("Hi");
    let frame = log.clone().text("a").events.pop().unwrap();
    for at in [500, 500, 2000, 2000, 1000, 0] {
        let mut event = frame.clone();
        for member in ["sessionId", "seq", "at"] {
            event.as_object_mut().unwrap().shift_remove(member);
        }
        log.push_event_at(at, event);
    }
    let times: Vec<u64> = log.envelopes().iter().map(|it| it.time).collect();
    assert_eq!(times, [1020, 1021, 1022, 1023, 2000, 2001, 2002, 2003]);
}

#[test]
fn turn_end_has_only_the_reported_usage() {
    let usage = json!({ "inputTokens": 120, "outputTokens": 5, "totalTokens": 125,
                        "cachedReadTokens": 20, "cachedWriteTokens": 0, "thoughtTokens": 1 });
    let filled = json!({ "sessionUpdate": "usage_update", "used": 125, "size": 200_000 });
    let answer = json!({ "stopReason": "end_turn", "usage": usage });
    let log = SessionLog::opened().prompted("Hi").update(&filled).ended("stopped", &answer);
    let expected = json!({ "input_tokens": 120, "output_tokens": 5, "total_tokens": 125,
                           "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0,
                           "thought_tokens": 1, "context_window": 200_000 });
    assert_eq!(to_json(log.envelopes().last().unwrap())["usage"], expected);
    let unknown = SessionLog::opened().prompted("Hi").stopped("end_turn");
    assert_eq!(to_json(unknown.envelopes().last().unwrap()).get("usage"), None);
}

#[test]
fn permission_request_has_its_call_and_options() {
    let log = SessionLog::opened().prompted("Hi").tool("c1", "ls").asked("c1").answered("yes");
    let envelopes = log.envelopes();
    let call = event_json(&envelopes)[2]["call"].clone();
    let options = json!([
        { "id": "yes", "name": "Allow", "kind": "allow_once" },
        { "id": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let request = json!({ "t": "permission-request", "ask": 1, "call": call, "name": "Bash",
                          "title": "ls", "args": { "command": "ls" }, "options": options });
    let response = json!({ "t": "permission-response", "ask": 1, "call": call, "option": "yes",
                           "by": "zed" });
    assert_eq!(event_json(&envelopes)[3..], [request, response]);
    assert_eq!((envelopes[3].role, envelopes[4].role), (EnvelopeRole::Agent, EnvelopeRole::User));
    assert_eq!(envelopes[3].turn, envelopes[2].turn);
}

#[test]
fn expired_request_has_no_option() {
    let void = json!({ "is": "answered", "ask": 1, "by": "jackfield",
                       "answer": { "void": "the turn is over" } });
    let log = SessionLog::opened().prompted("Hi").tool("c1", "ls").asked("c1").event(void);
    let EnvelopeEvent::PermissionResponse { option, by, .. } = log.envelopes().pop().unwrap().ev
    else {
        panic!("no response");
    };
    assert_eq!((option, by.as_str()), (None, "jackfield"));
}

#[test]
fn requested_call_that_is_never_made_does_not_start() {
    let log =
        SessionLog::opened().prompted("Hi").asked("index").answered("yes").stopped("end_turn");
    let kinds: Vec<Value> = event_json(&log.envelopes()).iter().map(|it| it["t"].clone()).collect();
    let expected = ["text", "turn-start", "permission-request", "permission-response", "turn-end"];
    assert_eq!(kinds, expected);
}

#[test]
fn elicitation_is_a_service_text() {
    let params = json!({ "message": "Which port?", "requestedSchema": {} });
    let frame = json!({ "id": 1, "method": "elicitation/create", "params": params });
    let asked = json!({ "is": "asked", "ask": 1, "frame": frame });
    let answered = json!({ "is": "answered", "ask": 1, "by": "zed",
                           "answer": { "result": { "action": "accept" } } });
    let log = SessionLog::opened().prompted("Hi").event(asked).event(answered);
    assert_eq!(
        event_json(&log.envelopes())[2..],
        [json!({ "t": "service", "text": "Which port?" })]
    );
}

/// The texts of the agent, and whether each is reasoning.
fn agent_texts(log: &SessionLog) -> Vec<(String, bool)> {
    let text = |it: Envelope| match it.ev {
        EnvelopeEvent::Text { text, thinking } if it.role == EnvelopeRole::Agent => {
            Some((text, thinking))
        }
        _ => None,
    };
    log.joined_envelopes().into_iter().filter_map(text).collect()
}

fn owned(agent_texts: &[(&str, bool)]) -> Vec<(String, bool)> {
    agent_texts.iter().map(|(text, thinking)| ((*text).to_owned(), *thinking)).collect()
}

#[test]
fn chunks_are_joined_until_the_kind_changes_or_the_turn_ends() {
    let log = SessionLog::opened().prompted("Hi").thought("H").thought("m").text("Hel").text("lo");
    assert_eq!(agent_texts(&log), owned(&[("Hm", true), ("Hello", false)]));
    assert_eq!(agent_texts(&log.stopped("end_turn")), owned(&[("Hm", true), ("Hello", false)]));
}

#[test]
fn joined_text_precedes_the_following_tool_and_end() {
    let log = SessionLog::opened().prompted("Hi").text("I ").text("will").tool("c1", "ls");
    let log = log.tool_done("c1", "a").text("Done").stopped("end_turn");
    let kinds: Vec<Value> =
        event_json(&log.joined_envelopes()).iter().map(|it| it["t"].clone()).collect();
    let expected =
        ["text", "turn-start", "text", "tool-call-start", "tool-call-end", "text", "turn-end"];
    assert_eq!(kinds, expected);
    assert_eq!(agent_texts(&log), owned(&[("I will", false), ("Done", false)]));
}

#[test]
fn outer_line_breaks_and_blank_texts_are_removed() {
    let log = SessionLog::opened().prompted("Hi").text("\n\nA\n").text("\nB\n").tool("c1", "ls");
    let log = log.text("\n").text("\n").stopped("end_turn");
    assert_eq!(agent_texts(&log), owned(&[("A\n\nB", false)]));
}

#[test]
fn each_message_is_a_text_of_its_own() {
    let piece = |text: &str, message: &str| {
        json!({ "sessionUpdate": "agent_message_chunk", "messageId": message,
                "content": { "type": "text", "text": text } })
    };
    let log = SessionLog::opened().prompted("Hi").update(&piece("A", "1")).update(&piece("B", "1"));
    let log = log.update(&piece("C", "2")).stopped("end_turn");
    assert_eq!(agent_texts(&log), owned(&[("AB", false), ("C", false)]));
}

#[test]
fn unrelated_updates_do_not_split_a_text() {
    let usage = json!({ "sessionUpdate": "usage_update", "used": 7, "size": 100 });
    let plan = json!({ "sessionUpdate": "plan", "entries": [] });
    let log =
        SessionLog::opened().prompted("Hi").text("Hel").update(&usage).update(&plan).text("lo");
    assert_eq!(agent_texts(&log.stopped("end_turn")), owned(&[("Hello", false)]));
}

#[test]
fn joined_text_has_an_id_of_its_own() {
    let log = SessionLog::opened().prompted("Hi").text("Hel").text("lo").stopped("end_turn");
    let pieces: Vec<String> = log.envelopes().into_iter().map(|it| it.id).collect();
    let whole = log.joined_envelopes();
    assert_eq!(whole.len(), 4);
    assert!(!pieces.contains(&whole[2].id));
    assert_eq!(whole[3].id, pieces[4]);
}
