//! Host connections: what hosts say by them, and what is to be done when one ends.

use super::{
    Gateway, GatewayNote, GatewayOutput, HostConnectionId, HostId,
    client::To,
    heard::{head_of, seq_of},
    opening::Introduced,
};
use bytes::Bytes;
use jackfield_hub::{ConnId, SessionId, cancel_notice};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Kind, is_planted};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct HostConnection {
    pub(super) conn: ConnId,
    pub(super) host: HostId,
    /// Of the host, as it was known when the host connection was opened.
    pub(super) incarnation: Option<u64>,
    pub(super) introduced: Introduced,
    /// What it owes an answer to, by our id.
    pub(super) calls: BTreeMap<u64, Call>,
    /// Bytes handed to it and not yet written.
    pub(super) unwritten: usize,
    /// Its reading is paused.
    pub(super) paused: bool,
    /// It has said something.
    spoke: bool,
}

/// What an answer is to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    /// A request of the client, by its own id.
    Client(Box<str>),
    /// What the client began with, which is said on every host connection.
    Opening(usize),
    /// The client hears a session by this host connection from now on.
    Attach(SessionId),
    /// What every host was asked.
    Merge(u64),
}

/// A host connection that is gone.
struct Lost<'a> {
    host_conn: HostConnectionId,
    host: &'a HostId,
    why: &'a str,
    spoke: bool,
}

/// A host that is stopping is asked again this often at the most, a pause each.
const BOUNCES_MAX: u32 = 100;

impl Gateway {
    /// The client's host connection to this host; it is opened if there is none.
    pub(super) fn host_conn_to(&mut self, conn: ConnId, host: &HostId) -> HostConnectionId {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if let Some(host_conn) = client.host_conns.get(host) {
            return *host_conn;
        }
        self.next_host_conn += 1;
        let host_conn = HostConnectionId(self.next_host_conn);
        client.host_conns.insert(host.clone(), host_conn);
        let it = HostConnection {
            conn,
            host: host.clone(),
            incarnation: self.hosts.get(host).map(|it| it.incarnation),
            introduced: Introduced::default(),
            calls: BTreeMap::new(),
            unwritten: 0,
            paused: false,
            spoke: false,
        };
        self.host_conns.insert(host_conn, it);
        self.outputs.push_back(GatewayOutput::OpenHostConnection { host_conn, host: host.clone() });
        self.send_to_host(
            host_conn,
            Frame::notification(Method::ControlRelay.name(), "{}").into_bytes(),
        );
        if let Some((_, binding)) = &self.clients[&conn].tenant {
            let binding = binding.bytes().clone();
            self.send_to_host(host_conn, binding);
        }
        host_conn
    }

    pub(super) fn on_host_conn_opened(&mut self, host_conn: HostConnectionId) {
        let Some(it) = self.host_conns.get(&host_conn) else { return };
        let (host, conn) = (it.host.clone(), it.conn);
        self.counters.host_connections_opened += 1;
        self.note(GatewayNote::HostConnectionOpened { host_conn, host, conn });
    }

    /// A request as this host gets it: under an id of ours.
    pub(super) fn call(&mut self, host_conn: HostConnectionId, call: Call, frame: &Frame) -> Bytes {
        let ours = self.next_id();
        self.host_conns.get_mut(&host_conn).expect("the caller found it").calls.insert(ours, call);
        frame.with_id(&ours.to_string()).into_bytes()
    }

    /// Sends a request of a client by this host connection, for the first time or again.
    pub(super) fn send(&mut self, conn: ConnId, id: &str, host_conn: HostConnectionId) {
        let ours = self.next_id();
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let open = client.requests.get_mut(id).expect("the caller found it");
        open.sent = Some((host_conn, ours));
        let text = open.frame.with_id(&ours.to_string()).into_bytes();
        let cancelled = open.cancelled;
        let it = self.host_conns.get_mut(&host_conn).expect("the caller found it");
        it.calls.insert(ours, Call::Client(id.into()));
        self.send_to_host(host_conn, text);
        if cancelled {
            self.withdraw_from(host_conn, ours);
        }
    }

    pub(super) fn withdraw_from(&mut self, host_conn: HostConnectionId, ours: u64) {
        self.send_to_host(host_conn, cancel_notice(ours));
    }

    pub(super) fn on_host_conn(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let Some(it) = self.host_conns.get_mut(&host_conn) else {
            self.counters.stray += 1;
            return;
        };
        it.spoke = true;
        self.doubted.remove(&it.host);
        self.counters.heard(frame);
        match frame.kind() {
            Kind::Response => self.on_host_conn_answers(host_conn, frame),
            Kind::Notification => self.on_news(host_conn, frame),
            Kind::Request => self.ask_client(host_conn, frame),
        }
    }

    fn on_host_conn_answers(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let it = self.host_conns.get_mut(&host_conn).expect("it spoke");
        let ours = frame.id().and_then(|it| it.parse::<u64>().ok());
        match ours.and_then(|ours| it.calls.remove(&ours)) {
            Some(Call::Client(id)) => self.on_answer(host_conn, &id, frame),
            Some(Call::Opening(which)) => self.on_introduced(host_conn, which, frame),
            Some(Call::Attach(session)) => self.on_reattached(host_conn, &session, frame),
            Some(Call::Merge(token)) => self.on_merged(token, host_conn, frame),
            // To what was asked before a loss, and has been asked again since.
            None => self.counters.stray += 1,
        }
    }

    fn on_answer(&mut self, host_conn: HostConnectionId, id: &str, frame: &Frame) {
        let (conn, host) =
            (self.host_conns[&host_conn].conn, self.host_conns[&host_conn].host.clone());
        let client = self.clients.get_mut(&conn).expect("its host connection spoke");
        let Some(open) = client.requests.get_mut(id) else { return };
        match (&open.to, fault_name(frame).as_deref()) {
            // It may have moved a moment ago.
            (To::Session(session), Some("session_not_found")) if open.bounces == 0 => {
                open.bounces += 1;
                let session = session.clone();
                return self.lose(conn, &session, Some(host), true);
            }
            // The host ends in a moment, and what it has not done is asked of the next owner.
            (To::Session(_), Some("stopping")) => return,
            (To::New | To::Home, Some("stopping")) if open.bounces < BOUNCES_MAX => {
                open.bounces += 1;
                open.sent = None;
                self.doubted.insert(host);
                self.leave_home(conn, host_conn);
                return self.place_again(conn, id);
            }
            _ => {}
        }
        let request = open.frame.clone();
        self.learn(conn, host_conn, &request, frame);
        self.finish(conn, &frame.with_id(id), Some(host_conn));
    }

    /// What a host says by itself.
    fn on_news(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let (conn, host) =
            (self.host_conns[&host_conn].conn, self.host_conns[&host_conn].host.clone());
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        match (frame.known_method(), session) {
            (Some(Method::CancelRequest), _) => self.on_ask_withdrawn(host_conn, frame),
            (Some(Method::ControlMoved), Some(session)) => {
                if self.is_by(conn, &session, host_conn) {
                    let note = GatewayNote::Moved { session: session.clone(), host: host.clone() };
                    self.note(note);
                    if !is_planted("gateway-ignores-moved-session") {
                        self.lose(conn, &session, Some(host), false);
                    }
                }
            }
            (_, Some(session)) => {
                if self.hears(conn, &session, host_conn, seq_of(frame)) {
                    self.tell_client(conn, frame.bytes().clone(), Some(host_conn));
                } else {
                    self.counters.repeated += 1;
                }
            }
            (_, None) => self.tell_client(conn, frame.bytes().clone(), Some(host_conn)),
        }
    }

    fn on_reattached(&mut self, host_conn: HostConnectionId, session: &SessionId, frame: &Frame) {
        let conn = self.host_conns[&host_conn].conn;
        if !self.is_by(conn, session, host_conn) {
            return;
        }
        match head_of(frame) {
            Some(head) => self.on_heard_upto(conn, session, head),
            // It is no longer there, or not yet.
            None => self.lose(conn, session, None, true),
        }
    }

    pub(super) fn on_host_conn_gone(&mut self, host_conn: HostConnectionId, why: &str) {
        let Some(it) = self.host_conns.remove(&host_conn) else { return };
        let (conn, host) = (it.conn, it.host);
        self.counters.host_connections_lost += 1;
        self.doubted.insert(host.clone());
        let client = self.clients.get_mut(&conn).expect("a host connection has a client");
        client.host_conns.remove(&host);
        client.untaken -= it.unwritten;
        self.leave_home(conn, host_conn);
        self.withdraw_asks(conn, |it| it.host_conn == host_conn);
        let of_host_conn =
            self.clients[&conn].sessions.iter().filter(|(_, it)| it.host_conn == Some(host_conn));
        let sessions: Vec<SessionId> = of_host_conn.map(|(id, _)| id.clone()).collect();
        let count = sessions.len();
        let note = |why: &str| {
            let (host, why) = (host.clone(), why.to_owned());
            GatewayNote::HostConnectionLost { host_conn, host, conn, why, sessions: count }
        };
        self.note(note(why));
        for session in sessions {
            self.lose(conn, &session, Some(host.clone()), !it.spoke);
        }
        for call in it.calls.into_values() {
            match call {
                Call::Client(id) => {
                    let lost = Lost { host_conn, host: &host, why, spoke: it.spoke };
                    self.ask_elsewhere(conn, &id, &lost);
                }
                Call::Merge(token) => self.miss(token, host_conn, &host),
                Call::Opening(_) | Call::Attach(_) => {}
            }
        }
        self.pace(conn);
    }

    /// A request that was sent by a host connection that is gone. What is about a session waits for its owner.
    fn ask_elsewhere(&mut self, conn: ConnId, id: &str, lost: &Lost<'_>) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let Some(open) = client.requests.get_mut(id) else { return };
        if open.sent.is_none_or(|(by, _)| by != lost.host_conn) {
            return;
        }
        open.sent = None;
        open.lost.take_if(|_| lost.spoke);
        let Lost { host, why, .. } = lost;
        match open.to {
            To::New if is_planted("gateway-forgets-new-session") => {}
            To::New => self.place_again(conn, id),
            // What it has done already nobody knows.
            To::Home => {
                let why = format!("`{host}` was lost before it answered: {why}; ask again");
                self.fail(conn, id, &Fault::HostLost { why });
            }
            To::Session(_) | To::Opening | To::All => {}
        }
    }

    /// This host connection is no home any more. What the client began with is answered by the next.
    fn leave_home(&mut self, conn: ConnId, host_conn: HostConnectionId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if client.home != Some(host_conn) {
            return;
        }
        (client.home, client.opening.settled) = (None, false);
        let opening = client.requests.iter().filter(|(_, it)| it.to == To::Opening);
        for id in opening.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.place_again(conn, &id);
        }
    }

    /// Nobody listens to them any more.
    pub(super) fn drop_host_conns(&mut self, conn: ConnId) {
        self.readings.retain(|_, it| it.conn != conn);
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        client.sessions.clear();
        client.asked.clear();
        client.unplaced.clear();
        (client.home, client.untaken) = (None, 0);
        for host_conn in std::mem::take(&mut client.host_conns).into_values() {
            self.host_conns.remove(&host_conn);
            self.outputs.push_back(GatewayOutput::CloseHostConnection { host_conn });
        }
    }
}

/// Our name for an error, if the answer is one of ours.
pub(super) fn fault_name(answer: &Frame) -> Option<String> {
    let error: serde_json::Value = serde_json::from_str(answer.error()?).ok()?;
    error.pointer("/data/jackfield/code")?.as_str().map(str::to_owned)
}
