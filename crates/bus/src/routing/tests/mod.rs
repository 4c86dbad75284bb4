//! The bus as a value, one situation each: who hears what. `life` has who waits and who ends,
//! `slow` how long.

mod life;
mod slow;

use super::*;
use jackfield_hub::Exit;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
        health: None,
    }
}

/// A bus with its clients A and B, and everything it has asked for.
struct Scene {
    bus: Bus,
    now: u64,
    told: Vec<(ConnId, Value)>,
    asked: Vec<(WorkerId, Value)>,
    spawned: Vec<WorkerId>,
    others: Vec<BusOutput>,
}

impl Scene {
    fn new(pools: Vec<PoolConfig>) -> Scene {
        Scene::with(BusConfig { pools, limits: BusLimits::default() })
    }

    fn with(config: BusConfig) -> Scene {
        let bus = Bus::new(config, Time(0));
        let (told, asked, spawned, others) = (vec![], vec![], vec![], vec![]);
        let mut scene = Scene { bus, now: 0, told, asked, spawned, others };
        scene.drain();
        for conn in [A, B] {
            scene.feed(BusInput::ClientOpened { conn });
        }
        scene
    }

    fn drain(&mut self) {
        let read = |text: &[u8]| serde_json::from_slice(text).unwrap();
        while let Some(output) = self.bus.poll_output() {
            match output {
                BusOutput::ToClient { conn, text } => self.told.push((conn, read(&text))),
                BusOutput::ToWorker { worker, text } => self.asked.push((worker, read(&text))),
                BusOutput::Spawn { worker, .. } => self.spawned.push(worker),
                other => self.others.push(other),
            }
        }
    }

    fn feed(&mut self, input: BusInput) {
        self.bus.handle(Time(self.now), input);
        self.drain();
    }

    fn say(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(BusInput::ClientSpoke { conn, frame });
    }

    fn work(&mut self, worker: WorkerId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(BusInput::WorkerSpoke { worker, frame });
    }

    /// Says it and returns who got it, and what.
    fn ask(&mut self, conn: ConnId, message: &Value) -> (WorkerId, Value) {
        let before = self.asked.len();
        self.say(conn, message);
        assert_eq!(self.asked.len(), before + 1, "told instead: {:?}", self.told.last());
        self.asked.last().cloned().unwrap()
    }

    fn end(&mut self, worker: WorkerId, clean: bool) {
        let exit = Exit {
            status: "exit status 3".into(),
            stderr: "why".into(),
            started: true,
            shortage: false,
        };
        self.feed(BusInput::WorkerGone { worker, exit, clean });
    }

    fn last(&self) -> (ConnId, Value) {
        self.told.last().cloned().unwrap()
    }

    fn code(&self) -> String {
        let (_, told) = self.last();
        told["error"]["data"]["jackfield"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn equal_ids_of_two_clients_never_meet() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let (worker, first) = scene.ask(A, &request(&json!(2), "m", &json!({ "of": "a" })));
    let (_, second) = scene.ask(B, &request(&json!("2"), "m", &json!({ "of": "b" })));
    assert_ne!(first["id"], second["id"]);
    for asked in [second, first] {
        let of = asked["params"]["of"].clone();
        scene.work(worker, &json!({ "id": asked["id"], "result": of }));
    }
    assert_eq!(scene.told[0], (B, json!({ "id": "2", "result": "b" })));
    assert_eq!(scene.told[1], (A, json!({ "id": 2, "result": "a" })));
}

#[test]
fn a_session_stays_with_its_worker_wherever_it_is_named() {
    let mut scene = Scene::new(vec![pool("p", 3)]);
    let (first, _) = scene.ask(A, &json!({ "id": 1, "method": "m", "sessionId": "ab" }));
    for n in 2..9 {
        let inside = request(&json!(n), "m", &json!({ "sessionId": "ab" }));
        assert_eq!(scene.ask(A, &inside).0, first);
        let text = format!(r#"{{"id":{n},"method":"m","sessionId":"a\u0062"}}"#);
        scene.feed(BusInput::ClientSpoke { conn: A, frame: Frame::parse_str(&text).unwrap() });
        assert_eq!(scene.asked.last().unwrap().0, first);
    }
}

#[test]
fn new_sessions_go_where_least_is_to_do_and_the_rest_in_turn() {
    let mut scene = Scene::new(vec![pool("p", 3)]);
    let mut placed = BTreeMap::new();
    for n in 0..9 {
        let (worker, _) = scene.ask(A, &request(&json!(n), "session/new", &json!({})));
        *placed.entry(worker).or_insert(0) += 1;
    }
    assert_eq!(placed.values().copied().collect::<Vec<_>>(), [3, 3, 3]);
    let turn: Vec<_> =
        (0..6).map(|n| scene.ask(A, &request(&json!(n), "m", &json!({}))).0).collect();
    assert_eq!(turn[..3], turn[3..]);
    assert_eq!(turn[..3].iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn what_a_worker_says_before_its_session_has_a_name_comes_before_the_answer() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let (worker, asked) = scene.ask(A, &request(&json!(1), "session/new", &json!({})));
    let early = json!({ "method": "session/update", "params": { "sessionId": "s", "n": 1 } });
    scene.work(worker, &early);
    assert!(scene.told.is_empty());
    scene.work(worker, &json!({ "id": asked["id"], "result": { "sessionId": "s" } }));
    scene.work(worker, &early);
    let methods: Vec<_> = scene.told.iter().map(|(conn, it)| (*conn, it["id"].clone())).collect();
    assert_eq!(methods, [(A, Value::Null), (A, json!(1)), (A, Value::Null)]);
}

#[test]
fn a_worker_asks_whoever_used_its_session_last_and_gets_the_answer_under_its_own_id() {
    let mut scene = Scene::new(vec![pool("p", 2)]);
    let prompt = |n: u32| request(&json!(n), "session/prompt", &json!({ "sessionId": "s" }));
    let (worker, _) = scene.ask(A, &prompt(1));
    scene.ask(B, &prompt(1));
    let ask = request(&json!("x"), "session/request_permission", &json!({ "sessionId": "s" }));
    scene.work(worker, &ask);
    let (conn, asked) = scene.last();
    assert_eq!(conn, B);
    scene.say(B, &json!({ "id": asked["id"], "result": "yes" }));
    assert_eq!(scene.asked.last().unwrap(), &(worker, json!({ "id": "x", "result": "yes" })));
    // News are for everyone who uses the session.
    let before = scene.told.len();
    scene.work(worker, &json!({ "method": "session/update", "params": { "sessionId": "s" } }));
    let heard: Vec<ConnId> = scene.told[before..].iter().map(|it| it.0).collect();
    assert_eq!(heard, [A, B]);
}

#[test]
fn a_worker_that_asks_nobody_is_told_so_at_once() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let worker = scene.spawned[0];
    scene.work(worker, &request(&json!(7), "fs/read_text_file", &json!({ "sessionId": "s" })));
    let (_, answer) = scene.asked.last().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-31013)));
    // And so is one whose client leaves with the question.
    scene.ask(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    scene.work(worker, &request(&json!(8), "fs/read_text_file", &json!({ "sessionId": "s" })));
    scene.feed(BusInput::ClientGone { conn: A });
    let (_, answer) = scene.asked.last().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(8), &json!(-31013)));
}

#[test]
fn a_request_is_withdrawn_under_the_id_its_worker_knows() {
    let mut scene = Scene::new(vec![pool("p", 2)]);
    let (worker, asked) = scene.ask(A, &request(&json!("q"), "slow", &json!({})));
    for method in ["$/cancel_request", "notifications/cancelled"] {
        let notice = json!({ "method": method, "params": { "requestId": "q" } });
        let (to, got) = scene.ask(A, &notice);
        assert_eq!((to, &got["params"]["requestId"]), (worker, &asked["id"]));
    }
    // B has asked nothing of that name.
    let before = scene.asked.len();
    scene.say(B, &json!({ "method": "$/cancel_request", "params": { "requestId": "q" } }));
    assert_eq!(scene.asked.len(), before);
}

#[test]
fn several_pools_need_a_name_until_the_session_is_known() {
    let mut scene = Scene::new(vec![pool("p", 1), pool("q", 1)]);
    scene.say(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    assert_eq!(scene.code(), "no_worker");
    assert!(scene.last().1["error"]["message"].as_str().unwrap().contains("`p`, `q`"));
    let named = json!({ "id": 1, "method": "m", "agentId": "q", "params": { "sessionId": "s" } });
    assert_eq!(scene.ask(A, &named).0, scene.spawned[1]);
    assert_eq!(
        scene.ask(A, &request(&json!(2), "m", &json!({ "sessionId": "s" }))).0,
        scene.spawned[1]
    );
    scene.say(A, &json!({ "id": 3, "method": "m", "pool": "r" }));
    assert!(scene.last().1["error"]["message"].as_str().unwrap().contains("no pool `r`"));
}

#[test]
fn a_connection_stays_with_one_worker_where_that_is_wanted() {
    let mut scene =
        Scene::new(vec![PoolConfig { affinity: SessionAffinity::Connection, ..pool("mcp", 2) }]);
    let (of_a, _) = scene.ask(A, &request(&json!(1), "initialize", &json!({})));
    let (of_b, _) = scene.ask(B, &request(&json!(1), "initialize", &json!({})));
    assert_ne!(of_a, of_b);
    assert_eq!(scene.ask(A, &json!({ "method": "notifications/initialized" })).0, of_a);
    scene.work(of_a, &json!({ "method": "notifications/tools/list_changed" }));
    assert_eq!(scene.last().0, A);
    // Two workers may give their sessions the same name.
    for (conn, worker) in [(A, of_a), (B, of_b)] {
        let (_, asked) = scene.ask(conn, &request(&json!(2), "session/new", &json!({})));
        scene.work(worker, &json!({ "id": asked["id"], "result": { "sessionId": "1" } }));
    }
    for (conn, worker) in [(A, of_a), (B, of_b)] {
        scene.work(worker, &json!({ "method": "session/update", "params": { "sessionId": "1" } }));
        assert_eq!(scene.last().0, conn);
    }
}

#[test]
fn a_session_name_that_another_worker_gave_is_refused() {
    let mut scene = Scene::new(vec![pool("p", 2)]);
    for conn in [A, B] {
        let (worker, asked) = scene.ask(conn, &request(&json!(1), "session/new", &json!({})));
        scene.work(worker, &json!({ "id": asked["id"], "result": { "sessionId": "1" } }));
    }
    assert_eq!(scene.told[0].1["result"]["sessionId"], "1");
    assert_eq!((scene.last().0, scene.code()), (B, "internal".to_owned()));
}

#[test]
fn a_line_that_is_no_message_is_answered_and_the_next_one_is_heard() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    scene.feed(BusInput::ClientSentInvalidFrame { conn: A, fault: Fault::Parse });
    assert_eq!(scene.last().1["error"]["code"], -32700);
    scene.ask(A, &request(&json!(1), "m", &json!({})));
}
