//! Agent events of each kind of event in the log.

use crate::session_log::{SESSION, SessionLog};
use serde_json::{Value, json};

/// The agent events of the last event.
fn last_events(log: &SessionLog) -> Vec<Value> {
    let mut before = log.clone();
    before.events.pop();
    log.agent_events()[before.agent_events().len()..].to_vec()
}

fn running() -> SessionLog {
    SessionLog::opened().prompted("Hi")
}

fn status(label: &str) -> Value {
    json!({ "type": "status", "label": label })
}

#[test]
fn opened_session_is_initializing_with_its_model() {
    let option = json!({ "id": "model", "category": "model", "currentValue": "opus" });
    let log = SessionLog::default().open(&json!({ "configOptions": [option] }));
    let initializing =
        json!({ "type": "status", "label": "initializing", "model": "opus", "sessionId": SESSION });
    let model = json!({ "type": "status", "label": "model", "model": "opus" });
    assert_eq!(log.agent_events(), [initializing, model]);
    let older = json!({ "models": { "currentModelId": "k2", "availableModels": [] } });
    assert_eq!(SessionLog::default().open(&older).agent_events()[1]["model"], "k2");
    assert_eq!(SessionLog::opened().agent_events().len(), 1);
}

#[test]
fn restored_session_is_initializing_with_the_method() {
    let bound = json!({ "is": "bound", "restore": "reseeded", "setup": null });
    let initializing = json!({ "type": "status", "label": "initializing", "detail": "reseeded",
                               "sessionId": SESSION });
    assert_eq!(last_events(&SessionLog::opened().event(bound)), [initializing]);
    let bound = json!({ "is": "bound", "restore": "failed", "setup": null });
    assert_eq!(last_events(&SessionLog::opened().event(bound))[0]["label"], "failed");
}

#[test]
fn prompt_is_running_with_the_model_if_it_is_known() {
    assert_eq!(last_events(&running()), [status("running")]);
    let setup = json!({ "models": { "currentModelId": "k2" } });
    let log = SessionLog::default().open(&setup).prompted("Hi");
    assert_eq!(last_events(&log), [json!({ "type": "status", "label": "running", "model": "k2" })]);
}

#[test]
fn changed_model_is_reported() {
    let frame = json!({ "method": "session/set_model", "params": { "modelId": "k3" } });
    let set = json!({ "is": "configured", "frame": frame, "answer": {} });
    let model = |it: &str| json!({ "type": "status", "label": "model", "model": it });
    assert_eq!(last_events(&SessionLog::opened().event(set)), [model("k3")]);
    let params = json!({ "configId": "model", "value": "opus" });
    let frame = json!({ "method": "session/set_config_option", "params": params });
    let options = json!([
        { "id": "model", "category": "model", "currentValue": "opus" },
        { "id": "mode", "category": "mode", "currentValue": "plan" },
    ]);
    let answer = json!({ "configOptions": options });
    let set = json!({ "is": "configured", "frame": frame, "answer": answer });
    let config = json!({ "type": "config", "options": { "model": "opus", "mode": "plan" } });
    assert_eq!(last_events(&SessionLog::opened().event(set)), [config.clone(), model("opus")]);
    let reported = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
    assert_eq!(last_events(&running().update(&reported)), [config, model("opus")]);
}

#[test]
fn changed_mode_is_reported() {
    let mode = json!({ "type": "mode", "mode": "plan" });
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" });
    assert_eq!(last_events(&running().update(&update)), std::slice::from_ref(&mode));
    let frame = json!({ "method": "session/set_mode", "params": { "modeId": "plan" } });
    let set = json!({ "is": "configured", "frame": frame, "answer": {} });
    assert_eq!(last_events(&running().event(set)), [mode]);
}

#[test]
fn first_text_of_a_turn_has_its_latency() {
    let streaming = json!({ "type": "status", "label": "streaming", "ttftMs": 20 });
    let delta = |it: &str| json!({ "type": "text_delta", "delta": it });
    let log = running().thought("Hm").text("Hel");
    assert_eq!(last_events(&log), [streaming.clone(), delta("Hel")]);
    let log = log.text("lo");
    assert_eq!(last_events(&log), [delta("lo")]);
    let log = log.stopped("end_turn").text("late");
    assert_eq!(last_events(&log), [delta("late")]);
    let log = log.prompted("More").text("").text("ha");
    assert_eq!(last_events(&log), [streaming, delta("ha")]);
    assert_eq!(last_events(&log.text("ha")), [delta("ha")], "repeated text is reported twice");
}

#[test]
fn thought_has_one_start() {
    let (start, delta) = (
        json!({ "type": "thinking_start" }),
        |it: &str| json!({ "type": "thinking_delta", "delta": it }),
    );
    let log = running().thought("H");
    assert_eq!(last_events(&log), [start.clone(), delta("H")]);
    let log = log.thought("m");
    assert_eq!(last_events(&log), [delta("m")]);
    let log = log.text("So").thought("Or");
    assert_eq!(last_events(&log), [start.clone(), delta("Or")]);
    let log = log.tool("c1", "ls").thought("And");
    assert_eq!(last_events(&log), [start, delta("And")]);
    assert_eq!(last_events(&log.thought("")), [""; 0]);
}

#[test]
fn tool_use_and_tool_result_are_reported() {
    let log = running().tool("c1", "ls");
    let tool = json!({ "type": "tool_use", "id": "c1", "name": "Bash", "title": "ls",
                       "input": { "command": "ls" }, "kind": "execute" });
    assert_eq!(last_events(&log), [tool]);
    let result =
        json!({ "type": "tool_result", "toolUseId": "c1", "content": "a", "isError": false });
    assert_eq!(last_events(&log.tool_done("c1", "a")), [result]);
}

#[test]
fn failed_or_cancelled_tool_is_an_error() {
    for word in ["failed", "cancelled", "canceled", "error"] {
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": word,
                             "content": [{ "type": "content", "content": { "type": "text", "text": "no" } }] });
        let result =
            json!({ "type": "tool_result", "toolUseId": "c1", "content": "no", "isError": true });
        assert_eq!(last_events(&running().tool("c1", "ls").update(&update)), [result], "{word}");
    }
}

#[test]
fn open_tools_are_closed_with_an_error_at_the_end_of_a_turn() {
    let log = running().tool("c1", "a").tool("c2", "b").tool_done("c2", "").stopped("cancelled");
    let reported = last_events(&log);
    let result = json!({ "type": "tool_result", "toolUseId": "c1", "isError": true,
                         "content": "[no result: the turn ended first]" });
    assert_eq!(reported[0], result);
    assert_eq!(reported[1]["type"], "usage");
    assert_eq!(reported.len(), 2);
    assert_eq!(last_events(&log.tool_done("c1", "late")), [""; 0]);
    let gone = json!({ "is": "gone", "status": "exit status 1", "stderr": "" });
    let reported = last_events(&running().tool("c1", "a").event(gone));
    assert_eq!(
        (&reported[0]["type"], &reported[1]["label"]),
        (&json!("tool_result"), &json!("gone"))
    );
}

#[test]
fn plan_keeps_its_entries() {
    let entries =
        json!([{ "content": "Read", "priority": "high", "status": "pending", "more": 1 }]);
    let update = json!({ "sessionUpdate": "plan", "entries": entries });
    assert_eq!(
        last_events(&running().update(&update)),
        [json!({ "type": "plan", "entries": entries })]
    );
}

#[test]
fn turn_ends_with_its_usage() {
    let usage = json!({ "inputTokens": 9, "outputTokens": 2, "totalTokens": 11, "thoughtTokens": 1,
                        "cachedReadTokens": 3, "cachedWriteTokens": 4 });
    let cost = json!({ "jackfield": { "cost": { "amount": 0.5, "currency": "USD" } } });
    let answer = json!({ "stopReason": "end_turn", "usage": usage, "_meta": cost });
    let reported = json!({ "type": "usage", "costUsd": 0.5, "durationMs": 10, "stopReason": "end_turn",
                       "usage": { "input_tokens": 9, "output_tokens": 2, "cached_read_tokens": 3,
                                  "cached_write_tokens": 4, "thought_tokens": 1, "total_tokens": 11 } });
    assert_eq!(last_events(&running().ended("stopped", &answer)), [reported]);
    let unknown =
        json!({ "type": "usage", "usage": {}, "durationMs": 10, "stopReason": "end_turn" });
    assert_eq!(last_events(&running().stopped("end_turn")), [unknown]);
}

#[test]
fn turn_cost_is_the_delta_of_session_cost() {
    let spent = |amount: f64| {
        let cost = json!({ "amount": amount, "currency": "USD" });
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost })
    };
    let mut log = running().update(&spent(1.0)).stopped("end_turn");
    log = log.prompted("More").update(&spent(1.25)).stopped("end_turn");
    assert_eq!(last_events(&log)[0]["costUsd"], 0.25);
    let mut second = SessionLog::default();
    second.events = log.events.split_off(4);
    assert_eq!(second.agent_events().last().unwrap().get("costUsd"), None);
}

#[test]
fn failed_turn_is_an_error_with_its_cause() {
    let data = json!({ "details": "401 wrong key" });
    let error = json!({ "code": -32603, "message": "Internal error", "data": data });
    let reported =
        json!({ "type": "error", "message": "Internal error: 401 wrong key", "code": "-32603" });
    let usage = json!({ "type": "usage", "usage": {}, "durationMs": 10 });
    assert_eq!(last_events(&running().ended("failed", &error)), [usage.clone(), reported]);
    let error = json!({ "code": -31000, "message": "agent `claude` ended: exit status 1",
                        "data": { "jackfield": { "code": "agent_gone" } } });
    let reported = json!({ "type": "error", "message": "agent `claude` ended: exit status 1",
                       "code": "agent_gone" });
    assert_eq!(last_events(&running().ended("interrupted", &error)), [usage, reported]);
    assert_eq!(last_events(&running().stopped("cancelled"))[0]["stopReason"], "cancelled");
}

#[test]
fn permission_is_a_request_and_a_response() {
    let log = running().tool("c1", "ls").asked("c1");
    let options = json!([
        { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let request = json!({ "type": "permission_request", "ask": 1, "toolUseId": "c1", "name": "Bash",
                          "title": "ls", "input": { "command": "ls" }, "options": options });
    assert_eq!(last_events(&log), [request]);
    let response = json!({ "type": "permission_response", "ask": 1, "toolUseId": "c1",
                           "optionId": "no", "by": "zed" });
    assert_eq!(last_events(&log.answered("no")), [response]);
}

#[test]
fn update_of_an_unknown_kind_is_a_status() {
    let update = json!({ "sessionUpdate": "compaction_update", "message": "half", "x": [1] });
    let reported = json!({ "type": "status", "label": "compaction_update", "detail": "half" });
    assert_eq!(last_events(&running().update(&update)), [reported]);
    assert_eq!(
        last_events(&running().update(&json!({ "sessionUpdate": "news" }))),
        [status("news")]
    );
    let own = json!({ "method": "_auth/status_update", "params": {} });
    assert_eq!(last_events(&running().message(own)), [status("_auth/status_update")]);
}

#[test]
fn unmapped_adapter_output_is_a_notice_or_raw() {
    let info = |meta: &Value| json!({ "sessionUpdate": "session_info_update", "_meta": { "jackfield": meta } });
    let notice = json!({ "type": "status", "label": "notice", "detail": "Reconnecting" });
    assert_eq!(
        last_events(&running().update(&info(&json!({ "notice": "Reconnecting" })))),
        [notice]
    );
    let raw = json!({ "type": "raw", "line": r#"{"type":"x"}"# });
    assert_eq!(
        last_events(&running().update(&info(&json!({ "unmapped": { "type": "x" } })))),
        [raw]
    );
}

#[test]
fn session_events_outside_of_turns_are_statuses() {
    let reported = |event: Value| last_events(&running().event(event));
    let quiet =
        json!({ "is": "quiet", "turn": 1, "phase": "tool", "since": 30, "waits": "for make" });
    let expected =
        json!({ "type": "status", "label": "quiet", "detail": "for make", "elapsedMs": 1000 });
    assert_eq!(reported(quiet), [expected]);
    let cancelled = json!({ "is": "cancelled", "turn": 1, "step": 1 });
    let expected = json!({ "type": "status", "label": "cancelling", "elapsedMs": 10 });
    assert_eq!(reported(cancelled), [expected]);
    let slept = json!({ "is": "slept", "why": "idle" });
    assert_eq!(reported(slept), [json!({ "type": "status", "label": "asleep", "detail": "idle" })]);
    assert_eq!(reported(json!({ "is": "closed" })), [status("closed")]);
    let moved = json!({ "is": "moved", "from": "west", "to": "east", "why": "lost" });
    assert_eq!(reported(moved), [json!({ "type": "status", "label": "moved", "detail": "lost" })]);
    assert_eq!(reported(json!({ "is": "queued", "prompt": 1, "frame": {} })), [status("queued")]);
    for silent in ["forked", "imported", "learned", "news"] {
        assert_eq!(reported(json!({ "is": silent })), [""; 0], "{silent}");
    }
}

#[test]
fn non_text_block_of_the_answer_is_reported() {
    let block_events = |content: Value| {
        last_events(
            &running()
                .update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content })),
        )
    };
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "A" });
    assert_eq!(block_events(link), [json!({ "type": "text_delta", "delta": "[A](file:///a)" })]);
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "" });
    assert_eq!(
        block_events(image),
        [json!({ "type": "status", "label": "image", "detail": "image/png" })]
    );
}
