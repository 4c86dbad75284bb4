//! How much a tenant may have of one daemon, exactly.

use super::{Town, Way, code};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_quota_is_met_exactly_and_says_the_way_out() {
    let town = Town::with("sessions = 3\nagents = 2\n");
    let new = json!({ "cwd": town.home.path(), "mcpServers": [] });
    let mut client = town.client("acme", Way::Tcp);
    let first = client.open(town.home.path());
    let mut web = town.client("acme", Way::WebSocket);
    web.open(town.home.path());
    let answer = client.ask("session/new", &new);
    assert_eq!(code(&answer), "quota");
    let told = answer["error"]["message"].as_str().unwrap();
    let expected = "quota reached: tenant `acme` has 2 agents that are alive, and may have 2: close a session, \
                    or wait until one sleeps";
    assert_eq!(told, expected);
    let mut theirs = town.client("other", Way::Tcp);
    for _ in 0..3 {
        theirs.open(town.home.path());
    }
    // The way out is one.
    client.result("session/close", &json!({ "sessionId": first }));
    let second = client.open(town.home.path());
    // To wake the first would be one too many, and it says so.
    let prompt = json!({ "sessionId": first, "prompt": [{ "type": "text", "text": "hello" }] });
    assert_eq!(code(&client.ask("session/prompt", &prompt)), "quota");
    client.result("session/close", &json!({ "sessionId": second }));
    assert_eq!(client.prompt(&first, "hello"), "end_turn");
    drop((client, web, theirs));
    town.finish();
}

#[test]
fn run_of_the_api_fails_with_the_quota_as_its_error() {
    let town = Town::with("sessions = 0\n");
    let body = json!({ "agentId": "fake", "message": "hello", "cwd": town.home.path() });
    let reply = town.web_of("acme").post("/api/chat", &body);
    let events = reply.text();
    assert!(events.contains("has 0 sessions that are awake, and may have 0"), "{events}");
    assert!(events.contains("\"status\":\"failed\""), "{events}");
    town.finish();
}

#[test]
fn agents_of_a_tenant_are_read_at_its_rate_and_lose_nothing() {
    const EVENTS: usize = 3000;
    let town = Town::with("events_per_second = 500\n");
    // Long ones: half a megabyte of them may be on its way from an agent when it is paused.
    let burst = format!("burst {EVENTS} 1000");
    let turn = |tenant: &str| {
        let mut client = town.client(tenant, Way::Tcp);
        let session = client.open(town.home.path());
        let begun = Instant::now();
        assert_eq!(client.prompt(&session, &burst), "end_turn");
        let updates = client.heard.iter().filter(|it| it["method"] == "session/update").count();
        (begun.elapsed(), updates)
    };
    let (theirs, told) = turn("other");
    assert!(EVENTS <= told, "{told} of {EVENTS}");
    // A second's worth was saved up, and what was read last is paid for afterwards.
    let (ours, told) = turn("acme");
    assert!(EVENTS <= told, "{told} of {EVENTS}");
    assert!(Duration::from_millis(2500) <= ours, "{ours:?} for {told} events at 500 a second");
    assert!(theirs < ours, "{theirs:?} without a rate, {ours:?} with one");
    town.finish();
}
