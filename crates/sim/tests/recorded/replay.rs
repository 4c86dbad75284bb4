//! A recording played against the hub, line by line: what the client said is said to the hub, what
//! the agent said is said to the hub, and after each line both have heard what they should have.

use super::{
    tape::{Kind, Line, Side, Tape, with_id, with_session},
    world::{AGENT, World, fold},
};
use jackfield_hub::{ConnId, SessionId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the client of a replay is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// As the one that was recorded.
    Recorded,
    /// Serves no files.
    Bare,
}

pub(crate) struct Replay {
    pub(crate) world: World,
    pub(crate) conn: ConnId,
    client: Client,
    /// The session's name: the agent's, and the hub's once there is one.
    theirs: String,
    pub(crate) ours: Option<SessionId>,
    /// What the agent said before it answered `session/new`.
    early: Option<Vec<String>>,
    /// Open requests of the client: the recorded id, the method, the id the agent knows.
    pub(crate) asked_agent: BTreeMap<String, (String, Option<String>)>,
    /// Open requests of the agent: its own id, and the id the client knows.
    asked_client: BTreeMap<String, Option<String>>,
    /// What everyone who comes later is told of the session, as values.
    told: Vec<Value>,
    /// What the session was opened with, without its name.
    setup: Value,
    pub(crate) prompts: u64,
    /// What the client heard of the agent's own words, in order.
    pub(crate) heard: Vec<Value>,
    /// What the agent was answered, by its own ids.
    pub(crate) answered: BTreeMap<String, Value>,
    /// How each turn ended, in order: the whole answer.
    pub(crate) outcomes: Vec<Value>,
}

impl Replay {
    pub(crate) fn new(world: World, theirs: Option<String>, client: Client) -> Replay {
        let mut world = world;
        let conn = world.connect();
        Replay {
            world,
            conn,
            client,
            theirs: theirs.unwrap_or_default(),
            ours: None,
            early: None,
            asked_agent: BTreeMap::new(),
            asked_client: BTreeMap::new(),
            told: Vec::new(),
            setup: Value::Null,
            prompts: 0,
            heard: Vec::new(),
            answered: BTreeMap::new(),
            outcomes: Vec::new(),
        }
    }

    /// Plays a recording that begins with `session/new`, to its end.
    pub(crate) fn of(name: &str, client: Client) -> Replay {
        let tape = Tape::read(name);
        let mut replay = Replay::new(World::new(), tape.session(), client);
        for line in &tape.lines {
            replay.play(line);
            replay.world.all_is_heard(&line.place);
        }
        replay.finish(name);
        replay
    }

    pub(crate) fn play(&mut self, line: &Line) {
        self.world.pass(line.at);
        match (line.from, line.kind) {
            (Side::Client, Kind::Request) => self.client_asks(line),
            (Side::Client, Kind::Notification) => self.client_notes(line),
            (Side::Client, Kind::Answer) => self.client_answers(line),
            (Side::Agent, Kind::Request) => self.agent_asks(line),
            (Side::Agent, Kind::Notification) => self.agent_notes(line),
            (Side::Agent, Kind::Answer) => self.agent_answers(line),
        }
    }

    pub(crate) fn ours(&self) -> &str {
        self.ours.as_deref().expect("the session is open")
    }

    fn client_asks(&mut self, line: &Line) {
        match line.method() {
            "initialize" => {
                let params = json!({ "agent": AGENT });
                let note =
                    json!({ "jsonrpc": "2.0", "method": "_jackfield/connect", "params": params });
                self.world.client_says(self.conn, &note.to_string());
                let text = self.hello(line);
                self.world.client_says(self.conn, &text);
            }
            "session/new" => {
                self.early = Some(Vec::new());
                self.world.client_says(self.conn, &line.text);
            }
            "session/list" => return self.client_lists(line),
            _ => {
                let text = line.with_session(self.ours());
                self.world.client_says(self.conn, &text);
                self.tell_prompt(line);
            }
        }
        self.agent_is_asked(line);
    }

    /// The recorded `initialize`, as this kind of client would say it.
    pub(crate) fn hello(&self, line: &Line) -> String {
        match self.client {
            Client::Recorded => line.text.clone(),
            Client::Bare => line.text.replace("TextFile\": true", "TextFile\": false"),
        }
    }

    /// The agent hears a request of the client, under an id of the hub's.
    pub(crate) fn agent_is_asked(&mut self, line: &Line) {
        let text = self.world.agent_hears(&line.place);
        let said: Value = serde_json::from_str(&text).expect("the hub speaks JSON");
        let id = said["id"].to_string();
        match line.method() {
            "initialize" => {
                let hello: Value = serde_json::from_str(&self.hello(line)).expect("as recorded");
                assert_eq!(said["params"], hello["params"], "{}", line.place);
            }
            "session/prompt" => {
                // Byte for byte, save for the id.
                assert_eq!(text, line.with_id(&id), "{}", line.place);
            }
            _ => assert_eq!(said["params"], line.said["params"], "{}", line.place),
        }
        assert_eq!(said["method"], line.said["method"], "{}", line.place);
        self.asked_agent.insert(line.id(), (line.method().to_owned(), Some(id)));
    }

    /// The hub knows its sessions itself; the agent is not asked.
    fn client_lists(&mut self, line: &Line) {
        self.world.client_says(self.conn, &line.text);
        let said = self.client_hears(line);
        let listed = &said["result"]["sessions"][0]["sessionId"];
        assert_eq!(listed, self.ours(), "{}: the session is listed", line.place);
        self.asked_agent.insert(line.id(), (line.method().to_owned(), None));
    }

    fn client_notes(&mut self, line: &Line) {
        assert_eq!(line.method(), "session/cancel", "{}", line.place);
        let text = line.with_session(self.ours());
        self.world.client_says(self.conn, &text);
        let runs = self.asked_agent.values().any(|(method, _)| method == "session/prompt");
        if runs {
            let told = self.world.agent_hears(&line.place);
            let told: Value = serde_json::from_str(&told).expect("the hub speaks JSON");
            assert_eq!(told, line.said, "{}", line.place);
        }
    }

    fn client_answers(&mut self, line: &Line) {
        let issued = self.asked_client.remove(&line.id()).expect("it was asked");
        // The hub answered for a client that does not serve this.
        let Some(issued) = issued else { return };
        self.world.client_says(self.conn, &line.with_id(&issued));
        let told = self.world.agent_hears(&line.place);
        assert_eq!(told, line.text, "{}: the answer, under the agent's own id", line.place);
        self.answered.insert(line.id(), line.said.clone());
    }

    fn agent_asks(&mut self, line: &Line) {
        self.world.agent_says(&line.text, &line.place);
        if self.client == Client::Bare && line.method().starts_with("fs/") {
            let told = self.world.agent_hears(&line.place);
            let told: Value = serde_json::from_str(&told).expect("the hub speaks JSON");
            assert_eq!(told["error"]["code"], -32603, "{}: no file here", line.place);
            assert_eq!(told["id"], line.said["id"], "{}: under its own id", line.place);
            self.answered.insert(line.id(), told);
            self.asked_client.insert(line.id(), None);
            return;
        }
        let text = self.world.client_hears(self.conn, &line.place);
        let said: Value = serde_json::from_str(&text).expect("the hub speaks JSON");
        let issued = said["id"].to_string();
        // Byte for byte: no option is invented, none is dropped. Only a title may have the facts in it.
        let expected = with_id(&line.with_session(self.ours()), &line.id(), &issued);
        if text != expected {
            let mut wanted: Value = serde_json::from_str(&expected).expect("agents speak JSON");
            let title = &said["params"]["toolCall"]["title"];
            assert!(title.is_string(), "{}: {text}", line.place);
            wanted["params"]["toolCall"]["title"] = title.clone();
            assert_eq!(said, wanted, "{}", line.place);
        }
        self.heard.push(said);
        self.asked_client.insert(line.id(), Some(issued));
    }

    fn agent_notes(&mut self, line: &Line) {
        self.world.agent_says(&line.text, &line.place);
        if let Some(early) = &mut self.early {
            early.push(line.text.clone());
            return;
        }
        let expected = match &self.ours {
            Some(ours) => line.with_session(ours),
            None => line.text.clone(),
        };
        self.client_hears_words(&expected, &line.place);
    }

    /// The client hears what the agent said, to the byte, and so will whoever comes later.
    pub(crate) fn client_hears_words(&mut self, expected: &str, place: &str) {
        let text = self.world.client_hears(self.conn, place);
        assert_eq!(text, expected, "{place}");
        let said: Value = serde_json::from_str(expected).expect("as recorded");
        if said["method"] == "session/update" {
            self.told.push(said.clone());
        }
        self.heard.push(said);
    }

    fn agent_answers(&mut self, line: &Line) {
        let (method, id) = self.asked_agent.remove(&line.id()).expect("it was asked");
        let Some(id) = id else { return };
        self.world.agent_says(&line.with_id(&id), &line.place);
        match method.as_str() {
            "session/new" => self.session_opens(line),
            "session/load" | "session/resume" => self.note_setup(line),
            "initialize" if self.ours.is_some() => {} // Started by the hub to wake the session.
            "initialize" => {
                let said = self.client_hears(line);
                for member in ["agentInfo", "authMethods"] {
                    let (said, told) = (&said["result"][member], &line.said["result"][member]);
                    assert_eq!(said, told, "{}", line.place);
                }
            }
            _ => {
                let said = self.client_hears(line);
                assert_eq!(said, line.said, "{}: the outcome is the agent's own", line.place);
                self.outcomes.push(said);
            }
        }
    }

    fn session_opens(&mut self, line: &Line) {
        let text = self.world.client_hears(self.conn, &line.place);
        let said: Value = serde_json::from_str(&text).expect("the hub speaks JSON");
        let early = self.early.take().expect("it was being opened");
        if line.said.get("error").is_some() {
            assert_eq!(said, line.said, "{}: refused in the agent's own words", line.place);
            return;
        }
        let ours = said["result"]["sessionId"].as_str().expect("it has a name").to_owned();
        assert_ne!(ours, self.theirs, "{}: the hub has names of its own", line.place);
        assert_eq!(text, with_session(&line.text, &self.theirs, &ours), "{}", line.place);
        self.note_setup(line);
        self.ours = Some(SessionId::from(ours.as_str()));
        for text in early {
            let expected = with_session(&text, &self.theirs, &ours);
            self.client_hears_words(&expected, &line.place);
        }
    }

    /// What the agent offers with the session; some name the session again, and the hub does not.
    fn note_setup(&mut self, line: &Line) {
        self.setup = line.said["result"].clone();
        if let Some(setup) = self.setup.as_object_mut() {
            setup.remove("sessionId");
        }
    }

    pub(crate) fn client_hears(&mut self, line: &Line) -> Value {
        let text = self.world.client_hears(self.conn, &line.place);
        serde_json::from_str(&text).expect("the hub speaks JSON")
    }

    /// Whoever comes later hears the prompt as the user's words.
    pub(crate) fn tell_prompt(&mut self, line: &Line) {
        assert_eq!(line.method(), "session/prompt", "{}", line.place);
        self.prompts += 1;
        for block in line.said["params"]["prompt"].as_array().expect("blocks") {
            let update = json!({ "sessionUpdate": "user_message_chunk", "content": block });
            let params = json!({ "sessionId": self.ours(), "update": update });
            self.told
                .push(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        }
    }

    /// The recording is over: the log is whole, a second client hears all of it, the agent ends.
    pub(crate) fn finish(&mut self, name: &str) {
        self.world.all_is_heard(name);
        assert!(self.asked_agent.is_empty(), "{name}: {:?}", self.asked_agent);
        assert_eq!(self.outcomes.len() as u64, self.prompts, "{name}: one outcome a prompt");
        let Some(ours) = self.ours.clone() else { return };
        let state = fold(&self.world.journal[&ours]);
        assert_eq!(state.turns, self.prompts, "{name}");
        assert_eq!(state.open_turn, None, "{name}");
        assert!(state.open_asks.is_empty(), "{name}");
        assert_eq!(&*state.agent_session, self.theirs, "{name}");
        self.second_client(name, &ours);
        self.world.agent_ends();
        self.world.all_is_heard(name);
    }

    fn second_client(&mut self, name: &str, ours: &str) {
        let conn = self.world.connect();
        let ask = |id: u64, method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
        };
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        self.world.client_says(conn, &ask(0, "initialize", hello));
        self.world.client_hears(conn, name);
        let load = json!({ "sessionId": ours, "cwd": "/user/project", "mcpServers": [] });
        self.world.client_says(conn, &ask(1, "session/load", load));
        for (number, told) in self.told.iter().enumerate() {
            let place = format!("{name}: update {number} of what a second client is told");
            let said = self.world.client_hears(conn, &place);
            let said: Value = serde_json::from_str(&said).expect("the hub speaks JSON");
            assert_eq!(&said, told, "{place}");
        }
        let answer = self.world.client_hears(conn, name);
        let answer: Value = serde_json::from_str(&answer).expect("the hub speaks JSON");
        assert_eq!(answer["id"], 1, "{name}: then it is let in, and hears no more: {answer}");
        assert_eq!(answer["result"], self.setup, "{name}");
    }
}
