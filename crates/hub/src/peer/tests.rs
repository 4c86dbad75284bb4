//! What a client below an agent may do, and what is written down when it tries more.

use crate::{
    AgentId, Config, ConnId, Environment, Hub, Input, Launch, Note, Output, PeerPlace, PeerProcess,
    SessionId, Time,
};
use jackfield_events::{AgentName, EventBody, OperationRefused, UserAnswered};
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

const USER: ConnId = ConnId(1);
const BELOW: ConnId = ConnId(2);
const UNKNOWN: ConnId = ConnId(3);
const AGENT: AgentId = AgentId(1);

/// A hub with one session, its agent, and three clients that are received apart by their processes.
struct Scene {
    hub: Hub,
    session: SessionId,
    received: Vec<(ConnId, Value)>,
    written: Vec<EventBody>,
    notes: Vec<Note>,
    spawned: Vec<Launch>,
    stop_asked: bool,
    next_id: u64,
}

fn peer(pid: u32, place: PeerPlace) -> PeerProcess {
    PeerProcess { pid: Some(pid), uid: 1000, exe: Some("/bin/client".into()), place }
}

impl Scene {
    fn new() -> Scene {
        let (name, argv): (AgentName, _) = ("echo".into(), vec!["echo".into()]);
        let launch = Launch {
            name: name.clone(),
            argv,
            cwd: PathBuf::new(),
            env: None,
            variant: crate::VariantChoice::Any,
            sandbox: crate::SandboxRequest::default(),
        };
        let agents = BTreeMap::from([(name.clone(), launch)]);
        let config = Config { agents, default_agent: Some(name), ..Config::default() };
        let mut scene = Scene {
            hub: Hub::new(config, Time(0), []),
            session: "".into(),
            received: Vec::new(),
            written: Vec::new(),
            notes: Vec::new(),
            spawned: Vec::new(),
            stop_asked: false,
            next_id: 0,
        };
        let places = [PeerPlace::Outside, PeerPlace::BelowAgent(AGENT), PeerPlace::Unknown];
        for ((conn, pid), place) in [(USER, 10), (BELOW, 20), (UNKNOWN, 30)].into_iter().zip(places)
        {
            scene.feed(Input::ClientOpened { conn, peer: Some(peer(pid, place)) });
            let received = scene.ask(conn, "initialize", &json!({ "protocolVersion": 1 }));
            let said = received["result"]["_meta"]["jackfield"].get("operator");
            assert_eq!(said, (conn != USER).then_some(&json!(false)), "{received}");
        }
        let opened = scene.ask(USER, "session/new", &json!({ "cwd": "/x", "mcpServers": [] }));
        scene.session = opened["result"]["sessionId"].as_str().unwrap().into();
        scene.written.clear();
        scene
    }

    /// One input, and what follows from it: what is appended is durable, and the agent answers.
    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.hub.handle(Time(1), input);
            while let Some(output) = self.hub.poll_output() {
                match output {
                    Output::ToClient { conn, text } => {
                        self.received.push((conn, serde_json::from_slice(&text).unwrap()));
                    }
                    Output::Append { session, event, .. } => {
                        inputs.push_back(Input::Durable { session, upto: event.seq });
                        self.written.push(event.body);
                    }
                    Output::ToAgent { agent, text } => {
                        inputs.extend(answer_of(agent, &Frame::parse(text).unwrap()));
                    }
                    Output::Note(note) => self.notes.push(note),
                    Output::Spawn { launch, .. } => self.spawned.push(launch),
                    Output::StopAsked => self.stop_asked = true,
                    _ => {}
                }
            }
        }
    }

    fn say(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(Input::ClientSpoke { conn, frame });
    }

    fn ask(&mut self, conn: ConnId, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.say(conn, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let is_it = |it: &&(ConnId, Value)| it.0 == conn && it.1["id"] == id;
        self.received.iter().find(is_it).map(|it| it.1.clone()).unwrap_or_default()
    }

    /// The agent asks for a permission in a turn of the user.
    fn open_ask(&mut self) {
        let session = self.session.clone();
        self.ask(USER, "session/prompt", &json!({ "sessionId": *session, "prompt": [] }));
        let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
        let call = json!({ "toolCallId": "t", "title": "rm x" });
        let params = json!({ "sessionId": "theirs", "toolCall": call, "options": options });
        let frame = Frame::request("7", "session/request_permission", &params.to_string());
        self.feed(Input::AgentSpoke { agent: AGENT, frame });
    }

    fn answer(&mut self, conn: ConnId) -> Value {
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
        let params = json!({ "sessionId": *self.session, "ask": 1, "result": result });
        self.ask(conn, "_jackfield/answer", &params)
    }

    fn refused(&self) -> Vec<&str> {
        let operation = |it: &'_ EventBody| matches!(it, EventBody::Refused(_));
        let refused = self.written.iter().filter(|it| operation(it));
        refused
            .map(|it| match it {
                EventBody::Refused(OperationRefused { operation, .. }) => &**operation,
                _ => unreachable!("filtered above"),
            })
            .collect()
    }

    fn peer_of_answer(&self) -> Option<Value> {
        self.written.iter().find_map(|it| match it {
            EventBody::Answered(UserAnswered { peer, .. }) => {
                peer.as_ref().map_or(Some(Value::Null), jackfield_events::RawJson::parse)
            }
            _ => None,
        })
    }
}

fn answer_of(agent: AgentId, frame: &Frame) -> Option<Input> {
    let result = match frame.method().as_deref()? {
        "session/new" => json!({ "sessionId": "theirs" }),
        "session/prompt" => return None,
        _ => json!({}),
    };
    let frame = Frame::result_for(frame.id()?, &result.to_string());
    Some(Input::AgentSpoke { agent, frame })
}

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["jackfield"]["code"].as_str().unwrap_or_default()
}

#[test]
fn answer_of_a_client_below_an_agent_is_refused_and_that_of_the_user_counts() {
    let mut scene = Scene::new();
    scene.open_ask();
    let answer = scene.answer(BELOW);
    assert_eq!(code(&answer), "not_allowed", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    let received = ["process 20", "/bin/client", "below an agent", "own terminal"];
    assert!(received.iter().all(|it| message.contains(it)), "{message}");
    assert_eq!(scene.refused(), ["_jackfield/answer"]);
    assert!(matches!(&scene.notes[..], [.., Note::OperationRefused { conn: BELOW, .. }]));
    assert_eq!(scene.peer_of_answer(), None);
    assert_eq!(scene.answer(USER)["result"], json!({}));
    let expected = json!({ "pid": 10, "uid": 1000, "exe": "/bin/client" });
    assert_eq!(scene.peer_of_answer(), Some(expected));
}

#[test]
fn response_of_a_client_below_an_agent_leaves_the_ask_open() {
    let mut scene = Scene::new();
    let resume = json!({ "sessionId": *scene.session, "cwd": "/x" });
    scene.ask(BELOW, "session/resume", &resume);
    scene.open_ask();
    let is_ask = |it: &&(ConnId, Value)| it.1["method"] == "session/request_permission";
    let asked = scene.received.iter().filter(is_ask).find(|it| it.0 == BELOW).unwrap().1.clone();
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    scene.say(BELOW, &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    assert_eq!(scene.refused(), ["session/request_permission"]);
    let asks = scene.ask(USER, "_jackfield/asks", &json!({}));
    assert_eq!(asks["result"]["asks"].as_array().unwrap().len(), 1, "{asks}");
}

#[test]
fn client_whose_place_is_unknown_is_refused_like_one_below_an_agent() {
    let mut scene = Scene::new();
    let answer = scene.ask(UNKNOWN, "_jackfield/stop", &json!({}));
    assert_eq!(code(&answer), "not_allowed");
    assert!(answer["error"]["message"].as_str().unwrap().contains("it had ended"), "{answer}");
    assert!(!scene.stop_asked);
    // Without an agent there is no session that it concerns: the driver is received.
    assert!(scene.refused().is_empty());
    assert!(matches!(&scene.notes[..], [.., Note::OperationRefused { conn: UNKNOWN, .. }]));
    assert_eq!(scene.ask(USER, "_jackfield/stop", &json!({}))["result"], json!({}));
    assert!(scene.stop_asked);
}

#[test]
fn every_operation_of_the_operator_is_refused_below_an_agent_and_written_down() {
    let server = json!([{ "name": "x", "command": "/bin/x", "args": [], "env": [] }]);
    let agent = json!({ "name": "x", "argv": ["/bin/x"] });
    let operations = [
        ("_jackfield/connect", json!({ "agent": agent })),
        ("_jackfield/connect", json!({ "agent": "echo" })),
        ("_jackfield/connect", json!({ "sandbox": "open" })),
        ("_jackfield/import", json!({ "lines": [] })),
        ("_jackfield/operator", json!({ "operation": "trust" })),
        ("_jackfield/stop", json!({})),
        ("_jackfield/listen", json!({ "add": "http://127.0.0.1:0" })),
        ("session/new", json!({ "cwd": "/x", "mcpServers": server })),
        ("session/new", json!({ "cwd": "/x", "_meta": { "jackfield": { "mcp": ["db"] } } })),
        ("session/new", json!({ "cwd": "/x", "_meta": { "jackfield": { "approve": "all" } } })),
        ("session/new", json!({ "cwd": "/x", "_meta": { "jackfield": { "sandbox": "open" } } })),
    ];
    for (method, params) in operations {
        let mut scene = Scene::new();
        let answer = scene.ask(BELOW, method, &params);
        assert_eq!(code(&answer), "not_allowed", "{method}: {answer}");
        let written = if method == "_jackfield/operator" { "trust" } else { method };
        assert_eq!(scene.refused(), [written]);
        scene.say(BELOW, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        assert!(
            !scene.stop_asked && scene.hub.parts.clients.connections[&BELOW].launch.is_none(),
            "{method}"
        );
    }
}

#[test]
fn mcp_servers_of_other_forms_count_as_programs_below_an_agent() {
    for servers in [
        r#"{"x":{"command":"/bin/x"}}"#,
        r#"[{"name":"x","command":"/bin/x"}],"mcpServers":[]"#,
        r#"[{"type":"stdio","name":"x"}]"#,
        r#"[{"type":"http","name":"x","url":"https://a.example","command":"/bin/x"}]"#,
        r#"["/bin/x"]"#,
    ] {
        let mut scene = Scene::new();
        let params = format!(r#"{{"cwd":"/x","mcpServers":{servers}}}"#);
        let frame = Frame::request("\"forms\"", "session/new", &params);
        scene.feed(Input::ClientSpoke { conn: BELOW, frame });
        let answer = scene.received.iter().find(|(conn, it)| *conn == BELOW && it["id"] == "forms");
        assert_eq!(code(&answer.unwrap().1), "not_allowed", "{servers}");
        assert_eq!(scene.refused(), ["session/new"], "{servers}");
    }
}

#[test]
fn environment_of_a_client_below_an_agent_is_ignored() {
    let mut scene = Scene::new();
    let connect = json!({ "cwd": "/x", "env": { "LD_PRELOAD": "/x.so" } });
    assert_eq!(scene.ask(BELOW, "_jackfield/connect", &connect)["error"], Value::Null);
    assert!(scene.refused().is_empty());
    assert!(scene.hub.parts.clients.connections[&BELOW].env.is_none());
    scene.ask(USER, "_jackfield/connect", &connect);
    assert!(scene.hub.parts.clients.connections[&USER].env.is_some());
}

#[test]
fn client_below_an_agent_can_still_open_and_prompt_sessions_of_the_default_agent() {
    let mut scene = Scene::new();
    let opened = scene.ask(BELOW, "session/new", &json!({ "cwd": "/x", "mcpServers": [] }));
    assert!(opened["result"]["sessionId"].is_string(), "{opened}");
    let params = json!({ "sessionId": opened["result"]["sessionId"], "prompt": [] });
    scene.ask(BELOW, "session/prompt", &params);
    assert!(scene.written.iter().any(|it| matches!(it, EventBody::Prompted(_))));
    assert!(scene.refused().is_empty());
}

#[test]
fn user_is_told_that_no_agent_is_above() {
    let mut scene = Scene::new();
    let params = json!({ "operation": "token" });
    assert_eq!(scene.ask(USER, "_jackfield/operator", &params)["result"], json!({}));
    let params = json!({ "operation": "x".repeat(65) });
    assert_eq!(code(&scene.ask(USER, "_jackfield/operator", &params)), "invalid_params");
}

#[test]
fn default_agent_and_agents_named_by_requests_get_the_environment_of_the_client() {
    let mut scene = Scene::new();
    assert_eq!(scene.spawned.pop().unwrap().env, None);
    let env = json!({ "SOME_KEY": "1" });
    assert_eq!(scene.ask(USER, "_jackfield/connect", &json!({ "env": env }))["result"], json!({}));
    let named = json!({ "jackfield": { "agent": "echo" } });
    for meta in [json!({}), named] {
        let params = json!({ "cwd": "/x", "mcpServers": [], "_meta": meta });
        scene.ask(USER, "session/new", &params);
        let launch = scene.spawned.pop().unwrap();
        let expected = Environment(vec![("SOME_KEY".to_owned(), "1".to_owned())]);
        assert_eq!((&*launch.name, launch.env.as_deref()), ("echo", Some(&expected)));
    }
}
