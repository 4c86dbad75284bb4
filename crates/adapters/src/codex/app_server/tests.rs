//! Cases that the recordings do not cover.

use super::*;
use crate::outcome::AdapterTurnOutcome;
use crate::turn_effect::TurnEffect;
use crate::{FailureCause, PromptBlock};

/// A dialect whose program is simulated by the test.
struct TestServer {
    dialect: AppServerDialect,
    turn: AdapterTurn,
}

fn start_context(agent_session_id: Option<&'static str>) -> StartContext<'static> {
    StartContext {
        cwd: "/w",
        agent_session_id,
        model: None,
        reasoning: None,
        mode: None,
        is_sandboxed: false,
        mcp_servers: &[],
    }
}

impl TestServer {
    fn new(agent_session_id: Option<&'static str>) -> TestServer {
        let mut test =
            TestServer { dialect: AppServerDialect::default(), turn: AdapterTurn::default() };
        test.turn.begin();
        test.dialect.on_start(&start_context(agent_session_id), &mut test.turn);
        test
    }

    /// A thread `t` in which the turn `u1` has started.
    fn with_running_turn() -> TestServer {
        let mut test = TestServer::new(None);
        test.prompt("hi");
        test.receive(&json!({"id": 1, "result": {}}));
        test.receive(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
        test.receive(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
        test.notify("turn/started", &json!({"threadId": "t", "turn": {"id": "u1"}}));
        test.turn.effects.clear();
        test
    }

    fn prompt(&mut self, text: &str) {
        let prompt = PromptInput { blocks: vec![PromptBlock::Text(text.to_owned())] };
        self.dialect.on_prompt(&prompt, &mut self.turn);
    }

    fn next_turn(&mut self) {
        self.turn.close();
        self.turn.begin();
        self.turn.effects.clear();
        self.prompt("again");
    }

    fn receive(&mut self, message: &Value) {
        self.dialect.on_line(&message.to_string(), &mut self.turn);
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.receive(&json!({"method": method, "params": params}));
    }

    fn notify_item(&mut self, event: &str, thread: &str, item: &Value) {
        self.notify(&format!("item/{event}"), &json!({"threadId": thread, "item": item}));
    }

    fn end_turn(&mut self, id: &str, status: &str) {
        let ended = json!({"id": id, "status": status, "items": []});
        self.notify("turn/completed", &json!({"threadId": "t", "turn": ended}));
    }

    fn written_lines(&self) -> Vec<Value> {
        let effects = self.turn.effects.iter();
        let lines = effects.filter_map(|effect| match effect {
            TurnEffect::WriteLine(line) => Some(line.as_str()),
            _ => None,
        });
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn methods(&self) -> Vec<String> {
        let written = self.written_lines();
        written.iter().filter_map(|it| it["method"].as_str()).map(str::to_owned).collect()
    }

    fn updates(&self) -> Vec<&Value> {
        let effects = self.turn.effects.iter();
        effects
            .filter_map(|effect| match effect {
                TurnEffect::SendUpdate(update) => Some(update),
                _ => None,
            })
            .collect()
    }

    fn failure(&self) -> &TurnFailure {
        match &self.turn.outcome {
            Some(AdapterTurnOutcome::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self) {
        self.turn.mark_cancelled();
        assert!(self.dialect.on_cancel(&mut self.turn));
    }
}

const CANCELLED: Option<AdapterTurnOutcome> =
    Some(AdapterTurnOutcome::Completed(StopReason::Cancelled));

#[test]
fn prompt_waits_for_the_thread() {
    let mut test = TestServer::new(None);
    test.prompt("hi");
    assert_eq!(test.methods(), ["initialize"]);
    test.receive(&json!({"id": 1, "result": {}}));
    assert_eq!(test.methods(), ["initialize", "initialized", "thread/start"]);
    test.receive(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    let last = test.written_lines().pop().unwrap();
    assert_eq!(last["params"], json!({"threadId": "t", "input": [{"type": "text", "text": "hi"}]}));
    assert!(
        !test.turn.effects.contains(&TurnEffect::SetAgentSessionId("t".to_owned())),
        "the thread is not stored yet"
    );
    test.receive(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
    assert!(test.turn.effects.contains(&TurnEffect::SetAgentSessionId("t".to_owned())));
}

#[test]
fn prompt_cancelled_while_it_waits_is_never_sent() {
    let mut test = TestServer::new(None);
    test.prompt("hi");
    test.cancel();
    assert_eq!(test.turn.outcome, CANCELLED);
    test.receive(&json!({"id": 1, "result": {}}));
    test.receive(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    assert!(!test.methods().contains(&"turn/start".to_owned()));
    test.next_turn();
    assert_eq!(test.methods(), ["turn/start"]);
}

#[test]
fn cancelled_turn_is_interrupted_after_it_has_started() {
    let mut test = TestServer::new(None);
    test.prompt("hi");
    test.receive(&json!({"id": 1, "result": {}}));
    test.receive(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    test.receive(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
    test.cancel();
    assert_eq!(
        test.methods().last().unwrap(),
        "turn/start",
        "Codex would refuse an earlier interrupt"
    );
    test.notify("turn/started", &json!({"threadId": "t", "turn": {"id": "u1"}}));
    assert_eq!(test.methods().last().unwrap(), "turn/interrupt");
    assert_eq!(test.turn.outcome, None);
    test.end_turn("u1", "interrupted");
    assert_eq!(test.turn.outcome, CANCELLED);
}

#[test]
fn refused_interrupt_cancels_the_turn() {
    let mut test = TestServer::with_running_turn();
    test.cancel();
    test.receive(
        &json!({"id": 4, "error": {"code": -32600, "message": "no active turn to interrupt"}}),
    );
    assert_eq!(test.turn.outcome, CANCELLED);
    test.next_turn();
    test.receive(&json!({"id": 5, "result": {"turn": {"id": "u2"}}}));
    test.end_turn("u1", "completed");
    assert_eq!(test.turn.outcome, None, "the end of the old turn is not that of the new one");
}

#[test]
fn late_interrupt_response_does_not_end_the_next_turn() {
    let mut test = TestServer::with_running_turn();
    test.cancel();
    test.end_turn("u1", "completed");
    assert_eq!(test.turn.outcome, CANCELLED);
    test.next_turn();
    test.receive(&json!({"id": 5, "result": {"turn": {"id": "u2"}}}));
    test.receive(&json!({"id": 4, "error": {"message": "no active turn to interrupt"}}));
    assert_eq!(test.turn.outcome, None);
}

#[test]
fn lost_session_is_reported_and_the_next_prompt_retries() {
    let mut test = TestServer::new(Some("t"));
    test.prompt("hi");
    test.receive(&json!({"id": 1, "result": {}}));
    let message = "no rollout found for thread id t";
    test.receive(&json!({"id": 2, "error": {"code": -32600, "message": message}}));
    assert_eq!(test.failure().cause, FailureCause::NoSession);
    test.next_turn();
    assert_eq!(test.methods(), ["thread/resume"]);
}

#[test]
fn unsupported_request_is_refused() {
    let mut test = TestServer::with_running_turn();
    test.receive(&json!({"id": "x", "method": "attestation/generate", "params": {}}));
    let written = test.written_lines();
    assert_eq!((&written[0]["id"], &written[0]["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn file_approval_shows_the_diff() {
    let mut test = TestServer::with_running_turn();
    let changes = json!([{"path": "/w/a", "kind": {"type": "add"}, "diff": "new\n"}]);
    let item = json!({"type": "fileChange", "id": "c", "changes": changes, "status": "inProgress"});
    test.notify_item("started", "t", &item);
    let params = json!({"threadId": "t", "itemId": "c", "reason": "needs it"});
    test.receive(&json!({"id": 7, "method": "item/fileChange/requestApproval", "params": params}));
    let Some(TurnEffect::RequestPermission { key, tool_call, options }) =
        test.turn.effects.last().cloned()
    else {
        panic!("no permission request")
    };
    assert_eq!((&tool_call["title"], options.len()), (&json!("Create a"), 3));
    assert_eq!(tool_call["content"][0]["newText"], "new\n");
    test.dialect.on_answer(&key, PermissionAnswer::Selected("acceptForSession"), &mut test.turn);
    let answer = json!({"id": 7, "result": {"decision": "acceptForSession"}});
    assert_eq!(test.written_lines(), std::slice::from_ref(&answer));
    test.notify("serverRequest/resolved", &json!({"threadId": "t", "requestId": 7}));
    test.dialect.on_answer(&key, PermissionAnswer::Cancelled, &mut test.turn);
    assert_eq!(test.written_lines(), [answer], "the request was already answered");
}

#[test]
fn request_resolved_by_the_program_is_withdrawn() {
    let mut test = TestServer::with_running_turn();
    let params = json!({"threadId": "t", "itemId": "c", "command": "bash -lc 'rm x'", "cwd": "/w"});
    test.receive(
        &json!({"id": 7, "method": "item/commandExecution/requestApproval", "params": params}),
    );
    test.notify("serverRequest/resolved", &json!({"threadId": "t", "requestId": 7}));
    assert!(
        matches!(test.turn.effects.last(), Some(TurnEffect::WithdrawRequest { key }) if key == "7")
    );
}

#[test]
fn approval_in_a_cancelled_turn_is_declined_without_a_request() {
    let mut test = TestServer::with_running_turn();
    test.cancel();
    let params = json!({"threadId": "t", "itemId": "c", "command": "ls"});
    test.receive(
        &json!({"id": 7, "method": "item/commandExecution/requestApproval", "params": params}),
    );
    assert_eq!(test.written_lines().pop().unwrap()["result"]["decision"], "cancel");
}

#[test]
fn other_requests_become_permission_requests() {
    let options =
        json!([{"label": "Red", "description": ""}, {"label": "Blue", "description": ""}]);
    let question = json!({"id": "q", "header": "", "question": "Which?", "options": options});
    let granted = json!({"network": {"enabled": true}});
    let form = json!({"type": "object", "properties": {}});
    let cases = [
        (
            "item/tool/requestUserInput",
            json!({"itemId": "i", "questions": [question]}),
            "answer-1",
            json!({"answers": {"q": {"answers": ["Blue"]}}}),
        ),
        (
            "item/permissions/requestApproval",
            json!({"itemId": "i", "permissions": granted}),
            "session",
            json!({"permissions": granted, "scope": "session"}),
        ),
        (
            "mcpServer/elicitation/request",
            json!({"mode": "form", "message": "Sure?", "requestedSchema": form}),
            "accept",
            json!({"action": "accept", "content": {}}),
        ),
    ];
    for (method, params, option, result) in cases {
        let mut test = TestServer::with_running_turn();
        test.receive(&json!({"id": 9, "method": method, "params": params}));
        assert!(
            matches!(test.turn.effects.last(), Some(TurnEffect::RequestPermission { .. })),
            "{method}"
        );
        test.dialect.on_answer("9", PermissionAnswer::Selected(option), &mut test.turn);
        assert_eq!(test.written_lines(), [json!({"id": 9, "result": result})], "{method}");
    }
}

#[test]
fn sub_agent_calls_are_nested_and_its_text_is_not_sent() {
    let mut test = TestServer::with_running_turn();
    let spawn = json!({"type": "collabAgentToolCall", "id": "s", "tool": "spawnAgent", "status": "completed",
        "prompt": "look", "receiverThreadIds": ["sub"], "agentsStates": {}});
    test.notify_item("completed", "t", &spawn);
    test.notify_item(
        "completed",
        "sub",
        &json!({"type": "agentMessage", "id": "m", "text": "hidden"}),
    );
    let delta = json!({"threadId": "sub", "itemId": "m", "delta": "hidden"});
    test.notify("item/agentMessage/delta", &delta);
    let command =
        json!({"type": "commandExecution", "id": "c", "command": "ls", "status": "completed"});
    test.notify_item("completed", "sub", &command);
    test.notify(
        "turn/completed",
        &json!({"threadId": "sub", "turn": {"id": "u1", "status": "completed"}}),
    );
    assert_eq!(test.turn.outcome, None);
    let updates = test.updates();
    let kinds: Vec<&str> = updates.iter().filter_map(|it| it["sessionUpdate"].as_str()).collect();
    assert_eq!(kinds, ["tool_call", "session_info_update", "tool_call", "session_info_update"]);
    assert_eq!(updates[2]["_meta"]["jackfield"]["parentToolCallId"], "s");
}

#[test]
fn command_that_outlives_its_turn_is_not_updated() {
    let mut test = TestServer::with_running_turn();
    let command =
        json!({"type": "commandExecution", "id": "c", "command": "serve", "status": "inProgress"});
    test.notify_item("started", "t", &command);
    test.end_turn("u1", "completed");
    test.next_turn();
    test.notify_item("completed", "t", &command);
    let updates = test.updates();
    assert_eq!(updates.len(), 1);
    assert!(updates[0]["_meta"]["jackfield"]["unmapped"].is_object());
}

#[test]
fn long_output_is_sent_rarely_and_completely_at_the_end() {
    let mut test = TestServer::with_running_turn();
    let command =
        json!({"type": "commandExecution", "id": "c", "command": "make", "status": "inProgress"});
    test.notify_item("started", "t", &command);
    for _ in 0..1000 {
        let delta = json!({"threadId": "t", "itemId": "c", "delta": "0123456789".repeat(10)});
        test.notify("item/commandExecution/outputDelta", &delta);
    }
    let completed = json!({"type": "commandExecution", "id": "c", "command": "make", "status": "completed",
        "aggregatedOutput": null, "exitCode": 0});
    test.notify_item("completed", "t", &completed);
    let updates = test.updates();
    let text_len = |update: &Value| update["content"][0]["content"]["text"].as_str().map(str::len);
    let sizes: Vec<usize> = updates.iter().filter_map(|it| text_len(it)).collect();
    assert_eq!(sizes.last(), Some(&100_000));
    assert!(sizes.iter().sum::<usize>() < 700_000, "{sizes:?}");
}

#[test]
fn exit_after_an_error_fails_with_that_error() {
    let mut test = TestServer::with_running_turn();
    let info = json!({"httpConnectionFailed": {"httpStatusCode": 503}});
    let error = json!({"message": "it broke", "codexErrorInfo": info});
    test.notify("error", &json!({"threadId": "t", "error": error, "willRetry": false}));
    assert_eq!(test.turn.outcome, None);
    test.dialect.on_exit(&AgentExit { code: Some(1), ..AgentExit::default() }, &mut test.turn);
    assert_eq!(
        (test.failure().cause, test.failure().status),
        (FailureCause::Unavailable, Some(503))
    );
}

#[test]
fn model_applies_to_the_next_turn_and_mode_needs_a_restart() {
    let mut test = TestServer::with_running_turn();
    let turn = &mut AdapterTurn::default();
    assert!(test.dialect.on_setting(ProgramSetting::Model("m"), turn));
    assert!(test.dialect.on_setting(ProgramSetting::Reasoning("high"), turn));
    assert!(!test.dialect.on_setting(ProgramSetting::Mode("auto"), turn));
    assert!(!test.dialect.on_setting(ProgramSetting::Model("default"), turn));
    test.end_turn("u1", "completed");
    test.next_turn();
    let params = test.written_lines()[0]["params"].clone();
    assert_eq!((&params["model"], &params["effort"]), (&json!("m"), &json!("high")));
}

#[test]
fn plan_and_title_are_sent() {
    let mut test = TestServer::with_running_turn();
    let plan =
        json!([{"step": "one", "status": "completed"}, {"step": "two", "status": "inProgress"}]);
    test.notify("turn/plan/updated", &json!({"threadId": "t", "turnId": "u1", "plan": plan}));
    test.notify("thread/name/updated", &json!({"threadId": "t", "threadName": "Greeting"}));
    let updates = test.updates();
    assert_eq!(updates[0]["entries"][1]["status"], "in_progress");
    assert_eq!(updates[1]["title"], "Greeting");
}
