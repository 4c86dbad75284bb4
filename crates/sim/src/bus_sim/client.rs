//! The actions of clients: request, notify, cancel, answer, read, disconnect.

use super::{expectations::OpenRequest, feed::unique_token, world::BusWorld};
use jackfield_bus::routing::BusInput;
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};
use serde_json::json;
use std::sync::Arc;

impl BusWorld {
    pub(super) fn client_sends(&mut self) {
        let Some(conn) = self.pick_client() else { return self.connect_client() };
        // Frames that were read before the pause still arrive.
        if self.clients[&conn].paused {
            if !self.rng.chance(5) {
                return;
            }
            self.clients.get_mut(&conn).expect("picked").sent_since_pause += 1;
        }
        match self.rng.below(20) {
            0 => {
                _ = self.feed_input(BusInput::ClientSentInvalidFrame { conn, fault: Fault::Parse });
            }
            1..=4 => self.answer_ask(conn),
            5 => self.cancel_request(conn),
            6..=7 => self.send_message(conn, None),
            _ => {
                let methods =
                    ["session/prompt", "session/prompt", "session/new", "session/close", "m"];
                let method = self.rng.pick(&methods);
                self.send_message(conn, Some(method));
            }
        }
    }

    /// Sends a request, or without a method a notification.
    pub(super) fn send_message(&mut self, conn: ConnId, method: Option<&'static str>) {
        self.next_number += 1;
        let id = self.next_number;
        let session = self.session_for(conn, method);
        let mut params = json!({ "token": unique_token(conn, id) });
        let mut message = json!({ "jsonrpc": "2.0", "method": method.unwrap_or("news") });
        if let Some(session) = &session {
            let outside = self.rng.chance(30) && method != Some("session/close");
            let place = if outside { &mut message } else { &mut params };
            place["sessionId"] = session.as_str().into();
        }
        message["params"] = params;
        if self.rng.chance(if 1 < self.config.pools.len() { 90 } else { 10 }) {
            let names: Vec<Arc<str>> = self.config.pools.iter().map(|it| it.id.clone()).collect();
            let name = names[self.rng.index(names.len())].clone();
            message[self.rng.pick(&["pool", "agentId"])] = (*name).into();
        }
        if method.is_some() {
            message["id"] = if self.rng.chance(50) { id.into() } else { id.to_string().into() };
            let asked = OpenRequest { worker: None };
            self.expectations.open_requests.insert((conn, id), asked);
            self.tally.count("requests");
        }
        let frame = Frame::parse_str(&message.to_string()).expect("a message");
        self.feed_input(BusInput::ClientSentFrame { conn, frame });
    }

    /// A session that the client uses, one of another client, a new one, or none.
    pub(super) fn session_for(&mut self, conn: ConnId, method: Option<&str>) -> Option<String> {
        if method == Some("session/new") || (method == Some("m") && self.rng.chance(70)) {
            return None;
        }
        let known = self.clients[&conn].sessions.clone();
        if !known.is_empty() && self.rng.chance(80) {
            return Some(known[self.rng.index(known.len())].clone());
        }
        let session = format!("s{}", self.rng.below(12));
        self.clients.get_mut(&conn).expect("picked").sessions.push(session.clone());
        Some(session)
    }

    pub(super) fn cancel_request(&mut self, conn: ConnId) {
        let mut own =
            self.expectations.open_requests.keys().filter(|(it, _)| *it == conn).map(|(_, id)| *id);
        let Some(id) = own.next_back() else { return };
        let params = json!({ "requestId": if self.rng.chance(50) { json!(id) } else { json!(id.to_string()) } });
        let frame = Frame::notification("$/cancel_request", &params.to_string());
        self.feed_input(BusInput::ClientSentFrame { conn, frame });
    }

    pub(super) fn answer_ask(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("picked");
        let Some((bus_id, ask)) = client.open_asks.pop_first() else { return };
        let frame = Frame::result_for(&bus_id.to_string(), &json!({ "ask": ask }).to_string());
        self.feed_input(BusInput::ClientSentFrame { conn, frame });
    }

    pub(super) fn client_reads(&mut self) {
        let slow: Vec<ConnId> =
            self.clients.iter().filter(|it| !it.1.queue.is_empty()).map(|it| *it.0).collect();
        if slow.is_empty() {
            return;
        }
        let conn = self.rng.pick(&slow);
        let texts = 1 + self.rng.index(6);
        let client = self.clients.get_mut(&conn).expect("picked");
        let bytes = client.read(texts);
        client.sent_since_pause = client.sent_since_pause.saturating_sub(texts);
        self.feed_input(BusInput::ClientWrote { conn, bytes });
    }

    pub(super) fn client_disconnects(&mut self) {
        let all: Vec<ConnId> = self.clients.keys().copied().collect();
        if all.is_empty() {
            return;
        }
        let conn = self.rng.pick(&all);
        let client = self.clients.get_mut(&conn).expect("picked");
        if !client.closing && !client.finished && self.rng.chance(40) {
            client.finished = true;
            client.open_asks.clear();
            self.feed_input(BusInput::ClientFinished { conn });
            return;
        }
        self.expectations.forget_client(conn);
        self.clients.remove(&conn);
        self.feed_input(BusInput::ClientGone { conn });
    }
}
