//! The actions of clients: connect, open, load, prompt, cancel, answer, read, disconnect.

use super::world::{GatewayWorld, OpenRequest};
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

impl GatewayWorld {
    pub(super) fn client_sends(&mut self) {
        let open = self.clients.iter().filter(|(_, it)| !it.closing && !it.finished);
        let open: Vec<ConnId> = open.map(|(conn, _)| *conn).collect();
        if open.is_empty() {
            return self.connect_client();
        }
        let conn = self.rng.pick(&open);
        // Frames that were read before the pause still arrive.
        if self.clients[&conn].paused && !self.rng.chance(3) {
            return;
        }
        match self.rng.below(30) {
            0 => {
                self.feed_input(GatewayInput::ClientSentInvalidFrame { conn, fault: Fault::Parse });
            }
            1..=5 => self.answer_ask(conn),
            6 => self.cancel_request(conn),
            7..=9 => self.send_request(conn, "session/new", None),
            10 => self.send_request(conn, "_jackfield/sessions", None),
            11 => self.send_request(conn, "authenticate", None),
            12 => self.send_request(conn, "session/set_mode", Some("s-none".to_owned())),
            13..=16 => self.request_load(conn),
            17..=18 => self.cancel_turn(conn),
            19..=22 => self.request_in_session(conn, "session/set_mode"),
            _ => self.request_in_session(conn, "session/prompt"),
        }
    }

    pub(super) fn connect_client(&mut self) {
        if 5 <= self.clients.len() {
            return;
        }
        self.next_number += 1;
        let conn = ConnId(self.next_number);
        let tenant = self.rng.pick(&[None, None, Some("ash"), Some("birch")]);
        self.clients.insert(conn, super::world::GatewayClient { tenant, ..Default::default() });
        self.feed_input(GatewayInput::ClientOpened { conn });
        if let Some(name) = tenant {
            let binding = tenant_named(name).binding();
            self.feed_input(GatewayInput::ClientSentFrame { conn, frame: binding });
        }
        for method in ["_jackfield/connect", "initialize"] {
            if self.rng.chance(60) && self.clients.get(&conn).is_some_and(|it| !it.closing) {
                self.send_request(conn, method, None);
            }
        }
    }

    fn send_request(&mut self, conn: ConnId, method: &'static str, session: Option<String>) {
        self.next_number += 1;
        let token = self.next_number;
        let client = self.clients.get_mut(&conn).expect("picked");
        client.next_id += 1;
        let id = client.next_id;
        let mut params = json!({ "token": token });
        if let Some(session) = &session {
            params["sessionId"] = session.as_str().into();
        }
        client.open_requests.insert(id, OpenRequest { token, method, session });
        self.tally.count("requests");
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_frame(conn, &message);
    }

    fn send_frame(&mut self, conn: ConnId, message: &Value) {
        let frame = Frame::parse_str(&message.to_string()).expect("a message");
        self.feed_input(GatewayInput::ClientSentFrame { conn, frame });
    }

    /// Loads a session that the client does not receive yet.
    fn request_load(&mut self, conn: ConnId) {
        let client = &self.clients[&conn];
        let loads =
            |id: &str| client.open_requests.values().any(|it| it.session.as_deref() == Some(id));
        let is_subscribed =
            |id: &String| client.positions.contains_key(id) || client.attached.contains(id);
        let known = self.logs.keys().filter(|it| !is_subscribed(it) && !loads(it));
        let known: Vec<String> = known.cloned().collect();
        // A session that is being opened has no subscriber but its own client.
        let opens = client.open_requests.values().any(|it| it.method == "session/new");
        if !known.is_empty() && !opens {
            let session = known[self.rng.index(known.len())].clone();
            self.send_request(conn, "session/load", Some(session));
        }
    }

    fn request_in_session(&mut self, conn: ConnId, method: &'static str) {
        if let Some(session) = self.pick_own_session(conn) {
            self.send_request(conn, method, Some(session));
        }
    }

    fn pick_own_session(&mut self, conn: ConnId) -> Option<String> {
        let own: Vec<String> = self.clients[&conn].attached.iter().cloned().collect();
        (!own.is_empty()).then(|| own[self.rng.index(own.len())].clone())
    }

    fn cancel_turn(&mut self, conn: ConnId) {
        if let Some(session) = self.pick_own_session(conn) {
            let params = json!({ "sessionId": session });
            self.send_frame(conn, &json!({ "method": "session/cancel", "params": params }));
        }
    }

    fn cancel_request(&mut self, conn: ConnId) {
        if let Some(id) = self.clients[&conn].open_requests.keys().next_back() {
            let params = json!({ "requestId": id });
            self.send_frame(conn, &json!({ "method": "$/cancel_request", "params": params }));
        }
    }

    pub(super) fn answer_ask(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("picked");
        if let Some((id, ask)) = client.open_asks.pop_first() {
            self.send_frame(conn, &json!({ "id": id, "result": { "ask": ask } }));
        }
    }

    pub(super) fn client_reads(&mut self, conn: ConnId, texts: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let texts = texts.min(client.queue.len());
        let bytes = client.queue.drain(..texts).sum();
        self.feed_input(GatewayInput::ClientWrote { conn, bytes });
    }

    pub(super) fn client_disconnects(&mut self) {
        let all: Vec<ConnId> = self.clients.keys().copied().collect();
        if all.is_empty() {
            return;
        }
        let conn = self.rng.pick(&all);
        let client = self.clients.get_mut(&conn).expect("picked");
        if !client.closing && !client.finished && self.rng.chance(50) {
            client.finished = true;
            client.open_asks.clear();
            return self.feed_input(GatewayInput::ClientFinished { conn });
        }
        self.clients.remove(&conn);
        self.feed_input(GatewayInput::ClientGone { conn });
    }
}
