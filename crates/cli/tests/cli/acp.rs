//! `jackfield acp`, the command that an editor starts.

use crate::{
    daemon::AGENT,
    fake_hub::{CLOSE_CONNECTION, FakeHub, prompt_response, response},
    home::{TestHome, wait_for},
};
use serde_json::json;
use std::io::Write as _;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

#[test]
fn acp_chooses_the_agent_and_then_relays_bytes_unchanged() {
    let home = TestHome::new();
    let reply = r#"{ "jsonrpc":"2.0", "id":0 , "result":{"protocolVersion":1,"n":1.50} }"#;
    let received = FakeHub::new()
        .on("initialize", &[reply.to_owned(), CLOSE_CONNECTION.to_owned()])
        .start(&home);
    let outcome = home.run_with_input(&["acp", "--", "goose", "acp"], &format!("{INITIALIZE}\n"));
    assert_eq!(outcome.stdout, format!("{reply}\n"));
    let params = &received.with_method("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], json!({ "name": "goose", "argv": ["goose", "acp"] }));
    assert_eq!(received.with_method("initialize")[0].to_string(), INITIALIZE, "no byte is changed");
}

#[test]
fn named_agent_receives_the_callers_environment_without_jackfield_variables() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("initialize", &[response(&json!({})), CLOSE_CONNECTION.to_owned()])
        .start(&home);
    home.run_with_input(&["acp", "claude"], &format!("{INITIALIZE}\n"));
    let params = &received.with_method("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], "claude");
    let names: Vec<&String> = params["env"].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|it| *it == "PATH"), "{names:?}");
    assert!(!names.iter().any(|it| it.starts_with("JACKFIELD_")), "{names:?}");
}

#[test]
fn request_that_the_daemon_did_not_answer_is_answered_by_the_next_one() {
    let home = TestHome::new();
    home.write_program("echo-agent", AGENT);
    FakeHub::new().on("initialize", &[CLOSE_CONNECTION.to_owned()]).start(&home);
    let outcome = home.run_with_input(&["acp", "--", "echo-agent"], &format!("{INITIALIZE}\n"));
    let notes = "the daemon has ended; reconnecting…\nreconnected to the daemon\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, notes));
    let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(0), &json!(1)));
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn bare_acp_uses_the_default_agent_or_the_only_installed_one() {
    let home = TestHome::new();
    let received = FakeHub::new().start(&home);
    assert_eq!(home.run(&["acp"]).code, 0);
    assert_eq!(received.with_method("_jackfield/connect")[0]["params"]["agent"], "goose");
    home.write_program("codex", "exit 1");
    insta::assert_snapshot!("acp_several_agents", home.run(&["acp"]).to_snapshot());
    home.write_config("default_agent = \"codex\"\n");
    assert_eq!(home.run(&["acp"]).code, 0);
    assert_eq!(received.with_method("_jackfield/connect")[1]["params"]["agent"], "codex");
}

#[test]
fn sigterm_cancels_the_turn_only_with_cancel_on_exit() {
    for flags in [&["acp", "--cancel-on-exit"][..], &["acp"]] {
        let home = TestHome::new();
        let canceled = prompt_response("cancelled").replace("$id", "$prompt");
        let received = FakeHub::new().on("session/cancel", &[canceled]).start(&home);
        let (running, mut stdin) = home.start_with_stdin(&[flags, &["goose"]].concat());
        let prompt = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt",
                             "params": { "sessionId": "s-1", "prompt": [] } });
        writeln!(stdin, "{INITIALIZE}\n{prompt}").unwrap();
        wait_for("the prompt", || !received.with_method("session/prompt").is_empty());
        running.signal(rustix::process::Signal::TERM);
        let outcome = running.finish();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{flags:?}");
        let cancels = received.with_method("session/cancel").len();
        assert_eq!(cancels, flags.len() - 1, "{flags:?}");
        assert_eq!(outcome.stdout.contains("cancelled"), cancels == 1, "{}", outcome.stdout);
    }
}

#[test]
fn acp_works_with_and_without_a_daemon() {
    let home = TestHome::new();
    home.write_program("echo-agent", AGENT);
    for flags in [&["acp"][..], &["acp", "--isolated"]] {
        let args = [flags, &["--", "echo-agent"]].concat();
        let outcome = home.run_with_input(&args, &format!("{INITIALIZE}\n"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(answer["id"], 0);
        assert_eq!(answer["result"]["protocolVersion"], 1);
    }
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}
