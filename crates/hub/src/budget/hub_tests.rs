//! Each queue of the hub that keeps bytes of a peer, filled by a hostile one.

use crate::{
    AgentId, ByteLimits, Config, ConnId, Exit, Hub, Input, Launch, Limits, Note, Output, Recovered,
    SessionId, Time, limits,
};
use jackfield_events::{AgentName, EventBody};
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

const CLIENT: ConnId = ConnId(1);
const OTHER: ConnId = ConnId(2);

/// A session, an agent or a client may keep one large message.
const KEPT: ByteLimits = ByteLimits { own_max: 3_000, own_min: 1_000, all_max: 5_000 };
const LARGE: usize = 2_000;

/// A hub with two clients. Its agents open sessions, and leave everything else to the test.
struct Scene {
    hub: Hub,
    /// Whether the journal answers.
    durable: bool,
    /// Whether agents answer `session/new` and `session/resume`.
    opens: bool,
    received: Vec<(ConnId, Value)>,
    to_agents: Vec<(AgentId, Value)>,
    others: Vec<Output>,
    written: Vec<EventBody>,
    next_id: u64,
}

impl Scene {
    fn new(limits: Limits) -> Scene {
        Scene::with(limits, [])
    }

    fn with(limits: Limits, recovered: impl IntoIterator<Item = Recovered>) -> Scene {
        let (name, argv): (AgentName, _) = ("fake".into(), vec!["fake".into()]);
        let launch = Launch {
            name: name.clone(),
            argv,
            cwd: PathBuf::new(),
            env: None,
            variant: crate::VariantChoice::Any,
            sandbox: crate::SandboxRequest::default(),
        };
        let agents = BTreeMap::from([(name.clone(), launch)]);
        let config = Config { agents, default_agent: Some(name), limits, ..Config::default() };
        let mut scene = Scene {
            hub: Hub::new(config, Time(0), recovered),
            durable: true,
            opens: true,
            received: Vec::new(),
            to_agents: Vec::new(),
            others: Vec::new(),
            written: Vec::new(),
            next_id: 0,
        };
        scene.drain();
        let files = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": files });
        for conn in [CLIENT, OTHER] {
            scene.feed(Input::ClientOpened { conn, peer: None });
            scene.ask(conn, "initialize", &hello);
        }
        scene
    }

    fn feed(&mut self, input: Input) {
        self.hub.handle(Time(1), input);
        self.drain();
    }

    fn drain(&mut self) {
        let mut inputs = VecDeque::new();
        loop {
            while let Some(output) = self.hub.poll_output() {
                match output {
                    Output::ToClient { conn, text } => {
                        self.received.push((conn, serde_json::from_slice(&text).unwrap()));
                    }
                    Output::Append { session, event, .. } => {
                        if self.durable {
                            inputs.push_back(Input::Durable { session, upto: event.seq });
                        }
                        self.written.push(event.body);
                    }
                    Output::ToAgent { agent, text } => {
                        let message: Value = serde_json::from_slice(&text).unwrap();
                        inputs.extend(self.answer_of(agent, &message));
                        self.to_agents.push((agent, message));
                    }
                    other => self.others.push(other),
                }
            }
            let Some(input) = inputs.pop_front() else { return };
            self.hub.handle(Time(1), input);
        }
    }

    fn answer_of(&self, agent: AgentId, message: &Value) -> Option<Input> {
        let resumes = json!({ "sessionCapabilities": { "resume": {} } });
        let result = match message["method"].as_str()? {
            "initialize" => json!({ "protocolVersion": 1, "agentCapabilities": resumes }),
            "session/new" if self.opens => json!({ "sessionId": format!("theirs-{}", agent.0) }),
            "session/resume" if self.opens => json!({}),
            _ => return None,
        };
        let frame = Frame::result_for(&message["id"].to_string(), &result.to_string());
        Some(Input::AgentSpoke { agent, frame })
    }

    fn send(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(Input::ClientSpoke { conn, frame });
    }

    /// The answer to a request, or null if there is none yet.
    fn ask(&mut self, conn: ConnId, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(conn, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let is_it = |it: &&(ConnId, Value)| it.0 == conn && it.1["id"] == id;
        self.received.iter().find(is_it).map(|it| it.1.clone()).unwrap_or_default()
    }

    fn open(&mut self, conn: ConnId) -> String {
        let opened = self.ask(conn, "session/new", &json!({ "cwd": "/x", "mcpServers": [] }));
        opened["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, conn: ConnId, session: &str, bytes: usize) -> Value {
        let prompt = json!([{ "type": "text", "text": "x".repeat(bytes) }]);
        self.ask(conn, "session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    fn agent_says(&mut self, agent: u64, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(Input::AgentSpoke { agent: AgentId(agent), frame });
    }

    fn update(&mut self, agent: u64, bytes: usize) {
        let content = json!({ "type": "text", "text": "x".repeat(bytes) });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": format!("theirs-{agent}"), "update": update });
        self.agent_says(agent, &json!({ "method": "session/update", "params": params }));
    }

    /// The agent asks for a permission; its error, if it is refused at once.
    fn permission(&mut self, agent: u64, id: u64, bytes: usize) -> Option<Value> {
        let call = json!({ "toolCallId": "t", "title": "x", "content": "x".repeat(bytes) });
        let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
        let session = format!("theirs-{agent}");
        let params = json!({ "sessionId": session, "toolCall": call, "options": options });
        let method = "session/request_permission";
        self.agent_says(agent, &json!({ "id": id, "method": method, "params": params }));
        self.refusal(id)
    }

    fn refusal(&self, id: u64) -> Option<Value> {
        let answers = self.to_agents.iter().map(|(_, it)| it);
        answers.rev().find(|it| it["id"] == id && it.get("error").is_some()).cloned()
    }

    fn has(&self, is_it: impl Fn(&Output) -> bool) -> bool {
        self.others.iter().any(is_it)
    }
}

fn limits() -> Limits {
    Limits { kept: KEPT, ..Limits::default() }
}

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["jackfield"]["code"].as_str().unwrap_or("none")
}

#[test]
fn agent_that_says_too_much_before_its_session_is_open_is_refused() {
    let mut scene = Scene::new(limits());
    scene.opens = false;
    let params = json!({ "cwd": "/x", "mcpServers": [] });
    assert_eq!(scene.ask(CLIENT, "session/new", &params), Value::Null);
    scene.update(1, LARGE);
    assert!(!scene.has(|it| matches!(it, Output::StopAgent { .. })));
    scene.update(1, LARGE);
    assert!(scene.has(|it| matches!(it, Output::StopAgent { .. })));
    let (_, answer) = scene.received.last().unwrap();
    assert_eq!(code(answer), "agent_gone");
    assert_eq!(scene.hub.parts.cx.retained_bytes.used_bytes(), 0, "nothing of it is kept");
}

#[test]
fn early_messages_of_all_agents_are_bounded_together() {
    let mut scene = Scene::new(limits());
    scene.opens = false;
    for agent in 1..=4 {
        scene.ask(CLIENT, "session/new", &json!({ "cwd": "/x", "mcpServers": [] }));
        scene.update(agent, LARGE);
    }
    let stopped = scene.others.iter().filter(|it| matches!(it, Output::StopAgent { .. })).count();
    assert_eq!(stopped, 2, "two of them have what all may have");
    assert!(scene.hub.parts.cx.retained_bytes.used_bytes() <= KEPT.all_max);
}

#[test]
fn ask_that_cannot_be_kept_is_answered_with_an_error_and_small_ones_are_kept() {
    let mut scene = Scene::new(limits());
    let session = scene.open(CLIENT);
    scene.prompt(CLIENT, &session, 1);
    assert_eq!(scene.permission(1, 10, LARGE), None);
    let refused = scene.permission(1, 11, LARGE).unwrap();
    assert_eq!(code(&refused), "overloaded", "{refused}");
    assert_eq!(scene.permission(1, 12, 10), None);
    // An ask that is answered makes room.
    let asked = |it: &&(ConnId, Value)| it.1["method"] == "session/request_permission";
    let (_, ask) = scene.received.iter().find(asked).unwrap().clone();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    scene.send(CLIENT, &json!({ "jsonrpc": "2.0", "id": ask["id"], "result": outcome }));
    assert_eq!(scene.permission(1, 13, LARGE), None);
}

#[test]
fn asks_of_all_sessions_are_bounded_together_and_a_small_one_is_kept() {
    let mut scene = Scene::new(limits());
    for agent in 1..=3 {
        let session = scene.open(CLIENT);
        scene.prompt(CLIENT, &session, 1);
        let refused = scene.permission(agent, 10 + agent, LARGE);
        assert_eq!(refused.as_ref().map(code), (agent == 3).then_some("overloaded"));
    }
    assert_eq!(scene.permission(3, 20, 10), None);
}

#[test]
fn request_for_one_client_that_cannot_be_kept_is_answered_with_an_error() {
    let mut scene = Scene::new(limits());
    let session = scene.open(CLIENT);
    scene.prompt(CLIENT, &session, 1);
    for (id, refused) in [(10, false), (11, true)] {
        let content = "x".repeat(LARGE);
        let params = json!({ "sessionId": "theirs-1", "path": "/x/y", "content": content });
        scene.agent_says(1, &json!({ "id": id, "method": "fs/write_text_file", "params": params }));
        assert_eq!(scene.refusal(id).as_ref().map(code), refused.then_some("overloaded"));
    }
}

#[test]
fn prompt_that_cannot_be_kept_is_answered_overloaded() {
    let mut scene = Scene::new(limits());
    let session = scene.open(CLIENT);
    // The first one runs, and is not kept.
    assert_eq!(scene.prompt(CLIENT, &session, LARGE), Value::Null);
    assert_eq!(scene.prompt(CLIENT, &session, LARGE), Value::Null);
    assert_eq!(code(&scene.prompt(CLIENT, &session, LARGE)), "overloaded");
    assert_eq!(scene.prompt(OTHER, &session, 10), Value::Null);
    scene.send(CLIENT, &json!({ "method": "session/cancel", "params": { "sessionId": session } }));
    assert_eq!(scene.hub.parts.cx.retained_bytes.used_bytes(), 0, "what is withdrawn is not kept");
}

#[test]
fn prompts_that_an_earlier_daemon_left_are_counted() {
    let mut scene = Scene::new(limits());
    let session = scene.open(CLIENT);
    scene.prompt(CLIENT, &session, 1);
    scene.prompt(CLIENT, &session, LARGE);
    let id: SessionId = session.as_str().into();
    let state = scene.hub.session(&id).unwrap().clone();
    let mut scene = Scene::with(limits(), [Recovered { session: id, state }]);
    assert!(LARGE < scene.hub.parts.cx.retained_bytes.used_bytes());
    assert_eq!(code(&scene.prompt(CLIENT, &session, LARGE)), "overloaded");
}

#[test]
fn request_that_waits_for_an_agent_is_bounded() {
    let mut scene = Scene::new(limits());
    let session = scene.open(CLIENT);
    scene.ask(CLIENT, "session/close", &json!({ "sessionId": session }));
    let exit = Exit {
        status: "exit status 0".into(),
        stderr: String::new(),
        started: true,
        shortage: false,
    };
    scene.feed(Input::AgentGone { agent: AgentId(1), exit });
    scene.opens = false;
    let large = json!({ "sessionId": session, "modeId": "x".repeat(LARGE) });
    assert_eq!(scene.ask(CLIENT, "session/set_mode", &large), Value::Null);
    assert_eq!(code(&scene.ask(CLIENT, "session/set_mode", &large)), "overloaded");
}

#[test]
fn request_that_an_agent_has_not_answered_is_bounded() {
    let mut scene = Scene::new(limits());
    let session = scene.open(CLIENT);
    let large = json!({ "sessionId": session, "modeId": "x".repeat(LARGE) });
    assert_eq!(scene.ask(CLIENT, "session/set_mode", &large), Value::Null);
    assert_eq!(code(&scene.ask(CLIENT, "session/set_mode", &large)), "overloaded");
    let (_, asked) = scene.to_agents.last().unwrap().clone();
    scene.agent_says(1, &json!({ "id": asked["id"], "result": {} }));
    assert_eq!(scene.ask(CLIENT, "session/set_mode", &large), Value::Null);
    let state = scene.hub.session(&session.as_str().into()).unwrap();
    assert!(state.mode.as_ref().is_some_and(|it| it.len() == LARGE), "the setting is remembered");
}

#[test]
fn what_a_session_or_a_client_is_introduced_with_is_bounded() {
    let mut scene = Scene::new(Limits::default());
    let meta = json!({ "text": "x".repeat(limits::SETUP_BYTES_MAX) });
    let large = json!({ "cwd": "/x", "mcpServers": [], "_meta": meta });
    assert_eq!(code(&scene.ask(CLIENT, "session/new", &large)), "overloaded");
    let conn = ConnId(3);
    scene.feed(Input::ClientOpened { conn, peer: None });
    assert_eq!(code(&scene.ask(conn, "initialize", &large)), "overloaded");
    let session = scene.open(CLIENT);
    let fork = json!({ "sessionId": session, "cwd": "/x", "_meta": meta });
    assert_eq!(code(&scene.ask(CLIENT, "session/fork", &fork)), "overloaded");
}

#[test]
fn title_that_is_too_long_is_told_and_not_kept() {
    let mut scene = Scene::new(Limits::default());
    let session = scene.open(CLIENT);
    for (title, kept) in [
        ("short".to_owned(), true),
        ("x".repeat(jackfield_events::limits::TITLE_BYTES_MAX + 1), false),
    ] {
        let update = json!({ "sessionUpdate": "session_info_update", "title": title });
        let params = json!({ "sessionId": "theirs-1", "update": update });
        scene.agent_says(1, &json!({ "method": "session/update", "params": params }));
        assert_eq!(scene.received.last().unwrap().1["params"]["update"]["title"], title);
        let state = scene.hub.session(&session.as_str().into()).unwrap();
        assert_eq!(state.title.as_ref() == Some(&title), kept);
    }
}

#[test]
fn client_that_does_not_read_while_answers_add_up_is_cut_off() {
    let limits = Limits { outbox_bytes_max: 3_000, outbox_bytes_low: 1_000, ..limits() };
    let mut scene = Scene::new(limits);
    let session = scene.open(CLIENT);
    scene.prompt(OTHER, &session, 1);
    for _ in 0..5 {
        scene.update(1, 1_000);
    }
    assert!(scene.has(|it| matches!(it, Output::Note(Note::ClientBehind { conn: CLIENT, .. }))));
    let set = json!({ "sessionId": session, "modeId": "m" });
    for cut_off in [false, true] {
        scene.ask(CLIENT, "session/set_mode", &set);
        let (_, asked) = scene.to_agents.last().unwrap().clone();
        let result = json!({ "text": "x".repeat(LARGE) });
        scene.agent_says(1, &json!({ "id": asked["id"], "result": result }));
        assert_eq!(scene.has(|it| matches!(it, Output::CloseClient { conn: CLIENT })), cut_off);
    }
    assert_eq!(code(&scene.received.last().unwrap().1), "overloaded");
}

#[test]
fn agents_are_not_read_while_all_logs_together_hold_too_much() {
    let limits = Limits { held_bytes_all_max: 3_000, ..Limits::default() };
    let mut scene = Scene::new(limits);
    let sessions = [scene.open(CLIENT), scene.open(CLIENT)];
    scene.durable = false;
    scene.update(1, LARGE);
    assert!(!scene.has(|it| matches!(it, Output::PauseAgent { .. })));
    scene.update(2, LARGE);
    assert!(scene.has(|it| matches!(it, Output::PauseAgent { agent: AgentId(2) })));
    let session: SessionId = sessions[1].as_str().into();
    let upto = scene.hub.session(&session).unwrap().upto();
    scene.feed(Input::Durable { session, upto });
    assert!(scene.has(|it| matches!(it, Output::ResumeAgent { agent: AgentId(2) })));
}

#[test]
fn clients_are_behind_sooner_while_all_together_have_too_much_unread() {
    let limits = Limits { outbox_bytes_all_max: 200 << 10, ..Limits::default() };
    let mut scene = Scene::new(limits);
    let session = scene.open(CLIENT);
    scene.prompt(OTHER, &session, 1);
    let behind =
        |scene: &Scene| scene.has(|it| matches!(it, Output::Note(Note::ClientBehind { .. })));
    scene.update(1, 110 << 10);
    assert!(!behind(&scene));
    scene.update(1, 10);
    assert!(behind(&scene), "each has less than one may have");
    // Whoever reads hears the rest.
    let unwritten = scene.hub.parts.clients.connections[&CLIENT].outbox.bytes();
    scene.feed(Input::ClientWrote { conn: CLIENT, bytes: unwritten });
    assert!(scene.has(|it| matches!(it, Output::Read { conn: CLIENT, .. })));
}
