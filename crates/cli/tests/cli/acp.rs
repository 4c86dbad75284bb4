//! `jackfield acp`, the command that an editor starts.

use crate::{
    daemon::AGENT,
    fake_hub::{CLOSE_CONNECTION, FakeHub, response},
    home::TestHome,
};
use serde_json::json;

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
fn daemon_that_closes_the_connection_is_exit_code_6() {
    let home = TestHome::new();
    FakeHub::new().on("initialize", &[CLOSE_CONNECTION.to_owned()]).start(&home);
    let mut command = home.command(&["acp", "--", "goose", "acp"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{INITIALIZE}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    insta::assert_snapshot!("acp_daemon_gone", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(6));
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
