//! Opening, loading, listing and setting up sessions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Client;

/// A folder with one session of two prompts, stored by a process that has exited.
fn left_behind() -> (TempDir, String) {
    let state = tempfile::tempdir().unwrap();
    let mut client = Client::with_state(state.path(), &[]);
    client.open("/work");
    client.prompt("first then tool");
    client.prompt("tool then burst 3");
    client.close_stdin();
    assert!(client.exit().success());
    (state, client.session.clone())
}

/// The response to `session/load`, and the texts and tool ids before it.
fn load(client: &mut Client, session: &str) -> (Value, Vec<String>) {
    let params = json!({"sessionId": session, "cwd": "/work", "mcpServers": []});
    let id = client.send_request("session/load", &params);
    let (answer, before) = client.answer_to(id, |_| None);
    let show = |frame: &Value| {
        let update = &frame["params"]["update"];
        let text = update["content"]["text"].as_str().or(update["toolCallId"].as_str());
        text.unwrap_or_default().to_owned()
    };
    session.clone_into(&mut client.session);
    (answer, before.iter().map(show).collect())
}

const REPLAY: [&str; 10] = [
    "first then tool",
    "you said: first then tool",
    "tool then burst 3",
    "call-2-0",
    "call-2-0",
    "call-2-0",
    "tool: done",
    "1",
    "2",
    "3",
];

#[test]
fn restarted_agent_replays_a_loaded_session_and_continues_it() {
    let (state, session) = left_behind();
    let mut client = Client::with_state(state.path(), &[]);
    let (answer, replay) = load(&mut client, &session);
    assert_eq!(answer["result"]["modes"]["currentModeId"], "ask");
    assert_eq!(replay, REPLAY);
    assert_eq!(client.prompt("count").texts(), ["count 3"]);
    let earlier = ["history: first then tool | tool then burst 3 | count"];
    assert_eq!(client.prompt("history").texts(), earlier);
}

#[test]
fn load_can_fail_in_every_known_way() {
    let fault = |code: i64, message: &str| json!({"code": code, "message": message});
    let mut missing = fault(-32002, "no such session");
    let cases: [(&str, Value, usize); 7] = [
        ("null", json!({"result": null}), 0),
        ("empty", json!({"result": {}}), 0),
        ("replay-then-null", json!({"result": null}), 10),
        ("error-32603", json!({"error": fault(-32603, "Internal error")}), 0),
        ("error-32002", Value::Null, 0),
        ("replay-after-answer", Value::Null, 0),
        ("replay-new-tool-ids", Value::Null, 10),
    ];
    for (how, wanted, replayed) in cases {
        let (state, session) = left_behind();
        let mut client = Client::with_state(state.path(), &["--load", how]);
        let (mut answer, replay) = load(&mut client, &session);
        answer.as_object_mut().unwrap().retain(|key, _| key == "result" || key == "error");
        assert!(wanted.is_null() || answer == wanted, "{how}: {answer}");
        assert_eq!(replay.len(), replayed, "{how}: {replay:?}");
        match how {
            "error-32002" => {
                missing["data"] = json!({"sessionId": session});
                assert_eq!(answer["error"], missing);
            }
            "replay-new-tool-ids" => assert_eq!(replay[3], "replayed-call-2-0"),
            "replay-after-answer" => {
                for _ in REPLAY {
                    assert_eq!(client.frame()["method"], "session/update");
                }
            }
            _ => {}
        }
        if answer["error"].is_null() {
            assert!(client.prompt("count").texts()[0].starts_with("count "), "{how}");
        }
    }
}

#[test]
fn missing_session_is_an_error_unless_the_agent_pretends() {
    let mut client = Client::initialized(&[]);
    assert_eq!(load(&mut client, "gone").0["error"]["code"], -32002);
    assert_eq!(client.prompt("count").answer["error"]["data"]["sessionId"], "gone");
    let mut client = Client::initialized(&["--load", "success-for-missing"]);
    assert!(load(&mut client, "gone").0["result"].is_object());
    assert_eq!(client.prompt("count").texts(), ["count 1"]);
}

#[test]
fn resume_continues_without_a_replay_and_can_fail() {
    let (state, session) = left_behind();
    let params = json!({"sessionId": session, "cwd": "/work"});
    for how in ["ok", "null", "error"] {
        let mut client = Client::with_state(state.path(), &["--resume", how]);
        let answer = client.call("session/resume", &params);
        client.session.clone_from(&session);
        match how {
            "ok" => assert!(answer["result"]["configOptions"].is_array()),
            "null" => assert_eq!(answer.get("result"), Some(&Value::Null)),
            _ => assert_eq!(answer["error"]["code"], -32603),
        }
        let turn = client.prompt("history");
        assert_eq!(turn.answer["error"].is_null(), how != "error");
    }
    let mut client = Client::initialized(&["--resume", "success-for-missing"]);
    assert!(client.call("session/resume", &params)["result"].is_object());
}

#[test]
fn sessions_are_listed_in_pages_closed_and_deleted() {
    let state = tempfile::tempdir().unwrap();
    let mut client = Client::with_state(state.path(), &["--page", "2"]);
    let mut ids: Vec<String> = (0..3)
        .map(|_| {
            client.open("/work");
            client.session.clone()
        })
        .collect();
    ids.sort();
    client.prompt("a title");
    let mut client = Client::with_state(state.path(), &["--page", "2"]);
    let first = client.call("session/list", &json!({}))["result"].clone();
    let second = client.call("session/list", &json!({"cursor": first["nextCursor"]}));
    let second = &second["result"];
    assert_eq!(second.get("nextCursor"), None);
    let both = [first["sessions"].as_array().unwrap(), second["sessions"].as_array().unwrap()];
    let listed: Vec<_> = both.into_iter().flatten().map(|it| it["sessionId"].clone()).collect();
    assert_eq!(listed, ids);
    assert_eq!(both.into_iter().flatten().filter(|it| it["title"] == "a title").count(), 1);
    assert_eq!(client.call("session/list", &json!({"cwd": "/x"}))["result"]["sessions"], json!([]));

    load(&mut client, &ids[0]);
    let hanging = client.start_prompt("hang");
    let id = client.send_request("session/close", &json!({"sessionId": ids[0]}));
    assert_eq!(client.rest_of_turn(hanging, |_| None).stop_reason(), "cancelled");
    assert_eq!(client.answer_to(id, |_| None).0["result"], json!({}));
    assert_eq!(client.prompt("count").answer["error"]["code"], -32002);
    assert!(load(&mut client, &ids[0]).0["result"].is_object());
    assert_eq!(client.call("session/delete", &json!({"sessionId": ids[0]}))["result"], json!({}));
    assert_eq!(load(&mut client, &ids[0]).0["error"]["code"], -32002);
}

#[test]
fn unannounced_methods_are_not_served() {
    let mut client = Client::start(&["--caps", "none"]);
    let answer = client.call("initialize", &json!({"protocolVersion": 1}));
    let capabilities = &answer["result"]["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], false);
    assert_eq!(capabilities["sessionCapabilities"], json!({}));
    for method in ["load", "resume", "list", "close", "delete", "fork"] {
        let answer = client.call(&format!("session/{method}"), &json!({"sessionId": "x"}));
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn modes_and_options_can_be_set_and_are_lost_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let mut client = Client::with_state(state.path(), &[]);
    client.open("/work");
    let session = client.session.clone();
    let set = |client: &mut Client, method: &str, key: &str, value: &str| {
        let mut params = json!({"sessionId": session, "configId": "effort"});
        params[key] = json!(value);
        client.call(method, &params)
    };
    assert_eq!(set(&mut client, "session/set_mode", "modeId", "plan")["result"], json!({}));
    let answer = set(&mut client, "session/set_config_option", "value", "high");
    assert_eq!(answer["result"]["configOptions"][1]["currentValue"], "high");
    set(&mut client, "session/set_model", "modelId", "fake-smart");
    let turn = client.prompt("mode then model then effort");
    assert_eq!(turn.texts(), ["mode plan", "model fake-smart", "effort high"]);
    for (method, key) in [("set_mode", "modeId"), ("set_config_option", "value")] {
        let answer = set(&mut client, &format!("session/{method}"), key, "nonsense");
        assert_eq!(answer["error"]["code"], -32602);
    }
    let mut client = Client::with_state(state.path(), &[]);
    load(&mut client, &session);
    let turn = client.prompt("mode then model then effort");
    assert_eq!(turn.texts(), ["mode ask", "model fake-fast", "effort low"]);
}

#[test]
fn extension_requests_are_echoed_or_hang_until_they_are_cancelled() {
    let mut client = Client::initialized(&[]);
    let params = json!({"any": [1, {"thing": null}]});
    assert_eq!(client.call("_fake/echo", &params)["result"], params);
    assert_eq!(client.call("_fake/nothing", &params)["error"]["code"], -32601);
    let id = client.send_request("_fake/hang", &json!({}));
    assert_eq!(client.call("_fake/echo", &json!(1))["result"], 1);
    client.notify("$/cancel_request", &json!({"requestId": id}));
    assert_eq!(client.answer_to(id, |_| None).0["error"]["code"], -32800);
}

#[test]
fn requests_need_initialize_and_session_new_needs_its_fields() {
    let mut client = Client::start(&[]);
    assert_eq!(client.call("session/new", &json!({}))["error"]["code"], -32600);
    client.call("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(client.call("session/new", &json!({"cwd": "/"}))["error"]["code"], -32602);
    let answer = client.call("session/new", &json!({"mcpServers": []}));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn protocol_version_is_fixed_or_echoed() {
    for (flag, wanted) in [("1", 1), ("2", 2), ("echo", 99)] {
        let mut client = Client::start(&["--version", flag]);
        let answer = client.call("initialize", &json!({"protocolVersion": 99}));
        assert_eq!(answer["result"]["protocolVersion"], wanted);
    }
}

#[test]
fn sessions_can_require_authentication() {
    let new = json!({"cwd": "/", "mcpServers": []});
    for (flag, code) in [("--auth", None), ("--auth-refused", Some(-32000))] {
        let mut client = Client::initialized(&[flag]);
        assert_eq!(client.call("session/new", &new)["error"]["code"], -32000);
        client.call("authenticate", &json!({"methodId": "fake-login"}));
        assert_eq!(client.call("session/new", &new)["error"]["code"].as_i64(), code);
    }
}

#[test]
fn updates_can_precede_the_response_to_session_new() {
    let mut client = Client::initialized(&["--early-updates", "3", "--same-session-id"]);
    let id = client.send_request("session/new", &json!({"cwd": "/", "mcpServers": []}));
    let (answer, before) = client.answer_to(id, |_| None);
    assert_eq!(answer["result"]["sessionId"], "same");
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|it| it["params"]["sessionId"] == "same"));
}

#[test]
fn prompts_can_be_echoed_as_the_user() {
    let mut client = Client::ready(&["--echo-user"]);
    let turn = client.prompt("hello");
    let first = turn.updates().next().unwrap();
    assert_eq!(first["sessionUpdate"], "user_message_chunk");
    assert_eq!(first["content"]["text"], "hello");
}

#[test]
fn silent_phase_is_never_answered_and_delayed_one_blocks_no_other() {
    let mut client = Client::initialized(&["--silent", "new", "--delay", "list", "50"]);
    let start = Instant::now();
    client.send_request("session/new", &json!({"cwd": "/", "mcpServers": []}));
    let list = client.send_request("session/list", &json!({}));
    assert_eq!(client.call("_fake/echo", &json!(1))["result"], 1);
    let (answer, before) = client.answer_to(list, |_| None);
    assert!(answer["result"].is_object() && before.is_empty());
    assert!(Duration::from_millis(50) <= start.elapsed());
}
