//! Sessions of the agent: listed, loaded, resumed, forked, closed, deleted; by this process or the next.

use super::{
    Desk, must_be_sound,
    seen::{prompt, seen},
};
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

const NOT_FOUND: i64 = -32002;

#[test]
fn sessions_are_listed_page_by_page_the_last_used_first() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let elsewhere = desk.home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut opened: BTreeSet<String> = (0..119).map(|_| desk.open()).collect();
    let titled = desk.client.open(&elsewhere);
    opened.insert(titled.clone());
    desk.turn(&titled, "Mend the gate\nplease");
    let (mut listed, mut sizes) = (Vec::new(), Vec::new());
    let mut cursor = Value::Null;
    loop {
        let page = desk.client.result("session/list", &json!({ "cursor": cursor }));
        let sessions = page["sessions"].as_array().unwrap();
        sizes.push(sessions.len());
        listed.extend(sessions.iter().cloned());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    let ids: BTreeSet<String> =
        listed.iter().map(|it| it["sessionId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, opened, "each once");
    let dates: Vec<&str> = listed.iter().map(|it| it["updatedAt"].as_str().unwrap()).collect();
    assert!(dates.is_sorted_by(|a, b| b <= a), "{dates:?}");
    let there = desk.client.result("session/list", &json!({ "cwd": elsewhere }));
    let there = there["sessions"].as_array().unwrap();
    assert_eq!(there.len(), 1);
    assert_eq!((&there[0]["sessionId"], &there[0]["cwd"]), (&json!(titled), &json!(elsewhere)));
    assert_eq!(there[0]["title"], "Mend the gate");
    let updates = desk.updates(&titled);
    let told = updates.iter().find(|it| it["sessionUpdate"] == "session_info_update").unwrap();
    assert_eq!(told["title"], "Mend the gate");
    let wrong = desk.client.ask("session/list", &json!({ "cursor": "yesterday" }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

/// A turn with all that can be in one: thoughts, words, calls side by side, one that fails, one that is
/// not allowed, a plan.
fn a_rich_turn() -> [Reply; 5] {
    let thought = json!({ "reasoning_content": "Where is it?" });
    let path = json!({ "path": "a.txt" }).to_string();
    let call = json!({ "index": 0, "id": "look", "type": "function",
        "function": { "name": "read", "arguments": path } });
    let look = Reply::stream().delta(&thought).delta(&json!({ "content": "I look " }));
    let look = look.delta(&json!({ "content": "first." })).delta(&json!({ "tool_calls": [call] }));
    let plan = json!({ "todos": [{ "content": "Look", "status": "completed" }] }).to_string();
    let write = json!({ "path": "b.txt", "content": "new\n" }).to_string();
    [
        look.finish("tool_calls"),
        Reply::calls(&[("read", r#"{"path":"missing"}"#), ("glob", r#"{"pattern":"*.txt"}"#)]),
        Reply::calls(&[("todo", &plan), ("write", &write)]),
        Reply::call("shell", r#"{"command":"rm a.txt"}"#),
        Reply::say("That is all."),
    ]
}

/// Runs the rich turn and one that fails; what was seen.
fn talk_richly(desk: &mut Desk<ScriptedModel>, session: &str) -> Vec<Value> {
    fs::write(desk.home.path().join("a.txt"), "old\n").unwrap();
    let id = desk.client.send_prompt(session, "Look around");
    for option in ["once", "reject"] {
        let ask =
            desk.client.until("a question", |it| it["method"] == "session/request_permission");
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        desk.client.respond(&ask, &outcome);
    }
    assert_eq!(desk.client.answer(id)["result"]["stopReason"], "end_turn");
    let mut live = vec![prompt("Look around")];
    live.extend(desk.updates(session));
    let before = desk.updates(session).len();
    desk.failed_turn(session, "Fail now");
    live.push(prompt("Fail now"));
    live.extend(desk.updates(session).drain(before..));
    seen(&live)
}

#[test]
fn a_session_that_is_loaded_looks_as_it_did_live() {
    let model = ScriptedModel::start(a_rich_turn());
    model.then(Reply::status(404));
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    let live = talk_richly(&mut desk, &session);
    let statuses: Vec<&str> = live.iter().filter_map(|it| it["status"].as_str()).collect();
    let (yes, no) = ("completed", "failed");
    assert_eq!(statuses, [yes, no, yes, yes, yes, no], "{live:#?}");
    assert!(live.iter().any(|it| it["is"] == "plan"));
    for round in 0..2 {
        let before = desk.updates(&session).len();
        let place = desk.place(&session);
        let id = desk.client.send("session/load", &place);
        desk.client.answer(id);
        let mut loaded = seen(&desk.updates(&session)[before..]);
        // What an editor calls its own prompts is its own affair.
        for prompt in loaded.iter_mut().filter(|it| it["is"] == "user_message_chunk") {
            prompt["message"].take();
        }
        assert_eq!(json!(loaded), json!(live), "round {round}");
        // The same for the next process.
        desk.restart();
    }
}

#[test]
fn what_was_loaded_is_not_told_again_by_the_next_turn() {
    let read = Reply::call("read", r#"{"path":"a.txt"}"#);
    let model = ScriptedModel::start([read, Reply::say("Read."), Reply::say("More.")]);
    let mut desk = Desk::new(model, &[]);
    fs::write(desk.home.path().join("a.txt"), "text\n").unwrap();
    let session = desk.open();
    desk.turn(&session, "Read it");
    desk.restart();
    let place = desk.place(&session);
    desk.client.result("session/load", &place);
    let before = desk.updates(&session).len();
    desk.turn(&session, "And now?");
    let updates = desk.updates(&session);
    let calls = updates[before..].iter().filter(|it| it.get("toolCallId").is_some());
    assert_eq!(calls.count(), 0, "{updates:#?}");
}

#[test]
fn a_session_that_is_resumed_tells_nothing_and_knows_all() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let session = desk.open();
    desk.turn(&session, "Hello");
    desk.restart();
    let place = desk.place(&session);
    let resumed = desk.client.result("session/resume", &place);
    assert_eq!(resumed["modes"]["currentModeId"], "ask");
    assert_eq!(desk.turn(&session, "COUNT").0, "I see 2 user messages.");
    let updates = desk.updates(&session);
    assert!(updates.iter().all(|it| it["sessionUpdate"] != "user_message_chunk"), "{updates:?}");
    assert_eq!(desk.client.text(), "I see 2 user messages.", "nothing was said twice");
}

#[test]
fn a_fork_and_its_origin_go_on_by_themselves() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let origin = desk.open();
    desk.turn(&origin, "Hello");
    let place = desk.place(&origin);
    let forked = desk.client.result("session/fork", &place);
    let fork = forked["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(fork, origin);
    assert_eq!(desk.turn(&fork, "COUNT").0, "I see 2 user messages.");
    assert_eq!(desk.turn(&fork, "COUNT").0, "I see 3 user messages.");
    assert_eq!(desk.turn(&origin, "COUNT").0, "I see 2 user messages.");
    desk.restart();
    // One that is not open can be forked too.
    let place = desk.place(&fork);
    let forked = desk.client.result("session/fork", &place);
    let third = forked["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(desk.turn(&third, "COUNT").0, "I see 4 user messages.");
}

#[test]
fn what_is_closed_can_be_opened_again_and_what_is_deleted_cannot() {
    let hang = Reply::stream().delta(&json!({ "content": "Half" })).hang();
    let mut desk = Desk::new(ScriptedModel::start([hang, Reply::say("Back.")]), &[]);
    let session = desk.open();
    let id = json!({ "sessionId": session });
    let prompt = desk.client.send_prompt(&session, "Hello");
    desk.client.until("half an answer", |it| it["params"]["update"]["content"]["text"] == "Half");
    desk.client.result("session/close", &id);
    assert_eq!(desk.client.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(desk.client.ask("session/close", &id)["error"]["code"], NOT_FOUND);
    let place = desk.place(&session);
    desk.client.result("session/load", &place);
    assert_eq!(desk.turn(&session, "Are you back?").0, "Back.");
    must_be_sound(&desk.model.asked()[1].body["messages"]);
    desk.client.result("session/delete", &id);
    desk.client.result("session/delete", &id);
    assert_eq!(desk.client.ask("session/load", &place)["error"]["code"], NOT_FOUND);
    let listed = desk.client.result("session/list", &json!({}));
    assert_eq!(listed["sessions"], json!([]));
}

#[test]
fn a_session_that_nobody_knows_is_not_found() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let id = json!({ "sessionId": "nobody" });
    let with = |name: &str, value: Value| {
        let mut params = id.clone();
        params[name] = value;
        params
    };
    let place = desk.place("nobody");
    let mut option = with("configId", json!("mode"));
    option["value"] = json!("edit");
    let prompt = with("prompt", json!([{ "type": "text", "text": "Hello" }]));
    for (method, params) in [
        ("session/prompt", &prompt),
        ("session/load", &place),
        ("session/resume", &place),
        ("session/fork", &place),
        ("session/close", &id),
        ("session/set_mode", &with("modeId", json!("edit"))),
        ("session/set_config_option", &option),
    ] {
        let error = desk.client.ask(method, params)["error"].clone();
        assert_eq!(error["code"], NOT_FOUND, "{method}: {error}");
        assert!(error.to_string().contains("nobody"), "{method}: {error}");
    }
}

#[test]
fn a_second_prompt_is_refused_while_one_runs() {
    let hang = Reply::stream().delta(&json!({ "content": "Half" })).hang();
    let mut desk = Desk::new(ScriptedModel::start([hang, Reply::say("Fine.")]), &[]);
    let session = desk.open();
    let first = desk.client.send_prompt(&session, "One");
    let second = desk.client.send_prompt(&session, "Two");
    let error = desk.client.answer(second)["error"].clone();
    assert_eq!(error["code"], -32600, "{error}");
    let why = "a prompt is running in this session: wait for it, or cancel it";
    assert!(error.to_string().contains(why), "{error}");
    desk.cancel(&session);
    assert_eq!(desk.client.answer(first)["result"]["stopReason"], "cancelled");
    assert_eq!(desk.turn(&session, "Three").0, "Fine.");
    let last = desk.model.asked().last().unwrap().body["messages"].to_string();
    assert!(last.contains("One\\nThree") && !last.contains("Two"), "{last}");
}

#[test]
fn an_open_session_stays_open_when_it_is_asked_for_in_a_wrong_way() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let session = desk.open();
    desk.turn(&session, "Hello");
    for method in ["session/load", "session/resume", "session/fork"] {
        let wrong = json!({ "sessionId": session, "cwd": "not/absolute", "mcpServers": [] });
        let error = desk.client.ask(method, &wrong)["error"].clone();
        assert_eq!(error["code"], -32602, "{method}: {error}");
    }
    assert_eq!(desk.turn(&session, "COUNT").0, "I see 2 user messages.");
    let listed = desk.client.result("session/list", &json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
}
