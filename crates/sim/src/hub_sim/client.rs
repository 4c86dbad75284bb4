//! Simulated clients: editors and scripts that connect, ask, answer, read slowly or not at all, leave
//! and come back.

use super::{
    World,
    agent::PROGRAMS,
    check::{Hearing, Kind, Request, hold},
};
use bytes::Bytes;
use jackfield_hub::{ConnId, Input, SessionId, Tenant};
use jackfield_protocol::Fault;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// Someone who uses sessions, over many connections and many lives of the hub.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) aware: bool,
    /// A gateway speaks for it.
    pub(super) relay: bool,
    /// Whose it is; nobody's is the operator's.
    pub(super) tenant: Option<Arc<Tenant>>,
    pub(super) conn: Option<ConnId>,
    /// How far it has read each session; what it asks for when it comes back.
    pub(super) cursors: BTreeMap<SessionId, u64>,
    /// Prompts that were not answered, by session and mark: they are said again.
    pub(super) again: Vec<(SessionId, u64)>,
}

/// One connection, as its edge sees it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the line")]
pub(super) struct Connection {
    pub(super) client: usize,
    pub(super) aware: bool,
    pub(super) relay: bool,
    /// The client has left; the hub may not know yet.
    pub(super) left: bool,
    /// The client says nothing more.
    pub(super) finished: bool,
    lazy: bool,
    /// Said by the client and not yet heard by the hub.
    pub(super) sent: VecDeque<Input>,
    /// Said by the hub and not yet read by the client.
    pub(super) outbox: VecDeque<Letter>,
    /// What the hub believes to be unwritten.
    pub(super) unwritten: usize,
    /// Written, and the hub not yet told.
    pub(super) wrote: usize,
    pub(super) open: BTreeMap<u64, Request>,
    /// Asked of it and read by it: the hub's id and the ask's mark.
    pub(super) asked: Vec<(u64, u64)>,
    /// Every id the hub has asked it under.
    pub(super) issued: BTreeMap<u64, u64>,
    pub(super) hearings: BTreeMap<SessionId, Hearing>,
    pub(super) observes: BTreeMap<SessionId, bool>,
    pub(super) prompted: BTreeSet<SessionId>,
    pub(super) next_id: u64,
}

/// A message on its way to a client, and what reading it will mean.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) bytes: usize,
    pub(super) means: Means,
}

#[derive(Debug, Clone)]
pub(super) enum Means {
    Nothing,
    Event(SessionId, u64),
    Asked { id: u64, mark: u64 },
    Withdrawn { id: u64 },
    Opened(SessionId),
}

impl Connection {
    /// Whether it ever prompted there; if so, it may be attached.
    pub(super) fn prompts_in(&self, session: &SessionId) -> bool {
        self.prompted.contains(session)
    }

    /// Whether it has asked for a session and not heard which it is.
    pub(super) fn opens(&self) -> bool {
        self.open.values().any(|it| matches!(it.kind, Kind::New | Kind::Fork) && it.delivered)
    }
}

impl World {
    pub(super) fn connect(&mut self, client: usize) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let (aware, relay) = (self.clients[client].aware, self.clients[client].relay);
        self.clients[client].conn = Some(conn);
        let mut it = Connection {
            client,
            aware,
            relay,
            left: false,
            finished: false,
            lazy: self.rng.chance(self.temper.lazy),
            sent: VecDeque::new(),
            outbox: VecDeque::new(),
            unwritten: 0,
            wrote: 0,
            open: BTreeMap::new(),
            asked: Vec::new(),
            issued: BTreeMap::new(),
            hearings: BTreeMap::new(),
            observes: BTreeMap::new(),
            prompted: BTreeSet::new(),
            next_id: 0,
        };
        it.sent.push_back(Input::ClientOpened { conn, peer: None });
        self.conns.insert(conn, it);
        if relay {
            self.send(conn, r#"{"jsonrpc":"2.0","method":"_jackfield/relay","params":{}}"#.into());
        }
        if let Some(tenant) = self.clients[client].tenant.clone() {
            self.send(conn, tenant.binding().text().to_owned());
        }
        if self.rng.chance(40) {
            let name = self.program();
            self.request(
                conn,
                Kind::Connect,
                None,
                "_jackfield/connect",
                &format!(r#""agent":"{name}""#),
            );
        }
        let meta = if aware { r#""_meta":{"jackfield":{}},"# } else { "" };
        // Only who says the same can share a process.
        let alike = self.habits.seats != 1;
        let elicits = if alike || self.rng.chance(50) { r#""elicitation":{},"# } else { "" };
        let reads = alike || self.rng.chance(50);
        let hello = format!(
            r#""protocolVersion":1,"clientInfo":{{"name":"sim"}},"clientCapabilities":{{{meta}{elicits}"fs":{{"readTextFile":{reads}}}}}"#
        );
        self.request(conn, Kind::Initialize, None, "initialize", &hello);
    }

    /// One client does one thing.
    pub(super) fn client_acts(&mut self) {
        let client = self.rng.index(self.clients.len());
        let Some(conn) = self.clients[client].conn else { return self.connect(client) };
        let lost = !self.clients[client].again.is_empty();
        if self.rng.chance(if lost { 40 } else { 3 }) {
            return self.say_again(conn, client);
        }
        if !self.conns[&conn].asked.is_empty() && self.rng.chance(50) {
            return self.answer_ask(conn);
        }
        let session = self.some_session(conn);
        let Some(session) = session.filter(|_| self.rng.chance(93)) else {
            return self.act_outside(conn);
        };
        self.act_in(conn, client, &session);
    }

    fn act_outside(&mut self, conn: ConnId) {
        match self.rng.below(10) {
            0..=5 if self.openings() + self.disk.streams.len() < 2 + self.habits.seats => {
                let name = self.program();
                let meta = format!(r#","_meta":{{"jackfield":{{"agent":"{name}"}}}}"#);
                let meta = if self.rng.chance(60) { meta } else { String::new() };
                let params = format!(r#""cwd":"/x","mcpServers":[]{meta}"#);
                if !meta.is_empty() {
                    self.failures.wanted.insert(self.next_mark + 1, name);
                }
                self.request(conn, Kind::New, None, "session/new", &params);
            }
            6 => self.request(conn, Kind::List, None, "session/list", ""),
            7 if self.rng.chance(50) => {
                self.request(conn, Kind::Asks, None, "_jackfield/asks", "");
            }
            7 => self.request(conn, Kind::Sessions, None, "_jackfield/sessions", ""),
            8 => self.request(conn, Kind::Echo, None, "x/who_are_you", ""),
            9 => {
                let it = self.conns.get_mut(&conn).expect("open");
                it.sent.push_back(Input::ClientSentInvalidFrame { conn, fault: Fault::Parse });
            }
            _ => self.request(conn, Kind::Status, None, "_jackfield/status", ""),
        }
    }

    /// Which agent a client wants: where processes are shared, mostly one.
    fn program(&mut self) -> &'static str {
        let favourite = self.habits.seats != 1 && self.rng.chance(75);
        let other = self.rng.index(PROGRAMS.len());
        let at = if favourite { self.habits.favourite() } else { other };
        PROGRAMS[at].0
    }

    /// Sessions that are being opened.
    fn openings(&self) -> usize {
        let open = self.conns.values().flat_map(|it| it.open.values());
        open.filter(|it| it.kind == Kind::New).count()
    }

    fn act_in(&mut self, conn: ConnId, client: usize, session: &SessionId) {
        let some = Some(session);
        match self.rng.below(100) {
            0..=33 => self.prompt(conn, session),
            34..=38 => self.act_on_the_queue(conn, session),
            39 => self.fork(conn, session),
            40..=47 => self.say_in(conn, session, "session/cancel"),
            48..=52 => self.withdraw_request(conn),
            53..=57 => {
                let mode = format!(r#""modeId":"m{}""#, self.rng.below(3));
                self.request(conn, Kind::Setting, some, "session/set_mode", &mode);
            }
            58..=61 => {
                let option = r#""configId":"model","value":"large""#;
                self.request(conn, Kind::Setting, some, "session/set_config_option", option);
            }
            62..=66 => self.request(conn, Kind::Echo, some, "x/echo", ""),
            67..=69 => self.answer_from_outside(conn, session),
            70..=72 => self.say_in(conn, session, "x/notify"),
            73..=78 => self.request(conn, Kind::Load, some, "session/load", r#""cwd":"/x""#),
            79..=84 => self.request(conn, Kind::Resume, some, "session/resume", r#""cwd":"/x""#),
            85..=95 => self.attach(conn, client, session),
            96..=97 => self.request(conn, Kind::Close, some, "session/close", ""),
            98 => self.request(conn, Kind::Delete, some, "session/delete", ""),
            _ => self.answer_nothing(conn),
        }
    }

    pub(super) fn attach(&mut self, conn: ConnId, client: usize, session: &SessionId) {
        let after = self.clients[client].cursors.get(session).copied().unwrap_or(0);
        let observe = !self.calm && self.rng.chance(10);
        let params = format!(r#""after":{after},"observe":{observe}"#);
        self.request(conn, Kind::Attach, Some(session), "_jackfield/attach", &params);
    }

    pub(super) fn say_in(&mut self, conn: ConnId, session: &SessionId, method: &str) {
        self.send(
            conn,
            format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"{session}"}}}}"#
            ),
        );
    }

    fn withdraw_request(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("open");
        if it.open.is_empty() {
            return;
        }
        let id = *it.open.keys().nth(self.rng.index(it.open.len())).expect("within");
        it.open.get_mut(&id).expect("found above").withdrawn = true;
        self.tally.count("requests withdrawn");
        self.send(
            conn,
            format!(
                r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
            ),
        );
    }

    /// A client reads some of what waits for it.
    pub(super) fn client_reads(&mut self) {
        let open: Vec<ConnId> =
            self.conns.iter().filter(|(_, it)| !it.outbox.is_empty()).map(|(&id, _)| id).collect();
        if open.is_empty() {
            return;
        }
        let conn = self.rng.pick(&open);
        if self.conns[&conn].lazy && !self.rng.chance(4) {
            return;
        }
        for _ in 0..=self.rng.below(12) {
            self.read_letter(conn);
        }
    }

    /// Reads one message, or a part of a long one.
    pub(super) fn read_letter(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("the caller found it");
        let Some(letter) = it.outbox.front_mut() else { return };
        if !self.calm && 64 < letter.bytes && self.rng.chance(20) {
            letter.bytes -= 32;
            it.wrote += 32;
            return;
        }
        let letter = it.outbox.pop_front().expect("seen above");
        it.wrote += letter.bytes;
        let client = it.client;
        match letter.means {
            Means::Nothing => {}
            Means::Event(session, seq) => {
                self.clients[client].cursors.insert(session, seq);
            }
            Means::Asked { id, mark } => it.asked.push((id, mark)),
            Means::Withdrawn { id } => {
                let owes = it.asked.iter().any(|(asked, _)| *asked == id);
                if owes && self.rng.chance(50) {
                    // As JSON-RPC wants it: one answer, whatever happened.
                    it.asked.retain(|(asked, _)| *asked != id);
                    self.send(conn, format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32800,"message":"cancelled"}}}}"#
                    ));
                }
            }
            Means::Opened(session) => {
                if !self.known.contains(&session) {
                    self.known.push(session);
                }
            }
        }
    }

    pub(super) fn leave(&mut self, client: usize) {
        let Some(conn) = self.clients[client].conn.take() else { return };
        self.tally.count("clients left");
        let it = self.conns.get_mut(&conn).expect("its connection is open");
        it.left = true;
        it.outbox.clear();
        it.sent.push_back(Input::ClientGone { conn });
    }

    /// Says nothing more, and listens until it has its answers: `echo … | jackfield acp`.
    pub(super) fn finish(&mut self, client: usize) {
        let Some(conn) = self.clients[client].conn.take() else { return };
        self.tally.count("clients finished");
        let it = self.conns.get_mut(&conn).expect("its connection is open");
        it.finished = true;
        it.sent.push_back(Input::ClientFinished { conn });
    }

    /// The hub has nothing more to say to a client that has finished.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("only open connections are closed");
        let again = it.open.extract_if(.., |_, of| it.relay && of.kind == Kind::Prompt);
        let again: Vec<_> = again.filter_map(|(_, of)| Some((of.session?, of.token))).collect();
        self.clients[it.client].again.extend(again);
        let waits = it.open.iter().find(|(_, of)| !it.relay || of.session.is_none());
        hold("who_has_finished_hears_every_answer", waits.is_none(), || {
            format!("{conn} was closed and waits for {waits:?}")
        });
        self.tally.count("clients hung up on");
        self.conns.remove(&conn);
    }

    /// Puts a message in a client's way.
    pub(super) fn post(&mut self, conn: ConnId, text: &Bytes, means: Means) {
        let it = self.conns.get_mut(&conn).expect("the caller found it");
        it.unwritten += text.len();
        if !it.left {
            it.outbox.push_back(Letter { bytes: text.len(), means });
        }
    }
}
