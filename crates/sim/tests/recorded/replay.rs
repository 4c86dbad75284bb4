//! Replays a recording against the hub, line by line: feeds the messages of the client and of the agent, and checks after
//! each line what both received.

use super::{
    recording::{MessageKind, MessageSide, RecordedLine, Recording, with_id, with_session},
    world::{AGENT, ReplayWorld, fold},
};
use jackfield_hub::{ConnId, SessionId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The capabilities of the replayed client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// As recorded.
    Recorded,
    /// Serves no files.
    Bare,
}

pub(crate) struct Replay {
    pub(crate) world: ReplayWorld,
    pub(crate) conn: ConnId,
    client: ClientKind,
    /// The agent's session id, and the hub's once the session is open.
    agent_session: String,
    pub(crate) session: Option<SessionId>,
    /// Updates that the agent sent before it answered `session/new`.
    early: Option<Vec<String>>,
    /// Open requests of the client: the recorded id, the method, and the id that the agent received.
    pub(crate) agent_requests_open: BTreeMap<String, (String, Option<String>)>,
    /// Open requests of the agent: its own id, and the id that the client received.
    client_requests_open: BTreeMap<String, Option<String>>,
    /// The updates that a client that attaches later must receive.
    later_updates: Vec<Value>,
    /// The result that opened the session, without the session id.
    setup: Value,
    pub(crate) prompts: u64,
    /// The agent's messages that the client received, in order.
    pub(crate) received: Vec<Value>,
    /// The answers that the agent received, by its own ids.
    pub(crate) answered: BTreeMap<String, Value>,
    /// The response to each prompt, in order.
    pub(crate) outcomes: Vec<Value>,
}

impl Replay {
    pub(crate) fn new(
        world: ReplayWorld,
        agent_session: Option<String>,
        client: ClientKind,
    ) -> Replay {
        let mut world = world;
        let conn = world.connect();
        Replay {
            world,
            conn,
            client,
            agent_session: agent_session.unwrap_or_default(),
            session: None,
            early: None,
            agent_requests_open: BTreeMap::new(),
            client_requests_open: BTreeMap::new(),
            later_updates: Vec::new(),
            setup: Value::Null,
            prompts: 0,
            received: Vec::new(),
            answered: BTreeMap::new(),
            outcomes: Vec::new(),
        }
    }

    /// Replays a recording that starts with `session/new`, to its end.
    pub(crate) fn run(name: &str, client: ClientKind) -> Replay {
        let recording = Recording::read(name);
        let mut replay = Replay::new(ReplayWorld::new(), recording.session(), client);
        for line in &recording.lines {
            replay.play(line);
            replay.world.assert_all_read(&line.location);
        }
        replay.finish(name);
        replay
    }

    pub(crate) fn play(&mut self, line: &RecordedLine) {
        self.world.advance_clock(line.at);
        match (line.from, line.kind) {
            (MessageSide::Client, MessageKind::Request) => self.client_requests(line),
            (MessageSide::Client, MessageKind::Notification) => self.client_notifies(line),
            (MessageSide::Client, MessageKind::Answer) => self.client_answers(line),
            (MessageSide::Agent, MessageKind::Request) => self.agent_requests(line),
            (MessageSide::Agent, MessageKind::Notification) => self.agent_notifies(line),
            (MessageSide::Agent, MessageKind::Answer) => self.agent_answers(line),
        }
    }

    pub(crate) fn session_id(&self) -> &str {
        self.session.as_deref().expect("the session is open")
    }

    fn client_requests(&mut self, line: &RecordedLine) {
        match line.method() {
            "initialize" => {
                let params = json!({ "agent": AGENT });
                let note =
                    json!({ "jsonrpc": "2.0", "method": "_jackfield/connect", "params": params });
                self.world.client_sends(self.conn, &note.to_string());
                let text = self.initialize_text(line);
                self.world.client_sends(self.conn, &text);
            }
            "session/new" => {
                self.early = Some(Vec::new());
                self.world.client_sends(self.conn, &line.text);
            }
            "session/list" => return self.client_lists_sessions(line),
            _ => {
                let text = line.with_session(self.session_id());
                self.world.client_sends(self.conn, &text);
                self.expect_prompt_update(line);
            }
        }
        self.agent_receives_request(line);
    }

    /// The recorded `initialize`, adapted to the capabilities of the client.
    pub(crate) fn initialize_text(&self, line: &RecordedLine) -> String {
        match self.client {
            ClientKind::Recorded => line.text.clone(),
            ClientKind::Bare => line.text.replace("TextFile\": true", "TextFile\": false"),
        }
    }

    /// The agent receives a request of the client under an id of the hub.
    pub(crate) fn agent_receives_request(&mut self, line: &RecordedLine) {
        let text = self.world.agent_receives(&line.location);
        let received: Value = serde_json::from_str(&text).expect("the hub sends JSON");
        let id = received["id"].to_string();
        match line.method() {
            "initialize" => {
                let hello: Value =
                    serde_json::from_str(&self.initialize_text(line)).expect("as recorded");
                assert_eq!(received["params"], hello["params"], "{}", line.location);
            }
            "session/prompt" => {
                // Byte for byte except for the id.
                assert_eq!(text, line.with_id(&id), "{}", line.location);
            }
            _ => assert_eq!(received["params"], line.message["params"], "{}", line.location),
        }
        assert_eq!(received["method"], line.message["method"], "{}", line.location);
        self.agent_requests_open.insert(line.id(), (line.method().to_owned(), Some(id)));
    }

    /// The hub lists its sessions itself; the agent receives no request.
    fn client_lists_sessions(&mut self, line: &RecordedLine) {
        self.world.client_sends(self.conn, &line.text);
        let received = self.client_receives(line);
        let listed = &received["result"]["sessions"][0]["sessionId"];
        assert_eq!(listed, self.session_id(), "{}: the session is listed", line.location);
        self.agent_requests_open.insert(line.id(), (line.method().to_owned(), None));
    }

    fn client_notifies(&mut self, line: &RecordedLine) {
        assert_eq!(line.method(), "session/cancel", "{}", line.location);
        let text = line.with_session(self.session_id());
        self.world.client_sends(self.conn, &text);
        let runs = self.agent_requests_open.values().any(|(method, _)| method == "session/prompt");
        if runs {
            let received = self.world.agent_receives(&line.location);
            let received: Value = serde_json::from_str(&received).expect("the hub sends JSON");
            assert_eq!(received, line.message, "{}", line.location);
        }
    }

    fn client_answers(&mut self, line: &RecordedLine) {
        let issued = self.client_requests_open.remove(&line.id()).expect("the request is open");
        // The hub answered for a client that does not serve this.
        let Some(issued) = issued else { return };
        self.world.client_sends(self.conn, &line.with_id(&issued));
        let received = self.world.agent_receives(&line.location);
        assert_eq!(received, line.text, "{}: the answer, under the agent's own id", line.location);
        self.answered.insert(line.id(), line.message.clone());
    }

    fn agent_requests(&mut self, line: &RecordedLine) {
        self.world.agent_sends(&line.text, &line.location);
        if self.client == ClientKind::Bare && line.method().starts_with("fs/") {
            let received = self.world.agent_receives(&line.location);
            let received: Value = serde_json::from_str(&received).expect("the hub sends JSON");
            assert_eq!(received["error"]["code"], -32603, "{}: no file here", line.location);
            assert_eq!(received["id"], line.message["id"], "{}: under its own id", line.location);
            self.answered.insert(line.id(), received);
            self.client_requests_open.insert(line.id(), None);
            return;
        }
        let text = self.world.client_receives(self.conn, &line.location);
        let received: Value = serde_json::from_str(&text).expect("the hub sends JSON");
        let issued = received["id"].to_string();
        // Byte for byte: no option is added or dropped. Only the title may be completed by the hub.
        let expected = with_id(&line.with_session(self.session_id()), &line.id(), &issued);
        if text != expected {
            let mut wanted: Value = serde_json::from_str(&expected).expect("agents send JSON");
            let title = &received["params"]["toolCall"]["title"];
            assert!(title.is_string(), "{}: {text}", line.location);
            wanted["params"]["toolCall"]["title"] = title.clone();
            assert_eq!(received, wanted, "{}", line.location);
        }
        self.received.push(received);
        self.client_requests_open.insert(line.id(), Some(issued));
    }

    fn agent_notifies(&mut self, line: &RecordedLine) {
        self.world.agent_sends(&line.text, &line.location);
        if let Some(early) = &mut self.early {
            early.push(line.text.clone());
            return;
        }
        let expected = match &self.session {
            Some(session) => line.with_session(session),
            None => line.text.clone(),
        };
        self.client_receives_update(&expected, &line.location);
    }

    /// The client receives the agent's message to the byte, and so will later clients.
    pub(crate) fn client_receives_update(&mut self, expected: &str, location: &str) {
        let text = self.world.client_receives(self.conn, location);
        assert_eq!(text, expected, "{location}");
        let received: Value = serde_json::from_str(expected).expect("as recorded");
        if received["method"] == "session/update" {
            self.later_updates.push(received.clone());
        }
        self.received.push(received);
    }

    fn agent_answers(&mut self, line: &RecordedLine) {
        let (method, id) =
            self.agent_requests_open.remove(&line.id()).expect("the request is open");
        let Some(id) = id else { return };
        self.world.agent_sends(&line.with_id(&id), &line.location);
        match method.as_str() {
            "session/new" => self.session_opens(line),
            "session/load" | "session/resume" => self.note_setup(line),
            "initialize" if self.session.is_some() => {} // Started by the hub to restored the session.
            "initialize" => {
                let received = self.client_receives(line);
                for member in ["agentInfo", "authMethods"] {
                    let expected = &line.message["result"][member];
                    assert_eq!(&received["result"][member], expected, "{}", line.location);
                }
            }
            _ => {
                let received = self.client_receives(line);
                assert_eq!(
                    received, line.message,
                    "{}: the outcome is the agent's own",
                    line.location
                );
                self.outcomes.push(received);
            }
        }
    }

    fn session_opens(&mut self, line: &RecordedLine) {
        let text = self.world.client_receives(self.conn, &line.location);
        let received: Value = serde_json::from_str(&text).expect("the hub sends JSON");
        let early = self.early.take().expect("it was being opened");
        if line.message.get("error").is_some() {
            assert_eq!(received, line.message, "{}: the agent's error is passed on", line.location);
            return;
        }
        let session = received["result"]["sessionId"].as_str().expect("it has an id").to_owned();
        assert_ne!(session, self.agent_session, "{}: the hub assigns its own id", line.location);
        assert_eq!(
            text,
            with_session(&line.text, &self.agent_session, &session),
            "{}",
            line.location
        );
        self.note_setup(line);
        self.session = Some(SessionId::from(session.as_str()));
        for text in early {
            let expected = with_session(&text, &self.agent_session, &session);
            self.client_receives_update(&expected, &line.location);
        }
    }

    /// The agent's offers for the session. Some agents repeat the session id; the hub does not.
    fn note_setup(&mut self, line: &RecordedLine) {
        self.setup = line.message["result"].clone();
        if let Some(setup) = self.setup.as_object_mut() {
            setup.remove("sessionId");
        }
    }

    pub(crate) fn client_receives(&mut self, line: &RecordedLine) -> Value {
        let text = self.world.client_receives(self.conn, &line.location);
        serde_json::from_str(&text).expect("the hub sends JSON")
    }

    /// A client that attaches later receives the prompt as a user message.
    pub(crate) fn expect_prompt_update(&mut self, line: &RecordedLine) {
        assert_eq!(line.method(), "session/prompt", "{}", line.location);
        self.prompts += 1;
        for block in line.message["params"]["prompt"].as_array().expect("blocks") {
            let update = json!({ "sessionUpdate": "user_message_chunk", "content": block });
            let params = json!({ "sessionId": self.session_id(), "update": update });
            self.later_updates
                .push(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        }
    }

    /// Checks the end of a recording: the log is complete, a second client receives all of it, and the agent exits.
    pub(crate) fn finish(&mut self, name: &str) {
        self.world.assert_all_read(name);
        assert!(self.agent_requests_open.is_empty(), "{name}: {:?}", self.agent_requests_open);
        assert_eq!(self.outcomes.len() as u64, self.prompts, "{name}: one outcome per prompt");
        let Some(session) = self.session.clone() else { return };
        let state = fold(&self.world.journal[&session]);
        assert_eq!(state.turns, self.prompts, "{name}");
        assert_eq!(state.open_turn, None, "{name}");
        assert!(state.open_asks.is_empty(), "{name}");
        assert_eq!(&*state.agent_session, self.agent_session, "{name}");
        self.second_client(name, &session);
        self.world.agent_ends();
        self.world.assert_all_read(name);
    }

    fn second_client(&mut self, name: &str, session: &str) {
        let conn = self.world.connect();
        let ask = |id: u64, method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
        };
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        self.world.client_sends(conn, &ask(0, "initialize", hello));
        self.world.client_receives(conn, name);
        let load = json!({ "sessionId": session, "cwd": "/user/project", "mcpServers": [] });
        self.world.client_sends(conn, &ask(1, "session/load", load));
        for (number, expected) in self.later_updates.iter().enumerate() {
            let location = format!("{name}: update {number} for a second client");
            let received = self.world.client_receives(conn, &location);
            let received: Value = serde_json::from_str(&received).expect("the hub sends JSON");
            assert_eq!(&received, expected, "{location}");
        }
        let answer = self.world.client_receives(conn, name);
        let answer: Value = serde_json::from_str(&answer).expect("the hub sends JSON");
        assert_eq!(answer["id"], 1, "{name}: then the response, and nothing else: {answer}");
        assert_eq!(answer["result"], self.setup, "{name}");
    }
}
