//! Simulated clients: editors and scripts that connect, send requests, answer, read slowly or not at all, disconnect
//! and reconnect.

use super::{
    HubWorld,
    agent::PROGRAMS,
    check::{ClientRequest, DeliveryPosition, RequestKind, check_invariant},
};
use bytes::Bytes;
use jackfield_hub::{ConnId, Input, SessionId, Tenant};
use jackfield_protocol::Fault;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// A user of sessions, over many connections and restarts of the hub.
#[derive(Debug)]
pub(super) struct SimulatedClient {
    pub(super) aware: bool,
    /// The client is a gateway that relays for its own clients.
    pub(super) relay: bool,
    /// The client's tenant; `None` is the operator.
    pub(super) tenant: Option<Arc<Tenant>>,
    pub(super) conn: Option<ConnId>,
    /// The last event that the client has read of each session, sent when it attaches again.
    pub(super) cursors: BTreeMap<SessionId, u64>,
    /// Unanswered prompts by session and mark; the client repeats them.
    pub(super) unanswered_prompts: Vec<(SessionId, u64)>,
}

/// One connection, as the transport sees it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the line")]
pub(super) struct ClientConnection {
    pub(super) client: usize,
    pub(super) aware: bool,
    pub(super) relay: bool,
    /// The client has disconnected; the hub may not have been notified yet.
    pub(super) has_left: bool,
    /// The client sends nothing more.
    pub(super) finished: bool,
    slow_reader: bool,
    /// Inputs that the hub has not received yet.
    pub(super) sent: VecDeque<Input>,
    /// Messages that the client has not read yet.
    pub(super) outbox: VecDeque<OutgoingMessage>,
    /// The bytes that the hub counts as unwritten.
    pub(super) unwritten: usize,
    /// Bytes that are written and not yet reported to the hub.
    pub(super) written: usize,
    pub(super) pending: BTreeMap<u64, ClientRequest>,
    /// Asks that the client has read and not answered: the hub's request id and the mark.
    pub(super) open_asks: Vec<(u64, u64)>,
    /// The marks of all asks by the hub's request id.
    pub(super) issued: BTreeMap<u64, u64>,
    pub(super) deliveries: BTreeMap<SessionId, DeliveryPosition>,
    pub(super) observes: BTreeMap<SessionId, bool>,
    pub(super) prompted: BTreeSet<SessionId>,
    pub(super) next_id: u64,
}

/// A message to a client, and the effect of reading it.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    pub(super) bytes: usize,
    pub(super) means: MessageEffect,
}

#[derive(Debug, Clone)]
pub(super) enum MessageEffect {
    None,
    Event(SessionId, u64),
    Asked { id: u64, mark: u64 },
    Withdrawn { id: u64 },
    Opened(SessionId),
}

impl ClientConnection {
    /// Whether this connection ever sent a prompt to the session; if so, it may be attached.
    pub(super) fn has_prompted_in(&self, session: &SessionId) -> bool {
        self.prompted.contains(session)
    }

    /// Whether a request for a new session is unanswered.
    pub(super) fn has_open_session_request(&self) -> bool {
        self.pending
            .values()
            .any(|it| matches!(it.kind, RequestKind::New | RequestKind::Fork) && it.delivered)
    }
}

impl HubWorld {
    pub(super) fn connect_client(&mut self, client: usize) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let (aware, relay) = (self.clients[client].aware, self.clients[client].relay);
        self.clients[client].conn = Some(conn);
        let mut it = ClientConnection {
            client,
            aware,
            relay,
            has_left: false,
            finished: false,
            slow_reader: self.rng.chance(self.fault_rates.slow_reader),
            sent: VecDeque::new(),
            outbox: VecDeque::new(),
            unwritten: 0,
            written: 0,
            pending: BTreeMap::new(),
            open_asks: Vec::new(),
            issued: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            observes: BTreeMap::new(),
            prompted: BTreeSet::new(),
            next_id: 0,
        };
        it.sent.push_back(Input::ClientOpened { conn, peer: None });
        self.conns.insert(conn, it);
        if relay {
            self.send_from_client(
                conn,
                r#"{"jsonrpc":"2.0","method":"_jackfield/relay","params":{}}"#.into(),
            );
        }
        if let Some(tenant) = self.clients[client].tenant.clone() {
            self.send_from_client(conn, tenant.binding().text().to_owned());
        }
        if self.rng.chance(40) {
            let name = self.pick_program();
            self.send_request(
                conn,
                RequestKind::Connect,
                None,
                "_jackfield/connect",
                &format!(r#""agent":"{name}""#),
            );
        }
        let meta = if aware { r#""_meta":{"jackfield":{}},"# } else { "" };
        // Only clients with equal capabilities can share a process.
        let is_shared = self.hub_settings.sessions_per_process != 1;
        let elicits = if is_shared || self.rng.chance(50) { r#""elicitation":{},"# } else { "" };
        let reads = is_shared || self.rng.chance(50);
        let params = format!(
            r#""protocolVersion":1,"clientInfo":{{"name":"sim"}},"clientCapabilities":{{{meta}{elicits}"fs":{{"readTextFile":{reads}}}}}"#
        );
        self.send_request(conn, RequestKind::Initialize, None, "initialize", &params);
    }

    /// Runs one step of one client.
    pub(super) fn run_client(&mut self) {
        let client = self.rng.index(self.clients.len());
        let Some(conn) = self.clients[client].conn else { return self.connect_client(client) };
        let lost = !self.clients[client].unanswered_prompts.is_empty();
        if self.rng.chance(if lost { 40 } else { 3 }) {
            return self.repeat_prompt(conn, client);
        }
        if !self.conns[&conn].open_asks.is_empty() && self.rng.chance(50) {
            return self.answer_ask(conn);
        }
        let session = self.pick_session_for(conn);
        let Some(session) = session.filter(|_| self.rng.chance(93)) else {
            return self.act_without_session(conn);
        };
        self.act_in_session(conn, client, &session);
    }

    fn act_without_session(&mut self, conn: ConnId) {
        match self.rng.below(10) {
            0..=5
                if self.opening_count() + self.disk.streams.len()
                    < 2 + self.hub_settings.sessions_per_process =>
            {
                let name = self.pick_program();
                let meta = format!(r#","_meta":{{"jackfield":{{"agent":"{name}"}}}}"#);
                let meta = if self.rng.chance(60) { meta } else { String::new() };
                let params = format!(r#""cwd":"/x","mcpServers":[]{meta}"#);
                if !meta.is_empty() {
                    self.failure_tracker.wanted.insert(self.next_mark + 1, name);
                }
                self.send_request(conn, RequestKind::New, None, "session/new", &params);
            }
            6 => self.send_request(conn, RequestKind::List, None, "session/list", ""),
            7 if self.rng.chance(50) => {
                self.send_request(conn, RequestKind::Asks, None, "_jackfield/asks", "");
            }
            7 => self.send_request(conn, RequestKind::Sessions, None, "_jackfield/sessions", ""),
            8 => self.send_request(conn, RequestKind::Echo, None, "x/who_are_you", ""),
            9 => {
                let it = self.conns.get_mut(&conn).expect("open");
                it.sent.push_back(Input::ClientSentInvalidFrame { conn, fault: Fault::Parse });
            }
            _ => self.send_request(conn, RequestKind::Status, None, "_jackfield/status", ""),
        }
    }

    /// Picks the agent for a new session. If processes are shared, one program is preferred.
    fn pick_program(&mut self) -> &'static str {
        let is_preferred = self.hub_settings.sessions_per_process != 1 && self.rng.chance(75);
        let other = self.rng.index(PROGRAMS.len());
        let at = if is_preferred { self.hub_settings.preferred_program() } else { other };
        PROGRAMS[at].0
    }

    /// The number of unanswered `session/new` requests.
    fn opening_count(&self) -> usize {
        let open = self.conns.values().flat_map(|it| it.pending.values());
        open.filter(|it| it.kind == RequestKind::New).count()
    }

    fn act_in_session(&mut self, conn: ConnId, client: usize, session: &SessionId) {
        let some = Some(session);
        match self.rng.below(100) {
            0..=33 => self.send_prompt(conn, session),
            34..=36 => self.act_on_queue(conn, session),
            37..=38 => self.read_log_page(conn, session),
            39 => self.send_fork(conn, session),
            40..=47 => self.notify_session(conn, session, "session/cancel"),
            48..=52 => self.withdraw_request(conn),
            53..=57 => {
                let mode = format!(r#""modeId":"m{}""#, self.rng.below(3));
                self.send_request(conn, RequestKind::Setting, some, "session/set_mode", &mode);
            }
            58..=61 => {
                let option = r#""configId":"model","value":"large""#;
                self.send_request(
                    conn,
                    RequestKind::Setting,
                    some,
                    "session/set_config_option",
                    option,
                );
            }
            62..=66 => self.send_request(conn, RequestKind::Echo, some, "x/echo", ""),
            67..=69 => self.answer_from_outside(conn, session),
            70..=72 => self.notify_session(conn, session, "x/notify"),
            73..=78 => {
                self.send_request(conn, RequestKind::Load, some, "session/load", r#""cwd":"/x""#);
            }
            79..=84 => self.send_request(
                conn,
                RequestKind::Resume,
                some,
                "session/resume",
                r#""cwd":"/x""#,
            ),
            85..=95 => self.send_attach(conn, client, session),
            96..=97 => self.send_request(conn, RequestKind::Close, some, "session/close", ""),
            98 => self.send_request(conn, RequestKind::Delete, some, "session/delete", ""),
            _ => self.answer_nothing(conn),
        }
    }

    pub(super) fn send_attach(&mut self, conn: ConnId, client: usize, session: &SessionId) {
        let after = self.clients[client].cursors.get(session).copied().unwrap_or(0);
        let observe = !self.faults_stopped && self.rng.chance(10);
        let params = format!(r#""after":{after},"observe":{observe}"#);
        self.send_request(conn, RequestKind::Attach, Some(session), "_jackfield/attach", &params);
    }

    pub(super) fn notify_session(&mut self, conn: ConnId, session: &SessionId, method: &str) {
        self.send_from_client(
            conn,
            format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"{session}"}}}}"#
            ),
        );
    }

    fn withdraw_request(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("open");
        if it.pending.is_empty() {
            return;
        }
        let id = *it.pending.keys().nth(self.rng.index(it.pending.len())).expect("within");
        it.pending.get_mut(&id).expect("found above").withdrawn = true;
        self.tally.count("requests withdrawn");
        self.send_from_client(
            conn,
            format!(
                r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
            ),
        );
    }

    /// A client reads some of its messages.
    pub(super) fn client_reads(&mut self) {
        let open: Vec<ConnId> =
            self.conns.iter().filter(|(_, it)| !it.outbox.is_empty()).map(|(&id, _)| id).collect();
        if open.is_empty() {
            return;
        }
        let conn = self.rng.pick(&open);
        if self.conns[&conn].slow_reader && !self.rng.chance(4) {
            return;
        }
        for _ in 0..=self.rng.below(12) {
            self.read_message(conn);
        }
    }

    /// Reads one message, or a part of a long one.
    pub(super) fn read_message(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("the caller found it");
        let Some(message) = it.outbox.front_mut() else { return };
        if !self.faults_stopped && 64 < message.bytes && self.rng.chance(20) {
            message.bytes -= 32;
            it.written += 32;
            return;
        }
        let message = it.outbox.pop_front().expect("seen above");
        it.written += message.bytes;
        let client = it.client;
        match message.means {
            MessageEffect::None => {}
            MessageEffect::Event(session, seq) => {
                self.clients[client].cursors.insert(session, seq);
            }
            MessageEffect::Asked { id, mark } => it.open_asks.push((id, mark)),
            MessageEffect::Withdrawn { id } => {
                let is_open = it.open_asks.iter().any(|(asked, _)| *asked == id);
                if is_open && self.rng.chance(50) {
                    // JSON-RPC requires a response to a cancelled request, too.
                    it.open_asks.retain(|(asked, _)| *asked != id);
                    self.send_from_client(conn, format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32800,"message":"cancelled"}}}}"#
                    ));
                }
            }
            MessageEffect::Opened(session) => {
                if !self.known_sessions.contains(&session) {
                    self.known_sessions.push(session);
                }
            }
        }
    }

    pub(super) fn disconnect_client(&mut self, client: usize) {
        let Some(conn) = self.clients[client].conn.take() else { return };
        self.tally.count("clients disconnected");
        let it = self.conns.get_mut(&conn).expect("its connection is open");
        it.has_left = true;
        it.outbox.clear();
        it.sent.push_back(Input::ClientGone { conn });
    }

    /// The client sends nothing more and waits for its responses: `echo … | jackfield acp`.
    pub(super) fn finish_client(&mut self, client: usize) {
        let Some(conn) = self.clients[client].conn.take() else { return };
        self.tally.count("clients finished");
        let it = self.conns.get_mut(&conn).expect("its connection is open");
        it.finished = true;
        it.sent.push_back(Input::ClientFinished { conn });
    }

    /// The hub closes the connection of a client that has finished.
    pub(super) fn close_connection(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("only open connections are closed");
        let repeated =
            it.pending.extract_if(.., |_, of| it.relay && of.kind == RequestKind::Prompt);
        let repeated: Vec<_> =
            repeated.filter_map(|(_, of)| Some((of.session?, of.token))).collect();
        self.clients[it.client].unanswered_prompts.extend(repeated);
        let waits = it.pending.iter().find(|(_, of)| !it.relay || of.session.is_none());
        check_invariant("finished_client_gets_all_responses", waits.is_none(), || {
            format!("{conn} was closed and waits for {waits:?}")
        });
        self.tally.count("client connections closed");
        self.conns.remove(&conn);
    }

    /// Adds a message to the outbox of a client.
    pub(super) fn enqueue_message(&mut self, conn: ConnId, text: &Bytes, means: MessageEffect) {
        let it = self.conns.get_mut(&conn).expect("the caller found it");
        it.unwritten += text.len();
        if !it.has_left {
            it.outbox.push_back(OutgoingMessage { bytes: text.len(), means });
        }
    }
}
