//! A foreign CLI behind `jackfield adapt`, with the real daemon and real processes. The CLI is a
//! script that speaks one of the dialects; the real ones are in `live`.

use jackfield_e2e::{Client, Home, procs, wait_for};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{ChildStdin, Stdio},
    time::Duration,
};

/// Prints what `codex exec --json` prints. It remembers nothing: what it was resumed with proves
/// that the adapter did.
const SCRIPT: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
    echo 'script-cli 4.5.6'
    exit
fi
prompt=$(cat)
echo '{"type":"thread.started","thread_id":"thread-of-its-own"}'
echo '{"type":"turn.started"}'
case "$prompt" in
*STAY*)
    setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' &
    echo '{"type":"item.started","item":{"id":"i0","type":"command_execution","command":"stay","aggregated_output":"","exit_code":null,"status":"in_progress"}}'
    trap "" TERM
    while :; do sleep 1; done
    ;;
*DIE*)
    echo 'stream error: unexpected status 401 Unauthorized: no key' >&2
    exit 1
    ;;
esac
echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"argv: '"$*"'"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":7}}'
"#;

const SPEC: &str = r#"id = "script"
name = "Script"
bins = ["script-cli"]
[[launch]]
dialect = "codex"
args = ["first"]
resume = ["again", "{session}"]
model = ["--model", "{model}"]
"#;

/// The script where `~/.local/bin` is, and a file that makes an agent of it.
fn install(home: &Home) {
    let (bin, agents) = (home.path().join(".local/bin"), home.path().join("config/agents"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&agents).unwrap();
    let script = bin.join("script-cli");
    fs::write(&script, SCRIPT).unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(agents.join("script.toml"), SPEC).unwrap();
}

fn connect(home: &Home) -> Client {
    let mut client = home.dial();
    client.notify("_jackfield/connect", &json!({ "agent": "script" }));
    let told = client.hello_aware();
    assert_eq!(told["agentInfo"]["title"], "Script");
    client
}

#[test]
fn version_of_the_program_is_the_version_of_the_agent() {
    let home = Home::new();
    install(&home);
    let probed = home.run(&["agents", "--probe"], Duration::from_mins(1));
    assert!(probed.status.success(), "{probed:?}");
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.notify("_jackfield/connect", &json!({ "agent": "script" }));
    assert_eq!(client.hello_aware()["agentInfo"]["version"], "script-cli 4.5.6");
    drop(client);
    daemon.stop();
}

#[test]
fn a_foreign_cli_is_resumed_turn_by_turn_and_after_the_daemon_was_killed() {
    let home = Home::new();
    install(&home);
    let daemon = home.serve(&[]);
    let mut client = connect(&home);
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "one"), "end_turn");
    assert!(client.text().ends_with("argv: first"), "{}", client.text());
    let model = json!({ "sessionId": session, "configId": "model", "value": "some-model" });
    client.result("session/set_config_option", &model);
    assert_eq!(client.prompt(&session, "two"), "end_turn");
    let again = "argv: again thread-of-its-own --model some-model";
    assert!(client.text().ends_with(again), "{}", client.text());
    drop(client);
    daemon.kill_9();

    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let load = json!({ "sessionId": session, "cwd": home.path(), "mcpServers": [] });
    client.result("session/load", &load);
    assert_eq!(client.text().matches(again).count(), 1, "{}", client.text());
    assert_eq!(client.prompt(&session, "three"), "end_turn");
    assert_eq!(client.text().matches(again).count(), 2, "{}", client.text());
    let refused = client.send_prompt(&session, "DIE");
    let error = client.answer(refused)["error"].clone();
    assert_eq!(error["code"], -32000, "{error}");
    assert!(error["message"].as_str().unwrap().contains("401 Unauthorized"), "{error}");
    drop(client);
    daemon.stop();
}

/// Waits until the script, its stray and what they wait for are there.
fn wait_for_the_stray(client: &mut Client) {
    client.until("the tool call", |it| it["params"]["update"]["sessionUpdate"] == "tool_call");
}

#[test]
fn a_cancelled_turn_leaves_nothing_of_the_cli_and_the_session_goes_on() {
    let home = Home::new();
    install(&home);
    let daemon = home.serve(&[]);
    let mut client = connect(&home);
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "one"), "end_turn");
    let before = home.alive(&[]).len();
    let turn = client.send_prompt(&session, "STAY");
    wait_for_the_stray(&mut client);
    client.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(client.answer(turn)["result"]["stopReason"], "cancelled");
    wait_for("the tree to be gone", Duration::from_secs(5), || {
        (home.alive(&[]).len() <= before).then_some(())
    });
    assert_eq!(client.prompt(&session, "three"), "end_turn");
    assert!(client.text().ends_with("argv: again thread-of-its-own"), "{}", client.text());
    drop(client);
    daemon.stop();
}

/// An adapter as an editor starts it, without the daemon.
fn alone(home: &Home) -> (std::process::Child, Client) {
    let mut child = home
        .command(&["adapt", "script"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let (stdout, stdin) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (child, Client::new(Box::new(stdout), Box::new(Unbuffered(stdin))))
}

struct Unbuffered(ChildStdin);

impl std::io::Write for Unbuffered {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn an_adapter_that_is_killed_or_left_takes_the_cli_with_it() {
    let home = Home::new();
    install(&home);
    for kill in [true, false] {
        let (mut adapter, mut client) = alone(&home);
        client.hello();
        let session = client.open(home.path());
        client.send_prompt(&session, "STAY");
        wait_for_the_stray(&mut client);
        if kill {
            adapter.kill().unwrap();
        }
        drop(client);
        wait_for("the adapter to end", Duration::from_secs(10), || {
            adapter.try_wait().expect("our own child")
        });
        wait_for("the tree to be gone", Duration::from_secs(5), || {
            procs::marked(home.mark()).is_empty().then_some(())
        });
    }
}
