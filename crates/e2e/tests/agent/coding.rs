//! A coding task from the first look to the last test: what the model asks for is done, what the user
//! forbids is not, and an editor can show all of it. An editor lends its buffers and terminals, a plain
//! client lends nothing; the task is the same.

use super::{
    Desk,
    editor::Editor,
    script::{answer, is_ask, offered, results},
};
use jackfield_e2e::{Home, client::PATIENCE};
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

const README: &str = "sum.sh adds two numbers.\n";
const WRONG: &str = "# Two numbers.\necho $(($1 - $2))\n";
const RIGHT: &str = "# Two numbers.\necho $(($1 + $2))\n";
const TEST: &str = r#"#!/bin/sh
sum=$(sh sum.sh 2 3)
echo "2 + 3 = $sum"
[ "$sum" = 5 ]
"#;
/// What the user says, in the order in which they are asked: about the test, the edit, and a push.
const ANSWERS: [&str; 3] = ["always", "once", "reject"];

/// What a client heard of a session and was asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    pub(super) updates: Vec<Value>,
    pub(super) asks: Vec<Value>,
}

/// A project with this script in it.
fn project(home: &Home, sum: &str) -> PathBuf {
    let dir = home.path().join("project");
    fs::create_dir(&dir).unwrap();
    for (name, text) in [("README.md", README), ("sum.sh", sum), ("test.sh", TEST)] {
        fs::write(dir.join(name), text).unwrap();
    }
    fs::set_permissions(dir.join("test.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

const STEPS: [&str; 3] = ["look", "mend", "test"];

/// The plan when so many steps are done.
fn todos(done: usize) -> Value {
    let status = |at: usize| match at {
        _ if at < done => "completed",
        _ if at == done => "in_progress",
        _ => "pending",
    };
    let todo = |(at, it): (usize, &&str)| json!({ "content": it, "status": status(at) });
    STEPS.iter().enumerate().map(todo).collect()
}

/// Everything the model does. Its calls have the same ids in every answer, as those of many models.
fn model() -> ScriptedModel {
    let test = r#"{"command":"./test.sh"}"#;
    let edit = json!({ "path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2" });
    let plan = |done| json!({ "todos": todos(done) }).to_string();
    ScriptedModel::start([
        Reply::calls(&[
            ("todo", &plan(0)),
            ("read", r#"{"path":"README.md"}"#),
            ("read", r#"{"path":"sum.sh"}"#),
        ]),
        Reply::call("shell", test),
        Reply::call("edit", &edit.to_string()),
        Reply::call("shell", test),
        Reply::call("shell", r#"{"command":"git push"}"#),
        Reply::call("todo", &plan(3)),
        Reply::say("It adds now."),
    ])
}

/// A call as an editor shows it in the end, and the states it went through.
#[derive(Debug, Default, Clone)]
struct Shown {
    fields: BTreeMap<String, Value>,
    states: Vec<String>,
}

impl Shown {
    fn is(&self, title: &str, kind: &str, place: &Value, states: &[&str]) {
        assert_eq!(self.fields["title"], title);
        assert_eq!(self.fields["kind"], kind, "{title}");
        assert_eq!(self.fields.get("locations").unwrap_or(&json!([])), place, "{title}");
        assert_eq!(self.states, states, "{title}");
    }
}

/// The calls in the order in which they were begun.
fn calls(updates: &[Value]) -> Vec<Shown> {
    let (mut ids, mut calls): (Vec<&str>, Vec<Shown>) = Default::default();
    for update in updates {
        let is_new = match update["sessionUpdate"].as_str().unwrap() {
            "tool_call" => true,
            "tool_call_update" => false,
            _ => continue,
        };
        let id = update["toolCallId"].as_str().unwrap();
        if is_new {
            assert!(!ids.contains(&id), "the id `{id}` is used twice");
            ids.push(id);
            let states = vec!["pending".to_owned()];
            calls.push(Shown { states, ..Shown::default() });
        }
        let at = ids.iter().position(|it| *it == id).expect("a call begins before it goes on");
        let call = &mut calls[at];
        for (name, value) in update.as_object().unwrap() {
            call.fields.insert(name.clone(), value.clone());
        }
        let state = update["status"].as_str().filter(|it| call.states.last().unwrap() != it);
        call.states.extend(state.map(str::to_owned));
    }
    calls
}

/// What an editor needs of the whole turn. `lent`: its terminals were used.
fn check_heard(heard: &Heard, dir: &Path, lent: bool) {
    let at = |name: &str, line: Value| json!([{ "path": dir.join(name), "line": line }]);
    let here = json!([{ "path": dir }]);
    let calls = calls(&heard.updates);
    assert_eq!(calls.len(), 8, "{calls:#?}");
    let done = ["pending", "in_progress", "completed"];
    let failed = ["pending", "in_progress", "failed"];
    calls[0].is("Plan", "think", &json!([]), &done);
    calls[1].is("README.md", "read", &at("README.md", json!(1)), &done);
    calls[2].is("sum.sh", "read", &at("sum.sh", json!(1)), &done);
    calls[3].is("./test.sh", "execute", &here, &failed);
    calls[4].is("sum.sh", "edit", &at("sum.sh", json!(2)), &done);
    calls[5].is("./test.sh", "execute", &here, &done);
    calls[6].is("git push", "execute", &here, &["pending", "failed"]);
    calls[7].is("Plan", "think", &json!([]), &done);

    let diff = json!([{
        "type": "diff", "path": dir.join("sum.sh"), "oldText": WRONG, "newText": RIGHT,
    }]);
    assert_eq!(calls[4].fields["content"], diff);
    assert_eq!(calls[5].fields["rawInput"], json!({ "command": "./test.sh" }));
    assert_eq!(calls[5].fields["rawOutput"]["exitCode"], 0);
    let content = &calls[5].fields["content"][0];
    if lent {
        assert_eq!(content["type"], "terminal");
    } else {
        assert_eq!(content["content"]["text"], "```\n2 + 3 = 5\n```");
    }

    let plans = heard.updates.iter().filter(|it| it["sessionUpdate"] == "plan");
    let plans: Vec<&Value> = plans.map(|it| &it["entries"]).collect();
    let entries = |done| -> Value {
        let mut entries = todos(done);
        for entry in entries.as_array_mut().unwrap() {
            entry["priority"] = "medium".into();
        }
        entries
    };
    assert_eq!(plans, [&entries(0), &entries(3)]);
    check_asks(&heard.asks, &calls, &diff);
}

/// The user was asked three times, and saw what it was about.
fn check_asks(asks: &[Value], calls: &[Shown], diff: &Value) {
    assert_eq!(asks.len(), ANSWERS.len(), "{asks:#?}");
    let always = [
        "Always allow `shell ./test.sh` in this session",
        "Always allow edits in this session",
        "Always allow `shell git push` in this session",
    ];
    for ((ask, call), always) in asks.iter().zip([&calls[3], &calls[4], &calls[6]]).zip(always) {
        let shown = &ask["toolCall"];
        for name in ["toolCallId", "title", "kind", "locations", "rawInput"] {
            assert_eq!(shown[name], call.fields[name], "{name}");
        }
        assert_eq!(shown["status"], "pending");
        let options = json!([
            { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
            { "optionId": "always", "name": always, "kind": "allow_always" },
            { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
        ]);
        assert_eq!(ask["options"], options);
    }
    assert_eq!(&asks[1]["toolCall"]["content"], diff, "the diff is seen before it is allowed");
}

/// The model was told what came of each of its calls; `before` is what the test printed at first.
fn check_told(model: &ScriptedModel, before: &str) {
    assert_eq!(model.left(), 0);
    let expected = [
        "The plan is noted: 0 of 3 done, 1 in progress.",
        README,
        WRONG,
        &format!("2 + 3 = {before}\n[exit status 1]"),
        "Changed `sum.sh`:\n@@ -1,2 +1,2 @@\n # Two numbers.\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n",
        "2 + 3 = 5\n[exit status 0]",
        "The user did not allow this. Do not try it in another way; ask what they want instead.",
        "The plan is noted: 3 of 3 done, 0 in progress.",
    ];
    assert_eq!(results(model), expected);
    let tools = ["read", "list", "glob", "grep", "write", "edit", "apply_patch", "shell", "todo"];
    assert_eq!(offered(model), tools);
}

#[test]
fn an_editor_lends_its_buffers_and_terminals_to_a_coding_task() {
    let (home, model) = (Home::new(), model());
    let dir = project(&home, "echo saved long ago\n");
    let editor = Editor::new(&ANSWERS);
    editor.type_in(dir.join("sum.sh"), WRONG);
    let mut agent = home.command(&["agent"]);
    agent.env("OPENAI_BASE_URL", model.url()).env("OPENAI_API_KEY", "test-key");
    assert_eq!(editor.prompt(agent, &dir, "Mend sum.sh."), "end_turn");
    check_heard(&editor.heard(), &dir, true);
    check_told(&model, "saved long ago");
    assert_eq!(fs::read_to_string(dir.join("sum.sh")).unwrap(), RIGHT);
    let served = BTreeMap::from([
        // Both are read, and one again before the edit is shown and before it is made.
        ("fs/read_text_file", 4),
        ("fs/write_text_file", 1),
        ("terminal/create", 2),
        ("terminal/wait_for_exit", 2),
        ("terminal/output", 2),
        ("terminal/kill", 2),
        ("terminal/release", 2),
    ]);
    assert_eq!(editor.served(), served);
    assert_eq!(editor.terminals(), 0);
}

#[test]
fn a_coding_task_needs_nothing_of_its_client() {
    let mut desk = Desk::new(model(), &[]);
    let dir = project(&desk.home, WRONG);
    let session = desk.client.open(&dir);
    let turn = desk.client.send_prompt(&session, "Mend sum.sh.");
    let (mut answers, mut asks) = (ANSWERS.into_iter(), Vec::new());
    let end = loop {
        let message = desk.client.next(PATIENCE).expect("the turn goes on");
        if message["id"] == turn && message.get("method").is_none() {
            break message;
        }
        if is_ask(&message) {
            asks.push(message["params"].clone());
            let option = answers.next().expect("one question more than expected");
            answer(&mut desk, &message, option);
        } else {
            assert_eq!(message["method"], "session/update", "nothing else was offered: {message}");
        }
    };
    assert_eq!(end["result"]["stopReason"], "end_turn");
    let updates = desk.updates(&session);
    check_heard(&Heard { updates, asks }, &dir, false);
    check_told(&desk.model, "-1");
    assert_eq!(desk.client.text(), "It adds now.");
    assert_eq!(fs::read_to_string(dir.join("sum.sh")).unwrap(), RIGHT);
    let agent = desk.child.id();
    assert_eq!(desk.home.alive(&[agent]), [0; 0], "commands end with their call");
}
