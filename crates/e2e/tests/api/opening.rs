//! Runs whose agent has not started yet.

use super::{BOUND, assert_whole, body, events, make, names, serve, serve_with, status, until};
use jackfield_e2e::{Home, Web, http::Event, wait_for};
use serde_json::json;

/// The labels of all `status` events.
fn labels(events: &[Event]) -> Vec<String> {
    let is_status = |it: &&Event| it.json()["type"] == "status";
    let label = |it: &Event| it.json()["label"].as_str().unwrap().to_owned();
    events.iter().filter(is_status).map(label).collect()
}

fn wait_for_no_agent(web: &Web) {
    wait_for("all agents to end", BOUND, || {
        (web.get("/readyz").good()["agents"] == 0).then_some(())
    });
}

#[test]
fn run_can_be_canceled_while_its_agent_starts() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &["--silent", "initialize"]);
    let mut chat = web.stream("POST", "/api/chat", &[], Some(&body("hello")));
    let start = chat.next().unwrap();
    assert_eq!((start.name.as_str(), &start.json()["agentId"]), ("start", &json!("fake")));
    assert_eq!(chat.next().unwrap().json(), json!({ "type": "status", "label": "initializing" }));
    let run = start.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(status(&web, &run), "queued");
    let (other, _) = make(&web, &body("hello"));
    let mut reader = web.stream("GET", &format!("/api/runs/{other}/events"), &[], None);
    assert_eq!(reader.next().unwrap().name, "start");
    for run in [&run, &other] {
        web.post(&format!("/api/runs/{run}/cancel"), &json!({})).good();
        until(&web, run, "canceled");
    }
    let rest = chat.rest();
    assert_eq!(names(&rest), ["end"]);
    assert_eq!(rest[0].json()["status"], "canceled");
    assert_eq!(reader.rest().last().unwrap().json()["status"], "canceled");
    assert_whole(&events(&web, &run));
    wait_for_no_agent(&web);
    assert_eq!(web.get("/api/sessions").good()["sessions"], json!([]));
    drop((chat, reader));
    daemon.stop();
}

#[test]
fn opening_is_reported_before_the_turn_and_readers_get_the_same_events_later() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let mut chosen = body("hello");
    chosen["model"] = json!("fake-smart");
    chosen["keep"] = json!(true);
    let live = web.stream("POST", "/api/chat", &[], Some(&chosen)).rest();
    assert_whole(&live);
    assert_eq!(labels(&live)[..4], ["initializing", "model", "model", "running"]);
    let models: Vec<_> = live[2..4].iter().map(|it| it.json()["model"].clone()).collect();
    assert_eq!(models, [json!("fake-fast"), json!("fake-smart")]);
    let run = live[0].json()["runId"].as_str().unwrap().to_owned();
    let lines = |events: &[Event]| -> Vec<_> {
        events.iter().map(|it| (it.id.clone(), it.name.clone(), it.json())).collect()
    };
    assert_eq!(lines(&events(&web, &run)), lines(&live));
    // A run in an open session starts no agent.
    let session = live[0].json()["sessionId"].clone();
    let (second, _) = make(&web, &json!({ "sessionId": session, "message": "again" }));
    assert_eq!(labels(&events(&web, &second))[0], "running");
    daemon.stop();
}

#[test]
fn error_of_a_late_stage_names_the_stage_and_the_limit() {
    for (phase, setting, expected) in [
        ("initialize", "initializing_max", "no reply to `initialize` within 2 s"),
        ("new", "opening_max", "no reply to `session/new` within 2 s"),
    ] {
        let home = Home::new();
        let config = format!("[liveness]\n{setting} = \"2s\"\n");
        let (daemon, web) = serve_with(&home, &["--silent", phase], &config);
        let mut chat = web.stream("POST", "/api/chat", &[], Some(&body("hello")));
        let run = chat.next().unwrap().json()["runId"].as_str().unwrap().to_owned();
        let row = wait_for("the opening session in ps", BOUND, || {
            let listed = home.run(&["ps", "--format", "json"], BOUND);
            let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
            let row = |list: &str| listed[list].get(0).cloned();
            row("starting").or_else(|| row("sessions"))
        });
        assert_eq!((&row["agent"], &row["state"]), (&json!("fake"), &json!("opening")), "{row}");
        let told = chat.rest();
        let error = told[told.len() - 2].json();
        assert!(error["message"].as_str().unwrap().ends_with(expected), "{error}");
        assert_eq!(status(&web, &run), "failed");
        wait_for_no_agent(&web);
        drop(chat);
        daemon.stop();
    }
}
