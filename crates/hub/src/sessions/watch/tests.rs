//! Watchers get the lists, then what changed, and only of their own tenant.

use super::*;
use crate::{Config, Hub, Input, Output, Recovered, Seq, Tenant};
use jackfield_events::SessionSummary;

const CLIENT: ConnId = ConnId(1);
const WATCHER: ConnId = ConnId(2);
const ACME: ConnId = ConnId(3);

/// A hub with a session of the operator and one of the tenant `acme`, and a watcher of each.
struct Scene {
    hub: Hub,
    now: u64,
    next_id: u64,
}

impl Scene {
    fn new() -> Scene {
        let recovered = ["s-1", "acme.s-2"].map(|it| Recovered {
            session: it.into(),
            state: SessionSummary { seq: 5, ..SessionSummary::default() },
        });
        let hub = Hub::new(Config::default(), Time(0), recovered);
        let mut scene = Scene { hub, now: 1, next_id: 0 };
        let acme = Tenant {
            name: "acme".into(),
            sessions: None,
            agents: None,
            events_per_second: None,
            commands: false,
            roots: vec!["/srv".into()],
        };
        for conn in [CLIENT, WATCHER, ACME] {
            scene.feed(Input::ClientOpened { conn, peer: None });
            if conn == ACME {
                scene.feed(Input::ClientSpoke { conn, frame: acme.binding() });
            }
            scene.ask(conn, "initialize", &json!({ "protocolVersion": 1 }));
        }
        scene
    }

    /// Feeds an input. What is appended is durable. Returns what each client gets.
    fn feed(&mut self, input: Input) -> Vec<(ConnId, Value)> {
        let (mut inputs, mut received) = (vec![input], Vec::new());
        while let Some(input) = inputs.pop() {
            self.hub.handle(Time(self.now), input);
            while let Some(output) = self.hub.poll_output() {
                match output {
                    Output::ToClient { conn, text } => {
                        received.push((conn, serde_json::from_slice(&text).unwrap()));
                    }
                    Output::Append { session, event, .. } => {
                        inputs.push(Input::Durable { session, upto: event.seq });
                    }
                    _ => {}
                }
            }
        }
        received
    }

    fn ask(&mut self, conn: ConnId, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let frame = Frame::request(&self.next_id.to_string(), method, &params.to_string());
        let received = self.feed(Input::ClientSpoke { conn, frame });
        let answer = received.into_iter().find(|(to, it)| *to == conn && it["id"] == self.next_id);
        answer.map(|(_, it)| it).unwrap_or_default()
    }

    /// Lets the time pass until the next notification. Returns what each watcher gets.
    fn changes(&mut self, pass_ms: u64) -> Vec<(ConnId, Value)> {
        self.now += pass_ms;
        let received = self.feed(Input::Tick);
        let is_change = |it: &Value| it["method"] == Method::ControlChanges.name();
        let changes = received.into_iter().filter(|(_, it)| is_change(it));
        changes.map(|(conn, mut it)| (conn, it["params"].take())).collect()
    }

    fn rename(&mut self, session: &str, name: &str) {
        let params = json!({ "sessionId": session, "name": name });
        assert!(self.ask(CLIENT, "_jackfield/rename", &params)["error"].is_null());
    }
}

fn listed(answer: &Value) -> Vec<&str> {
    let rows = answer["result"]["sessions"].as_array().unwrap().iter();
    rows.map(|it| it["sessionId"].as_str().unwrap()).collect()
}

#[test]
fn watchers_get_the_lists_and_then_changes_of_their_sessions() {
    let mut scene = Scene::new();
    assert_eq!(scene.hub.poll_timeout(), None);
    let all = scene.ask(WATCHER, "_jackfield/watch", &json!({}));
    assert_eq!(listed(&all), ["acme.s-2", "s-1"]);
    assert_eq!(all["result"]["asks"], json!([]));
    assert_eq!(listed(&scene.ask(ACME, "_jackfield/watch", &json!({}))), ["acme.s-2"]);

    scene.rename("s-1", "one");
    scene.rename("s-1", "two");
    scene.rename("acme.s-2", "other");
    assert_eq!(scene.changes(WATCH_INTERVAL_MS / 2), []);
    let changes = scene.changes(WATCH_INTERVAL_MS);
    let [(WATCHER, all), (ACME, own)] = &changes[..] else { panic!("{changes:?}") };
    let names = |it: &Value| -> Vec<Value> {
        it["sessions"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names(all), ["other", "two"]);
    assert_eq!(names(own), ["other"]);
    assert_eq!(scene.changes(WATCH_INTERVAL_MS), []);

    scene.ask(CLIENT, "session/delete", &json!({ "sessionId": "s-1" }));
    assert_eq!(scene.changes(WATCH_INTERVAL_MS), [(WATCHER, json!({ "removed": ["s-1"] }))]);
}

#[test]
fn row_that_only_has_more_events_is_sent_less_often() {
    let mut scene = Scene::new();
    scene.ask(WATCHER, "_jackfield/watch", &json!({}));
    scene.rename("s-1", "one");
    assert_eq!(scene.changes(WATCH_INTERVAL_MS).len(), 1);
    for name in ["two", "one"] {
        scene.rename("s-1", name);
    }
    assert_eq!(scene.changes(WATCH_INTERVAL_MS), []);
    let changes = scene.changes(WATCH_PROGRESS_MS);
    assert_eq!(changes[0].1["sessions"][0]["events"], 8);
}

#[test]
fn watcher_that_does_not_read_has_to_ask_again() {
    let mut scene = Scene::new();
    scene.ask(WATCHER, "_jackfield/watch", &json!({}));
    let bytes = scene.hub.parts.cx.config.limits.outbox_bytes_max + 1;
    scene.hub.parts.clients.send(&mut scene.hub.parts.cx, WATCHER, vec![b' '; bytes].into());
    while scene.hub.poll_output().is_some() {}
    scene.rename("s-1", "one");
    assert_eq!(scene.changes(WATCH_INTERVAL_MS), []);
    scene.feed(Input::ClientWrote { conn: WATCHER, bytes });
    assert_eq!(scene.changes(WATCH_INTERVAL_MS), [(WATCHER, json!({ "restart": true }))]);
    assert_eq!(listed(&scene.ask(WATCHER, "_jackfield/watch", &json!({}))).len(), 2);
}

#[test]
fn nothing_is_tracked_without_a_watcher() {
    let mut scene = Scene::new();
    scene.ask(WATCHER, "_jackfield/watch", &json!({}));
    scene.feed(Input::ClientGone { conn: WATCHER });
    scene.rename("s-1", "one");
    assert!(scene.hub.sessions.by_id.take_touched().is_empty());
    assert_eq!(scene.changes(WATCH_PROGRESS_MS), []);
}

#[test]
fn answer_to_a_request_names_the_client_and_the_option() {
    let mut scene = Scene::new();
    scene.ask(ACME, "_jackfield/watch", &json!({}));
    let answer = r#"{"result":{"outcome":{"outcome":"selected","optionId":"once"}}}"#;
    for (number, answer) in [(1, answer), (2, r#"{"void":"the turn ended"}"#)] {
        let answer = RawJson::trusted(answer.to_owned());
        let answered = UserAnswered { ask: number, by: "editor".into(), answer, peer: None };
        scene.hub.sessions.note_answered("acme.s-2".into(), &answered);
    }
    scene.feed(Input::Durable { session: "s-1".into(), upto: Seq(5) });
    let changes = scene.changes(WATCH_INTERVAL_MS);
    let expected = json!([
        { "sessionId": "acme.s-2", "ask": 1, "by": "editor", "option": "once" },
        { "sessionId": "acme.s-2", "ask": 2, "by": "editor" },
    ]);
    assert_eq!(changes[0].1["answered"], expected);
}
