//! The gateway as a value, one situation each: where frames go. `loss` has what happens when a host
//! is lost or lets go, `absent` what is answered while no host may have a session, `merge` what
//! every host is asked, `flow` who waits for whom, `tenants` who knows of what, `deeds` what is
//! told of clients.

mod absent;
mod deeds;
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

/// A gateway with its clients A and B and the hosts `x` and `y`, and everything it has asked for.
struct Scene {
    gateway: Gateway,
    now: u64,
    told: Vec<(ConnId, Value)>,
    /// By host, without the frames that open a host connection.
    said: Vec<(HostConnectionId, Value)>,
    host_conns: BTreeMap<HostConnectionId, HostId>,
    located: Vec<(String, Option<HostId>)>,
    deeds: Vec<ClientAction>,
    others: Vec<GatewayOutput>,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(GatewayConfig::default())
    }

    fn with(config: GatewayConfig) -> Scene {
        let mut scene = Scene {
            gateway: Gateway::new(config, Time(0)),
            now: 0,
            told: vec![],
            said: vec![],
            host_conns: BTreeMap::new(),
            located: vec![],
            deeds: vec![],
            others: vec![],
        };
        for conn in [A, B] {
            scene.feed(GatewayInput::ClientOpened { conn });
        }
        scene.feed(GatewayInput::Hosts(vec![host("x", 0), host("y", 5)]));
        scene
    }

    fn feed(&mut self, input: GatewayInput) {
        self.gateway.handle(Time(self.now), input);
        let read = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
        while let Some(output) = self.gateway.poll_output() {
            match output {
                GatewayOutput::ToClient { conn, text } => self.told.push((conn, read(&text))),
                GatewayOutput::ToHost { host_conn, text } => {
                    let text = read(&text);
                    if text["method"] != "_jackfield/relay" {
                        self.said.push((host_conn, text));
                    }
                }
                GatewayOutput::OpenHostConnection { host_conn, host } => {
                    _ = self.host_conns.insert(host_conn, host);
                }
                GatewayOutput::Locate { session, avoid } => {
                    self.located.push((session.to_string(), avoid));
                }
                GatewayOutput::ClientAction(deed) => self.deeds.push(deed),
                GatewayOutput::Note(_) => {}
                other => self.others.push(other),
            }
        }
    }

    fn say(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(GatewayInput::ClientSpoke { conn, frame });
    }

    fn host_says(&mut self, host_conn: HostConnectionId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(GatewayInput::HostSentFrame { host_conn, frame });
    }

    fn locate(&mut self, session: &str, host: &str) {
        let owner = Ok(host.into());
        self.feed(GatewayInput::Located { session: session.into(), owner });
    }

    fn lose(&mut self, host_conn: HostConnectionId) {
        self.feed(GatewayInput::HostConnectionGone { host_conn, why: "connection reset".into() });
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.feed(GatewayInput::Tick);
    }

    /// Says it and returns the host that got it, by which host connection, and what.
    fn ask(&mut self, conn: ConnId, message: &Value) -> (HostId, HostConnectionId, Value) {
        let before = self.said.len();
        self.say(conn, message);
        assert_eq!(self.said.len(), before + 1, "told instead: {:?}", self.told.last());
        self.last_said()
    }

    fn last_said(&self) -> (HostId, HostConnectionId, Value) {
        let (host_conn, text) = self.said.last().cloned().unwrap();
        (self.host_conns[&host_conn].clone(), host_conn, text)
    }

    fn answer(&mut self, host_conn: HostConnectionId, asked: &Value, result: &Value) {
        self.host_says(host_conn, &json!({ "id": asked["id"], "result": result }));
    }

    /// A client with a session of its own.
    fn open(&mut self, conn: ConnId, session: &str) -> HostConnectionId {
        let new = request(&json!("new"), "session/new", &json!({}));
        let (_, host_conn, asked) = self.ask(conn, &new);
        self.answer(host_conn, &asked, &json!({ "sessionId": session }));
        host_conn
    }

    fn last(&self) -> (ConnId, Value) {
        self.told.last().cloned().unwrap()
    }

    fn code(&self) -> String {
        code(&self.last().1)
    }
}

fn code(answer: &Value) -> String {
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
fn a_new_session_goes_to_the_least_loaded_host_and_its_frames_follow_it() {
    let mut scene = Scene::new();
    let (host, host_conn, asked) = scene.ask(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(&*host, "x");
    scene.answer(host_conn, &asked, &json!({ "sessionId": "s-1" }));
    assert_eq!(scene.last(), (A, json!({ "id": 1, "result": { "sessionId": "s-1" } })));
    let mode = request(&json!(2), "session/set_mode", &json!({ "sessionId": "s-1" }));
    assert_eq!(scene.ask(A, &mode).1, host_conn);
    assert!(scene.located.is_empty(), "who opened it knows where it is");
}

#[test]
fn what_was_placed_since_the_load_was_told_counts() {
    let mut scene = Scene::new();
    scene.feed(GatewayInput::Hosts(vec![host("x", 0), host("y", 0)]));
    let hosts: Vec<HostId> =
        (0..4).map(|n| scene.ask(A, &request(&json!(n), "session/new", &json!({}))).0).collect();
    // The second is near home all the same: nothing has been opened there when the first is asked.
    assert_eq!(hosts.iter().map(|it| &**it).collect::<Vec<_>>(), ["x", "y", "x", "y"]);
}

/// A session and its agent raise the load by two, and a report that counted one of three placed sessions
/// removed two of them from the count.
#[test]
fn report_that_counts_one_session_removes_one_placed_session() {
    let mut scene = Scene::new();
    let report = |sessions: usize, free: usize| Host {
        sessions,
        load: 2 * sessions,
        free: Some(free),
        ..host("x", 0)
    };
    let large = || Host { load: 100, ..host("y", 0) };
    scene.feed(GatewayInput::Hosts(vec![report(0, 3), large()]));
    let open = |scene: &mut Scene, n: usize| {
        scene.ask(A, &request(&json!(n), "session/new", &json!({}))).0.to_string()
    };
    let first: Vec<String> = (0..3).map(|n| open(&mut scene, n)).collect();
    assert_eq!(first, ["x", "x", "x"]);
    scene.feed(GatewayInput::Hosts(vec![report(1, 2), large()]));
    assert_eq!(open(&mut scene, 3), "y", "two of three places are taken and not reported yet");
}

#[test]
fn labels_agents_and_draining_decide_before_load() {
    let mut scene = Scene::new();
    let mut other = host("z", 9);
    other.labels.insert("gpu=yes".into());
    other.agents.insert("rare".into(), 1);
    let mut drained = host("w", 0);
    drained.draining = true;
    scene.feed(GatewayInput::Hosts(vec![drained, host("x", 0), other]));
    let mut place = |meta: Value| {
        let params = json!({ "_meta": { "jackfield": meta } });
        let before = scene.said.len();
        let id = json!(before);
        scene.say(A, &request(&id, "session/new", &params));
        if scene.said.len() == before { scene.code() } else { scene.last_said().0.to_string() }
    };
    assert_eq!(place(json!({ "labels": ["gpu=yes"] })), "z");
    assert_eq!(place(json!({ "agent": "rare" })), "z");
    assert_eq!(place(json!({ "labels": ["os=linux", "host=x"] })), "x");
    assert_eq!(place(json!({ "labels": ["host=w"] })), "no_host");
    assert_eq!(place(json!({ "agent": "none" })), "no_host");
    assert_eq!(place(json!({ "labels": "gpu=yes" })), "invalid_params");
}

#[test]
fn a_full_host_comes_after_one_with_a_place_and_a_first_session_goes_home() {
    let mut scene = Scene::new();
    let mut full = host("x", 0);
    full.agents.insert("echo".into(), 0);
    scene.feed(GatewayInput::Hosts(vec![full, host("y", 5)]));
    scene.say(A, &json!({ "method": "_jackfield/connect", "params": { "agent": "echo" } }));
    assert!(scene.said.is_empty(), "nobody needs to know yet");
    scene.say(A, &request(&json!(0), "initialize", &json!({})));
    let (home, _, _) = scene.last_said();
    assert_eq!(&*home, "y");
    // Meanwhile there is less to do elsewhere, but a process may stand ready at home.
    scene.feed(GatewayInput::Hosts(vec![host("x", 0), host("y", 5)]));
    assert_eq!(&*scene.ask(A, &request(&json!(1), "session/new", &json!({}))).0, "y");
    scene.say(A, &request(&json!(2), "session/new", &json!({})));
    assert_eq!(&*scene.last_said().0, "x");
}

/// Also a session whose agent is a command of the client, which no host lists.
#[test]
fn host_without_free_places_gets_sessions_only_if_no_other_has_places() {
    let mut scene = Scene::new();
    let bounded = |name, load, free| Host { free: Some(free), ..host(name, load) };
    scene.feed(GatewayInput::Hosts(vec![bounded("x", 0, 2), host("y", 5)]));
    let connect = json!({ "agent": { "name": "mine", "argv": ["mine"] } });
    scene.say(A, &json!({ "method": "_jackfield/connect", "params": connect }));
    let mut placed = Vec::new();
    for number in 0..5 {
        scene.say(A, &request(&json!(number), "session/new", &json!({})));
        placed.push(scene.last_said().0.to_string());
    }
    assert_eq!(placed, ["x", "x", "y", "y", "y"]);
    scene.feed(GatewayInput::Hosts(vec![bounded("x", 3, 0), bounded("y", 9, 0)]));
    scene.say(A, &request(&json!(9), "session/new", &json!({})));
    assert_eq!(&*scene.last_said().0, "x", "all are full: the one with least to do");
}

#[test]
fn a_client_begins_on_every_host_conn_and_is_answered_once() {
    let mut scene = Scene::new();
    let connect = json!({ "agent": { "name": "mine", "argv": ["mine"] } });
    scene.say(A, &request(&json!("c"), "_jackfield/connect", &connect));
    let (_, home, asked) = scene.last_said();
    scene.answer(home, &asked, &json!({}));
    assert_eq!(scene.last(), (A, json!({ "id": "c", "result": {} })));
    scene.say(A, &request(&json!("i"), "initialize", &json!({ "protocolVersion": 1 })));
    let (_, _, asked) = scene.last_said();
    scene.answer(home, &asked, &json!({ "who": "x" }));
    assert_eq!(scene.last(), (A, json!({ "id": "i", "result": { "who": "x" } })));
    let told = scene.told.len();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-9" })));
    scene.locate("s-9", "y");
    let by_y: Vec<(HostConnectionId, Value)> =
        scene.said.iter().filter(|it| it.0 != home).cloned().collect();
    let methods: Vec<_> = by_y.iter().map(|it| it.1["method"].as_str().unwrap()).collect();
    // In this order no agent is started there for a client that has one at home.
    assert_eq!(methods, ["initialize", "_jackfield/connect", "session/load"]);
    for (host_conn, asked) in &by_y[..2] {
        scene.answer(*host_conn, asked, &json!({ "who": "y" }));
    }
    assert_eq!(scene.told.len(), told, "these answers are nobody's");
}

#[test]
fn frames_wait_in_order_for_the_owner_of_their_session() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    scene.say(A, &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }));
    scene.say(A, &request(&json!(2), "session/set_mode", &json!({ "sessionId": "s-1" })));
    scene.say(B, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    assert_eq!(scene.located, [("s-1".to_owned(), None)], "one question for all");
    scene.locate("s-1", "y");
    let host_conns: BTreeSet<HostConnectionId> = scene.said.iter().map(|it| it.0).collect();
    assert_eq!(host_conns.len(), 2, "each client has its own host connection");
    let of_a: Vec<_> = scene.said[..3].iter().map(|it| it.1["method"].as_str().unwrap()).collect();
    assert_eq!(of_a, ["session/load", "session/cancel", "session/set_mode"]);
}

#[test]
fn an_id_in_use_is_refused_and_the_first_is_answered() {
    let mut scene = Scene::new();
    let (_, host_conn, asked) = scene.ask(A, &request(&json!(1), "session/new", &json!({})));
    scene.say(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(scene.code(), "invalid_request");
    scene.answer(host_conn, &asked, &json!({ "sessionId": "s-1" }));
    assert_eq!(scene.last().1["result"]["sessionId"], "s-1");
}

#[test]
fn a_session_that_nobody_listens_to_is_looked_for_afresh() {
    let mut scene = Scene::new();
    let queue = request(&json!(1), "_jackfield/queue", &json!({ "sessionId": "s-1" }));
    for host in ["x", "y"] {
        scene.say(A, &queue);
        scene.locate("s-1", host);
        let (at, host_conn, asked) = scene.last_said();
        assert_eq!(&*at, host);
        scene.answer(host_conn, &asked, &json!({}));
    }
    assert_eq!(scene.gateway.gauges().sessions, 0);
}

#[test]
fn equal_ids_of_two_hosts_never_meet() {
    let mut scene = Scene::new();
    let x = scene.open(A, "s-1");
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-2" })));
    scene.locate("s-2", "y");
    let (_, y, _) = scene.last_said();
    for (host_conn, session) in [(x, "s-1"), (y, "s-2")] {
        let ask =
            request(&json!(7), "session/request_permission", &json!({ "sessionId": session }));
        scene.host_says(host_conn, &ask);
    }
    let [first, second] = &scene.told[scene.told.len() - 2..] else { unreachable!() };
    let (first, second) = (first.1["id"].clone(), second.1["id"].clone());
    assert_ne!(first, second);
    scene.say(A, &json!({ "id": second, "result": "of y" }));
    assert_eq!(scene.said.last(), Some(&(y, json!({ "id": 7, "result": "of y" }))));
    scene.host_says(x, &json!({ "method": "$/cancel_request", "params": { "requestId": 7 } }));
    assert_eq!(scene.last().1["params"]["requestId"], first);
    let said = scene.said.len();
    scene.say(A, &json!({ "id": first, "result": "too late" }));
    assert_eq!(scene.said.len(), said);
}

#[test]
fn a_withdrawn_request_is_withdrawn_under_the_id_it_was_sent_by() {
    let mut scene = Scene::new();
    scene.open(A, "s-1");
    let prompt = request(&json!("p"), "session/prompt", &json!({ "sessionId": "s-1" }));
    let (_, host_conn, asked) = scene.ask(A, &prompt);
    scene.say(A, &json!({ "method": "$/cancel_request", "params": { "requestId": "p" } }));
    let (by, notice) = scene.said.last().unwrap();
    assert_eq!((*by, &notice["params"]["requestId"]), (host_conn, &asked["id"]));
    // One that waits for its owner is answered at once.
    scene.say(A, &request(&json!("w"), "session/load", &json!({ "sessionId": "s-2" })));
    scene.say(A, &json!({ "method": "$/cancel_request", "params": { "requestId": "w" } }));
    assert_eq!(scene.code(), "cancelled");
    scene.locate("s-2", "x");
    assert_eq!(scene.said.last().unwrap().1["method"], "$/cancel_request");
}

#[test]
fn what_is_not_for_clients_of_a_fleet_is_refused() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "_jackfield/stop", &json!({})));
    assert_eq!(scene.code(), "not_served");
    assert!(scene.said.is_empty());
}

#[test]
fn a_client_that_goes_takes_its_host_conns_with_it() {
    let mut scene = Scene::new();
    let host_conn = scene.open(A, "s-1");
    scene.feed(GatewayInput::ClientGone { conn: A });
    let closed = |it: &GatewayOutput| matches!(it, GatewayOutput::CloseHostConnection { host_conn: it } if *it == host_conn);
    assert!(scene.others.iter().any(closed));
    scene.host_says(host_conn, &update("s-1", 1, "hello"));
    assert_eq!(scene.gateway.gauges().host_conns, 0);
}

#[test]
fn a_client_that_has_finished_gets_its_answers_and_answers_nothing() {
    let mut scene = Scene::new();
    let host_conn = scene.open(A, "s-1");
    let prompt = request(&json!("p"), "session/prompt", &json!({ "sessionId": "s-1" }));
    let (_, _, asked) = scene.ask(A, &prompt);
    scene.feed(GatewayInput::ClientFinished { conn: A });
    let read = request(&json!(1), "fs/read_text_file", &json!({ "sessionId": "s-1" }));
    scene.host_says(host_conn, &read);
    assert_eq!(code(&scene.said.last().unwrap().1), "no_client");
    scene.answer(host_conn, &asked, &json!({ "stopReason": "end_turn" }));
    assert_eq!(scene.last().1["id"], "p");
    assert!(scene.others.iter().any(|it| matches!(it, GatewayOutput::CloseClient { conn: A })));
}

#[test]
fn stopping_answers_and_hangs_up_on_everybody() {
    let mut scene = Scene::new();
    scene.ask(A, &request(&json!(1), "session/new", &json!({})));
    scene.feed(GatewayInput::Stop);
    assert_eq!((scene.last().0, scene.code()), (A, "stopping".to_owned()));
    for conn in [A, B] {
        scene.feed(GatewayInput::ClientGone { conn });
    }
    assert!(matches!(scene.others.last(), Some(GatewayOutput::Stopped)));
}
