//! Hubs, as far as a gateway can tell: they own sessions, tell those who listen, and answer.

use super::world::{HostConnection, World};
use jackfield_events::HostId;
use jackfield_fleet::gateway::{GatewayInput, HostConnectionId};
use jackfield_hub::tenant_of;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

impl World {
    /// A hub reads what was sent to it.
    pub(super) fn host_reads(&mut self, host_conn: HostConnectionId, count: usize) {
        // A dead host takes no connection, and one that nobody has heard of neither.
        let Some(it) = self.host_conns.get(&host_conn) else { return };
        if !self.hosts.get(&it.host).is_some_and(|it| it.alive) {
            return self.host_conn_ends(host_conn);
        }
        for _ in 0..count {
            let Some(it) = self.host_conns.get_mut(&host_conn) else { return };
            let Some(text) = it.inbox.pop_front() else { return };
            let message: Value = serde_json::from_slice(&text).expect("JSON");
            let first = !std::mem::replace(&mut it.began, true);
            assert_eq!(
                first,
                message["method"] == "_jackfield/relay",
                "{host_conn} begins with {message}"
            );
            self.on_asked(host_conn, &message);
            self.feed(GatewayInput::HostConnectionWrote { host_conn, bytes: text.len() });
        }
    }

    fn on_asked(&mut self, host_conn: HostConnectionId, message: &Value) {
        let Some(method) = message["method"].as_str() else {
            let it = self.host_conns.get_mut(&host_conn).expect("it was read");
            // One that was forgotten meanwhile is answered for nothing.
            let id = message["id"].as_u64().expect("an id of ours");
            let Some((_, ask)) = it.asks.remove(&id) else { return };
            assert_eq!(message["result"]["ask"], ask, "an answer to another ask");
            return self.tally.count("asks answered");
        };
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap_or_default();
        let host = self.host_conns[&host_conn].host.clone();
        let tenant = self.host_conns[&host_conn].tenant.clone();
        let is_its = |it: &str| tenant.is_none() || tenant_of(it) == tenant.as_deref();
        assert!(
            session.is_empty() || is_its(session),
            "{host_conn} of {tenant:?} is asked {message}"
        );
        let owns = self.logs.get(session).is_some_and(|it| it.owner.as_ref() == Some(&host));
        match method {
            "session/cancel" if owns => self.end_turn(session, false),
            "$/cancel_request" => self.on_cancelled(host_conn, &params["requestId"]),
            "_jackfield/tenant" => {
                let it = self.host_conns.get_mut(&host_conn).expect("it was read");
                assert!(it.tenant.is_none(), "{host_conn} is bound twice");
                it.tenant = params["tenant"].as_str().map(str::to_owned);
                self.tally.count("host connections bound");
            }
            _ if message["id"].is_null() => {}
            _ if self.hosts[&host].stopping => {
                let frame = Frame::error_for(&message["id"].to_string(), &Fault::Stopping);
                self.say(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
            }
            "session/new" => self.on_new(host_conn, message),
            "_jackfield/sessions" => {
                // A hub tells what its client may know.
                let own = self.logs.iter().filter(|(_, it)| it.owner.as_ref() == Some(&host));
                let own = own.filter(|(id, _)| is_its(id)).take(2);
                let rows: Vec<Value> = own.map(|(id, _)| json!({ "sessionId": id })).collect();
                self.answer(host_conn, message, &json!({ "sessions": rows }));
            }
            "initialize" | "_jackfield/connect" | "authenticate" => {
                self.answer(host_conn, message, &json!({ "token": params["token"] }));
            }
            _ if !owns => {
                let fault = Fault::SessionNotFound { session: session.to_owned() };
                let frame = Frame::error_for(&message["id"].to_string(), &fault);
                self.say(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
            }
            "session/load" => {
                self.tell_from(host_conn, session, 0);
                let seq = json!({ "jackfield": { "seq": self.logs[session].head() } });
                self.answer(host_conn, message, &json!({ "token": params["token"], "_meta": seq }));
            }
            "_jackfield/attach" => {
                self.tally.count("heard on elsewhere");
                self.tell_from(host_conn, session, params["after"].as_u64().expect("a seq"));
                self.answer(host_conn, message, &json!({ "head": self.logs[session].head() }));
            }
            "session/prompt" => self.on_prompt(host_conn, session, message),
            _ => self.answer(host_conn, message, &json!({ "token": params["token"] })),
        }
    }

    fn say(&mut self, host_conn: HostConnectionId, message: Value) {
        self.host_conns
            .get_mut(&host_conn)
            .expect("a host connection of ours")
            .outbox
            .push_back(message);
    }

    fn answer(&mut self, host_conn: HostConnectionId, request: &Value, result: &Value) {
        self.say(host_conn, json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    fn on_new(&mut self, host_conn: HostConnectionId, message: &Value) {
        let HostConnection { host, tenant, .. } = &self.host_conns[&host_conn];
        let plain = format!("s-{}", self.logs.len());
        let session = tenant.as_ref().map_or(plain.clone(), |it| format!("{it}.{plain}"));
        let host = host.clone();
        let log = super::log::Log { owner: Some(host), ..Default::default() };
        self.logs.insert(session.clone(), log);
        self.host_conns.get_mut(&host_conn).expect("it was read").hears.insert(session.clone());
        let result = json!({ "sessionId": session, "token": message["params"]["token"] });
        if self.rng.chance(50) {
            self.append(&session);
        }
        self.answer(host_conn, message, &result);
        self.append(&session);
    }

    /// Everything after this seq, and what comes from now on.
    fn tell_from(&mut self, host_conn: HostConnectionId, session: &str, after: u64) {
        let log = &self.logs[session];
        let frames: Vec<Value> = (after.min(log.head()) + 1..=log.head())
            .flat_map(|it| log.frames(session, it))
            .collect();
        let it = self.host_conns.get_mut(&host_conn).expect("it was read");
        it.outbox.extend(frames);
        it.hears.insert(session.to_owned());
    }

    fn on_prompt(&mut self, host_conn: HostConnectionId, session: &str, message: &Value) {
        let key =
            message["params"]["_meta"]["jackfield"]["key"].as_str().expect("a key").to_owned();
        let token = message["params"]["token"].as_u64().expect("a token");
        let log = self.logs.get_mut(session).expect("it owns it");
        let turn = log.keyed(&key);
        let old = turn.map(|it| &log.prompts[usize::try_from(it).expect("small")]);
        if let Some(old) = old {
            assert_eq!(old.token, token, "two prompts have one key");
            self.tally.count("prompts asked again");
            if let Some((seq, interrupted)) = old.ended {
                return self.answer_turn(
                    host_conn,
                    &message["id"].clone(),
                    token,
                    seq,
                    interrupted,
                );
            }
        } else {
            let twice = log.prompts.iter().any(|it| it.token == token);
            assert!(!twice, "a prompt runs twice");
            if log.turn.is_some() {
                let fault = Fault::Overloaded { what: "a turn runs".to_owned() };
                let frame = Frame::error_for(&message["id"].to_string(), &fault);
                return self.say(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
            }
            log.turn = Some(log.prompts.len() as u64);
            log.prompts.push(super::log::Prompt { key, token, ended: None });
            self.append(session);
        }
        let turn = self.logs[session].turn.expect("it runs");
        let it = self.host_conns.get_mut(&host_conn).expect("it was read");
        it.owed.insert((session.to_owned(), turn), message["id"].clone());
    }

    fn answer_turn(
        &mut self,
        host_conn: HostConnectionId,
        id: &Value,
        token: u64,
        seq: u64,
        interrupted: bool,
    ) {
        if interrupted {
            let fault = Fault::Interrupted { why: "the host was lost".to_owned() };
            let frame = Frame::error_for(&id.to_string(), &fault);
            return self.say(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
        }
        let result = json!({ "token": token, "endedAt": seq });
        self.answer(host_conn, &json!({ "id": id }), &result);
    }

    fn on_cancelled(&mut self, host_conn: HostConnectionId, id: &Value) {
        let owed = &self.host_conns[&host_conn].owed;
        let turn = owed.iter().find(|(_, it)| *it == id).map(|((session, _), _)| session.clone());
        if let Some(session) = turn {
            self.end_turn(&session, false);
        }
    }

    /// One more event, of one to three frames.
    pub(super) fn append(&mut self, session: &str) {
        let parts = 1 + self.rng.below(3);
        let log = self.logs.get_mut(session).expect("a session of ours");
        log.events.push(parts);
        let frames = log.frames(session, log.head());
        let owner = log.owner.clone();
        let of_it = |it: &&mut HostConnection| {
            Some(&it.host) == owner.as_ref() && it.hears.contains(session)
        };
        for host_conn in self.host_conns.values_mut().filter(of_it) {
            host_conn.outbox.extend(frames.iter().cloned());
        }
    }

    pub(super) fn end_turn(&mut self, session: &str, interrupted: bool) {
        let Some(turn) = self.logs.get_mut(session).and_then(|it| it.turn.take()) else { return };
        self.append(session);
        let log = self.logs.get_mut(session).expect("found above");
        let seq = log.head();
        let prompt = &mut log.prompts[usize::try_from(turn).expect("small")];
        prompt.ended = Some((seq, interrupted));
        let token = prompt.token;
        let key = (session.to_owned(), turn);
        let owed =
            self.host_conns.iter_mut().filter_map(|(id, it)| Some((*id, it.owed.remove(&key)?)));
        for (host_conn, id) in owed.collect::<Vec<_>>() {
            self.answer_turn(host_conn, &id, token, seq, interrupted);
        }
        self.tally.count("turns ended");
    }

    /// A session with an owner does something.
    pub(super) fn host_works(&mut self) {
        let owned = self.logs.iter().filter(|(_, it)| it.owner.is_some());
        let owned: Vec<String> = owned.map(|(id, _)| id.clone()).collect();
        if owned.is_empty() {
            return;
        }
        let session = owned[self.rng.index(owned.len())].clone();
        match self.rng.below(10) {
            0..=5 => self.append(&session),
            6 => self.ask(&session),
            7 => self.let_go(&session),
            _ => self.end_turn(&session, false),
        }
    }

    fn ask(&mut self, session: &str) {
        let hear = self.host_conns.iter().filter(|(_, it)| it.hears.contains(session));
        for host_conn in hear.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.next += 1;
            let ask = self.next;
            let it = self.host_conns.get_mut(&host_conn).expect("found above");
            // Small, so that the ids of two hosts are often the same.
            it.next_ask += 1;
            let id = it.next_ask;
            it.asks.insert(id, (session.to_owned(), ask));
            let params = json!({ "sessionId": session, "ask": ask });
            let method = "session/request_permission";
            self.say(host_conn, json!({ "id": id, "method": method, "params": params }));
        }
    }

    /// Its owner gives it up, or is told that it is the owner no more; a turn stays open then.
    fn let_go(&mut self, session: &str) {
        self.tally.count("sessions let go");
        self.logs.get_mut(session).expect("a session of ours").owner = None;
        for host_conn in self.host_conns.values_mut().filter(|it| it.hears.contains(session)) {
            host_conn.forget(session);
            let params = json!({ "sessionId": session });
            host_conn.outbox.push_back(json!({ "method": "_jackfield/moved", "params": params }));
        }
    }

    /// What a hub has said reaches the gateway.
    pub(super) fn host_conn_speaks(&mut self, host_conn: HostConnectionId, count: usize) {
        for _ in 0..count {
            let Some(it) = self.host_conns.get_mut(&host_conn).filter(|it| !it.paused) else {
                return;
            };
            let Some(message) = it.outbox.pop_front() else { return };
            let frame = Frame::parse_str(&message.to_string()).expect("a message");
            self.feed(GatewayInput::HostSentFrame { host_conn, frame });
        }
    }

    pub(super) fn host_conn_ends(&mut self, host_conn: HostConnectionId) {
        self.host_conns.remove(&host_conn);
        self.tally.count("host connections lost");
        self.feed(GatewayInput::HostConnectionGone {
            host_conn,
            why: "connection reset".to_owned(),
        });
    }

    pub(super) fn host_dies(&mut self, name: &HostId) {
        self.tally.count("hosts lost");
        let host = self.hosts.get_mut(name).expect("a host of ours");
        (host.alive, host.draining, host.stopping) = (false, false, false);
        host.incarnation += 1;
        for log in self.logs.values_mut().filter(|it| it.owner.as_ref() == Some(name)) {
            log.owner = None;
        }
        let of_it = self.host_conns.iter().filter(|(_, it)| it.host == *name);
        for host_conn in of_it.map(|(id, _)| *id).collect::<Vec<_>>() {
            // Nobody tells a gateway of a machine that is gone but the list of hosts.
            if self.rng.chance(60) {
                self.host_conn_ends(host_conn);
            } else {
                self.host_conns.remove(&host_conn);
            }
        }
    }
}
