//! Watchers get the lists, then what changed, and only of their own tenant.

use super::*;
use crate::{
    Input, Seq, Tenant,
    limits::LISTED_NAME_BYTES_MAX,
    test_hub::{TestHub, messages_to_clients},
};

const CLIENT: ConnId = ConnId(1);
const WATCHER: ConnId = ConnId(2);
const ACME: ConnId = ConnId(3);

/// A hub with a session of the operator and one of the tenant `acme`, and clients of both.
fn hub_with_two_tenants() -> TestHub {
    let mut hub = TestHub::with_sessions(&["s-1", "acme.s-2"], 5);
    let acme = Tenant {
        name: "acme".into(),
        sessions: None,
        agents: None,
        events_per_second: None,
        commands: false,
        roots: vec!["/srv".into()],
    };
    for (conn, tenant) in [(CLIENT, None), (WATCHER, None), (ACME, Some(&acme))] {
        hub.connect_client(conn, tenant);
    }
    hub
}

/// Lets the time pass. Returns the changes that each watcher gets.
fn read_changes(hub: &mut TestHub, pass_ms: u64) -> Vec<(ConnId, Value)> {
    hub.now_ms += pass_ms;
    let received = messages_to_clients(hub.feed_input(Input::Tick));
    let is_change = |it: &Value| it["method"] == Method::ControlChanges.name();
    let changes = received.into_iter().filter(|(_, it)| is_change(it));
    changes.map(|(conn, mut it)| (conn, it["params"].take())).collect()
}

fn rename(hub: &mut TestHub, session: &str, name: &str) {
    let params = json!({ "sessionId": session, "name": name });
    assert!(hub.answer(CLIENT, "_jackfield/rename", &params)["error"].is_null());
}

fn listed(answer: &Value) -> Vec<&str> {
    let rows = answer["result"]["sessions"].as_array().unwrap().iter();
    rows.map(|it| it["sessionId"].as_str().unwrap()).collect()
}

#[test]
fn watchers_get_the_lists_and_then_changes_of_their_sessions() {
    let mut hub = hub_with_two_tenants();
    assert_eq!(hub.hub.poll_timeout(), None);
    let all = hub.answer(WATCHER, "_jackfield/watch", &json!({}));
    assert_eq!(listed(&all), ["acme.s-2", "s-1"]);
    assert_eq!(all["result"]["asks"], json!([]));
    assert_eq!(listed(&hub.answer(ACME, "_jackfield/watch", &json!({}))), ["acme.s-2"]);

    rename(&mut hub, "s-1", "one");
    rename(&mut hub, "s-1", "two");
    rename(&mut hub, "acme.s-2", "other");
    assert_eq!(read_changes(&mut hub, WATCH_INTERVAL_MS / 2), []);
    let changes = read_changes(&mut hub, WATCH_INTERVAL_MS);
    let [(WATCHER, all), (ACME, own)] = &changes[..] else { panic!("{changes:?}") };
    let names = |it: &Value| -> Vec<Value> {
        it["sessions"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names(all), ["other", "two"]);
    assert_eq!(names(own), ["other"]);
    assert_eq!(read_changes(&mut hub, WATCH_INTERVAL_MS), []);

    hub.answer(CLIENT, "session/delete", &json!({ "sessionId": "s-1" }));
    assert_eq!(
        read_changes(&mut hub, WATCH_INTERVAL_MS),
        [(WATCHER, json!({ "removed": ["s-1"] }))]
    );
}

#[test]
fn row_that_only_has_more_events_is_sent_less_often() {
    let mut hub = hub_with_two_tenants();
    hub.answer(WATCHER, "_jackfield/watch", &json!({}));
    rename(&mut hub, "s-1", "one");
    assert_eq!(read_changes(&mut hub, WATCH_INTERVAL_MS).len(), 1);
    for name in ["two", "one"] {
        rename(&mut hub, "s-1", name);
    }
    assert_eq!(read_changes(&mut hub, WATCH_INTERVAL_MS), []);
    let changes = read_changes(&mut hub, WATCH_PROGRESS_MS);
    assert_eq!(changes[0].1["sessions"][0]["events"], 8);
}

#[test]
fn watcher_that_does_not_read_has_to_ask_again() {
    let mut hub = hub_with_two_tenants();
    hub.answer(WATCHER, "_jackfield/watch", &json!({}));
    let bytes = hub.hub.parts.cx.config.limits.outbox_bytes_max + 1;
    hub.hub.parts.clients.send(&mut hub.hub.parts.cx, WATCHER, vec![b' '; bytes].into());
    while hub.hub.poll_output().is_some() {}
    rename(&mut hub, "s-1", "one");
    assert_eq!(read_changes(&mut hub, WATCH_INTERVAL_MS), []);
    hub.feed_input(Input::ClientWrote { conn: WATCHER, bytes });
    assert_eq!(read_changes(&mut hub, WATCH_INTERVAL_MS), [(WATCHER, json!({ "restart": true }))]);
    assert_eq!(listed(&hub.answer(WATCHER, "_jackfield/watch", &json!({}))).len(), 2);
}

#[test]
fn nothing_is_tracked_without_a_watcher() {
    let mut hub = hub_with_two_tenants();
    hub.answer(WATCHER, "_jackfield/watch", &json!({}));
    hub.feed_input(Input::ClientGone { conn: WATCHER });
    rename(&mut hub, "s-1", "one");
    assert!(hub.hub.sessions.by_id.take_touched().is_empty());
    assert_eq!(read_changes(&mut hub, WATCH_PROGRESS_MS), []);
}

#[test]
fn answer_to_a_request_names_the_client_and_the_option() {
    let mut hub = hub_with_two_tenants();
    hub.answer(ACME, "_jackfield/watch", &json!({}));
    let answer = r#"{"result":{"outcome":{"outcome":"selected","optionId":"once"}}}"#;
    for (number, answer) in [(1, answer), (2, r#"{"void":"the turn ended"}"#)] {
        let answer = RawJson::trusted(answer.to_owned());
        let answered = UserAnswered { ask: number, by: "editor".into(), answer, peer: None };
        hub.hub.sessions.note_answered("acme.s-2".into(), &answered);
    }
    hub.feed_input(Input::Durable { session: "s-1".into(), upto: Seq(5) });
    let changes = read_changes(&mut hub, WATCH_INTERVAL_MS);
    let expected = json!([
        { "sessionId": "acme.s-2", "ask": 1, "by": "editor", "option": "once" },
        { "sessionId": "acme.s-2", "ask": 2, "by": "editor" },
    ]);
    assert_eq!(changes[0].1["answered"], expected);
}

#[test]
fn row_names_the_attached_clients() {
    let mut hub = hub_with_two_tenants();
    let editor = ConnId(7);
    hub.feed_input(Input::ClientOpened { conn: editor, peer: None });
    let name = "ä".repeat(LISTED_NAME_BYTES_MAX);
    hub.answer(
        editor,
        "initialize",
        &json!({ "protocolVersion": 1, "clientInfo": { "name": name } }),
    );
    hub.answer(WATCHER, "_jackfield/watch", &json!({}));
    for conn in [CLIENT, editor] {
        hub.send_request(conn, "_jackfield/attach", &json!({ "sessionId": "s-1", "after": 5 }));
    }
    let short_name = &name[..LISTED_NAME_BYTES_MAX];
    let changes = read_changes(&mut hub, WATCH_INTERVAL_MS);
    let row = &changes[0].1["sessions"][0];
    assert_eq!((&row["clients"], &row["clientNames"]), (&json!(2), &json!(["c-1", short_name])));
    hub.feed_input(Input::ClientGone { conn: editor });
    let changes = read_changes(&mut hub, WATCH_INTERVAL_MS);
    assert_eq!(changes[0].1["sessions"][0]["clientNames"], json!(["c-1"]));
}
