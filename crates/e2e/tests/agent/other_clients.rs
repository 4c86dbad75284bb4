//! Clients that were written for other agents: requests in the forms of `OpenCode` and `openai-agent`.

use super::Serves;
use jackfield_e2e::{Client, Home};
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};
use std::{
    process::{Child, Stdio},
    time::Duration,
};

const STOP_MAX: Duration = Duration::from_secs(20);

/// Starts a command that uses the model, with a client on its stdio.
fn start(home: &Home, model: &ScriptedModel, args: &[&str]) -> (Child, Client) {
    let mut command = home.command(args);
    command.env("OPENAI_BASE_URL", model.base_url()).env("OPENAI_API_KEY", "test-key");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, Client::new(Box::new(stdout), Box::new(stdin)))
}

#[test]
fn session_new_accepts_the_forms_of_opencode_directly_and_through_the_hub() {
    for args in [&["agent"][..], &["acp", "chat"]] {
        let home = Home::new();
        let model = ScriptedModel::start([Reply::say("One.")]);
        model.serve_models(&json!({ "data": [{ "id": "small" }, { "id": "large" }] }));
        let (mut child, mut client) = start(&home, &model, args);
        let hello = json!({ "protocolVersion": "2025-03-26", "capabilities": {} });
        client.result("initialize", &hello);

        let bare = client.result("session/new", &json!({ "cwd": home.path() }));
        assert_eq!(bare["models"]["currentModelId"], "gpt-4o", "{args:?}");
        let wrong = json!({ "cwd": home.path(), "mode": "anything-goes" });
        let refused = client.ask("session/new", &wrong)["error"].clone();
        assert_eq!(refused["code"], -32602, "{refused}");

        let servers = json!({ "ends": { "command": "/bin/false" } });
        let new = json!({
            "cwd": home.path(), "model": "large", "mode": "plan", "mcpServers": servers,
        });
        let opened = client.result("session/new", &new);
        let listed = opened["models"]["availableModels"].as_array().unwrap();
        let listed: Vec<&Value> = listed.iter().map(|it| &it["modelId"]).collect();
        assert_eq!(listed, ["small", "large"]);
        assert_eq!(opened["models"]["currentModelId"], "large");
        assert_eq!(opened["modes"]["currentModeId"], "read-only");

        let session = opened["sessionId"].as_str().unwrap();
        let set = json!({ "sessionId": session, "modelId": "small" });
        client.result("session/set_model", &set);
        assert_eq!(client.prompt(session, "Hello"), "end_turn");
        assert_eq!(model.asked()[0].body["model"], "small");
        let is_notice = |it: &Value| it.to_string().contains("`ends`");
        assert!(client.heard.iter().any(is_notice), "the server that ended is reported");
        drop(client);
        assert!(child.wait().unwrap().success());
        if args[0] == "acp" {
            assert!(home.run(&["daemon", "stop"], STOP_MAX).status.success());
        }
    }
}
