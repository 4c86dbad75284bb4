//! A client of the Open Design daemon uses ours unchanged: recorded requests against `profile = "open-design"`.

use super::{BOUND, again, assert_whole, text};
use jackfield_e2e::{Daemon, Home, Web, http::Event, wait_for};
use serde_json::{Value, json};
use std::fs;

const REQUESTS: &str = include_str!("../../../../fixtures/open-design/requests.jsonl");
const CHAT: &str = include_str!("../../../../fixtures/open-design/chat.json");

/// A daemon with the profile, in which `kimi` is the fake agent.
fn serve(home: &Home) -> (Daemon, Web) {
    let dir = home.path().join("config");
    fs::create_dir_all(&dir).unwrap();
    let command: Vec<String> = home.fake_agent(&[]).iter().map(|it| format!("{it:?}")).collect();
    let command = command.join(", ");
    let config =
        format!("[http]\nprofile = \"open-design\"\n[agents.kimi]\ncommand = [{command}]\n");
    fs::write(dir.join("config.toml"), config).unwrap();
    again(home)
}

/// Sends the requests in order, and returns the events of each stream.
fn replay(web: &Web, requests: &str) -> Vec<Vec<Event>> {
    let (mut run, mut streams) = (String::new(), Vec::new());
    for line in requests.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let member = |name: &str| request[name].as_str().unwrap();
        let (method, recorded) = (member("method"), member("path"));
        let path = recorded.replace("{runId}", &run);
        if path.contains("/events") {
            streams.push(web.stream(method, &path, &[], None).rest());
            continue;
        }
        let reply = web.ask(method, &path, &[], request.get("body"));
        assert!(reply.status < 300, "{line}: {}", reply.text());
        let reply = reply.json();
        if let Some(id) = reply["runId"].as_str().filter(|_| method == "POST") {
            id.clone_into(&mut run);
        }
        match recorded {
            "/api/agents" => {
                let agents = reply["agents"].as_array().unwrap();
                let kimi = agents.iter().find(|it| it["id"] == "kimi").unwrap();
                assert_eq!(kimi["available"], true, "{kimi}");
            }
            "/api/runs/{runId}" => {
                let status = json!({ "id": run, "status": "succeeded", "exitCode": 0 });
                assert!(status.as_object().unwrap().iter().all(|(key, it)| reply[key] == *it));
            }
            _ => {}
        }
    }
    streams
}

#[test]
fn recorded_requests_are_served() {
    let home = Home::new();
    let (daemon, web) = serve(&home);
    let streams = replay(&web, REQUESTS);
    let [first, rest, asked, canceled] = &streams[..] else { panic!("{streams:#?}") };
    assert_whole(first);
    assert_eq!(first[0].json()["projectId"], "7f0c2f0e-2a55-4e8b-9d6e-0a4a4b9a7d11");
    assert!(text(first).contains("Make a landing page"), "{first:#?}");
    assert_eq!(first.last().unwrap().json()["status"], "succeeded");
    assert_eq!(rest[..], first[3..]);
    // Values that are not valid have no effect, and permission requests are approved.
    assert_whole(asked);
    let start = asked[0].json();
    assert_eq!(start["model"], Value::Null);
    assert_eq!(start["warnings"].as_array().unwrap().len(), 2, "{start}");
    assert_eq!(asked.last().unwrap().json()["status"], "succeeded", "{asked:#?}");
    assert!(text(asked).contains("allow"), "{asked:#?}");
    assert_eq!(canceled.last().unwrap().json()["status"], "canceled");
    wait_for("all agents to end", BOUND, || {
        (web.get("/readyz").good()["agents"] == 0).then_some(())
    });
    daemon.stop();
}

#[test]
fn chat_is_canceled_when_its_client_disconnects() {
    let home = Home::new();
    let (daemon, web) = serve(&home);
    let body: Value = serde_json::from_str(CHAT).unwrap();
    let mut chat = web.stream("POST", "/api/chat", &[], Some(&body));
    let start = chat.next().unwrap().json();
    assert_eq!(start["warnings"].as_array().unwrap().len(), 2, "{start}");
    drop(chat);
    let run = start["runId"].as_str().unwrap();
    wait_for("the run to be canceled", BOUND, || {
        let status = web.get(&format!("/api/runs/{run}")).good()["status"].clone();
        (status == "canceled").then_some(())
    });
    daemon.stop();
}
