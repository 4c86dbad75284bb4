//! What clients do: begin, open, load, prompt, cancel, answer, read, leave.

use super::world::{Asked, World};
use jackfield_fleet::gateway::GatewayInput;
use jackfield_hub::{ConnId, Tenant};
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

fn tenant_named(name: &str) -> Tenant {
    Tenant {
        name: name.into(),
        sessions: None,
        agents: None,
        events_per_second: None,
        commands: false,
        roots: Vec::new(),
    }
}

impl World {
    pub(super) fn client_speaks(&mut self) {
        let open = self.clients.iter().filter(|(_, it)| !it.closing && !it.finished);
        let open: Vec<ConnId> = open.map(|(conn, _)| *conn).collect();
        if open.is_empty() {
            return self.client_comes();
        }
        let conn = self.rng.pick(&open);
        // What was read before the pause still arrives.
        if self.clients[&conn].paused && !self.rng.chance(3) {
            return;
        }
        match self.rng.below(30) {
            0 => self.feed(GatewayInput::ClientSentInvalidFrame { conn, fault: Fault::Parse }),
            1..=5 => self.answer_ask(conn),
            6 => self.withdraw(conn),
            7..=9 => self.request(conn, "session/new", None),
            10 => self.request(conn, "_jackfield/sessions", None),
            11 => self.request(conn, "authenticate", None),
            12 => self.request(conn, "session/set_mode", Some("s-none".to_owned())),
            13..=16 => self.load(conn),
            17..=18 => self.cancel(conn),
            19..=22 => self.in_session(conn, "session/set_mode"),
            _ => self.in_session(conn, "session/prompt"),
        }
    }

    pub(super) fn client_comes(&mut self) {
        if 5 <= self.clients.len() {
            return;
        }
        self.next += 1;
        let conn = ConnId(self.next);
        let tenant = self.rng.pick(&[None, None, Some("ash"), Some("birch")]);
        self.clients.insert(conn, super::world::Client { tenant, ..Default::default() });
        self.feed(GatewayInput::ClientOpened { conn });
        if let Some(name) = tenant {
            let binding = tenant_named(name).binding();
            self.feed(GatewayInput::ClientSpoke { conn, frame: binding });
        }
        for method in ["_jackfield/connect", "initialize"] {
            if self.rng.chance(60) && self.clients.get(&conn).is_some_and(|it| !it.closing) {
                self.request(conn, method, None);
            }
        }
    }

    fn request(&mut self, conn: ConnId, method: &'static str, session: Option<String>) {
        self.next += 1;
        let token = self.next;
        let client = self.clients.get_mut(&conn).expect("picked");
        client.next_id += 1;
        let id = client.next_id;
        let mut params = json!({ "token": token });
        if let Some(session) = &session {
            params["sessionId"] = session.as_str().into();
        }
        client.asked.insert(id, Asked { token, method, session });
        self.tally.count("requests");
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.speak(conn, &message);
    }

    fn speak(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).expect("a message");
        self.feed(GatewayInput::ClientSpoke { conn, frame });
    }

    /// One that it does not hear yet.
    fn load(&mut self, conn: ConnId) {
        let client = &self.clients[&conn];
        let loads = |id: &str| client.asked.values().any(|it| it.session.as_deref() == Some(id));
        let hears = |id: &String| client.heard.contains_key(id) || client.attached.contains(id);
        let known = self.logs.keys().filter(|it| !hears(it) && !loads(it));
        let known: Vec<String> = known.cloned().collect();
        // One that is being opened has no listener but who opens it.
        let opens = client.asked.values().any(|it| it.method == "session/new");
        if !known.is_empty() && !opens {
            let session = known[self.rng.index(known.len())].clone();
            self.request(conn, "session/load", Some(session));
        }
    }

    fn in_session(&mut self, conn: ConnId, method: &'static str) {
        if let Some(session) = self.own_session(conn) {
            self.request(conn, method, Some(session));
        }
    }

    fn own_session(&mut self, conn: ConnId) -> Option<String> {
        let own: Vec<String> = self.clients[&conn].attached.iter().cloned().collect();
        (!own.is_empty()).then(|| own[self.rng.index(own.len())].clone())
    }

    fn cancel(&mut self, conn: ConnId) {
        if let Some(session) = self.own_session(conn) {
            let params = json!({ "sessionId": session });
            self.speak(conn, &json!({ "method": "session/cancel", "params": params }));
        }
    }

    fn withdraw(&mut self, conn: ConnId) {
        if let Some(id) = self.clients[&conn].asked.keys().next_back() {
            let params = json!({ "requestId": id });
            self.speak(conn, &json!({ "method": "$/cancel_request", "params": params }));
        }
    }

    pub(super) fn answer_ask(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("picked");
        if let Some((id, ask)) = client.asks.pop_first() {
            self.speak(conn, &json!({ "id": id, "result": { "ask": ask } }));
        }
    }

    pub(super) fn client_reads(&mut self, conn: ConnId, texts: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let texts = texts.min(client.queue.len());
        let bytes = client.queue.drain(..texts).sum();
        self.feed(GatewayInput::ClientWrote { conn, bytes });
    }

    pub(super) fn client_leaves(&mut self) {
        let all: Vec<ConnId> = self.clients.keys().copied().collect();
        if all.is_empty() {
            return;
        }
        let conn = self.rng.pick(&all);
        let client = self.clients.get_mut(&conn).expect("picked");
        if !client.closing && !client.finished && self.rng.chance(50) {
            client.finished = true;
            client.asks.clear();
            return self.feed(GatewayInput::ClientFinished { conn });
        }
        self.clients.remove(&conn);
        self.feed(GatewayInput::ClientGone { conn });
    }
}
