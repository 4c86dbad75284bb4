//! A gateway with two clients and two hosts, and helpers to build frames.

use super::super::*;
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const A: ConnId = ConnId(1);
pub(super) const B: ConnId = ConnId(2);

pub(super) fn host(name: &str, load: usize) -> Host {
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
pub(super) struct GatewayFixture {
    pub(super) gateway: Gateway,
    pub(super) now: u64,
    pub(super) client_frames: Vec<(ConnId, Value)>,
    /// Without the frames that open a host connection.
    pub(super) host_frames: Vec<(HostConnectionId, Value)>,
    pub(super) host_conns: BTreeMap<HostConnectionId, HostId>,
    pub(super) located: Vec<(String, Option<HostId>)>,
    pub(super) actions: Vec<ClientAction>,
    pub(super) other_outputs: Vec<GatewayOutput>,
}

impl GatewayFixture {
    pub(super) fn new() -> GatewayFixture {
        GatewayFixture::with_config(GatewayConfig::default())
    }

    pub(super) fn with_config(config: GatewayConfig) -> GatewayFixture {
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

    pub(super) fn feed(&mut self, input: GatewayInput) {
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

    pub(super) fn send_from_client(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(GatewayInput::ClientSentFrame { conn, frame });
    }

    pub(super) fn send_from_host(&mut self, host_conn: HostConnectionId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(GatewayInput::HostSentFrame { host_conn, frame });
    }

    pub(super) fn answer_locate(&mut self, session: &str, host: &str) {
        let owner = Ok(host.into());
        self.feed(GatewayInput::SessionLocated { session: session.into(), owner });
    }

    pub(super) fn lose_connection(&mut self, host_conn: HostConnectionId) {
        self.feed(GatewayInput::HostConnectionGone {
            host_conn,
            reason: "connection reset".into(),
        });
    }

    pub(super) fn advance_time(&mut self, ms: u64) {
        self.now += ms;
        self.feed(GatewayInput::Tick);
    }

    /// Sends a message and returns the host that it was relayed to, the connection, and the frame.
    pub(super) fn relay(
        &mut self,
        conn: ConnId,
        message: &Value,
    ) -> (HostId, HostConnectionId, Value) {
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

    pub(super) fn last_host_frame(&self) -> (HostId, HostConnectionId, Value) {
        let (host_conn, text) = self.host_frames.last().cloned().unwrap();
        (self.host_conns[&host_conn].clone(), host_conn, text)
    }

    pub(super) fn respond(&mut self, host_conn: HostConnectionId, relayed: &Value, result: &Value) {
        self.send_from_host(host_conn, &json!({ "id": relayed["id"], "result": result }));
    }

    /// Opens a session for a client.
    pub(super) fn open_session(&mut self, conn: ConnId, session: &str) -> HostConnectionId {
        let new = request(&json!("new"), "session/new", &json!({}));
        let (_, host_conn, relayed) = self.relay(conn, &new);
        self.respond(host_conn, &relayed, &json!({ "sessionId": session }));
        host_conn
    }

    pub(super) fn last_client_frame(&self) -> (ConnId, Value) {
        self.client_frames.last().cloned().unwrap()
    }

    pub(super) fn error_code(&self) -> String {
        error_code(&self.last_client_frame().1)
    }
}

pub(super) fn error_code(answer: &Value) -> String {
    answer["error"]["data"]["jackfield"]["code"].as_str().unwrap_or_default().to_owned()
}

pub(super) fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(super) fn update(session: &str, seq: u64, text: &str) -> Value {
    let meta = json!({ "jackfield": { "seq": seq } });
    let params = json!({ "sessionId": session, "update": text, "_meta": meta });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}
