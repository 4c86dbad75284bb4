//! Agent events, fact by fact.

use crate::log::{Log, SESSION};
use serde_json::{Value, json};

/// The events of the last fact.
fn last(log: &Log) -> Vec<Value> {
    let mut before = log.clone();
    before.facts.pop();
    log.events()[before.events().len()..].to_vec()
}

fn running() -> Log {
    Log::opened().prompted("Hi")
}

fn status(label: &str) -> Value {
    json!({ "type": "status", "label": label })
}

#[test]
fn a_session_that_opens_is_initializing_and_names_its_model() {
    let option = json!({ "id": "model", "category": "model", "currentValue": "opus" });
    let log = Log::default().open(&json!({ "configOptions": [option] }));
    let initializing =
        json!({ "type": "status", "label": "initializing", "model": "opus", "sessionId": SESSION });
    let model = json!({ "type": "status", "label": "model", "model": "opus" });
    assert_eq!(log.events(), [initializing, model]);
    let older = json!({ "models": { "currentModelId": "k2", "availableModels": [] } });
    assert_eq!(Log::default().open(&older).events()[1]["model"], "k2");
    assert_eq!(Log::opened().events().len(), 1);
}

#[test]
fn a_session_that_wakes_is_initializing_and_says_how() {
    let bound = json!({ "is": "bound", "rung": "reseeded", "setup": null });
    let initializing = json!({ "type": "status", "label": "initializing", "detail": "reseeded",
                               "sessionId": SESSION });
    assert_eq!(last(&Log::opened().fact(bound)), [initializing]);
    let bound = json!({ "is": "bound", "rung": "failed", "setup": null });
    assert_eq!(last(&Log::opened().fact(bound))[0]["label"], "failed");
}

#[test]
fn a_prompt_is_running_with_the_model_if_it_is_known() {
    assert_eq!(last(&running()), [status("running")]);
    let setup = json!({ "models": { "currentModelId": "k2" } });
    let log = Log::default().open(&setup).prompted("Hi");
    assert_eq!(last(&log), [json!({ "type": "status", "label": "running", "model": "k2" })]);
}

#[test]
fn a_model_that_is_set_is_told_again() {
    let frame = json!({ "method": "session/set_model", "params": { "modelId": "k3" } });
    let set = json!({ "is": "configured", "frame": frame, "answer": {} });
    let model = |it: &str| json!({ "type": "status", "label": "model", "model": it });
    assert_eq!(last(&Log::opened().fact(set)), [model("k3")]);
    let params = json!({ "configId": "model", "value": "opus" });
    let frame = json!({ "method": "session/set_config_option", "params": params });
    let options = json!([
        { "id": "model", "category": "model", "currentValue": "opus" },
        { "id": "mode", "category": "mode", "currentValue": "plan" },
    ]);
    let answer = json!({ "configOptions": options });
    let set = json!({ "is": "configured", "frame": frame, "answer": answer });
    let config = json!({ "type": "config", "options": { "model": "opus", "mode": "plan" } });
    assert_eq!(last(&Log::opened().fact(set)), [config.clone(), model("opus")]);
    let told = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
    assert_eq!(last(&running().said(&told)), [config, model("opus")]);
}

#[test]
fn a_mode_is_told_whoever_changed_it() {
    let mode = json!({ "type": "mode", "mode": "plan" });
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" });
    assert_eq!(last(&running().said(&update)), std::slice::from_ref(&mode));
    let frame = json!({ "method": "session/set_mode", "params": { "modeId": "plan" } });
    let set = json!({ "is": "configured", "frame": frame, "answer": {} });
    assert_eq!(last(&running().fact(set)), [mode]);
}

#[test]
fn the_first_text_of_a_turn_says_how_long_it_was_waited_for() {
    let streaming = json!({ "type": "status", "label": "streaming", "ttftMs": 20 });
    let delta = |it: &str| json!({ "type": "text_delta", "delta": it });
    let log = running().thought("Hm").text("Hel");
    assert_eq!(last(&log), [streaming.clone(), delta("Hel")]);
    let log = log.text("lo");
    assert_eq!(last(&log), [delta("lo")]);
    let log = log.stopped("end_turn").text("late");
    assert_eq!(last(&log), [delta("late")]);
    let log = log.prompted("More").text("").text("ha");
    assert_eq!(last(&log), [streaming, delta("ha")]);
    assert_eq!(last(&log.text("ha")), [delta("ha")], "what is said twice is told twice");
}

#[test]
fn a_train_of_thought_has_one_start() {
    let (start, delta) = (
        json!({ "type": "thinking_start" }),
        |it: &str| json!({ "type": "thinking_delta", "delta": it }),
    );
    let log = running().thought("H");
    assert_eq!(last(&log), [start.clone(), delta("H")]);
    let log = log.thought("m");
    assert_eq!(last(&log), [delta("m")]);
    let log = log.text("So").thought("Or");
    assert_eq!(last(&log), [start.clone(), delta("Or")]);
    let log = log.tool("c1", "ls").thought("And");
    assert_eq!(last(&log), [start, delta("And")]);
    assert_eq!(last(&log.thought("")), [""; 0]);
}

#[test]
fn a_tool_is_told_when_it_is_called_and_when_it_is_done() {
    let log = running().tool("c1", "ls");
    let tool = json!({ "type": "tool_use", "id": "c1", "name": "Bash", "title": "ls",
                       "input": { "command": "ls" }, "kind": "execute" });
    assert_eq!(last(&log), [tool]);
    let result =
        json!({ "type": "tool_result", "toolUseId": "c1", "content": "a", "isError": false });
    assert_eq!(last(&log.tool_done("c1", "a")), [result]);
}

#[test]
fn a_tool_that_failed_or_was_cancelled_is_an_error() {
    for word in ["failed", "cancelled", "canceled", "error"] {
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": word,
                             "content": [{ "type": "content", "content": { "type": "text", "text": "no" } }] });
        let result =
            json!({ "type": "tool_result", "toolUseId": "c1", "content": "no", "isError": true });
        assert_eq!(last(&running().tool("c1", "ls").said(&update)), [result], "{word}");
    }
}

#[test]
fn tools_that_are_open_at_the_end_of_a_turn_are_closed_with_an_error() {
    let log = running().tool("c1", "a").tool("c2", "b").tool_done("c2", "").stopped("cancelled");
    let told = last(&log);
    let result = json!({ "type": "tool_result", "toolUseId": "c1", "isError": true,
                         "content": "[no result: the turn was over first]" });
    assert_eq!(told[0], result);
    assert_eq!(told[1]["type"], "usage");
    assert_eq!(told.len(), 2);
    assert_eq!(last(&log.tool_done("c1", "late")), [""; 0]);
    let gone = json!({ "is": "gone", "status": "exit status 1", "stderr": "" });
    let told = last(&running().tool("c1", "a").fact(gone));
    assert_eq!((&told[0]["type"], &told[1]["label"]), (&json!("tool_result"), &json!("gone")));
}

#[test]
fn a_plan_keeps_its_entries() {
    let entries =
        json!([{ "content": "Read", "priority": "high", "status": "pending", "more": 1 }]);
    let update = json!({ "sessionUpdate": "plan", "entries": entries });
    assert_eq!(last(&running().said(&update)), [json!({ "type": "plan", "entries": entries })]);
}

#[test]
fn a_turn_ends_with_its_usage() {
    let usage = json!({ "inputTokens": 9, "outputTokens": 2, "totalTokens": 11, "thoughtTokens": 1,
                        "cachedReadTokens": 3, "cachedWriteTokens": 4 });
    let cost = json!({ "jackfield": { "cost": { "amount": 0.5, "currency": "USD" } } });
    let answer = json!({ "stopReason": "end_turn", "usage": usage, "_meta": cost });
    let told = json!({ "type": "usage", "costUsd": 0.5, "durationMs": 10, "stopReason": "end_turn",
                       "usage": { "input_tokens": 9, "output_tokens": 2, "cached_read_tokens": 3,
                                  "cached_write_tokens": 4, "thought_tokens": 1, "total_tokens": 11 } });
    assert_eq!(last(&running().ended("stopped", &answer)), [told]);
    let unknown =
        json!({ "type": "usage", "usage": {}, "durationMs": 10, "stopReason": "end_turn" });
    assert_eq!(last(&running().stopped("end_turn")), [unknown]);
}

#[test]
fn a_turns_cost_is_what_the_sum_grew_by_and_unknown_to_who_missed_the_sum_before() {
    let spent = |amount: f64| {
        let cost = json!({ "amount": amount, "currency": "USD" });
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost })
    };
    let mut log = running().said(&spent(1.0)).stopped("end_turn");
    log = log.prompted("More").said(&spent(1.25)).stopped("end_turn");
    assert_eq!(last(&log)[0]["costUsd"], 0.25);
    let mut second = Log::default();
    second.facts = log.facts.split_off(4);
    assert_eq!(second.events().last().unwrap().get("costUsd"), None);
}

#[test]
fn a_turn_that_failed_is_an_error_with_its_cause() {
    let data = json!({ "details": "401 wrong key" });
    let error = json!({ "code": -32603, "message": "Internal error", "data": data });
    let told =
        json!({ "type": "error", "message": "Internal error: 401 wrong key", "code": "-32603" });
    let usage = json!({ "type": "usage", "usage": {}, "durationMs": 10 });
    assert_eq!(last(&running().ended("failed", &error)), [usage.clone(), told]);
    let error = json!({ "code": -31000, "message": "agent `claude` ended: exit status 1",
                        "data": { "jackfield": { "code": "agent_gone" } } });
    let told = json!({ "type": "error", "message": "agent `claude` ended: exit status 1",
                       "code": "agent_gone" });
    assert_eq!(last(&running().ended("interrupted", &error)), [usage, told]);
    assert_eq!(last(&running().stopped("cancelled"))[0]["stopReason"], "cancelled");
}

#[test]
fn a_permission_is_a_request_and_a_response() {
    let log = running().tool("c1", "ls").asked("c1");
    let options = json!([
        { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let request = json!({ "type": "permission_request", "ask": 1, "toolUseId": "c1", "name": "Bash",
                          "title": "ls", "input": { "command": "ls" }, "options": options });
    assert_eq!(last(&log), [request]);
    let response = json!({ "type": "permission_response", "ask": 1, "toolUseId": "c1",
                           "optionId": "no", "by": "zed" });
    assert_eq!(last(&log.answered("no")), [response]);
}

#[test]
fn an_update_of_an_unknown_kind_is_a_status_with_that_label() {
    let update = json!({ "sessionUpdate": "compaction_update", "message": "half", "x": [1] });
    let told = json!({ "type": "status", "label": "compaction_update", "detail": "half" });
    assert_eq!(last(&running().said(&update)), [told]);
    assert_eq!(last(&running().said(&json!({ "sessionUpdate": "news" }))), [status("news")]);
    let own = json!({ "method": "_auth/status_update", "params": {} });
    assert_eq!(last(&running().heard(own)), [status("_auth/status_update")]);
}

#[test]
fn what_an_adapter_had_no_words_for_is_a_notice_or_raw() {
    let info = |meta: &Value| json!({ "sessionUpdate": "session_info_update", "_meta": { "jackfield": meta } });
    let notice = json!({ "type": "status", "label": "notice", "detail": "Reconnecting" });
    assert_eq!(last(&running().said(&info(&json!({ "notice": "Reconnecting" })))), [notice]);
    let raw = json!({ "type": "raw", "line": r#"{"type":"x"}"# });
    assert_eq!(last(&running().said(&info(&json!({ "unmapped": { "type": "x" } })))), [raw]);
}

#[test]
fn what_happens_around_a_turn_is_a_status() {
    let told = |fact: Value| last(&running().fact(fact));
    let quiet =
        json!({ "is": "quiet", "turn": 1, "phase": "tool", "since": 30, "waits": "for make" });
    let expected =
        json!({ "type": "status", "label": "quiet", "detail": "for make", "elapsedMs": 1000 });
    assert_eq!(told(quiet), [expected]);
    let cancelled = json!({ "is": "cancelled", "turn": 1, "step": 1 });
    let expected = json!({ "type": "status", "label": "cancelling", "elapsedMs": 10 });
    assert_eq!(told(cancelled), [expected]);
    let slept = json!({ "is": "slept", "why": "idle" });
    assert_eq!(told(slept), [json!({ "type": "status", "label": "asleep", "detail": "idle" })]);
    assert_eq!(told(json!({ "is": "closed" })), [status("closed")]);
    let moved = json!({ "is": "moved", "from": "west", "to": "east", "why": "lost" });
    assert_eq!(told(moved), [json!({ "type": "status", "label": "moved", "detail": "lost" })]);
    assert_eq!(told(json!({ "is": "queued", "prompt": 1, "frame": {} })), [status("queued")]);
    for silent in ["forked", "imported", "learned", "news"] {
        assert_eq!(told(json!({ "is": silent })), [""; 0], "{silent}");
    }
}

#[test]
fn a_part_of_the_answer_that_is_no_text_is_told_all_the_same() {
    let said = |content: Value| {
        last(
            &running().said(&json!({ "sessionUpdate": "agent_message_chunk", "content": content })),
        )
    };
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "A" });
    assert_eq!(said(link), [json!({ "type": "text_delta", "delta": "[A](file:///a)" })]);
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "" });
    assert_eq!(said(image), [json!({ "type": "status", "label": "image", "detail": "image/png" })]);
}
