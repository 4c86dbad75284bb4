//! Asks that outlive whoever was asked: answered from a command line, by anybody, once.

use jackfield_e2e::{Client, Home, assert_takes_less, wait_for};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Output, Stdio},
    time::{Duration, Instant},
};

const BOUND: Duration = Duration::from_secs(20);
/// What the daemon reads of the ask of the fake agent, and how the agent calls it.
const ABOUT: &str = "touches /fake/file, titled \"touch a file\"";

fn said(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Waits until the first session is in this state.
fn until(client: &mut Client, state: &str) -> String {
    wait_for(state, BOUND, || {
        let rows = client.result("_jackfield/sessions", &json!({}));
        let row = &rows["sessions"][0];
        (row["state"] == state).then(|| row["sessionId"].as_str().map(str::to_owned))?
    })
}

fn is_ask(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

#[test]
fn an_answer_from_outside_is_the_only_one_the_agent_hears() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut clients = [home.dial(), home.dial()];
    clients[0].connect(&home.fake_agent(&[]));
    clients[1].hello();
    let id = clients[0].open(home.path());
    clients[1].result("session/resume", &json!({ "sessionId": id, "cwd": home.path() }));
    let prompt = clients[0].send_prompt(&id, "ask");
    let asked = [0, 1].map(|it| clients[it].until("the ask", is_ask));
    // An editor that knows nothing of Jackfield shows the title: it has what will be done in it.
    let title = "/fake/file (title by the agent: touch a file)";
    assert_eq!(asked[1]["params"]["toolCall"]["title"], title);
    let (code, text) = said(&home.run(&["asks"], BOUND));
    let question = "[y] allow-once  [a] allow-always  [n] reject-once  [never] reject-always";
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with(&format!("{id}:1  ")) && text.contains(question), "{text}");
    for part in ["touches  /fake/file", "because  no rule", "title by the agent: touch a file"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let (code, text) = said(&home.run(&["answer", &id, "y"], BOUND));
    assert_eq!((code, text), (Some(0), format!("answered {id}:1 ({ABOUT}): allow-once\n")));
    for (client, asked) in clients.iter_mut().zip(&asked) {
        let withdrawn = client.until("the withdrawal", |it| it["method"] == "$/cancel_request");
        assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
        let late = json!({ "outcome": { "outcome": "selected", "optionId": "reject-once" } });
        client.respond(asked, &late);
    }
    assert_eq!(clients[0].answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(clients[0].text(), "ask 1: allow-once");

    let (code, text) = said(&home.run(&["answer", &format!("{id}:1"), "n"], BOUND));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("answered by jackfield-answer (c-"), "{text}");
    assert!(said(&home.run(&["asks"], BOUND)).1.starts_with("no open asks"));
    let mut late = home.dial();
    late.hello();
    late.result("session/load", &json!({ "sessionId": id, "cwd": home.path(), "mcpServers": [] }));
    assert!(!late.heard.iter().any(is_ask), "a ghost of the ask: {:?}", late.heard);
    drop((clients, late));
    daemon.stop();
}

#[test]
fn an_ask_waits_for_an_answer_when_the_client_that_prompted_was_killed() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let agent = home.fake_agent(&[]);
    let mut args = vec!["run", "--on-ask", "wait", "ask", "--"];
    args.extend(agent.iter().map(String::as_str));
    let mut command = home.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    let mut other = home.dial();
    other.hello();
    let id = until(&mut other, "asks");
    run.kill().unwrap();
    run.wait().unwrap();
    let (_, text) = said(&home.run(&["asks", "--format", "quiet"], BOUND));
    assert_eq!(text, format!("{id}:1\n"));
    let (code, text) = said(&home.run(&["answer", &id, "deny"], BOUND));
    assert_eq!((code, text), (Some(0), format!("answered {id}:1 ({ABOUT}): reject-once\n")));
    until(&mut other, "idle");
    let (_, log) = said(&home.run(&["log", &id], BOUND));
    assert!(log.contains("answered by jackfield-answer (c-"), "{log}");
    assert_eq!(log.matches("ask 1: reject-once").count(), 1, "{log}");
    drop(other);
    daemon.stop();
}

#[test]
fn an_error_of_one_client_leaves_the_ask_to_the_other() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut clients = [home.dial(), home.dial()];
    clients[0].connect(&home.fake_agent(&[]));
    clients[1].hello();
    let id = clients[0].open(home.path());
    clients[1].result("session/resume", &json!({ "sessionId": id, "cwd": home.path() }));
    let prompt = clients[0].send_prompt(&id, "ask");
    let asked = [0, 1].map(|it| clients[it].until("the ask", is_ask));
    let error = json!({ "code": -32601, "message": "no dialogs here" });
    let error = json!({ "jsonrpc": "2.0", "id": asked[1]["id"], "error": error });
    clients[1].send_line(&error.to_string());
    // Behind this answer the hub has heard the error.
    let asks = clients[1].result("_jackfield/asks", &json!({}));
    assert_eq!(asks["asks"][0]["what"], "touch a file", "{asks}");
    let choice = json!({ "outcome": { "outcome": "selected", "optionId": "reject-once" } });
    clients[0].respond(&asked[0], &choice);
    assert_eq!(clients[0].answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(clients[0].text(), "ask 1: reject-once");
    drop(clients);
    daemon.stop();
}

#[test]
fn a_run_that_shall_fail_at_an_ask_fails_within_a_second_and_names_the_tool() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    for (cancel, format) in [("honour", "text"), ("ignore", "text"), ("ignore", "quiet")] {
        let round = || run_that_fails_at_an_ask(&home, cancel, format);
        assert_takes_less(Duration::from_secs(1), round);
    }
    let only = [daemon.pid()];
    wait_for("the agents to be gone", BOUND, || home.alive(&only).is_empty().then_some(()));
    daemon.stop();
}

/// Returns how long the run took after its session was open.
fn run_that_fails_at_an_ask(home: &Home, cancel: &str, format: &str) -> Duration {
    let agent = home.fake_agent(&["--cancel", cancel]);
    let mut args = vec!["run", "--on-ask", "fail", "--format", format];
    args.extend(["ask then hang", "--"]);
    args.extend(agent.iter().map(String::as_str));
    let mut command = home.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut text = String::new();
    // This line is printed when the session is open: without it, the start of the agent counts too.
    let read = if format == "text" { stderr.read_line(&mut text).unwrap() } else { 0 };
    let begin = Instant::now();
    stderr.read_to_string(&mut text).unwrap();
    let status = run.wait().unwrap();
    let took = begin.elapsed();
    assert_eq!(status.code(), Some(5), "{read} bytes first: {text}");
    assert!(text.contains(&format!("fake-agent asked: {ABOUT}")), "{text}");
    took
}
