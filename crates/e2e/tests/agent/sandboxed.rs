//! Our own agent inside the profile `workspace`, with the network limited to the host of its model: it does a task with
//! a tool and a permission, and neither its tools nor its MCP servers reach the state of the daemon.

use super::Serves as _;
use crate::sandbox::{ALL_WORK, BOUND, SandboxScene, TestedLayer, expected, lines};
use jackfield_e2e::Client;
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::json;
use std::fs;

/// A scene whose daemon knows the address of a model.
fn scene_with_model(layer: TestedLayer, model: &ScriptedModel) -> SandboxScene {
    let variables = [("OPENAI_BASE_URL", model.base_url()), ("OPENAI_API_KEY", "test-key".into())];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, it)| (*name, it.as_str())).collect();
    SandboxScene::with_variables(layer, &variables)
}

fn connect(scene: &SandboxScene, profile: &str) -> Client {
    let mut client = scene.home.dial();
    let params = json!({ "agent": "chat", "cwd": scene.work, "sandbox": profile });
    client.notify("_jackfield/connect", &params);
    client.hello();
    client
}

/// A turn whose permission requests are all granted once: how many there were.
fn run_turn(client: &mut Client, session: &str, text: &str) -> usize {
    let prompt = client.send_prompt(session, text);
    let mut asks = 0;
    loop {
        let message = client.next(BOUND).expect("the turn ends");
        if message["method"] == "session/request_permission" {
            asks += 1;
            let outcome = json!({ "outcome": "selected", "optionId": "once" });
            client.respond(&message, &json!({ "outcome": outcome }));
        } else if message["id"] == prompt && message["method"].is_null() {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            return asks;
        }
    }
}

/// The model reads a file, edits it, and runs the attempts.
fn do_task(layer: TestedLayer, profile: &str) -> String {
    let edit = json!({ "path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2" });
    let model = ScriptedModel::start([
        Reply::call("read", r#"{"path":"sum.sh"}"#),
        Reply::call("edit", &edit.to_string()),
        Reply::call("shell", r#"{"command":"sh attacks.sh > attempts; sh sum.sh 2 3 > sum"}"#),
        Reply::say("It adds now."),
        Reply::say("Here again."),
    ]);
    let scene = scene_with_model(layer, &model);
    fs::write(scene.work.join("sum.sh"), "echo $(($1 - $2))\n").unwrap();
    fs::write(scene.work.join("attacks.sh"), scene.attacks()).unwrap();
    let mut client = connect(&scene, profile);
    let session = client.open(&scene.work);
    assert_eq!(
        run_turn(&mut client, &session, "Mend it"),
        2,
        "the edit and the command need permission"
    );
    assert_eq!(fs::read_to_string(scene.work.join("sum")).unwrap(), "5\n");
    // Its own store is outside of the project, and has the conversation.
    assert_eq!(run_turn(&mut client, &session, "Go on"), 0);
    assert!(client.text().ends_with("Here again."), "{}", client.text());
    assert!(model.asked().iter().all(|it| it.header("authorization") == Some("Bearer test-key")));
    let attempts = fs::read_to_string(scene.work.join("attempts")).unwrap();
    drop(client);
    scene.daemon.stop();
    attempts
}

#[test]
fn own_agent_does_a_task_without_a_sandbox_and_attempts_work() {
    assert_eq!(lines(&do_task(TestedLayer::Bubblewrap, "open")), ALL_WORK);
}

#[test]
fn own_agent_does_a_task_in_bubblewrap_and_attempts_are_refused() {
    let layer = TestedLayer::Bubblewrap;
    assert_eq!(lines(&do_task(layer, "workspace")), expected(layer));
}

#[test]
fn own_agent_does_a_task_in_landlock_and_attempts_are_refused() {
    let layer = TestedLayer::Landlock;
    assert_eq!(lines(&do_task(layer, "workspace")), expected(layer));
}

/// What an MCP server that the client names in `session/new` attempts when the agent starts it.
fn start_hostile_server(layer: TestedLayer, profile: &str) -> String {
    let model = ScriptedModel::start([Reply::say("Hello.")]);
    let scene = scene_with_model(layer, &model);
    let script = format!("{{ {}\n}} > attempts", scene.attacks());
    let server =
        json!({ "name": "hostile", "command": "/bin/sh", "args": ["-c", script], "env": [] });
    let mut client = connect(&scene, profile);
    let params = json!({ "cwd": scene.work, "mcpServers": [server] });
    let session = client.result("session/new", &params);
    let session = session["sessionId"].as_str().unwrap().to_owned();
    // The server ends instead of answering; the session works without it.
    run_turn(&mut client, &session, "Say hello");
    let attempts = fs::read_to_string(scene.work.join("attempts")).unwrap();
    drop(client);
    scene.daemon.stop();
    attempts
}

#[test]
fn attempts_of_an_mcp_server_work_without_a_sandbox() {
    assert_eq!(lines(&start_hostile_server(TestedLayer::Bubblewrap, "open")), ALL_WORK);
}

#[test]
fn attempts_of_an_mcp_server_are_refused_by_bubblewrap() {
    let layer = TestedLayer::Bubblewrap;
    assert_eq!(lines(&start_hostile_server(layer, "workspace")), expected(layer));
}

#[test]
fn attempts_of_an_mcp_server_are_refused_by_landlock() {
    let layer = TestedLayer::Landlock;
    assert_eq!(lines(&start_hostile_server(layer, "workspace")), expected(layer));
}
