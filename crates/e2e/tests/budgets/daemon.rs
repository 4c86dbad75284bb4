//! A hostile agent and a hostile client of the daemon.

use super::{MEGABYTES_8, assert_memory_is_bounded, limit_memory};
use jackfield_e2e::{Client, Home};
use serde_json::{Value, json};
use std::{fs, os::unix::net::UnixStream};

const AGENT: &str = include_str!("hostile_agent.py");
/// How many messages a hostile peer sends: without a budget they are more than a process may take.
const COUNT: usize = 40;

fn hostile_agent(home: &Home, when: &str) -> Vec<String> {
    let path = home.path().join("hostile_agent.py");
    fs::write(&path, AGENT).unwrap();
    ["python3", path.to_str().unwrap(), when, home.mark()].map(str::to_owned).to_vec()
}

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["jackfield"]["code"].as_str().unwrap_or("none")
}

/// A client that does what all do: a session, and a turn in it.
fn assert_others_are_served(home: &Home) {
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "say hello"), "end_turn");
    client.result("session/close", &json!({ "sessionId": session }));
}

#[test]
fn agent_that_talks_before_its_session_is_open_is_refused_in_time() {
    limit_memory();
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&hostile_agent(&home, "early"));
    let answer = client.ask("session/new", &json!({ "cwd": home.path(), "mcpServers": [] }));
    assert_eq!(code(&answer), "agent_gone", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("before it has answered `session/new`"), "{message}");
    assert_others_are_served(&home);
    assert_memory_is_bounded(daemon.pid());
    drop(client);
    daemon.stop();
}

/// Opens a session of the hostile agent, and waits until so many of its requests were refused.
fn prompt_hostile_agent(client: &mut Client, home: &Home, refusals: usize) -> String {
    let session = client.open(home.path());
    client.send_prompt(&session, "go");
    let prefix = format!("{refusals}: ");
    let text = |it: &Value| {
        let update = it.pointer("/params/update")?;
        (update["sessionUpdate"] == "agent_thought_chunk").then_some(())?;
        update.pointer("/content/text")?.as_str().map(str::to_owned)
    };
    let is_last = |it: &Value| text(it).is_some_and(|it| it.starts_with(&prefix));
    let last = client.until("the refusals", is_last);
    let message = text(&last).unwrap();
    assert!(message.contains("too much at once"), "{message}");
    session
}

#[test]
fn agent_that_asks_without_end_is_answered_with_an_error() {
    limit_memory();
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&hostile_agent(&home, "asks"));
    let session = prompt_hostile_agent(&mut client, &home, COUNT - 3);
    assert_others_are_served(&home);
    assert_memory_is_bounded(daemon.pid());
    // The few asks that were kept are answered like any others.
    client.notify("session/cancel", &json!({ "sessionId": session }));
    client.until("the end of the turn", |it| it.pointer("/result/stopReason").is_some());
    drop(client);
    daemon.stop();
}

#[test]
fn client_that_queues_prompts_without_end_is_answered_overloaded() {
    limit_memory();
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let text = "x".repeat(MEGABYTES_8);
    let mut refused = 0;
    for _ in 0..2 {
        let session = client.open(home.path());
        client.send_prompt(&session, "hang");
        let prompts: Vec<u64> =
            (0..COUNT / 4).map(|_| client.send_prompt(&session, &text)).collect();
        // An answer that is no error ends a turn: none of them has begun.
        client.result("_jackfield/queue", &json!({ "sessionId": session }));
        let of_prompt = |it: &&Value| prompts.iter().any(|id| it["id"] == *id);
        refused +=
            client.heard.iter().filter(of_prompt).filter(|it| code(it) == "overloaded").count();
    }
    // A session keeps two prompts of this size.
    assert!(COUNT / 4 < refused, "{refused} of {} were refused", COUNT / 2);
    assert_others_are_served(&home);
    assert_memory_is_bounded(daemon.pid());
    drop(client);
    daemon.stop();
}

#[test]
fn client_that_opens_sessions_with_large_parameters_is_refused() {
    limit_memory();
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let meta = json!({ "text": "x".repeat(MEGABYTES_8) });
    let params = json!({ "cwd": home.path(), "mcpServers": [], "_meta": meta });
    for _ in 0..COUNT {
        let answer = client.ask("session/new", &params);
        assert_eq!(code(&answer), "overloaded", "{answer}");
    }
    assert_others_are_served(&home);
    assert_memory_is_bounded(daemon.pid());
    drop(client);
    daemon.stop();
}

/// Each connection by itself stays below what one may leave unread.
#[test]
fn clients_that_ask_and_do_not_read_are_bounded_together() {
    limit_memory();
    let home = Home::new();
    let daemon = home.serve(&[]);
    let method = "x".repeat(MEGABYTES_8);
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
    let connections: Vec<UnixStream> = (0..COUNT)
        .map(|_| {
            let mut stream = UnixStream::connect(home.socket()).unwrap();
            // Those that are cut off cannot write any more.
            let _cut_off = std::io::Write::write_all(&mut stream, line.as_bytes());
            stream
        })
        .collect();
    assert_others_are_served(&home);
    assert_memory_is_bounded(daemon.pid());
    drop(connections);
    daemon.stop();
}
