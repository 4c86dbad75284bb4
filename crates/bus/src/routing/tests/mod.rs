//! Unit tests of the bus state machine. This file tests routing; `launcher` agents that are started on
//! demand; `lifecycle` workers, limits,
//! reload and stop; `slow_clients` clients that do not read.

mod launcher;
mod lifecycle;
mod slow_clients;

use super::*;
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const A: ConnId = ConnId(1);
const B: ConnId = ConnId(2);

fn pool(id: &str, instances: usize) -> PoolConfig {
    let command = WorkerCommand { argv: vec![id.to_owned()], env: Vec::new(), cwd: None };
    PoolConfig {
        id: id.into(),
        command: Arc::new(command),
        instances,
        restart: RestartRule::default(),
        affinity: SessionAffinity::default(),
        on_death: WorkerDeathRule::default(),
        outer_session_id: OuterSessionId::default(),
        health: None,
    }
}

/// A bus with clients A and B, and all its outputs.
struct BusFixture {
    bus: Bus,
    now: u64,
    client_frames: Vec<(ConnId, Value)>,
    worker_frames: Vec<(WorkerId, Value)>,
    spawned: Vec<WorkerId>,
    other_outputs: Vec<BusOutput>,
}

impl BusFixture {
    fn new(pools: Vec<PoolConfig>) -> BusFixture {
        BusFixture::with_config(BusConfig { pools, ..BusConfig::default() })
    }

    fn with_config(config: BusConfig) -> BusFixture {
        let bus = Bus::new(config, Time(0));
        let mut fixture = BusFixture {
            bus,
            now: 0,
            client_frames: vec![],
            worker_frames: vec![],
            spawned: vec![],
            other_outputs: vec![],
        };
        fixture.drain();
        for conn in [A, B] {
            fixture.feed(BusInput::ClientOpened { conn });
        }
        fixture
    }

    fn drain(&mut self) {
        let read = |text: &[u8]| serde_json::from_slice(text).unwrap();
        while let Some(output) = self.bus.poll_output() {
            match output {
                BusOutput::SendToClient { conn, text } => {
                    self.client_frames.push((conn, read(&text)));
                }
                BusOutput::SendToWorker { worker, text } => {
                    self.worker_frames.push((worker, read(&text)));
                }
                BusOutput::SpawnWorker { worker, .. } => self.spawned.push(worker),
                other => self.other_outputs.push(other),
            }
        }
    }

    fn feed(&mut self, input: BusInput) {
        self.bus.handle(Time(self.now), input);
        self.drain();
    }

    fn send_from_client(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(BusInput::ClientSentFrame { conn, frame });
    }

    fn send_from_worker(&mut self, worker: WorkerId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(BusInput::WorkerSentFrame { worker, frame });
    }

    /// Sends a message and returns the worker that it was relayed to, and the frame.
    fn relay(&mut self, conn: ConnId, message: &Value) -> (WorkerId, Value) {
        let before = self.worker_frames.len();
        self.send_from_client(conn, message);
        assert_eq!(
            self.worker_frames.len(),
            before + 1,
            "sent to the client instead: {:?}",
            self.client_frames.last()
        );
        self.worker_frames.last().cloned().unwrap()
    }

    fn end_worker(&mut self, worker: WorkerId, clean: bool) {
        let exit = Exit {
            status: "exit status 3".into(),
            stderr: "why".into(),
            started: true,
            shortage: false,
        };
        self.feed(BusInput::WorkerGone { worker, exit, clean });
    }

    fn last_client_frame(&self) -> (ConnId, Value) {
        self.client_frames.last().cloned().unwrap()
    }

    fn error_code(&self) -> String {
        let (_, frame) = self.last_client_frame();
        frame["error"]["data"]["jackfield"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn equal_request_ids_of_two_clients_do_not_collide() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let (worker, first) = fixture.relay(A, &request(&json!(2), "m", &json!({ "of": "a" })));
    let (_, second) = fixture.relay(B, &request(&json!("2"), "m", &json!({ "of": "b" })));
    assert_ne!(first["id"], second["id"]);
    for relayed in [second, first] {
        let sender = relayed["params"]["of"].clone();
        fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": sender }));
    }
    assert_eq!(fixture.client_frames[0], (B, json!({ "id": "2", "result": "b" })));
    assert_eq!(fixture.client_frames[1], (A, json!({ "id": 2, "result": "a" })));
}

#[test]
fn session_stays_with_its_worker_wherever_its_id_is_written() {
    let mut fixture = BusFixture::new(vec![pool("p", 3)]);
    let (first, _) = fixture.relay(A, &json!({ "id": 1, "method": "m", "sessionId": "ab" }));
    for n in 2..9 {
        let inside = request(&json!(n), "m", &json!({ "sessionId": "ab" }));
        assert_eq!(fixture.relay(A, &inside).0, first);
        let text = format!(r#"{{"id":{n},"method":"m","sessionId":"a\u0062"}}"#);
        fixture
            .feed(BusInput::ClientSentFrame { conn: A, frame: Frame::parse_str(&text).unwrap() });
        assert_eq!(fixture.worker_frames.last().unwrap().0, first);
    }
}

#[test]
fn new_sessions_go_to_the_least_loaded_worker_and_others_in_turn() {
    let mut fixture = BusFixture::new(vec![pool("p", 3)]);
    let mut placed = BTreeMap::new();
    for n in 0..9 {
        let (worker, _) = fixture.relay(A, &request(&json!(n), "session/new", &json!({})));
        *placed.entry(worker).or_insert(0) += 1;
    }
    assert_eq!(placed.values().copied().collect::<Vec<_>>(), [3, 3, 3]);
    let turn: Vec<_> =
        (0..6).map(|n| fixture.relay(A, &request(&json!(n), "m", &json!({}))).0).collect();
    assert_eq!(turn[..3], turn[3..]);
    assert_eq!(turn[..3].iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn updates_before_the_session_id_are_delivered_before_the_response() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let (worker, relayed) = fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    let early = json!({ "method": "session/update", "params": { "sessionId": "s", "n": 1 } });
    fixture.send_from_worker(worker, &early);
    assert!(fixture.client_frames.is_empty());
    fixture
        .send_from_worker(worker, &json!({ "id": relayed["id"], "result": { "sessionId": "s" } }));
    fixture.send_from_worker(worker, &early);
    let methods: Vec<_> =
        fixture.client_frames.iter().map(|(conn, it)| (*conn, it["id"].clone())).collect();
    assert_eq!(methods, [(A, Value::Null), (A, json!(1)), (A, Value::Null)]);
}

#[test]
fn worker_request_goes_to_the_last_client_and_keeps_its_id() {
    let mut fixture = BusFixture::new(vec![pool("p", 2)]);
    let prompt = |n: u32| request(&json!(n), "session/prompt", &json!({ "sessionId": "s" }));
    let (worker, _) = fixture.relay(A, &prompt(1));
    fixture.relay(B, &prompt(1));
    let ask = request(&json!("x"), "session/request_permission", &json!({ "sessionId": "s" }));
    fixture.send_from_worker(worker, &ask);
    let (conn, relayed) = fixture.last_client_frame();
    assert_eq!(conn, B);
    fixture.send_from_client(B, &json!({ "id": relayed["id"], "result": "yes" }));
    assert_eq!(
        fixture.worker_frames.last().unwrap(),
        &(worker, json!({ "id": "x", "result": "yes" }))
    );
    // Notifications go to all clients of the session.
    let before = fixture.client_frames.len();
    fixture.send_from_worker(
        worker,
        &json!({ "method": "session/update", "params": { "sessionId": "s" } }),
    );
    let recipients: Vec<ConnId> = fixture.client_frames[before..].iter().map(|it| it.0).collect();
    assert_eq!(recipients, [A, B]);
}

#[test]
fn worker_request_without_a_client_is_refused_at_once() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let worker = fixture.spawned[0];
    fixture.send_from_worker(
        worker,
        &request(&json!(7), "fs/read_text_file", &json!({ "sessionId": "s" })),
    );
    let (_, answer) = fixture.worker_frames.last().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-31013)));
    // The same if the client disconnects before it answers.
    fixture.relay(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    fixture.send_from_worker(
        worker,
        &request(&json!(8), "fs/read_text_file", &json!({ "sessionId": "s" })),
    );
    fixture.feed(BusInput::ClientGone { conn: A });
    let (_, answer) = fixture.worker_frames.last().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(8), &json!(-31013)));
}

#[test]
fn cancellation_uses_the_id_that_was_sent_to_the_worker() {
    let mut fixture = BusFixture::new(vec![pool("p", 2)]);
    let (worker, relayed) = fixture.relay(A, &request(&json!("q"), "slow", &json!({})));
    for method in ["$/cancel_request", "notifications/cancelled"] {
        let notice = json!({ "method": method, "params": { "requestId": "q" } });
        let (to, got) = fixture.relay(A, &notice);
        assert_eq!((to, &got["params"]["requestId"]), (worker, &relayed["id"]));
    }
    // B has no request with this id.
    let before = fixture.worker_frames.len();
    fixture.send_from_client(
        B,
        &json!({ "method": "$/cancel_request", "params": { "requestId": "q" } }),
    );
    assert_eq!(fixture.worker_frames.len(), before);
}

#[test]
fn pool_must_be_named_until_the_session_is_known() {
    let mut fixture = BusFixture::new(vec![pool("p", 1), pool("q", 1)]);
    fixture.send_from_client(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    assert_eq!(fixture.error_code(), "no_worker");
    assert!(
        fixture.last_client_frame().1["error"]["message"].as_str().unwrap().contains("`p`, `q`")
    );
    let named = json!({ "id": 1, "method": "m", "agentId": "q", "params": { "sessionId": "s" } });
    assert_eq!(fixture.relay(A, &named).0, fixture.spawned[1]);
    assert_eq!(
        fixture.relay(A, &request(&json!(2), "m", &json!({ "sessionId": "s" }))).0,
        fixture.spawned[1]
    );
    fixture.send_from_client(A, &json!({ "id": 3, "method": "m", "pool": "r" }));
    assert!(
        fixture.last_client_frame().1["error"]["message"]
            .as_str()
            .unwrap()
            .contains("unknown pool `r`")
    );
}

#[test]
fn connection_affinity_binds_a_client_to_one_worker() {
    let mut fixture = BusFixture::new(vec![PoolConfig {
        affinity: SessionAffinity::Connection,
        ..pool("mcp", 2)
    }]);
    let (worker_of_a, _) = fixture.relay(A, &request(&json!(1), "initialize", &json!({})));
    let (worker_of_b, _) = fixture.relay(B, &request(&json!(1), "initialize", &json!({})));
    assert_ne!(worker_of_a, worker_of_b);
    assert_eq!(fixture.relay(A, &json!({ "method": "notifications/initialized" })).0, worker_of_a);
    fixture.send_from_worker(worker_of_a, &json!({ "method": "notifications/tools/list_changed" }));
    assert_eq!(fixture.last_client_frame().0, A);
    // Two workers may use the same session id.
    for (conn, worker) in [(A, worker_of_a), (B, worker_of_b)] {
        let (_, relayed) = fixture.relay(conn, &request(&json!(2), "session/new", &json!({})));
        fixture.send_from_worker(
            worker,
            &json!({ "id": relayed["id"], "result": { "sessionId": "1" } }),
        );
    }
    for (conn, worker) in [(A, worker_of_a), (B, worker_of_b)] {
        fixture.send_from_worker(
            worker,
            &json!({ "method": "session/update", "params": { "sessionId": "1" } }),
        );
        assert_eq!(fixture.last_client_frame().0, conn);
    }
}

#[test]
fn worker_of_plain_acp_does_not_see_the_outer_session_id() {
    let mut fixture = BusFixture::new(vec![PoolConfig {
        outer_session_id: OuterSessionId::Restore,
        ..pool("p", 1)
    }]);
    let open = json!({ "id": 1, "method": "session/new", "sessionId": "outer-a", "params": {} });
    let (worker, relayed) = fixture.relay(A, &open);
    assert_eq!(relayed, json!({ "id": relayed["id"], "method": "session/new", "params": {} }));
    let update = json!({ "method": "session/update", "params": { "sessionId": "s" } });
    fixture.send_from_worker(worker, &update);
    let opened = json!({ "id": relayed["id"], "result": { "sessionId": "s" } });
    fixture.send_from_worker(worker, &opened);
    // A second client uses the session under another outer id.
    let prompt = json!({ "id": "p", "method": "session/prompt", "sessionId": "outer-b",
        "params": { "sessionId": "s" } });
    let (_, relayed) = fixture.relay(B, &prompt);
    assert_eq!(relayed.get("sessionId"), None);
    fixture.send_from_worker(worker, &update);
    let ask = request(&json!(7), "session/request_permission", &json!({ "sessionId": "s" }));
    fixture.send_from_worker(worker, &ask);
    let (_, asked) = fixture.last_client_frame();
    let answer = json!({ "id": asked["id"], "sessionId": "outer-b", "result": {} });
    fixture.send_from_client(B, &answer);
    assert_eq!(fixture.worker_frames.last().unwrap().1, json!({ "id": 7, "result": {} }));
    fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": {} }));
    let outer_ids: Vec<_> =
        fixture.client_frames.iter().map(|(conn, it)| (*conn, it["sessionId"].clone())).collect();
    let expected = [
        (A, "outer-a"),
        (A, "outer-a"),
        (A, "outer-a"),
        (B, "outer-b"),
        (B, "outer-b"),
        (B, "outer-b"),
    ];
    assert_eq!(outer_ids, expected.map(|(conn, id)| (conn, json!(id))));
}

#[test]
fn session_id_that_another_worker_uses_is_refused() {
    let mut fixture = BusFixture::new(vec![pool("p", 2)]);
    for conn in [A, B] {
        let (worker, relayed) = fixture.relay(conn, &request(&json!(1), "session/new", &json!({})));
        fixture.send_from_worker(
            worker,
            &json!({ "id": relayed["id"], "result": { "sessionId": "1" } }),
        );
    }
    assert_eq!(fixture.client_frames[0].1["result"]["sessionId"], "1");
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (B, "internal".to_owned()));
}

#[test]
fn invalid_line_gets_an_error_and_the_connection_stays_open() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    fixture.feed(BusInput::ClientSentInvalidFrame { conn: A, fault: Fault::Parse });
    assert_eq!(fixture.last_client_frame().1["error"]["code"], -32700);
    fixture.relay(A, &request(&json!(1), "m", &json!({})));
}
