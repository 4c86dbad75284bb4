//! `jackfield agent --bridge` in place of `openai-agent`.

use super::Desk;
use jackfield_e2e::Home;
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

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
    assert!(!desk.home.path().join("state/agent/agent.db").exists(), "nothing is stored");
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

/// Sends the opening lines to a bridge, then those of the session, and returns all that it prints.
fn pipe_lines(
    home: &Home,
    model: &ScriptedModel,
    session_lines: impl Fn(&str) -> Vec<String>,
) -> Vec<Value> {
    let mut command = home.command(&["agent", "--bridge"]);
    command.env("OPENAI_BASE_URL", model.url()).env("OPENAI_API_KEY", "test-key");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in OPENING_LINES {
        writeln!(stdin, "{line}").unwrap();
    }
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        || -> Option<Value> { Some(serde_json::from_str(&lines.next()?.unwrap()).unwrap()) };
    let mut printed = Vec::new();
    while let Some(line) = next() {
        if let Some(session) = line["result"]["sessionId"].as_str() {
            for line in session_lines(session) {
                writeln!(stdin, "{line}").unwrap();
            }
        }
        let is_end = line["result"].get("stopReason").is_some();
        printed.push(line);
        if is_end {
            break;
        }
    }
    drop(stdin);
    printed.extend(std::iter::from_fn(next));
    assert!(child.wait().unwrap().success());
    printed
}

/// As the description of `openai-agent` has them: ids are text, and `initialize` has no version.
const OPENING_LINES: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"clientInfo":{"name":"test","version":"1.0"}}}"#,
    r#"{"jsonrpc":"2.0","id":"2","method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#,
];

fn prompt_line(session: &str) -> String {
    r#"{"jsonrpc":"2.0","id":"3","method":"session/prompt","params":{"sessionId":"SESSION","prompt":[{"type":"text","text":"Say hello in one sentence."}]}}"#
        .replace("SESSION", session)
}

#[test]
fn documented_smoke_test_is_answered() {
    let (home, model) = (Home::new(), ScriptedModel::start([Reply::say("Hello there.")]));
    let printed = pipe_lines(&home, &model, |session| vec![prompt_line(session)]);
    assert_eq!(
        (&printed[0]["id"], &printed[0]["result"]["protocolVersion"]),
        (&json!("1"), &json!(1))
    );
    assert_eq!(printed[1]["id"], "2");
    let texts = printed.iter().filter_map(|it| it["params"]["update"]["content"]["text"].as_str());
    assert_eq!(texts.collect::<String>(), "Hello there.");
    let last = printed.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["stopReason"]), (&json!("3"), &json!("end_turn")));
}

#[test]
fn both_names_of_cancel_abort_the_request_and_leave_no_partial_answer() {
    for method in ["session/cancel", "cancel"] {
        let half = Reply::stream().delta(&json!({ "content": "Half" })).hang();
        let model = ScriptedModel::start([half]);
        let home = Home::new();
        let printed = pipe_lines(&home, &model, |session| {
            let cancel = format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"{session}"}}}}"#
            );
            vec![prompt_line(session), cancel]
        });
        let last = printed.last().unwrap();
        assert_eq!(
            (&last["id"], &last["result"]["stopReason"]),
            (&json!("3"), &json!("cancelled"))
        );
    }
}
