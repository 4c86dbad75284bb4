//! Silence with real processes: what is said about it, and that a dead pipe is no silence.

use crate::sleep::{client, home, wait_for_state};
use jackfield_e2e::{Home, assert_takes_less};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_silent_tool_is_named_where_people_look() {
    let (home, _) = home("[liveness]\ntool = \"300ms\"", "");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let id = client.open(home.path());
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Shell",
        "kind": "execute", "status": "in_progress", "rawInput": { "command": "npm test" } });
    let params = json!({ "sessionId": "{sid}", "update": call });
    let update = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
    let prompt = client.send_prompt(&id, &format!("wait 50\nraw {update}\nwait 4000"));
    let row = wait_for_state(&mut client, &id, "quiet");
    let doing = row["doing"].as_str().unwrap();
    assert!(doing.contains("shell command `npm test` running"), "{doing}");
    assert!(doing.starts_with("no output for ") && doing.ends_with("; process alive"), "{doing}");
    let bound = Duration::from_secs(10);
    for args in [&["ps"][..], &["sessions", "show", &id]] {
        let out = home.run(args, bound);
        let out = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.contains("quiet") && out.contains("shell command `npm test`"), "{out}");
    }
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let facts = client.heard.iter().map(|it| &it["params"]);
    let told = facts.filter(|it| it["is"] == "quiet" && it["phase"] == "tool").count();
    assert_eq!(told, 1, "a silence is told once");
    let log = home.run(&["log", &id], bound);
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(log.contains("-- quiet: no output for "), "{log}");
    drop(client);
    daemon.stop();
}

/// Answers two requests and then closes its stdout, but will not end.
const MUTE: &str = r#"
trap '' TERM
read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read line; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"x"}}'
read line; exec >&-
while :; do sleep 1; done
"#;

#[test]
fn an_agent_that_closes_its_stdout_in_a_turn_is_noticed_within_two_seconds() {
    assert_takes_less(Duration::from_secs(2), close_stdout_in_a_turn);
}

/// Returns how long it took until the prompt was answered.
fn close_stdout_in_a_turn() -> Duration {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&["sh".to_owned(), "-c".to_owned(), MUTE.to_owned()]);
    let id = client.open(home.path());
    let begin = Instant::now();
    let prompt = client.send_prompt(&id, "hello");
    let answer = client.answer(prompt);
    let took = begin.elapsed();
    let told = answer["error"].to_string();
    assert!(told.contains("closed its stdout and kept running"), "{answer}");
    drop(client);
    daemon.stop();
    took
}
