//! `jackfield agent --bridge` in place of `openai-agent`.

use super::Desk;
use jackfield_e2e::Home;
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};

const BRIDGE: (&str, &str) = ("JACKFIELD_BRIDGE", "1");

#[test]
fn bridge_has_the_documented_identity_and_capabilities() {
    let variables = vec![(BRIDGE.0.to_owned(), BRIDGE.1.to_owned())];
    let mut desk = Desk::silent(Home::new(), ScriptedModel::start([]), variables);
    let hello =
        json!({ "protocolVersion": "2025-03-26", "clientInfo": { "name": "t", "version": "1" } });
    let answer = desk.client.result("initialize", &hello);
    assert_eq!(answer["protocolVersion"], "2025-03-26");
    assert_eq!(answer["agentInfo"], json!({ "name": "openai-agent", "version": "1.0.0" }));
    assert_eq!(answer["authMethods"], json!([]));
    let capabilities = &answer["agentCapabilities"];
    assert_eq!(capabilities["promptCapabilities"]["embeddedContext"], true);
    assert_ne!(capabilities["promptCapabilities"]["image"], true);
    assert_ne!(capabilities["loadSession"], true);
}

#[test]
fn bridge_only_passes_text_between_client_and_model() {
    let thinks = Reply::stream().delta(&json!({ "reasoning_content": "Let me see." }));
    let thinks = thinks.delta(&json!({ "content": "Yes." })).finish("stop");
    let empty = Reply::stream().delta(&json!({ "content": "" })).finish("stop");
    let model = ScriptedModel::start([thinks, Reply::say("I cannot help."), empty]);
    let mut desk = Desk::new(model, &[BRIDGE, ("OPENAI_SYSTEM_PROMPT", "Be brief.")]);
    let servers = json!([{ "name": "x", "command": "/bin/false", "args": [], "env": [] }]);
    let new = json!({ "cwd": desk.home.path(), "mcpServers": servers });
    let opened = desk.client.result("session/new", &new);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened, json!({ "sessionId": session }));

    assert_eq!(desk.turn(&session, "Are you there?").0, "Yes.");
    assert_eq!(desk.turn(&session, "/help").0, "I cannot help.", "the model gets every prompt");
    assert_eq!(desk.turn(&session, "Say nothing."), (String::new(), "end_turn".to_owned()));
    let kinds = desk.updates(&session).into_iter().map(|it| it["sessionUpdate"].clone());
    assert!(kinds.into_iter().all(|it| it == "agent_message_chunk"));

    let asked = desk.model.asked();
    assert!(asked.iter().all(|it| it.body.get("tools").is_none()));
    let expected = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Are you there?" },
        { "role": "assistant", "content": "Yes." },
        { "role": "user", "content": "/help" },
    ]);
    assert_eq!(asked[1].body["messages"], expected);

    let place = desk.place(&session);
    let refused: Value = desk.client.ask("session/load", &place)["error"].clone();
    assert!(refused["data"].to_string().contains("session loading is not supported"), "{refused}");
    assert!(!desk.home.path().join("state/agent.db").exists(), "nothing is stored");
}

#[test]
fn every_line_of_an_answer_has_the_session_id_of_the_bus() {
    let write = Reply::call("write", r#"{"path":"a.txt","content":"x"}"#);
    let model = ScriptedModel::start([write, Reply::say("Written.")]);
    let mut desk = Desk::silent(Home::new(), model, Vec::new());
    let routed = |id: u64, method: &str, params: &Value| {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params, "sessionId": "client-7" });
        line.to_string()
    };
    let is_answer = |id: u64| move |it: &Value| it["id"] == id && it.get("method").is_none();
    desk.client.send_line(&routed(1, "initialize", &json!({ "protocolVersion": 1 })));
    desk.client.until("the capabilities", is_answer(1));
    let new = json!({ "cwd": desk.home.path(), "mcpServers": [] });
    desk.client.send_line(&routed(2, "session/new", &new));
    let opened = desk.client.until("the session", is_answer(2));
    let session = opened["result"]["sessionId"].as_str().unwrap();
    assert_ne!(session, "client-7", "the agent has ids of its own");
    let prompt =
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "Write it." }] });
    desk.client.send_line(&routed(3, "session/prompt", &prompt));
    let ask = desk.client.until("a request", |it| it["method"] == "session/request_permission");
    let once = json!({ "outcome": { "outcome": "selected", "optionId": "once" } });
    let answer =
        json!({ "jsonrpc": "2.0", "id": ask["id"], "result": once, "sessionId": "client-7" });
    desk.client.send_line(&answer.to_string());
    desk.client.until("the end of the turn", is_answer(3));
    assert_eq!(desk.client.text(), "Written.");
    let heard = &desk.client.heard;
    assert!(heard.iter().any(|it| it["method"] == "session/update"), "{heard:?}");
    assert!(heard.iter().all(|it| it["sessionId"] == "client-7"), "{heard:#?}");
}
