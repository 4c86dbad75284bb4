//! The effect of prompt words on a turn.

use std::{collections::BTreeSet, time::Instant};

use serde_json::{Value, json};

use super::client::{BOUND, Client};

#[test]
fn plain_prompt_is_echoed() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("hello\nworld");
    assert_eq!(turn.texts(), ["you said: hello\nworld"]);
    assert_eq!(turn.stop_reason(), "end_turn");
}

#[test]
fn words_are_joined_by_then_or_lines_and_others_are_plain_text() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("burst 2 then count then stop refusal");
    assert_eq!((turn.texts(), turn.stop_reason()), (vec!["1", "2", "count 1"], "refusal"));
    let turn = client.prompt("count\nask me anything\nburst 1 then what");
    assert_eq!(turn.texts(), ["count 2", "you said: ask me anything\nburst 1 then what"]);
}

#[test]
fn burst_is_numbered_without_gaps_padded_and_fast() {
    let mut client = Client::ready(&[]);
    let start = Instant::now();
    let id = client.start_prompt("burst 300000");
    for number in 1..=300_000 {
        let line = String::from_utf8(client.line()).unwrap();
        assert!(line.ends_with(&format!("\"text\":\"{number}\"}}}}}}}}\n")), "{line}");
    }
    assert_eq!(client.rest_of_turn(id, |_| None).texts(), Vec::<&str>::new());
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert_eq!(client.prompt("burst 2 8").texts(), ["1 xxxxxx", "2 xxxxxx"]);
}

#[test]
fn burst_can_be_cancelled() {
    let mut client = Client::ready(&[]);
    let id = client.start_prompt("burst 1000000000");
    client.frame();
    client.cancel();
    let turn = client.rest_of_turn(id, |_| None);
    assert_eq!(turn.stop_reason(), "cancelled");
    assert!(turn.frames.len() < 10_000_000);
}

#[test]
fn content_of_every_kind_is_sent() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("think then tool then plan then commands\ntitle A title\nmode plan");
    let kinds: Vec<_> = turn.updates().filter_map(|it| it["sessionUpdate"].as_str()).collect();
    let tool = ["tool_call", "tool_call_update", "tool_call_update", "agent_message_chunk"];
    let rest = ["plan", "available_commands_update", "session_info_update", "current_mode_update"];
    assert_eq!(kinds, [&["agent_thought_chunk"], &tool[..], &rest[..]].concat());
    let ids: BTreeSet<_> = turn.updates().filter_map(|it| it["toolCallId"].as_str()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(turn.updates().nth(3).unwrap()["content"][0]["type"], "diff");
}

fn choose(option: &str) -> Value {
    json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}})
}

#[test]
fn ask_reports_the_choice_and_a_refused_tool_fails() {
    let mut client = Client::ready(&[]);
    let status = |turn: &super::client::Turn| turn.updates().next().unwrap()["status"].clone();
    let turn = client.prompt_with("ask", |ask| {
        assert_eq!(ask["method"], "session/request_permission");
        assert_eq!(ask["params"]["options"].as_array().unwrap().len(), 4);
        Some(choose("allow-once"))
    });
    assert_eq!((turn.texts(), status(&turn)), (vec!["ask 1: allow-once"], json!("completed")));
    let turn = client.prompt_with("ask", |_| Some(choose("reject-always")));
    assert_eq!((turn.texts(), status(&turn)), (vec!["ask 1: reject-always"], json!("failed")));
    let turn = client.prompt_with("ask-stubborn", |_| Some(choose("reject-once")));
    assert_eq!((turn.texts(), status(&turn)), (vec!["ask 1: reject-once"], json!("completed")));
    let error = json!({"error": {"code": -32601, "message": "what?"}});
    let turn = client.prompt_with("ask", |_| Some(error.clone()));
    assert_eq!(turn.texts(), ["ask 1: error -32601 what?"]);
}

#[test]
fn parallel_asks_may_be_answered_in_any_order() {
    let mut client = Client::ready(&[]);
    let id = client.start_prompt("ask 3");
    let asks = [client.frame(), client.frame(), client.frame()];
    for (ask, option) in asks.iter().zip(["allow-once", "reject-once", "allow-always"]).rev() {
        let mut answer = choose(option);
        answer["id"] = ask["id"].clone();
        client.send(&answer);
    }
    let turn = client.rest_of_turn(id, |_| None);
    assert_eq!(
        turn.texts().into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from(["ask 1: allow-once", "ask 2: reject-once", "ask 3: allow-always"])
    );
}

#[test]
fn late_answer_to_a_cancelled_ask_is_no_complaint() {
    let mut client = Client::ready(&[]);
    let id = client.start_prompt("ask");
    let ask = client.frame();
    client.cancel();
    assert_eq!(client.rest_of_turn(id, |_| None).stop_reason(), "cancelled");
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    client.send(&json!({"jsonrpc": "2.0", "id": ask["id"], "result": outcome}));
    assert_eq!(client.prompt("complaints").texts(), ["complaints 0: "]);
}

#[test]
fn withdrawn_ask_still_waits_for_an_answer() {
    let mut client = Client::ready(&[]);
    let id = client.start_prompt("ask-withdraw 10");
    let (ask, withdrawal) = (client.frame(), client.frame());
    assert_eq!(withdrawal["method"], "$/cancel_request");
    assert_eq!(withdrawal["params"]["requestId"], ask["id"]);
    let error = json!({"code": -32800, "message": "withdrawn"});
    client.send(&json!({"jsonrpc": "2.0", "id": ask["id"], "error": error}));
    assert_eq!(client.rest_of_turn(id, |_| None).texts(), ["ask 1: error -32800 withdrawn"]);
}

#[test]
fn elicitations_name_the_session_or_the_request() {
    let mut client = Client::ready(&[]);
    let accept = json!({"result": {"action": "accept", "content": {"branch": "main"}}});
    let turn = client.prompt_with("elicit", |_| Some(accept.clone()));
    assert_eq!(turn.texts(), [r#"elicit: accept {"branch":"main"}"#]);
    assert_eq!(turn.frames[0]["params"]["sessionId"], client.session);

    let id = client.start_prompt("elicit request");
    let turn = client.rest_of_turn(id, |_| Some(json!({"result": {"action": "decline"}})));
    assert_eq!(turn.frames[0]["params"]["requestId"], id);
    assert_eq!(turn.texts(), ["elicit: decline null"]);

    let turn = client.prompt_with("elicit url", |_| Some(json!({"result": {"action": "accept"}})));
    let complete = turn.frames.last().unwrap();
    assert_eq!(complete["method"], "elicitation/complete");
    let elicitation = &turn.frames[0]["params"]["elicitationId"];
    assert_eq!(&complete["params"]["elicitationId"], elicitation);
}

#[test]
fn file_and_terminal_requests_go_to_the_client() {
    let mut client = Client::ready(&[]);
    let content = json!({"result": {"content": "two words"}});
    let turn = client.prompt_with("fs-read /a/b", |_| Some(content.clone()));
    assert_eq!(turn.frames[0]["params"]["path"], "/a/b");
    assert_eq!(turn.texts(), ["fs-read: two words"]);
    let turn = client.prompt_with("fs-write /a/b then what", |_| Some(json!({"result": {}})));
    assert_eq!(turn.frames[0]["params"]["content"], "then what");
    assert_eq!(turn.texts(), ["fs-write: done"]);

    let mut asked = Vec::new();
    let turn = client.prompt_with("terminal echo a b", |ask| {
        asked.push(ask["method"].as_str().unwrap().to_owned());
        Some(match ask["method"].as_str().unwrap() {
            "terminal/create" => json!({"result": {"terminalId": "t1"}}),
            "terminal/wait_for_exit" => json!({"result": {"exitCode": 0}}),
            "terminal/output" => json!({"result": {"output": "a b", "truncated": false}}),
            _ => json!({"result": {}}),
        })
    });
    let chain = ["create", "wait_for_exit", "output", "release"].map(|it| format!("terminal/{it}"));
    assert_eq!(asked, chain);
    assert_eq!(turn.frames[0]["params"]["args"], json!(["a", "b"]));
    assert_eq!(turn.texts(), ["terminal: exit 0 signal null: a b"]);
}

#[test]
fn unknown_messages_are_sent_and_the_error_code_is_reported() {
    let mut client = Client::ready(&[]);
    let error = json!({"error": {"code": -32601, "message": "no"}});
    let turn = client.prompt_with("unknown-request", |_| Some(error.clone()));
    assert_eq!(turn.texts(), ["unknown-request: error -32601 no"]);
    let turn = client.prompt("unknown-update then unknown-notification");
    let names: Vec<_> = turn.frames.iter().map(|it| it["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["session/update", "_fake/notice", "fake/notice"]);
    assert_eq!(turn.updates().next().unwrap()["sessionUpdate"], "fake_unknown");
}

#[test]
fn turn_can_be_answered_in_odd_ways() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("error -32000 log in first");
    assert_eq!(turn.answer["error"], json!({"code": -32000, "message": "log in first"}));
    let turn = client.prompt("error-null");
    assert_eq!(turn.answer.get("error"), Some(&Value::Null));
    assert_eq!(turn.stop_reason(), "end_turn");
    let turn = client.prompt("answer-twice");
    assert_eq!(client.frame(), turn.answer);
}

#[test]
fn updates_can_follow_the_end_of_the_turn() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("late 2");
    assert!(turn.frames.is_empty());
    let late = [client.frame(), client.frame()];
    assert_eq!(late.map(|it| it["params"]["update"]["content"]["text"].clone()), ["1", "2"]);
    assert_eq!(client.prompt("two-turns").texts(), ["the first turn"]);
    assert_eq!(client.frame()["method"], "session/update");
}

#[test]
fn sessions_are_concurrent_and_each_has_one_turn_at_a_time() {
    let mut client = Client::ready(&[]);
    let first = client.session.clone();
    let hanging = client.start_prompt("hang");
    let refused = client.prompt("two at once");
    assert_eq!(refused.answer["error"]["code"], -32600);
    client.open("/");
    assert_eq!(client.prompt("slow 2 5").texts(), ["slow 1 ", "slow 2 "]);
    client.session = first;
    client.cancel();
    assert_eq!(client.rest_of_turn(hanging, |_| None).stop_reason(), "cancelled");
    assert_eq!(client.prompt("count").texts(), ["count 2"]);
}

#[test]
fn turn_reports_about_itself() {
    let mut client = Client::ready(&[]);
    let pid = format!("pid {}", client.child.id());
    let reports = [
        ("history", "history: ".to_owned()),
        ("count", "count 2".to_owned()),
        ("history", "history: history | count".to_owned()),
        ("env FAKE_TEST", "FAKE_TEST=yes".to_owned()),
        ("env HOME", "HOME is not set".to_owned()),
        ("pid", pid),
        ("mode", "mode ask".to_owned()),
        ("model", "model fake-fast".to_owned()),
        ("effort", "effort low".to_owned()),
        ("mcp", "mcp []".to_owned()),
        ("caps", r#"caps {"terminal":true}"#.to_owned()),
    ];
    for (word, report) in reports {
        assert_eq!(client.prompt(word).texts(), [report]);
    }
    assert!(client.prompt("cwd").texts()[0].starts_with("cwd / process /"));
    let id = client.session.clone();
    assert!(client.prompt("params").texts()[0].contains(&id));
}

#[test]
fn complaints_list_violations_of_the_client() {
    let mut client = Client::ready(&[]);
    client.send(&json!({"jsonrpc": "2.0", "id": 77, "result": {}}));
    client.notify("session/nonsense", &json!({}));
    client.send_line("{ half");
    assert_eq!(client.frame()["error"]["code"], -32700);
    client.send_line("[]");
    assert_eq!(client.frame()["error"]["code"], -32600);
    let turn = client.prompt("complaints");
    assert!(turn.texts()[0].starts_with("complaints 4: "), "{:?}", turn.texts());
}
