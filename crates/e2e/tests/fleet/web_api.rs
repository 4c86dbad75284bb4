//! The HTTP API of a gateway: hosts, draining, sessions with their host, the stream of changes, pages of a log.

use super::{Member, SHARED, agent};
use jackfield_e2e::{
    Home, Web,
    http::{Event, Events},
    wait_for,
};
use jackfield_test_support::nats::Cluster;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// A host whose agent `crew` keeps its state in a directory that all hosts have.
fn start_host(cluster: &Cluster, name: &str, shared: &Home) -> Member {
    let command = agent(shared, &shared.path().join("memory"));
    let config = format!("[agents.crew]\ncommand = {}\n", json!(command));
    Member::start_with(cluster, name, &config, &[])
}

fn start_gateway(cluster: &Cluster) -> (Member, Web) {
    let listen = ["--listen", "http://127.0.0.1:0"];
    let serve = |home: &Home, args: &[&str]| home.serve(&[args, &SHARED, &listen].concat());
    let gateway = Member::launch(cluster, "gateway", "in", serve);
    let web = Web::of(&gateway.home);
    (gateway, web)
}

/// The state of each live host, by name.
fn host_states(web: &Web) -> Vec<(String, String)> {
    let hosts = web.get("/api/hosts").good();
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let hosts = hosts["hosts"].as_array().unwrap().iter();
    hosts.map(|it| (text(&it["name"]), text(&it["state"]))).collect()
}

fn wait_for_hosts(web: &Web, expected: &[(&str, &str)]) {
    wait_for(&format!("{expected:?}"), SOON, || {
        let states = host_states(web);
        states
            .iter()
            .map(|(name, state)| (&**name, &**state))
            .eq(expected.iter().copied())
            .then_some(())
    });
}

/// Opens a session when the gateway knows a host with its agent.
fn open_session(web: &Web) -> String {
    let opened = wait_for("a session", SOON, || {
        let reply = web.post("/api/sessions", &json!({ "agentId": "crew", "name": "moved" }));
        (reply.status == 201).then(|| reply.json())
    });
    opened["sessionId"].as_str().unwrap().to_owned()
}

/// Waits until the session has ended this many turns.
fn wait_for_turns(web: &Web, id: &str, turns: u64) {
    wait_for("the end of the turn", SOON, || {
        let row = web.get(&format!("/api/sessions/{id}")).good();
        (row["turns"] == turns && row["state"] == "idle").then_some(())
    });
}

/// A client that follows a session, and connects again when its stream ends, as a browser does.
struct SessionFollower<'a> {
    web: &'a Web,
    id: &'a str,
    stream: Events,
    last_id: String,
    /// The events of the log, and the hosts in the rows of the session.
    events: Vec<Value>,
    hosts: Vec<Value>,
}

impl SessionFollower<'_> {
    fn start<'a>(web: &'a Web, id: &'a str) -> SessionFollower<'a> {
        let stream = web.stream("GET", &format!("/api/events?follow={id}:0"), &[], None);
        let (last_id, events, hosts) = (String::new(), Vec::new(), Vec::new());
        SessionFollower { web, id, stream, last_id, events, hosts }
    }

    /// Reads until an event of the log and a row with this host were received.
    fn read_until(&mut self, seq: u64, host: &str) {
        let mut reconnections = 0;
        while !self.has_received(seq, host) {
            if let Some(event) = self.stream.next() {
                self.on_event(&event);
                continue;
            }
            reconnections += 1;
            assert!(reconnections < 10, "no {seq} or {host}: {:?} {:?}", self.events, self.hosts);
            let (after, id, last) = (&self.last_id, self.id, self.events.len());
            let path = format!("/api/events?after={after}&follow={id}:{last}");
            self.stream = self.web.stream("GET", &path, &[], None);
        }
    }

    fn has_received(&self, seq: u64, host: &str) -> bool {
        self.events.last().is_some_and(|it| it["seq"] == seq) && self.hosts.contains(&host.into())
    }

    fn on_event(&mut self, event: &Event) {
        if let Some(id) = &event.id {
            self.last_id.clone_from(id);
        }
        match &*event.name {
            "log" => self.events.push(event.json()["event"].clone()),
            "session" => {
                assert_eq!(event.json()["sessionId"], self.id);
                self.hosts.push(event.json()["host"].clone());
            }
            "gone" => panic!("the session is gone"),
            _ => {}
        }
    }
}

/// The directories are on the hosts.
fn assert_directories_are_refused(web: &Web) {
    for path in ["/api/directories", "/api/directories?path=/"] {
        let refused = web.get(path);
        let error = refused.json()["error"].clone();
        assert_eq!((refused.status, &error["code"]), (409, &json!("CONFLICT")), "{error}");
        assert!(error["message"].as_str().unwrap().contains("on the hosts"), "{error}");
    }
}

#[test]
fn gateway_lists_and_drains_hosts_and_shows_their_sessions() {
    let cluster = Cluster::start(1);
    let shared = Home::new();
    let mut one = start_host(&cluster, "one", &shared);
    let (mut gateway, web) = start_gateway(&cluster);
    assert_eq!(web.get("/api/me").good()["fleet"], true);
    wait_for_hosts(&web, &[("one", "online")]);
    let id = open_session(&web);
    let prompt = json!({ "message": "burst 20" });
    let run_turn = |number| {
        web.post(&format!("/api/sessions/{id}/prompt"), &prompt).good();
        wait_for_turns(&web, &id, number);
        let page = web.get(&format!("/api/sessions/{id}/log?limit=1000")).good();
        (page["last"].as_u64().unwrap(), page["events"].clone())
    };
    let mut follower = SessionFollower::start(&web, &id);
    let (last, logged) = run_turn(1);
    follower.read_until(last, "one");
    assert_eq!(json!(follower.events), logged);

    let mut two = start_host(&cluster, "two", &shared);
    wait_for_hosts(&web, &[("one", "online"), ("two", "online")]);
    web.post("/api/hosts/one/drain", &json!({})).good();
    wait_for_hosts(&web, &[("one", "draining"), ("two", "online")]);
    let (last, logged) = run_turn(2);
    follower.read_until(last, "two");
    assert_eq!(json!(follower.events), logged);
    assert_eq!(web.get(&format!("/api/sessions/{id}")).good()["host"], "two");
    web.post("/api/hosts/one/drain", &json!({ "drain": false })).good();
    wait_for_hosts(&web, &[("one", "online"), ("two", "online")]);
    assert_eq!(web.post("/api/hosts/three/drain", &json!({})).status, 404);
    assert_directories_are_refused(&web);
    drop(follower);
    gateway.stop();
    one.stop();
    two.stop();
}
