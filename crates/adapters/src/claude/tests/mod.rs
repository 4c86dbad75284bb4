//! Cases that the recordings do not cover.

#![expect(clippy::needless_pass_by_value, reason = "lines are composed in place")]

mod permissions;

use super::{new_amp, new_claude, new_qwen};
use crate::outcome::AdapterTurnOutcome;
use crate::turn_effect::TurnEffect;
use crate::{
    AdapterTurn, Dialect, DialectFactory, FailureCause, PermissionAnswer, ProgramSetting,
    PromptInput, StartContext, StopReason,
};
use jackfield_agents::AgentExit;
use serde_json::{Value, json};

/// A dialect with a running turn.
struct RunningDialect {
    inner: Box<dyn Dialect>,
    turn: AdapterTurn,
}

impl RunningDialect {
    fn new(new_dialect: DialectFactory) -> RunningDialect {
        let mut dialect = RunningDialect { inner: new_dialect(), turn: AdapterTurn::default() };
        dialect.turn.begin();
        let mode = Some("default");
        let start = StartContext {
            cwd: "/w",
            agent_session_id: None,
            model: None,
            reasoning: None,
            mode,
            is_sandboxed: false,
            mcp_servers: &[],
        };
        dialect.inner.on_start(&start, &mut dialect.turn);
        dialect.inner.on_prompt(&PromptInput::default(), &mut dialect.turn);
        dialect.turn.effects.clear();
        dialect
    }

    fn receive(&mut self, lines: &[Value]) -> &mut RunningDialect {
        for line in lines {
            self.inner.on_line(&line.to_string(), &mut self.turn);
        }
        self
    }

    fn answer(&mut self, answer: PermissionAnswer<'_>) -> Value {
        self.turn.effects.clear();
        self.inner.on_answer("r", answer, &mut self.turn);
        self.written_lines().pop().unwrap_or_default()["response"]["response"].clone()
    }

    fn updates(&self) -> Vec<&Value> {
        let updates = self.turn.effects.iter().filter_map(|effect| match effect {
            TurnEffect::SendUpdate(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    fn written_lines(&self) -> Vec<Value> {
        let write = |effect: &TurnEffect| match effect {
            TurnEffect::WriteLine(line) => serde_json::from_str(line).ok(),
            _ => None,
        };
        self.turn.effects.iter().filter_map(write).collect()
    }

    fn options(&self) -> Vec<(String, String)> {
        let request = self.turn.effects.iter().rev().find_map(|effect| match effect {
            TurnEffect::RequestPermission { options, .. } => Some(options),
            _ => None,
        });
        request.into_iter().flatten().map(|it| (it.id.clone(), it.name.clone())).collect()
    }

    fn text(&self) -> String {
        let chunks = self.updates().into_iter();
        let chunks = chunks.filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|it| it["content"]["text"].as_str()).collect()
    }
}

fn assistant_message(content: Value) -> Value {
    json!({"type": "assistant", "message": {"id": "m", "content": content}})
}

fn tool_use(id: &str, name: &str, input: Value) -> Value {
    assistant_message(json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
}

fn tool_result(id: &str, content: &str, is_error: bool) -> Value {
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": content,
                        "is_error": is_error});
    json!({"type": "user", "message": {"role": "user", "content": [result]}})
}

fn in_sub_agent(parent: &str, mut line: Value) -> Value {
    line["parent_tool_use_id"] = json!(parent);
    line
}

fn stream_event(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

fn permission_request(name: &str, input: Value, suggestions: Value) -> Value {
    let request = json!({"subtype": "can_use_tool", "tool_name": name, "input": input,
                         "permission_suggestions": suggestions, "tool_use_id": "t"});
    json!({"type": "control_request", "request_id": "r", "request": request})
}

#[test]
fn sub_agent_text_is_added_to_the_call_that_started_it() {
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[
        tool_use("p", "Task", json!({"description": "Look around"})),
        in_sub_agent("p", assistant_message(json!([{"type": "text", "text": "one"}]))),
        in_sub_agent("p", tool_use("c", "Bash", json!({"command": "ls"}))),
        in_sub_agent("p", tool_result("c", "a.rs", false)),
        in_sub_agent("p", assistant_message(json!([{"type": "text", "text": "two"}]))),
    ]);
    assert_eq!(dialect.text(), "");
    let updates = dialect.updates();
    assert_eq!(updates[2]["_meta"]["jackfield"]["parentToolCallId"], "p");
    let report = &updates.last().unwrap()["content"][0]["content"]["text"];
    assert_eq!(report, "one\n\ntwo");
}

#[test]
fn todos_become_a_plan_and_a_failed_list_is_a_tool_call() {
    let todos = json!({"todos": [{"content": "Read", "status": "completed"},
                                 {"content": "Write", "status": "in_progress"}]});
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[tool_use("t", "TodoWrite", todos.clone()), tool_result("t", "ok", false)]);
    let updates = dialect.updates();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["entries"][1]["status"], "in_progress");
    dialect.receive(&[tool_use("u", "TodoWrite", todos), tool_result("u", "no", true)]);
    let updates = dialect.updates();
    assert_eq!(updates[1]["sessionUpdate"], "tool_call");
    assert_eq!(updates[2]["status"], "failed");
}

#[test]
fn tasks_created_one_by_one_become_one_plan() {
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[
        tool_use("a", "TaskCreate", json!({"subject": "Read"})),
        tool_result("a", "Task #7 created successfully: Read", false),
        tool_use("b", "TaskCreate", json!({"subject": "Write"})),
        tool_result("b", "Task #8 created successfully: Write", false),
        tool_use("c", "TaskUpdate", json!({"taskId": "7", "status": "completed"})),
        tool_result("c", "Updated task #7", false),
        tool_use("d", "TaskUpdate", json!({"taskId": "8", "status": "deleted"})),
        tool_result("d", "Deleted", false),
    ]);
    let plans: Vec<Value> = dialect
        .updates()
        .iter()
        .map(|it| it["entries"].as_array().unwrap().iter().map(|it| it["status"].clone()).collect())
        .collect();
    assert_eq!(
        plans,
        [
            json!(["pending"]),
            json!(["pending", "pending"]),
            json!(["completed", "pending"]),
            json!(["completed"])
        ]
    );
}

#[test]
fn interrupted_call_is_closed_and_its_retry_is_sent() {
    let start = |id: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        stream_event(json!({"type": "content_block_start", "index": 0, "content_block": block}))
    };
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[
        start("a"),
        json!({"type": "system", "subtype": "api_retry", "attempt": 1}),
        start("b"),
        tool_use("b", "Bash", json!({"command": "ls"})),
    ]);
    let updates: Vec<(&str, &str)> = dialect
        .updates()
        .iter()
        .filter_map(|it| Some((it["toolCallId"].as_str()?, it["status"].as_str()?)))
        .collect();
    assert_eq!(
        updates,
        [("a", "pending"), ("a", "failed"), ("b", "pending"), ("b", "in_progress")]
    );
}

#[test]
fn old_content_of_an_overwritten_file_is_shown_at_the_end() {
    let mut done = tool_result("t", "updated", false);
    done["tool_use_result"] = json!({"type": "update", "originalFile": "old"});
    let mut dialect = RunningDialect::new(new_claude);
    let input = json!({"file_path": "/w/a", "content": "new"});
    dialect.receive(&[tool_use("t", "Write", input), done]);
    assert_eq!(
        dialect.updates()[1]["content"],
        json!([{"type": "diff", "path": "/w/a", "newText": "new", "oldText": "old"}])
    );
}

#[test]
fn unsupported_control_request_is_refused() {
    let mut dialect = RunningDialect::new(new_claude);
    let request = json!({"subtype": "hook_callback"});
    dialect.receive(&[json!({"type": "control_request", "request_id": "h", "request": request})]);
    assert_eq!(dialect.written_lines()[0]["response"]["subtype"], "error");
    assert!(dialect.updates()[0]["_meta"]["jackfield"]["unmapped"].is_object());
}

#[test]
fn settings_are_sent_on_stdin_and_a_refused_mode_is_reverted() {
    let mut dialect = RunningDialect::new(new_claude);
    assert!(dialect.inner.on_setting(ProgramSetting::Model("opus"), &mut dialect.turn));
    assert!(dialect.inner.on_setting(ProgramSetting::Mode("auto"), &mut dialect.turn));
    assert!(
        !dialect.inner.on_setting(ProgramSetting::Mode("bypassPermissions"), &mut dialect.turn)
    );
    assert!(!dialect.inner.on_setting(ProgramSetting::Reasoning("high"), &mut dialect.turn));
    let written = dialect.written_lines();
    assert_eq!(written[0]["request"], json!({"subtype": "set_model", "model": "opus"}));
    let id = &written[1]["request_id"];
    let refused = json!({"subtype": "error", "request_id": id, "error": "not for this model"});
    dialect.receive(&[json!({"type": "control_response", "response": refused})]);
    assert_eq!(dialect.updates()[1]["currentModeId"], "default");
}

#[test]
fn self_initiated_turn_does_not_end_the_prompt() {
    let mut dialect = RunningDialect::new(new_claude);
    let result = |origin: &str| json!({"type": "result", "origin": {"kind": origin}});
    dialect.receive(&[result("task-notification")]);
    assert_eq!((dialect.turn.outcome.as_ref(), dialect.written_lines().len()), (None, 0));
    dialect.turn.mark_cancelled();
    dialect.receive(&[result("task-notification")]);
    assert_eq!(
        dialect.written_lines()[0]["request"]["subtype"],
        "interrupt",
        "the prompt is not processed yet"
    );
    dialect.receive(&[result("human")]);
    assert_eq!(dialect.turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::Cancelled)));
}

#[test]
fn exit_during_retries_fails_with_the_reason() {
    let mut dialect = RunningDialect::new(new_claude);
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10,
                       "error": "authentication_failed", "error_status": 401});
    dialect.receive(&[retry]);
    dialect
        .inner
        .on_exit(&AgentExit { code: Some(143), ..AgentExit::default() }, &mut dialect.turn);
    let cause = match &dialect.turn.outcome {
        Some(AdapterTurnOutcome::Failed(failure)) => Some(failure.cause),
        _ => None,
    };
    assert_eq!(cause, Some(FailureCause::Auth));
}

#[test]
fn string_content_is_text_and_an_error_without_text_fails() {
    let mut dialect = RunningDialect::new(new_amp);
    dialect.receive(&[assistant_message(json!("Hi."))]);
    assert_eq!(dialect.text(), "Hi.");
    let mut failed = assistant_message(json!([]));
    failed["error"] = json!("rate_limit");
    dialect.receive(&[failed]);
    dialect.inner.on_exit(&AgentExit { code: Some(1), ..AgentExit::default() }, &mut dialect.turn);
    assert!(
        matches!(&dialect.turn.outcome, Some(AdapterTurnOutcome::Failed(it)) if it.cause == FailureCause::RateLimited)
    );
}

#[test]
fn tokens_are_summed_if_the_result_has_none() {
    let used = |id: &str| {
        let usage = json!({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5});
        json!({"type": "assistant", "message": {"id": id, "content": [], "usage": usage}})
    };
    let mut dialect = RunningDialect::new(new_amp);
    // Lines of the same message repeat its usage.
    dialect.receive(&[used("a"), used("a"), used("b")]);
    dialect.receive(&[json!({"type": "result", "subtype": "success", "result": "done"})]);
    let usage = dialect.turn.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cached_read), (30, 4, Some(10)));
    assert_eq!(dialect.text(), "done");
}

#[test]
fn qwen_error_text_is_sent_only_if_the_turn_completes() {
    let error = assistant_message(json!([{"type": "text", "text": "[API Error: 500]"}]));
    let mut dialect = RunningDialect::new(new_qwen);
    dialect
        .receive(&[error.clone(), assistant_message(json!([{"type": "text", "text": "Done."}]))]);
    dialect.receive(&[json!({"type": "result", "subtype": "success", "result": "Done."})]);
    assert_eq!(dialect.text(), "Done.[API Error: 500]");
    let mut dialect = RunningDialect::new(new_qwen);
    let failed =
        json!({"type": "result", "is_error": true, "error": {"message": "[API Error: 500]"}});
    dialect.receive(&[error, failed]);
    assert_eq!(dialect.text(), "");
}

#[test]
fn non_objects_are_notices_and_unknown_lines_are_forwarded() {
    let mut dialect = RunningDialect::new(new_qwen);
    dialect.inner.on_line("Loading…", &mut dialect.turn);
    dialect.receive(&[json!(42), json!({"type": "new_thing"}), json!({})]);
    assert_eq!(dialect.turn.noise, ["Loading…", "42"]);
    assert_eq!(dialect.updates().len(), 4);
}
