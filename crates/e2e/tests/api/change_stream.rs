//! `/api/events`: the changes of all sessions and requests, and the events of followed sessions, in one stream.

use super::{editor, serve};
use jackfield_e2e::{
    Home,
    http::{Event, Events},
};
use serde_json::{Value, json};

/// Reads until an event with this name and data.
fn until(events: &mut Events, name: &str, matches: impl Fn(&Value) -> bool) -> Vec<Event> {
    events.until(name, |it| it.name == name && matches(&it.json()))
}

#[test]
fn stream_has_all_rows_then_changes_and_the_events_of_followed_sessions() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    let path = format!("/api/events?follow={id}:1&follow=s-none:0");
    let mut events = web.stream("GET", &path, &[], None);
    assert_eq!(events.next().unwrap().name, "reset");
    let rows = until(&mut events, "ready", |_| true);
    let row = rows.iter().find(|it| it.name == "session").unwrap();
    assert_eq!((row.json()["sessionId"].as_str(), &row.id), (Some(&*id), &None));
    until(&mut events, "gone", |it| it["sessionId"] == "s-none");

    let turn = editor.send_prompt(&id, "ask");
    let asked = until(&mut events, "ask", |it| it["sessionId"] == id.as_str());
    let ask = asked.last().unwrap().json();
    assert_eq!(ask["options"].as_array().unwrap().len(), 4);
    let number = &ask["ask"];
    web.post(&format!("/api/asks/{id}/{number}"), &json!({ "option": "allow" })).good();
    let changes = until(&mut events, "answered", |it| it["ask"] == *number);
    let answered = changes.last().unwrap();
    assert_eq!(answered.json()["option"], "allow-once");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    let idle = |it: &Value| it["state"] == "idle" && it["turns"] == 1 && it["asks"] == 0;
    let last = until(&mut events, "session", idle).pop().unwrap();
    let seqs = |events: &[Event]| -> Vec<u64> {
        let log = events.iter().filter(|it| it.name == "log");
        log.map(|it| it.json()["event"]["seq"].as_u64().unwrap()).collect()
    };
    let read = [&rows[..], &asked, &changes].concat();
    assert!(seqs(&read).iter().copied().eq(2..2 + seqs(&read).len() as u64), "{read:#?}");

    drop(events);
    assert_eq!(editor.prompt(&id, "hello"), "end_turn");
    let resumed = format!("/api/events?after={}", last.id.unwrap());
    let mut events = web.stream("GET", &resumed, &[], None);
    let missed = until(&mut events, "ready", |_| true);
    assert!(missed.iter().all(|it| it.name != "reset"), "{missed:#?}");
    let position = last_seq(&web.get(&format!("/api/sessions/{id}/log?limit=1")).good());
    let mut follower =
        web.stream("GET", &format!("/api/events?after=now&follow={id}:{position}"), &[], None);
    assert_eq!(follower.next().unwrap().name, "ready");
    web.delete(&format!("/api/sessions/{id}")).good();
    until(&mut events, "removed", |it| it["sessionId"] == id.as_str());
    until(&mut follower, "gone", |it| it["sessionId"] == id.as_str());
    let mut unknown = web.stream("GET", "/api/events?after=other.7", &[], None);
    assert_eq!(unknown.next().unwrap().name, "reset");
    assert_eq!(unknown.next().unwrap().name, "ready");
    drop((editor, events, follower, unknown));
    daemon.stop();
}

fn last_seq(page: &Value) -> u64 {
    page["last"].as_u64().unwrap()
}

#[test]
fn session_is_found_timed_and_summed_and_its_changes_are_listed() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &["--usage", "current"]);
    let (mut editor, id) = editor(&home);
    assert_eq!(editor.prompt(&id, "tool\nsplit 3 needle-in-a-haystack"), "end_turn");
    let get = |path: &str| web.get(&format!("/api/sessions/{id}/{path}")).good();
    let found = get("find?text=NEEDLE-in");
    let parts: Vec<&Value> =
        found["matches"].as_array().unwrap().iter().map(|it| &it["part"]).collect();
    assert_eq!(parts, ["text", "prompt"], "{found}");
    let turn = &get("timeline")["turns"][0];
    assert_eq!((&turn["turn"], &turn["outcome"]), (&json!(1), &json!("end_turn")));
    let has_tool = turn["spans"].as_array().unwrap().iter().any(|it| it["kind"] == "tool");
    assert!(has_tool, "{turn}");
    let changes = get("changes");
    assert_eq!(changes["turns"][0]["turn"], 1, "{changes}");
    assert_eq!(changes["git"], Value::Null);
    let usage = web.get("/api/usage?by=agent&since=1d").good();
    assert_eq!(usage["groups"][0]["name"], "fake", "{usage}");
    assert_eq!(usage["sum"]["turns"], 1);
    assert_eq!(editor.prompt(&id, "again"), "end_turn");
    assert_eq!(web.get("/api/usage?by=project").good()["sum"]["turns"], 2);
    let listed = web.get("/api/sessions?state=idle&text=FAKE&sort=opened").good();
    assert_eq!(listed["sessions"][0]["sessionId"], id.as_str());
    assert_eq!(web.get("/api/sessions?agent=other").good()["sessions"], json!([]));
    drop(editor);
    daemon.stop();
}
