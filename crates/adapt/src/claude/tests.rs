//! Rules that the recordings do not show.

#![expect(clippy::needless_pass_by_value, reason = "lines are composed in place")]

use super::{amp, claude, qwen};
use crate::outcome::Outcome;
use crate::turn::Effect;
use crate::{Answer, Cause, Dialect, Prompt, Setting, Start, Stop, Turn};
use jackfield_agents::Exit;
use serde_json::{Value, json};

/// A dialect in the middle of a turn.
struct Bench {
    dialect: Box<dyn Dialect>,
    turn: Turn,
}

impl Bench {
    fn new(make: fn() -> Box<dyn Dialect>) -> Bench {
        let mut bench = Bench { dialect: make(), turn: Turn::default() };
        bench.turn.begin();
        let mode = Some("default");
        let start = Start { cwd: "/w", native: None, model: None, reasoning: None, mode, mcp: &[] };
        bench.dialect.open(&start, &mut bench.turn);
        bench.dialect.prompt(&Prompt::default(), &mut bench.turn);
        bench.turn.effects.clear();
        bench
    }

    fn hear(&mut self, lines: &[Value]) -> &mut Bench {
        for line in lines {
            self.dialect.line(&line.to_string(), &mut self.turn);
        }
        self
    }

    fn answer(&mut self, answer: Answer<'_>) -> Value {
        self.turn.effects.clear();
        self.dialect.answer("r", answer, &mut self.turn);
        self.written().pop().unwrap_or_default()["response"]["response"].clone()
    }

    fn updates(&self) -> Vec<&Value> {
        let updates = self.turn.effects.iter().filter_map(|effect| match effect {
            Effect::Update(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    fn written(&self) -> Vec<Value> {
        let write = |effect: &Effect| match effect {
            Effect::Write(line) => serde_json::from_str(line).ok(),
            _ => None,
        };
        self.turn.effects.iter().filter_map(write).collect()
    }

    fn options(&self) -> Vec<(String, String)> {
        let ask = self.turn.effects.iter().rev().find_map(|effect| match effect {
            Effect::Ask { options, .. } => Some(options),
            _ => None,
        });
        ask.into_iter().flatten().map(|it| (it.id.clone(), it.name.clone())).collect()
    }

    fn text(&self) -> String {
        let chunks = self.updates().into_iter();
        let chunks = chunks.filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|it| it["content"]["text"].as_str()).collect()
    }
}

fn says(content: Value) -> Value {
    json!({"type": "assistant", "message": {"id": "m", "content": content}})
}

fn calls(id: &str, name: &str, input: Value) -> Value {
    says(json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
}

fn answers(id: &str, content: &str, is_error: bool) -> Value {
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": content,
                        "is_error": is_error});
    json!({"type": "user", "message": {"role": "user", "content": [result]}})
}

fn within(parent: &str, mut line: Value) -> Value {
    line["parent_tool_use_id"] = json!(parent);
    line
}

fn event(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

fn asks(name: &str, input: Value, suggestions: Value) -> Value {
    let request = json!({"subtype": "can_use_tool", "tool_name": name, "input": input,
                         "permission_suggestions": suggestions, "tool_use_id": "t"});
    json!({"type": "control_request", "request_id": "r", "request": request})
}

#[test]
fn what_a_sub_agent_says_belongs_to_the_call_that_started_it() {
    let mut bench = Bench::new(claude);
    bench.hear(&[
        calls("p", "Task", json!({"description": "Look around"})),
        within("p", says(json!([{"type": "text", "text": "one"}]))),
        within("p", calls("c", "Bash", json!({"command": "ls"}))),
        within("p", answers("c", "a.rs", false)),
        within("p", says(json!([{"type": "text", "text": "two"}]))),
    ]);
    assert_eq!(bench.text(), "");
    let updates = bench.updates();
    assert_eq!(updates[2]["_meta"]["jackfield"]["parentToolCallId"], "p");
    let report = &updates.last().unwrap()["content"][0]["content"]["text"];
    assert_eq!(report, "one\n\ntwo");
}

#[test]
fn todos_are_a_plan_and_only_a_failed_list_is_a_tool_call() {
    let todos = json!({"todos": [{"content": "Read", "status": "completed"},
                                 {"content": "Write", "status": "in_progress"}]});
    let mut bench = Bench::new(claude);
    bench.hear(&[calls("t", "TodoWrite", todos.clone()), answers("t", "ok", false)]);
    let updates = bench.updates();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["entries"][1]["status"], "in_progress");
    bench.hear(&[calls("u", "TodoWrite", todos), answers("u", "no", true)]);
    let updates = bench.updates();
    assert_eq!(updates[1]["sessionUpdate"], "tool_call");
    assert_eq!(updates[2]["status"], "failed");
}

#[test]
fn tasks_that_are_made_one_by_one_become_one_plan() {
    let mut bench = Bench::new(claude);
    bench.hear(&[
        calls("a", "TaskCreate", json!({"subject": "Read"})),
        answers("a", "Task #7 created successfully: Read", false),
        calls("b", "TaskCreate", json!({"subject": "Write"})),
        answers("b", "Task #8 created successfully: Write", false),
        calls("c", "TaskUpdate", json!({"taskId": "7", "status": "completed"})),
        answers("c", "Updated task #7", false),
        calls("d", "TaskUpdate", json!({"taskId": "8", "status": "deleted"})),
        answers("d", "Deleted", false),
    ]);
    let plans: Vec<Value> = bench
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
fn a_call_that_was_cut_off_is_closed_and_its_second_try_is_told() {
    let start = |id: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        event(json!({"type": "content_block_start", "index": 0, "content_block": block}))
    };
    let mut bench = Bench::new(claude);
    bench.hear(&[
        start("a"),
        json!({"type": "system", "subtype": "api_retry", "attempt": 1}),
        start("b"),
        calls("b", "Bash", json!({"command": "ls"})),
    ]);
    let told: Vec<(&str, &str)> = bench
        .updates()
        .iter()
        .filter_map(|it| Some((it["toolCallId"].as_str()?, it["status"].as_str()?)))
        .collect();
    assert_eq!(told, [("a", "pending"), ("a", "failed"), ("b", "pending"), ("b", "in_progress")]);
}

#[test]
fn what_was_in_an_overwritten_file_is_shown_afterwards() {
    let mut done = answers("t", "updated", false);
    done["tool_use_result"] = json!({"type": "update", "originalFile": "old"});
    let mut bench = Bench::new(claude);
    let input = json!({"file_path": "/w/a", "content": "new"});
    bench.hear(&[calls("t", "Write", input), done]);
    assert_eq!(
        bench.updates()[1]["content"],
        json!([{"type": "diff", "path": "/w/a", "newText": "new", "oldText": "old"}])
    );
}

#[test]
fn allowing_for_good_hands_the_suggestions_back() {
    let rule = json!({"type": "addRules", "behavior": "allow",
        "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}]});
    let suggestions = json!([rule, {"type": "setMode", "mode": "acceptEdits"}]);
    let mut bench = Bench::new(claude);
    bench.hear(&[asks("Bash", json!({"command": "npm test"}), suggestions)]);
    assert_eq!(bench.options()[1].1, "Always allow Bash(npm test:*)");
    let given = bench.answer(Answer::Chosen("allow-always"));
    assert_eq!(given["updatedPermissions"], json!([rule]), "and not every edit besides");
    assert_eq!(given["updatedInput"]["command"], "npm test");
    bench.hear(&[asks("Bash", json!({"command": "ls"}), Value::Null)]);
    assert_eq!(bench.options().len(), 2, "nothing was suggested");
}

#[test]
fn a_call_that_is_asked_about_before_it_is_told_is_closed_by_its_result() {
    let mut bench = Bench::new(claude);
    bench.hear(&[asks("Bash", json!({"command": "ls"}), json!([])), answers("t", "a.rs", false)]);
    let told: Vec<&Value> = bench.updates().iter().map(|it| &it["status"]).collect();
    assert_eq!(told, ["pending", "completed"]);
}

#[test]
fn an_ask_without_a_call_is_about_the_one_that_looks_like_it() {
    let input = json!({"command": "ls"});
    let mut ask = asks("Bash", input.clone(), json!([]));
    ask["request"]["tool_use_id"] = Value::Null;
    let mut bench = Bench::new(claude);
    bench.hear(&[calls("c", "Bash", input), ask]);
    let about = bench.turn.effects.iter().find_map(|effect| match effect {
        Effect::Ask { tool_call, .. } => Some(&tool_call["toolCallId"]),
        _ => None,
    });
    assert_eq!(about, Some(&json!("c")));
}

#[test]
fn a_cancelled_ask_interrupts_and_a_second_answer_is_nobodys() {
    let mut bench = Bench::new(claude);
    bench.hear(&[asks("Bash", json!({}), json!([]))]);
    let given = bench.answer(Answer::Cancelled);
    assert_eq!((&given["behavior"], &given["interrupt"]), (&json!("deny"), &json!(true)));
    assert_eq!(bench.answer(Answer::Chosen("allow")), Value::Null);
}

#[test]
fn an_ask_that_the_program_gives_up_is_withdrawn() {
    let mut bench = Bench::new(claude);
    let gone = json!({"type": "control_cancel_request", "request_id": "r"});
    bench.hear(&[asks("Bash", json!({}), json!([])), gone.clone(), gone]);
    let withdrawn = bench.turn.effects.iter().filter(|it| matches!(it, Effect::Unask { .. }));
    assert_eq!(withdrawn.count(), 1);
    assert_eq!(bench.answer(Answer::Chosen("allow")), Value::Null);
}

#[test]
fn what_is_still_asked_when_the_turn_is_over_is_denied() {
    let mut bench = Bench::new(claude);
    let over = json!({"type": "result", "subtype": "success"});
    bench.hear(&[asks("Bash", json!({}), json!([])), over]);
    assert_eq!(bench.written()[0]["response"]["response"]["behavior"], "deny");
}

#[test]
fn leaving_plan_mode_asks_into_which() {
    let mut bench = Bench::new(claude);
    bench.hear(&[asks("ExitPlanMode", json!({"plan": "1. Read"}), json!([]))]);
    let given = bench.answer(Answer::Chosen("acceptEdits"));
    assert_eq!(given["updatedPermissions"][0]["mode"], "acceptEdits");
    assert_eq!(bench.updates()[0]["currentModeId"], "acceptEdits");
    let status = json!({"type": "system", "subtype": "status", "permissionMode": "acceptEdits"});
    bench.hear(&[status]);
    assert_eq!(bench.updates().len(), 1, "the client knows already");
}

#[test]
fn questions_are_put_one_after_the_other() {
    let question =
        |text: &str| json!({"question": text, "options": [{"label": "red"}, {"label": "blue"}]});
    let input = json!({"questions": [question("Wall?"), question("Door?")]});
    let mut bench = Bench::new(claude);
    bench.hear(&[asks("AskUserQuestion", input, json!([]))]);
    assert_eq!(bench.answer(Answer::Chosen("answer-1")), Value::Null, "one is still open");
    assert_eq!(bench.options()[0], ("answer-0".to_owned(), "red".to_owned()));
    let given = bench.answer(Answer::Chosen("answer-0"));
    assert_eq!(given["updatedInput"]["answers"], json!({"Wall?": "blue", "Door?": "red"}));
}

#[test]
fn a_request_that_we_cannot_serve_is_refused() {
    let mut bench = Bench::new(claude);
    let request = json!({"subtype": "hook_callback"});
    bench.hear(&[json!({"type": "control_request", "request_id": "h", "request": request})]);
    assert_eq!(bench.written()[0]["response"]["subtype"], "error");
    assert!(bench.updates()[0]["_meta"]["jackfield"]["unmapped"].is_object());
}

#[test]
fn settings_go_over_stdin_and_a_refused_mode_is_taken_back() {
    let mut bench = Bench::new(claude);
    assert!(bench.dialect.set(Setting::Model("opus"), &mut bench.turn));
    assert!(bench.dialect.set(Setting::Mode("auto"), &mut bench.turn));
    assert!(!bench.dialect.set(Setting::Mode("bypassPermissions"), &mut bench.turn));
    assert!(!bench.dialect.set(Setting::Reasoning("high"), &mut bench.turn));
    let written = bench.written();
    assert_eq!(written[0]["request"], json!({"subtype": "set_model", "model": "opus"}));
    let id = &written[1]["request_id"];
    let refused = json!({"subtype": "error", "request_id": id, "error": "not for this model"});
    bench.hear(&[json!({"type": "control_response", "response": refused})]);
    assert_eq!(bench.updates()[1]["currentModeId"], "default");
}

#[test]
fn a_turn_of_the_programs_own_does_not_end_ours() {
    let mut bench = Bench::new(claude);
    let result = |origin: &str| json!({"type": "result", "origin": {"kind": origin}});
    bench.hear(&[result("task-notification")]);
    assert_eq!((bench.turn.outcome.as_ref(), bench.written().len()), (None, 0));
    bench.turn.on_cancel();
    bench.hear(&[result("task-notification")]);
    assert_eq!(bench.written()[0]["request"]["subtype"], "interrupt", "ours is still to come");
    bench.hear(&[result("human")]);
    assert_eq!(bench.turn.outcome, Some(Outcome::Done(Stop::Cancelled)));
}

#[test]
fn a_program_that_dies_among_its_retries_says_why() {
    let mut bench = Bench::new(claude);
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10,
                       "error": "authentication_failed", "error_status": 401});
    bench.hear(&[retry]);
    bench.dialect.end(&Exit { code: Some(143), ..Exit::default() }, &mut bench.turn);
    let cause = match &bench.turn.outcome {
        Some(Outcome::Failed(failure)) => Some(failure.cause),
        _ => None,
    };
    assert_eq!(cause, Some(Cause::Auth));
}

#[test]
fn words_without_blocks_are_words_and_an_error_without_words_is_one() {
    let mut bench = Bench::new(amp);
    bench.hear(&[says(json!("Hi."))]);
    assert_eq!(bench.text(), "Hi.");
    let mut failed = says(json!([]));
    failed["error"] = json!("rate_limit");
    bench.hear(&[failed]);
    bench.dialect.end(&Exit { code: Some(1), ..Exit::default() }, &mut bench.turn);
    assert!(
        matches!(&bench.turn.outcome, Some(Outcome::Failed(it)) if it.cause == Cause::RateLimited)
    );
}

#[test]
fn tokens_are_added_up_where_the_result_has_none() {
    let used = |id: &str| {
        let usage = json!({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5});
        json!({"type": "assistant", "message": {"id": id, "content": [], "usage": usage}})
    };
    let mut bench = Bench::new(amp);
    // Lines of the same message repeat its usage.
    bench.hear(&[used("a"), used("a"), used("b")]);
    bench.hear(&[json!({"type": "result", "subtype": "success", "result": "done"})]);
    let usage = bench.turn.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cached_read), (30, 4, Some(10)));
    assert_eq!(bench.text(), "done");
}

#[test]
fn an_error_that_qwen_speaks_is_said_only_if_the_turn_went_well() {
    let error = says(json!([{"type": "text", "text": "[API Error: 500]"}]));
    let mut bench = Bench::new(qwen);
    bench.hear(&[error.clone(), says(json!([{"type": "text", "text": "Done."}]))]);
    bench.hear(&[json!({"type": "result", "subtype": "success", "result": "Done."})]);
    assert_eq!(bench.text(), "Done.[API Error: 500]");
    let mut bench = Bench::new(qwen);
    let failed =
        json!({"type": "result", "is_error": true, "error": {"message": "[API Error: 500]"}});
    bench.hear(&[error, failed]);
    assert_eq!(bench.text(), "");
}

#[test]
fn what_is_no_object_is_noise_and_what_is_unknown_is_kept() {
    let mut bench = Bench::new(qwen);
    bench.dialect.line("Loading…", &mut bench.turn);
    bench.hear(&[json!(42), json!({"type": "new_thing"}), json!({})]);
    assert_eq!(bench.turn.noise, ["Loading…", "42"]);
    assert_eq!(bench.updates().len(), 2);
}
