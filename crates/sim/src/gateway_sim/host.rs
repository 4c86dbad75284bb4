//! Hosts as a gateway sees them: they own sessions, deliver events to subscribers, and answer requests.

use super::world::{GatewayWorld, HostConnection};
use jackfield_events::HostId;
use jackfield_fleet::gateway::{GatewayInput, HostConnectionId};
use jackfield_hub::tenant_of;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

impl GatewayWorld {
    /// A host reads messages of a connection.
    pub(super) fn host_reads(&mut self, host_conn: HostConnectionId, count: usize) {
        // A host that has exited or is unknown accepts no connection.
        let Some(it) = self.host_conns.get(&host_conn) else { return };
        if !self.hosts.get(&it.host).is_some_and(|it| it.alive) {
            return self.end_host_conn(host_conn);
        }
        for _ in 0..count {
            let Some(it) = self.host_conns.get_mut(&host_conn) else { return };
            let Some(text) = it.inbox.pop_front() else { return };
            let message: Value = serde_json::from_slice(&text).expect("JSON");
            let first = !std::mem::replace(&mut it.has_started, true);
            assert_eq!(
                first,
                message["method"] == "_jackfield/relay",
                "{host_conn} begins with {message}"
            );
            self.on_host_message(host_conn, &message);
            self.feed_input(GatewayInput::HostConnectionWrote { host_conn, bytes: text.len() });
        }
    }

    fn on_host_message(&mut self, host_conn: HostConnectionId, message: &Value) {
        let Some(method) = message["method"].as_str() else {
            let it = self.host_conns.get_mut(&host_conn).expect("the connection is open");
            // The answer to an ask of a released session is ignored.
            let id = message["id"].as_u64().expect("a number");
            let Some((_, ask)) = it.open_asks.remove(&id) else { return };
            assert_eq!(message["result"]["ask"], ask, "the answer belongs to another ask");
            return self.tally.count("asks answered");
        };
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap_or_default();
        let host = self.host_conns[&host_conn].host.clone();
        let tenant = self.host_conns[&host_conn].tenant.clone();
        let is_its = |it: &str| tenant.is_none() || tenant_of(it) == tenant.as_deref();
        assert!(
            session.is_empty() || is_its(session),
            "{host_conn} of {tenant:?} receives {message}"
        );
        let owns = self.logs.get(session).is_some_and(|it| it.owner.as_ref() == Some(&host));
        match method {
            "session/cancel" if owns => self.end_turn(session, false),
            "$/cancel_request" => self.on_cancelled(host_conn, &params["requestId"]),
            "_jackfield/tenant" => {
                let it = self.host_conns.get_mut(&host_conn).expect("the connection is open");
                assert!(it.tenant.is_none(), "{host_conn} is bound twice");
                it.tenant = params["tenant"].as_str().map(str::to_owned);
                self.tally.count("host connections bound");
            }
            _ if message["id"].is_null() => {}
            _ if self.hosts[&host].stopping => {
                let frame = Frame::error_for(&message["id"].to_string(), &Fault::Stopping);
                self.send_to_gateway(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
            }
            "session/new" => self.on_new(host_conn, message),
            "_jackfield/sessions" => {
                // A host lists the sessions of the client's tenant.
                let own = self.logs.iter().filter(|(_, it)| it.owner.as_ref() == Some(&host));
                let own = own.filter(|(id, _)| is_its(id)).take(2);
                let rows: Vec<Value> = own.map(|(id, _)| json!({ "sessionId": id })).collect();
                self.send_result(host_conn, message, &json!({ "sessions": rows }));
            }
            "initialize" | "_jackfield/connect" | "authenticate" => {
                self.send_result(host_conn, message, &json!({ "token": params["token"] }));
            }
            _ if !owns => {
                let fault = Fault::SessionNotFound { session: session.to_owned() };
                let frame = Frame::error_for(&message["id"].to_string(), &fault);
                self.send_to_gateway(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
            }
            "session/load" => {
                self.replay_from(host_conn, session, 0);
                let seq = json!({ "jackfield": { "seq": self.logs[session].head() } });
                self.send_result(
                    host_conn,
                    message,
                    &json!({ "token": params["token"], "_meta": seq }),
                );
            }
            "_jackfield/attach" => {
                self.tally.count("sessions attached on another host");
                self.replay_from(host_conn, session, params["after"].as_u64().expect("a seq"));
                self.send_result(host_conn, message, &json!({ "head": self.logs[session].head() }));
            }
            "session/prompt" => self.on_prompt(host_conn, session, message),
            _ => self.send_result(host_conn, message, &json!({ "token": params["token"] })),
        }
    }

    fn send_to_gateway(&mut self, host_conn: HostConnectionId, message: Value) {
        self.host_conns
            .get_mut(&host_conn)
            .expect("a known host connection")
            .outbox
            .push_back(message);
    }

    fn send_result(&mut self, host_conn: HostConnectionId, request: &Value, result: &Value) {
        self.send_to_gateway(
            host_conn,
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }),
        );
    }

    fn on_new(&mut self, host_conn: HostConnectionId, message: &Value) {
        let HostConnection { host, tenant, .. } = &self.host_conns[&host_conn];
        let plain = format!("s-{}", self.logs.len());
        let session = tenant.as_ref().map_or(plain.clone(), |it| format!("{it}.{plain}"));
        let host = host.clone();
        let log = super::log::SessionLog { owner: Some(host), ..Default::default() };
        self.logs.insert(session.clone(), log);
        self.host_conns
            .get_mut(&host_conn)
            .expect("the connection is open")
            .subscriptions
            .insert(session.clone());
        let result = json!({ "sessionId": session, "token": message["params"]["token"] });
        if self.rng.chance(50) {
            self.append(&session);
        }
        self.send_result(host_conn, message, &result);
        self.append(&session);
    }

    /// Delivers the events after this sequence number and subscribes the connection.
    fn replay_from(&mut self, host_conn: HostConnectionId, session: &str, after: u64) {
        let log = &self.logs[session];
        let frames: Vec<Value> = (after.min(log.head()) + 1..=log.head())
            .flat_map(|it| log.frames(session, it))
            .collect();
        let it = self.host_conns.get_mut(&host_conn).expect("the connection is open");
        it.outbox.extend(frames);
        it.subscriptions.insert(session.to_owned());
    }

    fn on_prompt(&mut self, host_conn: HostConnectionId, session: &str, message: &Value) {
        let key =
            message["params"]["_meta"]["jackfield"]["key"].as_str().expect("a key").to_owned();
        let token = message["params"]["token"].as_u64().expect("a token");
        let log = self.logs.get_mut(session).expect("the host owns the session");
        let turn = log.turn_with_key(&key);
        let old = turn.map(|it| &log.prompts[usize::try_from(it).expect("small")]);
        if let Some(old) = old {
            assert_eq!(old.token, token, "two prompts have one key");
            self.tally.count("prompts repeated");
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
                return self
                    .send_to_gateway(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
            }
            log.turn = Some(log.prompts.len() as u64);
            log.prompts.push(super::log::PromptRecord { key, token, ended: None });
            self.append(session);
        }
        let turn = self.logs[session].turn.expect("a turn runs");
        let it = self.host_conns.get_mut(&host_conn).expect("the connection is open");
        it.waiting_turns.insert((session.to_owned(), turn), message["id"].clone());
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
            return self
                .send_to_gateway(host_conn, serde_json::from_str(frame.text()).expect("JSON"));
        }
        let result = json!({ "token": token, "endedAt": seq });
        self.send_result(host_conn, &json!({ "id": id }), &result);
    }

    fn on_cancelled(&mut self, host_conn: HostConnectionId, id: &Value) {
        let waiting = &self.host_conns[&host_conn].waiting_turns;
        let turn =
            waiting.iter().find(|(_, it)| *it == id).map(|((session, _), _)| session.clone());
        if let Some(session) = turn {
            self.end_turn(&session, false);
        }
    }

    /// Appends an event of one to three frames.
    pub(super) fn append(&mut self, session: &str) {
        let parts = 1 + self.rng.below(3);
        let log = self.logs.get_mut(session).expect("a known session");
        log.events.push(parts);
        let frames = log.frames(session, log.head());
        let owner = log.owner.clone();
        let own = |it: &&mut HostConnection| {
            Some(&it.host) == owner.as_ref() && it.subscriptions.contains(session)
        };
        for host_conn in self.host_conns.values_mut().filter(own) {
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
        let waiting = self
            .host_conns
            .iter_mut()
            .filter_map(|(id, it)| Some((*id, it.waiting_turns.remove(&key)?)));
        for (host_conn, id) in waiting.collect::<Vec<_>>() {
            self.answer_turn(host_conn, &id, token, seq, interrupted);
        }
        self.tally.count("turns ended");
    }

    /// One session with an owner takes a step.
    pub(super) fn run_session_step(&mut self) {
        let owned = self.logs.iter().filter(|(_, it)| it.owner.is_some());
        let owned: Vec<String> = owned.map(|(id, _)| id.clone()).collect();
        if owned.is_empty() {
            return;
        }
        let session = owned[self.rng.index(owned.len())].clone();
        match self.rng.below(10) {
            0..=5 => self.append(&session),
            6 => self.send_ask(&session),
            7 => self.release_session(&session),
            _ => self.end_turn(&session, false),
        }
    }

    fn send_ask(&mut self, session: &str) {
        let hear = self.host_conns.iter().filter(|(_, it)| it.subscriptions.contains(session));
        for host_conn in hear.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.next_number += 1;
            let ask = self.next_number;
            let it = self.host_conns.get_mut(&host_conn).expect("found above");
            // Small, so that the ids of two hosts are often equal.
            it.next_ask += 1;
            let id = it.next_ask;
            it.open_asks.insert(id, (session.to_owned(), ask));
            let params = json!({ "sessionId": session, "ask": ask });
            let method = "session/request_permission";
            self.send_to_gateway(
                host_conn,
                json!({ "id": id, "method": method, "params": params }),
            );
        }
    }

    /// The owner releases the session or loses its lease; an open turn stays open.
    fn release_session(&mut self, session: &str) {
        self.tally.count("sessions released");
        self.logs.get_mut(session).expect("a known session").owner = None;
        for host_conn in
            self.host_conns.values_mut().filter(|it| it.subscriptions.contains(session))
        {
            host_conn.forget(session);
            let params = json!({ "sessionId": session });
            host_conn.outbox.push_back(json!({ "method": "_jackfield/moved", "params": params }));
        }
    }

    /// Output of a host reaches the gateway.
    pub(super) fn deliver_host_output(&mut self, host_conn: HostConnectionId, count: usize) {
        for _ in 0..count {
            let Some(it) = self.host_conns.get_mut(&host_conn).filter(|it| !it.paused) else {
                return;
            };
            let Some(message) = it.outbox.pop_front() else { return };
            let frame = Frame::parse_str(&message.to_string()).expect("a message");
            self.feed_input(GatewayInput::HostSentFrame { host_conn, frame });
        }
    }

    pub(super) fn end_host_conn(&mut self, host_conn: HostConnectionId) {
        self.host_conns.remove(&host_conn);
        self.tally.count("host connections lost");
        self.feed_input(GatewayInput::HostConnectionGone {
            host_conn,
            reason: "connection reset".to_owned(),
        });
    }

    pub(super) fn lose_host(&mut self, name: &HostId) {
        self.tally.count("hosts lost");
        let host = self.hosts.get_mut(name).expect("a known host");
        (host.alive, host.draining, host.stopping) = (false, false, false);
        host.incarnation += 1;
        for log in self.logs.values_mut().filter(|it| it.owner.as_ref() == Some(name)) {
            log.owner = None;
        }
        let own = self.host_conns.iter().filter(|(_, it)| it.host == *name);
        for host_conn in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            // The list of hosts may be the only sign of a lost host.
            if self.rng.chance(60) {
                self.end_host_conn(host_conn);
            } else {
                self.host_conns.remove(&host_conn);
            }
        }
    }
}
