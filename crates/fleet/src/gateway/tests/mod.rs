//! Unit tests of the gateway state machine. This file tests routing; `loss` lost hosts and released
//! sessions, `absent` sessions without an eligible host, `merge` requests to all hosts, `flow` flow
//! control and limits, `tenants` visibility and quotas, `client_actions` auditing.

mod absent;
mod client_actions;
mod flow;
mod loss;
mod merge;
mod tenants;

use super::*;
use jackfield_events::HostId;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

const A: ConnId = ConnId(1);
const B: ConnId = ConnId(2);

fn host(name: &str, load: usize) -> Host {
    Host {
        name: name.into(),
        incarnation: 1,
        labels: BTreeSet::from(["os=linux".into()]),
        shared: Vec::new(),
        agents: BTreeMap::from([("echo".into(), 2)]),
        free: None,
        load,
        sessions: load,
        draining: false,
        tenants: BTreeMap::new(),
    }
}

/// A gateway with clients A and B and hosts `x` and `y`, and all its outputs.
struct GatewayFixture {
    gateway: Gateway,
    now: u64,
    client_frames: Vec<(ConnId, Value)>,
    /// Without the frames that open a host connection.
    host_frames: Vec<(HostConnectionId, Value)>,
    host_conns: BTreeMap<HostConnectionId, HostId>,
    located: Vec<(String, Option<HostId>)>,
    actions: Vec<ClientAction>,
    other_outputs: Vec<GatewayOutput>,
}

impl GatewayFixture {
    fn new() -> GatewayFixture {
        GatewayFixture::with_config(GatewayConfig::default())
    }

    fn with_config(config: GatewayConfig) -> GatewayFixture {
        let mut fixture = GatewayFixture {
            gateway: Gateway::new(config, Time(0)),
            now: 0,
            client_frames: vec![],
            host_frames: vec![],
            host_conns: BTreeMap::new(),
            located: vec![],
            actions: vec![],
            other_outputs: vec![],
        };
        for conn in [A, B] {
            fixture.feed(GatewayInput::ClientOpened { conn });
        }
        fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("y", 5)]));
        fixture
    }

    fn feed(&mut self, input: GatewayInput) {
        self.gateway.handle(Time(self.now), input);
        let read = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
        while let Some(output) = self.gateway.poll_output() {
            match output {
                GatewayOutput::SendToClient { conn, text } => {
                    self.client_frames.push((conn, read(&text)));
                }
                GatewayOutput::SendToHost { host_conn, text } => {
                    let text = read(&text);
                    if text["method"] != "_jackfield/relay" {
                        self.host_frames.push((host_conn, text));
                    }
                }
                GatewayOutput::OpenHostConnection { host_conn, host } => {
                    _ = self.host_conns.insert(host_conn, host);
                }
                GatewayOutput::LocateSession { session, avoid } => {
                    self.located.push((session.to_string(), avoid));
                }
                GatewayOutput::ClientAction(action) => self.actions.push(action),
                GatewayOutput::Note(_) => {}
                other => self.other_outputs.push(other),
            }
        }
    }

    fn send_from_client(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(GatewayInput::ClientSentFrame { conn, frame });
    }

    fn send_from_host(&mut self, host_conn: HostConnectionId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(GatewayInput::HostSentFrame { host_conn, frame });
    }

    fn answer_locate(&mut self, session: &str, host: &str) {
        let owner = Ok(host.into());
        self.feed(GatewayInput::SessionLocated { session: session.into(), owner });
    }

    fn lose_connection(&mut self, host_conn: HostConnectionId) {
        self.feed(GatewayInput::HostConnectionGone {
            host_conn,
            reason: "connection reset".into(),
        });
    }

    fn advance_time(&mut self, ms: u64) {
        self.now += ms;
        self.feed(GatewayInput::Tick);
    }

    /// Sends a message and returns the host that it was relayed to, the connection, and the frame.
    fn relay(&mut self, conn: ConnId, message: &Value) -> (HostId, HostConnectionId, Value) {
        let before = self.host_frames.len();
        self.send_from_client(conn, message);
        assert_eq!(
            self.host_frames.len(),
            before + 1,
            "sent to the client instead: {:?}",
            self.client_frames.last()
        );
        self.last_host_frame()
    }

    fn last_host_frame(&self) -> (HostId, HostConnectionId, Value) {
        let (host_conn, text) = self.host_frames.last().cloned().unwrap();
        (self.host_conns[&host_conn].clone(), host_conn, text)
    }

    fn respond(&mut self, host_conn: HostConnectionId, relayed: &Value, result: &Value) {
        self.send_from_host(host_conn, &json!({ "id": relayed["id"], "result": result }));
    }

    /// Opens a session for a client.
    fn open_session(&mut self, conn: ConnId, session: &str) -> HostConnectionId {
        let new = request(&json!("new"), "session/new", &json!({}));
        let (_, host_conn, relayed) = self.relay(conn, &new);
        self.respond(host_conn, &relayed, &json!({ "sessionId": session }));
        host_conn
    }

    fn last_client_frame(&self) -> (ConnId, Value) {
        self.client_frames.last().cloned().unwrap()
    }

    fn error_code(&self) -> String {
        error_code(&self.last_client_frame().1)
    }
}

fn error_code(answer: &Value) -> String {
    answer["error"]["data"]["jackfield"]["code"].as_str().unwrap_or_default().to_owned()
}

fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn update(session: &str, seq: u64, text: &str) -> Value {
    let meta = json!({ "jackfield": { "seq": seq } });
    let params = json!({ "sessionId": session, "update": text, "_meta": meta });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

#[test]
fn new_session_goes_to_the_least_loaded_host_and_its_frames_follow() {
    let mut fixture = GatewayFixture::new();
    let (host, host_conn, relayed) =
        fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(&*host, "x");
    fixture.respond(host_conn, &relayed, &json!({ "sessionId": "s-1" }));
    assert_eq!(
        fixture.last_client_frame(),
        (A, json!({ "id": 1, "result": { "sessionId": "s-1" } }))
    );
    let mode = request(&json!(2), "session/set_mode", &json!({ "sessionId": "s-1" }));
    assert_eq!(fixture.relay(A, &mode).1, host_conn);
    assert!(fixture.located.is_empty(), "the owner is known from the response");
}

#[test]
fn sessions_placed_since_the_last_report_count_as_load() {
    let mut fixture = GatewayFixture::new();
    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("y", 0)]));
    let hosts: Vec<HostId> = (0..4)
        .map(|n| fixture.relay(A, &request(&json!(n), "session/new", &json!({}))).0)
        .collect();
    // The first session is not answered yet, so the default host is preferred for none.
    assert_eq!(hosts.iter().map(|it| &**it).collect::<Vec<_>>(), ["x", "y", "x", "y"]);
}

/// Regression test: a session and its agent raise the load by two, and a report with one of three
/// placed sessions removed two of them from the count.
#[test]
fn report_that_counts_one_session_removes_one_placed_session() {
    let mut fixture = GatewayFixture::new();
    let report = |sessions: usize, free: usize| Host {
        sessions,
        load: 2 * sessions,
        free: Some(free),
        ..host("x", 0)
    };
    let large = || Host { load: 100, ..host("y", 0) };
    fixture.feed(GatewayInput::HostsChanged(vec![report(0, 3), large()]));
    let open = |fixture: &mut GatewayFixture, n: usize| {
        fixture.relay(A, &request(&json!(n), "session/new", &json!({}))).0.to_string()
    };
    let first: Vec<String> = (0..3).map(|n| open(&mut fixture, n)).collect();
    assert_eq!(first, ["x", "x", "x"]);
    fixture.feed(GatewayInput::HostsChanged(vec![report(1, 2), large()]));
    assert_eq!(open(&mut fixture, 3), "y", "two of three processes are taken and not reported yet");
}

#[test]
fn labels_agents_and_draining_take_precedence_over_load() {
    let mut fixture = GatewayFixture::new();
    let mut other = host("z", 9);
    other.labels.insert("gpu=yes".into());
    other.agents.insert("rare".into(), 1);
    let mut drained = host("w", 0);
    drained.draining = true;
    fixture.feed(GatewayInput::HostsChanged(vec![drained, host("x", 0), other]));
    let mut place = |meta: Value| {
        let params = json!({ "_meta": { "jackfield": meta } });
        let before = fixture.host_frames.len();
        let id = json!(before);
        fixture.send_from_client(A, &request(&id, "session/new", &params));
        if fixture.host_frames.len() == before {
            fixture.error_code()
        } else {
            fixture.last_host_frame().0.to_string()
        }
    };
    assert_eq!(place(json!({ "labels": ["gpu=yes"] })), "z");
    assert_eq!(place(json!({ "agent": "rare" })), "z");
    assert_eq!(place(json!({ "labels": ["os=linux", "host=x"] })), "x");
    assert_eq!(place(json!({ "labels": ["host=w"] })), "no_host");
    assert_eq!(place(json!({ "agent": "none" })), "no_host");
    assert_eq!(place(json!({ "labels": "gpu=yes" })), "invalid_params");
}

#[test]
fn full_host_is_avoided_and_first_session_goes_to_the_default_host() {
    let mut fixture = GatewayFixture::new();
    let mut full = host("x", 0);
    full.agents.insert("echo".into(), 0);
    fixture.feed(GatewayInput::HostsChanged(vec![full, host("y", 5)]));
    fixture.send_from_client(
        A,
        &json!({ "method": "_jackfield/connect", "params": { "agent": "echo" } }),
    );
    assert!(fixture.host_frames.is_empty(), "`connect` alone needs no host");
    fixture.send_from_client(A, &request(&json!(0), "initialize", &json!({})));
    let (default_host, _, _) = fixture.last_host_frame();
    assert_eq!(&*default_host, "y");
    // The other host now has a lower load, but an agent may already be started on the default host.
    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("y", 5)]));
    assert_eq!(&*fixture.relay(A, &request(&json!(1), "session/new", &json!({}))).0, "y");
    fixture.send_from_client(A, &request(&json!(2), "session/new", &json!({})));
    assert_eq!(&*fixture.last_host_frame().0, "x");
}

/// Also applies to a session whose agent is a command of the client, which no host lists.
#[test]
fn full_host_gets_sessions_only_if_all_hosts_are_full() {
    let mut fixture = GatewayFixture::new();
    let limited = |name, load, free| Host { free: Some(free), ..host(name, load) };
    fixture.feed(GatewayInput::HostsChanged(vec![limited("x", 0, 2), host("y", 5)]));
    let connect = json!({ "agent": { "name": "mine", "argv": ["mine"] } });
    fixture.send_from_client(A, &json!({ "method": "_jackfield/connect", "params": connect }));
    let mut placed = Vec::new();
    for number in 0..5 {
        fixture.send_from_client(A, &request(&json!(number), "session/new", &json!({})));
        placed.push(fixture.last_host_frame().0.to_string());
    }
    assert_eq!(placed, ["x", "x", "y", "y", "y"]);
    fixture.feed(GatewayInput::HostsChanged(vec![limited("x", 3, 0), limited("y", 9, 0)]));
    fixture.send_from_client(A, &request(&json!(9), "session/new", &json!({})));
    assert_eq!(&*fixture.last_host_frame().0, "x", "all are full: the least loaded one");
}

#[test]
fn handshake_is_sent_on_every_host_connection_and_answered_once() {
    let mut fixture = GatewayFixture::new();
    let connect = json!({ "agent": { "name": "mine", "argv": ["mine"] } });
    fixture.send_from_client(A, &request(&json!("c"), "_jackfield/connect", &connect));
    let (_, default_conn, relayed) = fixture.last_host_frame();
    fixture.respond(default_conn, &relayed, &json!({}));
    assert_eq!(fixture.last_client_frame(), (A, json!({ "id": "c", "result": {} })));
    fixture
        .send_from_client(A, &request(&json!("i"), "initialize", &json!({ "protocolVersion": 1 })));
    let (_, _, relayed) = fixture.last_host_frame();
    fixture.respond(default_conn, &relayed, &json!({ "who": "x" }));
    assert_eq!(fixture.last_client_frame(), (A, json!({ "id": "i", "result": { "who": "x" } })));
    let before = fixture.client_frames.len();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-9" })));
    fixture.answer_locate("s-9", "y");
    let frames_to_y: Vec<(HostConnectionId, Value)> =
        fixture.host_frames.iter().filter(|it| it.0 != default_conn).cloned().collect();
    let methods: Vec<_> = frames_to_y.iter().map(|it| it.1["method"].as_str().unwrap()).collect();
    // In this order the second host does not start an agent for the client.
    assert_eq!(methods, ["initialize", "_jackfield/connect", "session/load"]);
    for (host_conn, relayed) in &frames_to_y[..2] {
        fixture.respond(*host_conn, relayed, &json!({ "who": "y" }));
    }
    assert_eq!(fixture.client_frames.len(), before, "these responses are discarded");
}

#[test]
fn frames_wait_in_order_for_the_owner_of_their_session() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    fixture.send_from_client(
        A,
        &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }),
    );
    fixture.send_from_client(
        A,
        &request(&json!(2), "session/set_mode", &json!({ "sessionId": "s-1" })),
    );
    fixture
        .send_from_client(B, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    assert_eq!(fixture.located, [("s-1".to_owned(), None)], "one search for all clients");
    fixture.answer_locate("s-1", "y");
    let host_conns: BTreeSet<HostConnectionId> =
        fixture.host_frames.iter().map(|it| it.0).collect();
    assert_eq!(host_conns.len(), 2, "each client has its own host connection");
    let methods_of_a: Vec<_> =
        fixture.host_frames[..3].iter().map(|it| it.1["method"].as_str().unwrap()).collect();
    assert_eq!(methods_of_a, ["session/load", "session/cancel", "session/set_mode"]);
}

#[test]
fn duplicate_request_id_is_refused_and_the_first_is_answered() {
    let mut fixture = GatewayFixture::new();
    let (_, host_conn, relayed) = fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    fixture.send_from_client(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(fixture.error_code(), "invalid_request");
    fixture.respond(host_conn, &relayed, &json!({ "sessionId": "s-1" }));
    assert_eq!(fixture.last_client_frame().1["result"]["sessionId"], "s-1");
}

#[test]
fn owner_of_an_unused_session_is_searched_again() {
    let mut fixture = GatewayFixture::new();
    let queue = request(&json!(1), "_jackfield/queue", &json!({ "sessionId": "s-1" }));
    for host in ["x", "y"] {
        fixture.send_from_client(A, &queue);
        fixture.answer_locate("s-1", host);
        let (located_host, host_conn, relayed) = fixture.last_host_frame();
        assert_eq!(&*located_host, host);
        fixture.respond(host_conn, &relayed, &json!({}));
    }
    assert_eq!(fixture.gateway.gauges().sessions, 0);
}

#[test]
fn equal_request_ids_of_two_hosts_do_not_collide() {
    let mut fixture = GatewayFixture::new();
    let x = fixture.open_session(A, "s-1");
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-2" })));
    fixture.answer_locate("s-2", "y");
    let (_, y, _) = fixture.last_host_frame();
    for (host_conn, session) in [(x, "s-1"), (y, "s-2")] {
        let ask =
            request(&json!(7), "session/request_permission", &json!({ "sessionId": session }));
        fixture.send_from_host(host_conn, &ask);
    }
    let [first, second] = &fixture.client_frames[fixture.client_frames.len() - 2..] else {
        unreachable!()
    };
    let (first, second) = (first.1["id"].clone(), second.1["id"].clone());
    assert_ne!(first, second);
    fixture.send_from_client(A, &json!({ "id": second, "result": "of y" }));
    assert_eq!(fixture.host_frames.last(), Some(&(y, json!({ "id": 7, "result": "of y" }))));
    fixture
        .send_from_host(x, &json!({ "method": "$/cancel_request", "params": { "requestId": 7 } }));
    assert_eq!(fixture.last_client_frame().1["params"]["requestId"], first);
    let before = fixture.host_frames.len();
    fixture.send_from_client(A, &json!({ "id": first, "result": "too late" }));
    assert_eq!(fixture.host_frames.len(), before);
}

#[test]
fn cancellation_uses_the_id_that_was_sent_to_the_host() {
    let mut fixture = GatewayFixture::new();
    fixture.open_session(A, "s-1");
    let prompt = request(&json!("p"), "session/prompt", &json!({ "sessionId": "s-1" }));
    let (_, host_conn, relayed) = fixture.relay(A, &prompt);
    fixture.send_from_client(
        A,
        &json!({ "method": "$/cancel_request", "params": { "requestId": "p" } }),
    );
    let (by, notice) = fixture.host_frames.last().unwrap();
    assert_eq!((*by, &notice["params"]["requestId"]), (host_conn, &relayed["id"]));
    // A request that waits for an owner is answered at once.
    fixture
        .send_from_client(A, &request(&json!("w"), "session/load", &json!({ "sessionId": "s-2" })));
    fixture.send_from_client(
        A,
        &json!({ "method": "$/cancel_request", "params": { "requestId": "w" } }),
    );
    assert_eq!(fixture.error_code(), "cancelled");
    fixture.answer_locate("s-2", "x");
    assert_eq!(fixture.host_frames.last().unwrap().1["method"], "$/cancel_request");
}

#[test]
fn host_methods_are_refused() {
    let mut fixture = GatewayFixture::new();
    fixture.send_from_client(A, &request(&json!(1), "_jackfield/stop", &json!({})));
    assert_eq!(fixture.error_code(), "not_served");
    assert!(fixture.host_frames.is_empty());
}

#[test]
fn disconnecting_a_client_closes_its_host_connections() {
    let mut fixture = GatewayFixture::new();
    let host_conn = fixture.open_session(A, "s-1");
    fixture.feed(GatewayInput::ClientGone { conn: A });
    let closed = |it: &GatewayOutput| matches!(it, GatewayOutput::CloseHostConnection { host_conn: it } if *it == host_conn);
    assert!(fixture.other_outputs.iter().any(closed));
    fixture.send_from_host(host_conn, &update("s-1", 1, "hello"));
    assert_eq!(fixture.gateway.gauges().host_conns, 0);
}

#[test]
fn half_closed_client_gets_responses_but_answers_no_requests() {
    let mut fixture = GatewayFixture::new();
    let host_conn = fixture.open_session(A, "s-1");
    let prompt = request(&json!("p"), "session/prompt", &json!({ "sessionId": "s-1" }));
    let (_, _, relayed) = fixture.relay(A, &prompt);
    fixture.feed(GatewayInput::ClientFinished { conn: A });
    let read = request(&json!(1), "fs/read_text_file", &json!({ "sessionId": "s-1" }));
    fixture.send_from_host(host_conn, &read);
    assert_eq!(error_code(&fixture.host_frames.last().unwrap().1), "no_client");
    fixture.respond(host_conn, &relayed, &json!({ "stopReason": "end_turn" }));
    assert_eq!(fixture.last_client_frame().1["id"], "p");
    assert!(
        fixture.other_outputs.iter().any(|it| matches!(it, GatewayOutput::CloseClient { conn: A }))
    );
}

#[test]
fn stop_answers_all_requests_and_closes_all_clients() {
    let mut fixture = GatewayFixture::new();
    fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    fixture.feed(GatewayInput::Stop);
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (A, "stopping".to_owned()));
    for conn in [A, B] {
        fixture.feed(GatewayInput::ClientGone { conn });
    }
    assert!(matches!(fixture.other_outputs.last(), Some(GatewayOutput::Stopped)));
}
