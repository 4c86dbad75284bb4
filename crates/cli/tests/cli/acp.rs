//! `jackfield acp`: what an editor starts.

use crate::{
    daemon::AGENT,
    fake_hub::{FakeHub, HANG_UP, result},
    home::Home,
};
use serde_json::json;

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

#[test]
fn it_names_the_agent_and_then_only_carries_bytes() {
    let home = Home::new();
    let strange = r#"{ "jsonrpc":"2.0", "id":0 , "result":{"protocolVersion":1,"n":1.50} }"#;
    let heard =
        FakeHub::new().on("initialize", &[strange.to_owned(), HANG_UP.to_owned()]).start(&home);
    let did = home.run_with_input(&["acp", "--", "goose", "acp"], &format!("{HELLO}\n"));
    assert_eq!(did.stdout, format!("{strange}\n"));
    let params = &heard.all("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], json!({ "name": "goose", "argv": ["goose", "acp"] }));
    assert_eq!(heard.all("initialize")[0].to_string(), HELLO, "not a byte is added");
}

#[test]
fn an_agent_by_name_may_see_what_its_spec_grants_of_our_environment() {
    let home = Home::new();
    let heard =
        FakeHub::new().on("initialize", &[result(&json!({})), HANG_UP.to_owned()]).start(&home);
    home.run_with_input(&["acp", "claude"], &format!("{HELLO}\n"));
    let params = &heard.all("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], "claude");
    let names: Vec<&String> = params["env"].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|it| *it == "PATH"), "{names:?}");
    assert!(!names.iter().any(|it| it.starts_with("JACKFIELD_")), "{names:?}");
}

#[test]
fn a_daemon_that_goes_away_while_the_editor_is_there_is_6() {
    let home = Home::new();
    FakeHub::new().on("initialize", &[HANG_UP.to_owned()]).start(&home);
    let mut command = home.command(&["acp", "--", "goose", "acp"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{HELLO}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    insta::assert_snapshot!("acp_daemon_gone", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(6));
}

#[test]
fn an_editor_gets_its_agent_with_and_without_a_daemon() {
    let home = Home::new();
    home.program("echo-agent", AGENT);
    for flags in [&["acp"][..], &["acp", "--isolated"]] {
        let args = [flags, &["--", "echo-agent"]].concat();
        let did = home.run_with_input(&args, &format!("{HELLO}\n"));
        assert_eq!((did.code, did.stderr.as_str()), (0, ""));
        let answer: serde_json::Value = serde_json::from_str(&did.stdout).unwrap();
        assert_eq!(answer["id"], 0);
        assert_eq!(answer["result"]["protocolVersion"], 1);
    }
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}
