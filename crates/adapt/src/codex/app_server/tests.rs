//! What the recordings do not show.

use super::*;
use crate::outcome::Outcome;
use crate::turn::Effect;
use crate::{Block, Cause};

/// A program at the other end, played by hand.
struct Stage {
    server: AppServer,
    turn: Turn,
}

fn start(native: Option<&'static str>) -> Start<'static> {
    Start { cwd: "/w", native, model: None, reasoning: None, mode: None, mcp: &[] }
}

impl Stage {
    fn open(native: Option<&'static str>) -> Stage {
        let mut stage = Stage { server: AppServer::default(), turn: Turn::default() };
        stage.turn.begin();
        stage.server.open(&start(native), &mut stage.turn);
        stage
    }

    /// A thread `t`, in which the turn `u1` has begun.
    fn running() -> Stage {
        let mut stage = Stage::open(None);
        stage.prompt("hi");
        stage.hear(&json!({"id": 1, "result": {}}));
        stage.hear(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
        stage.hear(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
        stage.tell("turn/started", &json!({"threadId": "t", "turn": {"id": "u1"}}));
        stage.turn.effects.clear();
        stage
    }

    fn prompt(&mut self, text: &str) {
        let prompt = Prompt { blocks: vec![Block::Text(text.to_owned())] };
        self.server.prompt(&prompt, &mut self.turn);
    }

    fn next_turn(&mut self) {
        self.turn.finish();
        self.turn.begin();
        self.turn.effects.clear();
        self.prompt("again");
    }

    fn hear(&mut self, message: &Value) {
        self.server.line(&message.to_string(), &mut self.turn);
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.hear(&json!({"method": method, "params": params}));
    }

    fn item(&mut self, event: &str, thread: &str, item: &Value) {
        self.tell(&format!("item/{event}"), &json!({"threadId": thread, "item": item}));
    }

    fn end_turn(&mut self, id: &str, status: &str) {
        let ended = json!({"id": id, "status": status, "items": []});
        self.tell("turn/completed", &json!({"threadId": "t", "turn": ended}));
    }

    fn written(&self) -> Vec<Value> {
        let effects = self.turn.effects.iter();
        let lines = effects.filter_map(|effect| match effect {
            Effect::Write(line) => Some(line.as_str()),
            _ => None,
        });
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn methods(&self) -> Vec<String> {
        let written = self.written();
        written.iter().filter_map(|it| it["method"].as_str()).map(str::to_owned).collect()
    }

    fn updates(&self) -> Vec<&Value> {
        let effects = self.turn.effects.iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Update(update) => Some(update),
                _ => None,
            })
            .collect()
    }

    fn failure(&self) -> &Failure {
        match &self.turn.outcome {
            Some(Outcome::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self) {
        self.turn.on_cancel();
        assert!(self.server.cancel(&mut self.turn));
    }
}

const CANCELLED: Option<Outcome> = Some(Outcome::Done(Stop::Cancelled));

#[test]
fn a_prompt_waits_for_the_thread() {
    let mut stage = Stage::open(None);
    stage.prompt("hi");
    assert_eq!(stage.methods(), ["initialize"]);
    stage.hear(&json!({"id": 1, "result": {}}));
    assert_eq!(stage.methods(), ["initialize", "initialized", "thread/start"]);
    stage.hear(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    let last = stage.written().pop().unwrap();
    assert_eq!(last["params"], json!({"threadId": "t", "input": [{"type": "text", "text": "hi"}]}));
    assert!(!stage.turn.effects.contains(&Effect::Native("t".to_owned())), "nothing is kept yet");
    stage.hear(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
    assert!(stage.turn.effects.contains(&Effect::Native("t".to_owned())));
}

#[test]
fn a_prompt_that_is_cancelled_while_it_waits_is_never_sent() {
    let mut stage = Stage::open(None);
    stage.prompt("hi");
    stage.cancel();
    assert_eq!(stage.turn.outcome, CANCELLED);
    stage.hear(&json!({"id": 1, "result": {}}));
    stage.hear(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    assert!(!stage.methods().contains(&"turn/start".to_owned()));
    stage.next_turn();
    assert_eq!(stage.methods(), ["turn/start"]);
}

#[test]
fn a_turn_is_interrupted_once_it_has_begun() {
    let mut stage = Stage::open(None);
    stage.prompt("hi");
    stage.hear(&json!({"id": 1, "result": {}}));
    stage.hear(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    stage.hear(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
    stage.cancel();
    assert_eq!(stage.methods().last().unwrap(), "turn/start", "Codex would refuse it and go on");
    stage.tell("turn/started", &json!({"threadId": "t", "turn": {"id": "u1"}}));
    assert_eq!(stage.methods().last().unwrap(), "turn/interrupt");
    assert_eq!(stage.turn.outcome, None);
    stage.end_turn("u1", "interrupted");
    assert_eq!(stage.turn.outcome, CANCELLED);
}

#[test]
fn a_turn_that_cannot_be_interrupted_is_cancelled_all_the_same() {
    let mut stage = Stage::running();
    stage.cancel();
    stage.hear(
        &json!({"id": 4, "error": {"code": -32600, "message": "no active turn to interrupt"}}),
    );
    assert_eq!(stage.turn.outcome, CANCELLED);
    stage.next_turn();
    stage.hear(&json!({"id": 5, "result": {"turn": {"id": "u2"}}}));
    stage.end_turn("u1", "completed");
    assert_eq!(stage.turn.outcome, None, "the end of the old turn is not that of the new one");
}

#[test]
fn an_interrupt_that_came_too_late_does_not_end_the_next_turn() {
    let mut stage = Stage::running();
    stage.cancel();
    stage.end_turn("u1", "completed");
    assert_eq!(stage.turn.outcome, CANCELLED);
    stage.next_turn();
    stage.hear(&json!({"id": 5, "result": {"turn": {"id": "u2"}}}));
    stage.hear(&json!({"id": 4, "error": {"message": "no active turn to interrupt"}}));
    assert_eq!(stage.turn.outcome, None);
}

#[test]
fn a_lost_session_says_so_and_the_next_prompt_tries_again() {
    let mut stage = Stage::open(Some("t"));
    stage.prompt("hi");
    stage.hear(&json!({"id": 1, "result": {}}));
    let message = "no rollout found for thread id t";
    stage.hear(&json!({"id": 2, "error": {"code": -32600, "message": message}}));
    assert_eq!(stage.failure().cause, Cause::NoSession);
    stage.next_turn();
    assert_eq!(stage.methods(), ["thread/resume"]);
}

#[test]
fn a_request_that_nobody_can_serve_is_refused_at_once() {
    let mut stage = Stage::running();
    stage.hear(&json!({"id": "x", "method": "attestation/generate", "params": {}}));
    let written = stage.written();
    assert_eq!((&written[0]["id"], &written[0]["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn whoever_is_asked_about_files_sees_what_changes() {
    let mut stage = Stage::running();
    let changes = json!([{"path": "/w/a", "kind": {"type": "add"}, "diff": "new\n"}]);
    let item = json!({"type": "fileChange", "id": "c", "changes": changes, "status": "inProgress"});
    stage.item("started", "t", &item);
    let params = json!({"threadId": "t", "itemId": "c", "reason": "needs it"});
    stage.hear(&json!({"id": 7, "method": "item/fileChange/requestApproval", "params": params}));
    let Some(Effect::Ask { key, tool_call, options }) = stage.turn.effects.last().cloned() else {
        panic!("nobody was asked")
    };
    assert_eq!((&tool_call["title"], options.len()), (&json!("Create a"), 3));
    assert_eq!(tool_call["content"][0]["newText"], "new\n");
    stage.server.answer(&key, Answer::Chosen("acceptForSession"), &mut stage.turn);
    let answer = json!({"id": 7, "result": {"decision": "acceptForSession"}});
    assert_eq!(stage.written(), std::slice::from_ref(&answer));
    stage.tell("serverRequest/resolved", &json!({"threadId": "t", "requestId": 7}));
    stage.server.answer(&key, Answer::Cancelled, &mut stage.turn);
    assert_eq!(stage.written(), [answer], "one answer is enough");
}

#[test]
fn a_question_that_the_program_gave_up_is_taken_back() {
    let mut stage = Stage::running();
    let params = json!({"threadId": "t", "itemId": "c", "command": "bash -lc 'rm x'", "cwd": "/w"});
    stage.hear(
        &json!({"id": 7, "method": "item/commandExecution/requestApproval", "params": params}),
    );
    stage.tell("serverRequest/resolved", &json!({"threadId": "t", "requestId": 7}));
    assert!(matches!(stage.turn.effects.last(), Some(Effect::Unask { key }) if key == "7"));
}

#[test]
fn nobody_is_asked_in_a_cancelled_turn() {
    let mut stage = Stage::running();
    stage.cancel();
    let params = json!({"threadId": "t", "itemId": "c", "command": "ls"});
    stage.hear(
        &json!({"id": 7, "method": "item/commandExecution/requestApproval", "params": params}),
    );
    assert_eq!(stage.written().pop().unwrap()["result"]["decision"], "cancel");
}

#[test]
fn other_questions_become_choices_where_they_can() {
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
        let mut stage = Stage::running();
        stage.hear(&json!({"id": 9, "method": method, "params": params}));
        assert!(matches!(stage.turn.effects.last(), Some(Effect::Ask { .. })), "{method}");
        stage.server.answer("9", Answer::Chosen(option), &mut stage.turn);
        assert_eq!(stage.written(), [json!({"id": 9, "result": result})], "{method}");
    }
}

#[test]
fn a_sub_agent_works_under_the_call_that_started_it_and_does_not_speak_for_the_agent() {
    let mut stage = Stage::running();
    let spawn = json!({"type": "collabAgentToolCall", "id": "s", "tool": "spawnAgent", "status": "completed",
        "prompt": "look", "receiverThreadIds": ["sub"], "agentsStates": {}});
    stage.item("completed", "t", &spawn);
    stage.item("completed", "sub", &json!({"type": "agentMessage", "id": "m", "text": "hidden"}));
    let delta = json!({"threadId": "sub", "itemId": "m", "delta": "hidden"});
    stage.tell("item/agentMessage/delta", &delta);
    let command =
        json!({"type": "commandExecution", "id": "c", "command": "ls", "status": "completed"});
    stage.item("completed", "sub", &command);
    stage.tell(
        "turn/completed",
        &json!({"threadId": "sub", "turn": {"id": "u1", "status": "completed"}}),
    );
    assert_eq!(stage.turn.outcome, None);
    let updates = stage.updates();
    let words: Vec<&str> = updates.iter().filter_map(|it| it["sessionUpdate"].as_str()).collect();
    assert_eq!(words, ["tool_call", "session_info_update", "tool_call", "session_info_update"]);
    assert_eq!(updates[2]["_meta"]["jackfield"]["parentToolCallId"], "s");
}

#[test]
fn a_command_that_outlives_its_turn_is_told_once() {
    let mut stage = Stage::running();
    let command =
        json!({"type": "commandExecution", "id": "c", "command": "serve", "status": "inProgress"});
    stage.item("started", "t", &command);
    stage.end_turn("u1", "completed");
    stage.next_turn();
    stage.item("completed", "t", &command);
    let updates = stage.updates();
    assert_eq!(updates.len(), 1);
    assert!(updates[0]["_meta"]["jackfield"]["unmapped"].is_object());
}

#[test]
fn long_output_is_told_seldom_and_in_the_end_completely() {
    let mut stage = Stage::running();
    let command =
        json!({"type": "commandExecution", "id": "c", "command": "make", "status": "inProgress"});
    stage.item("started", "t", &command);
    for _ in 0..1000 {
        let delta = json!({"threadId": "t", "itemId": "c", "delta": "0123456789".repeat(10)});
        stage.tell("item/commandExecution/outputDelta", &delta);
    }
    let done = json!({"type": "commandExecution", "id": "c", "command": "make", "status": "completed",
        "aggregatedOutput": null, "exitCode": 0});
    stage.item("completed", "t", &done);
    let updates = stage.updates();
    let told = |update: &Value| update["content"][0]["content"]["text"].as_str().map(str::len);
    let sizes: Vec<usize> = updates.iter().filter_map(|it| told(it)).collect();
    assert_eq!(sizes.last(), Some(&100_000));
    assert!(sizes.iter().sum::<usize>() < 700_000, "{sizes:?}");
}

#[test]
fn an_error_is_the_reason_if_the_program_ends_behind_it() {
    let mut stage = Stage::running();
    let info = json!({"httpConnectionFailed": {"httpStatusCode": 503}});
    let error = json!({"message": "it broke", "codexErrorInfo": info});
    stage.tell("error", &json!({"threadId": "t", "error": error, "willRetry": false}));
    assert_eq!(stage.turn.outcome, None);
    stage.server.end(&Exit { code: Some(1), ..Exit::default() }, &mut stage.turn);
    assert_eq!((stage.failure().cause, stage.failure().status), (Cause::Unavailable, Some(503)));
}

#[test]
fn a_model_is_told_with_the_next_turn_and_a_mode_by_a_new_program() {
    let mut stage = Stage::running();
    let turn = &mut Turn::default();
    assert!(stage.server.set(Setting::Model("m"), turn));
    assert!(stage.server.set(Setting::Reasoning("high"), turn));
    assert!(!stage.server.set(Setting::Mode("auto"), turn));
    assert!(!stage.server.set(Setting::Model("default"), turn));
    stage.end_turn("u1", "completed");
    stage.next_turn();
    let params = stage.written()[0]["params"].clone();
    assert_eq!((&params["model"], &params["effort"]), (&json!("m"), &json!("high")));
}

#[test]
fn plans_names_and_windows_are_told() {
    let mut stage = Stage::running();
    let plan =
        json!([{"step": "one", "status": "completed"}, {"step": "two", "status": "inProgress"}]);
    stage.tell("turn/plan/updated", &json!({"threadId": "t", "turnId": "u1", "plan": plan}));
    stage.tell("thread/name/updated", &json!({"threadId": "t", "threadName": "Greeting"}));
    let updates = stage.updates();
    assert_eq!(updates[0]["entries"][1]["status"], "in_progress");
    assert_eq!(updates[1]["title"], "Greeting");
}
