//! Tenants of one hub: `walls` is what the wrong one hears, `requests` what one may send to an agent, `quotas`
//! how much one may have.

mod quotas;
mod requests;
mod walls;

use super::Tenant;
use crate::{AgentId, AgentPool, Config, ConnId, Hub, Input, Launch, Output, Recovered, Time};
use jackfield_events::SessionSummary;
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

const OPERATOR: ConnId = ConnId(1);
const ACME: ConnId = ConnId(2);
const OTHER: ConnId = ConnId(3);

fn tenant(name: &str) -> Tenant {
    Tenant {
        name: name.into(),
        sessions: None,
        agents: None,
        events_per_second: None,
        commands: false,
        roots: vec!["/srv".into()],
    }
}

/// A hub with an operator, a client of `acme` and one of `other`, and a session of each that sleeps.
/// Agents answer at once.
struct Scene {
    hub: Hub,
    now: u64,
    received: Vec<(ConnId, Value)>,
    /// Everything else that the hub has asked for.
    outputs: Vec<Output>,
    next_id: u64,
    /// What agents have called their sessions.
    named: u64,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(&tenant("acme"), AgentPool::default())
    }

    fn with(acme: &Tenant, pool: AgentPool) -> Scene {
        let launch = Launch {
            name: "echo".into(),
            argv: vec!["echo".into()],
            cwd: PathBuf::new(),
            env: None,
            variant: crate::VariantChoice::Any,
            sandbox: crate::SandboxRequest::default(),
        };
        let config = Config {
            agents: BTreeMap::from([("echo".into(), launch)]),
            default_agent: Some("echo".into()),
            pools: BTreeMap::from([("echo".into(), pool)]),
            ..Config::default()
        };
        let asleep = |name: &str| {
            let (agent, argv) = ("echo".into(), vec!["echo".to_owned()]);
            let state = SessionSummary {
                seq: 5,
                agent,
                argv,
                cwd: "/srv/x".into(),
                agent_session: format!("a-{name}").into(),
                ..SessionSummary::default()
            };
            Recovered { session: name.into(), state }
        };
        let recovered = ["s-1", "acme.s-1", "other.s-1"].map(asleep);
        let hub = Hub::new(config, Time(0), recovered);
        let (received, outputs) = (Vec::new(), Vec::new());
        let mut scene = Scene { hub, now: 1, received, outputs, next_id: 0, named: 0 };
        scene.feed(Input::ClientOpened { conn: OPERATOR, peer: None });
        scene.arrive(ACME, acme);
        scene.arrive(OTHER, &tenant("other"));
        for conn in [OPERATOR, ACME, OTHER] {
            scene.ask(conn, "initialize", &json!({ "protocolVersion": 1 }));
        }
        scene.outputs.clear();
        scene
    }

    fn arrive(&mut self, conn: ConnId, tenant: &Tenant) {
        self.feed(Input::ClientOpened { conn, peer: None });
        self.feed(Input::ClientSpoke { conn, frame: tenant.binding() });
    }

    /// One input, and what follows from it: what is appended is durable, and agents answer.
    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.hub.handle(Time(self.now), input);
            while let Some(output) = self.hub.poll_output() {
                match &output {
                    Output::ToClient { conn, text } => {
                        self.received.push((*conn, serde_json::from_slice(text).unwrap()));
                        continue;
                    }
                    Output::Append { session, event, .. } => {
                        let (session, upto) = (session.clone(), event.seq);
                        inputs.push_back(Input::Durable { session, upto });
                    }
                    Output::ToAgent { agent, text } => {
                        let frame = Frame::parse(text.clone()).unwrap();
                        inputs.extend(self.answer_of(*agent, &frame));
                    }
                    _ => {}
                }
                self.outputs.push(output);
            }
        }
    }

    fn answer_of(&mut self, agent: AgentId, frame: &Frame) -> Option<Input> {
        let result = match frame.method().as_deref()? {
            "initialize" => json!({ "agentCapabilities": {
                "sessionCapabilities": { "resume": {}, "close": {} },
            } }),
            "session/new" => {
                self.named += 1;
                json!({ "sessionId": format!("a-{}", self.named) })
            }
            "session/prompt" => return None,
            _ => json!({}),
        };
        let frame = Frame::result_for(frame.id()?, &result.to_string());
        Some(Input::AgentSpoke { agent, frame })
    }

    /// Asks and returns the answer, if there is one at once.
    fn ask(&mut self, conn: ConnId, method: &str, params: &Value) -> Value {
        self.ask_text(conn, method, &params.to_string())
    }

    /// The same with params as a client writes them.
    fn ask_text(&mut self, conn: ConnId, method: &str, params: &str) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let frame = Frame::request(&id.to_string(), method, params);
        self.feed(Input::ClientSpoke { conn, frame });
        let answer = self.received.iter().rev().find(|(to, it)| *to == conn && it["id"] == id);
        answer.map(|(_, it)| it.clone()).unwrap_or_default()
    }

    fn send(&mut self, conn: ConnId, method: &str, params: &Value) {
        let frame = Frame::notification(method, &params.to_string());
        self.feed(Input::ClientSpoke { conn, frame });
    }

    /// Opens a session and returns its name, or the answer's code.
    fn open(&mut self, conn: ConnId) -> Result<String, String> {
        let answer = self.ask(conn, "session/new", &json!({ "cwd": "/srv/x", "mcpServers": [] }));
        let name = answer.pointer("/result/sessionId").and_then(Value::as_str);
        name.map(str::to_owned).ok_or_else(|| code(&answer))
    }

    fn close(&mut self, conn: ConnId, session: &str) {
        let answer = self.ask(conn, "session/close", &json!({ "sessionId": session }));
        assert!(answer["error"].is_null(), "{answer}");
    }

    fn alive(&self) -> Vec<AgentId> {
        self.hub
            .parts
            .agents
            .processes
            .iter()
            .filter(|(_, it)| !it.stopping)
            .map(|(id, _)| *id)
            .collect()
    }

    /// The names of sessions in a list.
    fn listed(&mut self, conn: ConnId, method: &str) -> Vec<String> {
        let answer = self.ask(conn, method, &json!({}));
        let rows = answer["result"]["sessions"].as_array().unwrap().clone();
        let mut names: Vec<_> =
            rows.iter().map(|it| it["sessionId"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

fn code(answer: &Value) -> String {
    let code = answer.pointer("/error/data/jackfield/code").and_then(Value::as_str);
    code.unwrap_or_else(|| panic!("no error of ours: {answer}")).to_owned()
}

fn why(answer: &Value) -> String {
    answer["error"]["message"].as_str().unwrap_or_default().to_owned()
}
