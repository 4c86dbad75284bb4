//! What clients do: ask, notify, withdraw, answer, read, leave.

use super::{book::Asked, feed::token, world::World};
use jackfield_bus::routing::BusInput;
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};
use serde_json::json;
use std::sync::Arc;

impl World {
    pub(super) fn client_speaks(&mut self) {
        let Some(conn) = self.some_client() else { return self.open() };
        // What was read before the pause still arrives.
        if self.clients[&conn].paused {
            if !self.rng.chance(5) {
                return;
            }
            self.clients.get_mut(&conn).expect("picked").said_since_pause += 1;
        }
        match self.rng.below(20) {
            0 => _ = self.feed(BusInput::ClientSentInvalidFrame { conn, fault: Fault::Parse }),
            1..=4 => self.answer_ask(conn),
            5 => self.cancel(conn),
            6..=7 => self.say(conn, None),
            _ => {
                let methods =
                    ["session/prompt", "session/prompt", "session/new", "session/close", "m"];
                let method = self.rng.pick(&methods);
                self.say(conn, Some(method));
            }
        }
    }

    /// A request, or without a method a notification.
    pub(super) fn say(&mut self, conn: ConnId, method: Option<&'static str>) {
        self.next_number += 1;
        let id = self.next_number;
        let session = self.session_for(conn, method);
        let mut params = json!({ "token": token(conn, id) });
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
            let asked = Asked { worker: None };
            self.book.asked.insert((conn, id), asked);
            self.tally.count("requests");
        }
        let frame = Frame::parse_str(&message.to_string()).expect("a message");
        self.feed(BusInput::ClientSpoke { conn, frame });
    }

    /// One that it uses, one of somebody else, a new one, or none.
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

    pub(super) fn cancel(&mut self, conn: ConnId) {
        let mut of_it = self.book.asked.keys().filter(|(it, _)| *it == conn).map(|(_, id)| *id);
        let Some(id) = of_it.next_back() else { return };
        let params = json!({ "requestId": if self.rng.chance(50) { json!(id) } else { json!(id.to_string()) } });
        let frame = Frame::notification("$/cancel_request", &params.to_string());
        self.feed(BusInput::ClientSpoke { conn, frame });
    }

    pub(super) fn answer_ask(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("picked");
        let Some((ours, ask)) = client.asks.pop_first() else { return };
        let frame = Frame::result_for(&ours.to_string(), &json!({ "ask": ask }).to_string());
        self.feed(BusInput::ClientSpoke { conn, frame });
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
        client.said_since_pause = client.said_since_pause.saturating_sub(texts);
        self.feed(BusInput::ClientWrote { conn, bytes });
    }

    pub(super) fn client_leaves(&mut self) {
        let all: Vec<ConnId> = self.clients.keys().copied().collect();
        if all.is_empty() {
            return;
        }
        let conn = self.rng.pick(&all);
        let client = self.clients.get_mut(&conn).expect("picked");
        if !client.closing && !client.finished && self.rng.chance(40) {
            client.finished = true;
            client.asks.clear();
            self.feed(BusInput::ClientFinished { conn });
            return;
        }
        self.book.forget_client(conn);
        self.clients.remove(&conn);
        self.feed(BusInput::ClientGone { conn });
    }
}
