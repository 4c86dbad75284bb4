//! MCP servers of `jackfield run`: a file and a configured name, which a session keeps when its agent is started
//! again.

use super::script::{offered, results};
use jackfield_e2e::{Home, cli::installed};
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::json;
use std::{fs, time::Duration};

const BOUND: Duration = Duration::from_secs(30);

/// Runs a command that must succeed; returns its stdout.
fn run(home: &Home, args: &[&str]) -> String {
    let output = home.run(args, BOUND);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn session_keeps_the_servers_of_a_file_and_of_the_configuration_over_an_agent_restart() {
    let home = Home::new();
    let program = installed("bin/mcp-server-everything");
    let server = json!({ "command": program, "args": ["stdio"] });
    let file = home.path().join("servers.json");
    fs::write(&file, json!({ "mcpServers": { "ev": server } }).to_string()).unwrap();
    fs::create_dir(home.path().join("config")).unwrap();
    let configured = format!("[mcp.house]\ncommand = {program:?}\nargs = [\"stdio\"]\n");
    fs::write(home.path().join("config/config.toml"), configured).unwrap();
    let call = |tool: &str, text: &str| Reply::call(tool, &json!({ "message": text }).to_string());
    let model = ScriptedModel::start([
        call("ev_echo", "one"),
        Reply::say("Heard."),
        call("ev_echo", "two"),
        call("house_echo", "three"),
        Reply::say("Heard again."),
    ]);
    let url = model.url();
    let daemon = home.serve_in(&[], &[("OPENAI_BASE_URL", &url), ("OPENAI_API_KEY", "test-key")]);

    let file = file.display().to_string();
    let servers = ["--mcp", &file, "--mcp", "house"];
    let first = ["run", "-a", "chat", "--approve", "all", "--format", "quiet"];
    let said = run(&home, &[&first[..], &servers, &["Say one."]].concat());
    assert_eq!(said.trim(), "Heard.");
    assert!(offered(&model).iter().any(|it| it == "house_echo"), "{:?}", offered(&model));

    // The command has closed the session, so its agent and servers are started again.
    let session = run(&home, &["sessions", "list", "--format", "quiet"]);
    let next = ["run", "-s", session.trim(), "--approve", "all", "--format", "quiet", "Say more."];
    assert_eq!(run(&home, &next).trim(), "Heard again.");
    assert_eq!(results(&model), ["Echo: one", "Echo: two", "Echo: three"]);

    let unknown = ["run", "-a", "chat", "--mcp", "garden", "Hello."];
    let refused = home.run(&unknown, BOUND);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains("no MCP server `garden` is configured"), "{why}");
    daemon.stop();
}
