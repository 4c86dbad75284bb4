//! `GET /api/events`: all rows, then their changes, and the events of followed sessions, in one stream.

use super::{editor, serve};
use jackfield_e2e::{
    Home, Web,
    http::{Event, Events},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn open(web: &Web, query: &str) -> Events {
    web.stream("GET", &format!("/api/events?{query}"), &[], None)
}

/// Reads until the events that were received so far satisfy the condition: events of lists and logs have no common
/// order.
fn read_until(
    stream: &mut Events,
    received: &mut Vec<Event>,
    what: &str,
    is_complete: impl Fn(&[Event]) -> bool,
) {
    while !is_complete(received) {
        let event = stream.next();
        received.push(event.unwrap_or_else(|| panic!("no {what} in {received:#?}")));
    }
}

/// Where the first event with this name and these members is.
fn position(events: &[Event], name: &str, members: &Value) -> Option<usize> {
    let members = members.as_object().unwrap();
    let matches = |data: &Value| members.iter().all(|(name, value)| data[name] == *value);
    events.iter().position(|it| it.name == name && matches(&it.json()))
}

fn has(events: &[Event], name: &str, members: &Value) -> bool {
    position(events, name, members).is_some()
}

fn log_events(events: &[Event]) -> Vec<Value> {
    events.iter().filter(|it| it.name == "log").map(|it| it.json()["event"].clone()).collect()
}

fn last_id(events: &[Event]) -> &str {
    events.iter().rev().find_map(|it| it.id.as_deref()).unwrap()
}

#[test]
fn stream_has_all_rows_then_changes_and_the_events_of_followed_sessions() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    let mut stream = open(&web, &format!("follow={id}:1&follow=s-none:0"));
    let rows = stream.until("ready", |it| it.name == "ready");
    let names: Vec<&str> = rows.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["reset", "session", "ready"]);
    assert_eq!(rows[1].json()["sessionId"], id.as_str());
    let has_id: Vec<bool> = rows.iter().map(|it| it.id.is_some()).collect();
    assert_eq!(has_id, [false, false, true]);

    let mut received = Vec::new();
    let turn = editor.send_prompt(&id, "burst 300 then ask");
    let ask = json!({ "sessionId": id, "ask": 1 });
    read_until(&mut stream, &mut received, "request", |it| has(it, "ask", &ask));
    web.post(&format!("/api/asks/{id}/1"), &json!({ "option": "allow" })).good();
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    let idle = json!({ "sessionId": id, "state": "idle", "turns": 1, "asks": 0 });
    let page = web.get(&format!("/api/sessions/{id}/log?after=1&limit=1000")).good();
    let logged = page["events"].as_array().unwrap();
    read_until(&mut stream, &mut received, "end of the turn", |it| {
        has(it, "session", &idle) && logged.len() <= log_events(it).len()
    });
    assert_eq!(log_events(&received), *logged);
    assert!(has(&received, "gone", &json!({ "sessionId": "s-none" })));
    let answered = json!({ "sessionId": id, "ask": 1, "option": "allow-once" });
    let order = [("ask", &ask), ("answered", &answered), ("session", &idle)]
        .map(|(name, members)| position(&received, name, members));
    assert!(order.is_sorted() && order[0].is_some(), "{order:?} {received:#?}");
    let by = received[order[1].unwrap()].json()["by"].clone();
    assert!(by.as_str().unwrap().starts_with("jackfield-api"), "{by}");
    assert!(!has(&received, "reset", &json!({})));
    drop((editor, stream));
    daemon.stop();
}

#[test]
fn resumed_stream_has_only_what_changed_and_nothing_twice() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (_unchanged_editor, unchanged) = editor(&home);
    let (mut editor, id) = editor(&home);
    let mut stream = open(&web, "");
    let first = stream.until("ready", |it| it.name == "ready");
    assert!(has(&first, "session", &json!({ "sessionId": unchanged })));
    let after_rows = last_id(&first).to_owned();
    drop(stream);

    assert_eq!(editor.prompt(&id, "hello"), "end_turn");
    let idle = |turns: u64| json!({ "sessionId": id, "state": "idle", "turns": turns });
    let mut stream = open(&web, &format!("after={after_rows}"));
    let mut missed = Vec::new();
    read_until(&mut stream, &mut missed, "change", |it| {
        has(it, "ready", &json!({})) && has(it, "session", &idle(1))
    });
    assert!(!has(&missed, "reset", &json!({})), "{missed:#?}");
    assert!(!has(&missed, "session", &json!({ "sessionId": unchanged })), "{missed:#?}");
    drop(stream);

    assert_eq!(editor.prompt(&id, "again"), "end_turn");
    let header = format!("Last-Event-ID: {}", last_id(&missed));
    let mut stream = web.stream("GET", "/api/events?after=now", &[&header], None);
    let mut later = Vec::new();
    read_until(&mut stream, &mut later, "change", |it| {
        has(it, "ready", &json!({})) && has(it, "session", &idle(2))
    });
    assert!(!has(&later, "reset", &json!({})), "{later:#?}");
    let changes = missed.iter().chain(&later).filter(|it| it.name != "ready");
    let ids: Vec<&str> = changes.map(|it| it.id.as_deref().unwrap()).collect();
    let different: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), different.len(), "{ids:?}");
    assert!(!ids.contains(&&*after_rows));

    for unknown in ["after=other.7", "after=nonsense"] {
        let rows = open(&web, unknown).until("ready", |it| it.name == "ready");
        let names: Vec<&str> = rows.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["reset", "session", "session", "ready"], "{unknown}");
    }
    assert_eq!(open(&web, "after=now").next().unwrap().name, "ready");
    drop((editor, stream));
    daemon.stop();
}

#[test]
fn deleted_session_is_removed_from_the_list_and_gone_for_its_followers() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    assert_eq!(editor.prompt(&id, "hello"), "end_turn");
    let last = &web.get(&format!("/api/sessions/{id}/log?limit=1")).good()["last"];
    let mut stream = open(&web, &format!("after=now&follow={id}:{last}"));
    assert_eq!(stream.next().unwrap().name, "ready");
    web.delete(&format!("/api/sessions/{id}")).good();
    let deleted = json!({ "sessionId": id });
    let mut received = Vec::new();
    read_until(&mut stream, &mut received, "deletion", |it| {
        has(it, "removed", &deleted) && has(it, "gone", &deleted)
    });
    let gone: Vec<&Event> = received.iter().filter(|it| it.name == "gone").collect();
    assert_eq!(gone.len(), 1, "{received:#?}");
    let rows = open(&web, "").until("ready", |it| it.name == "ready");
    assert!(!has(&rows, "session", &deleted), "{rows:#?}");
    drop((editor, stream));
    daemon.stop();
}
