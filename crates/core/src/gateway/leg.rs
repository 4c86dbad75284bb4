//! Legs: what hosts say by them, and what is to be done when one ends.

use super::{
    Gateway, GatewayNote, GatewayOutput, HostId, LegId,
    client::To,
    heard::{head_of, seq_of},
    opening::Introduced,
};
use crate::{ConnId, SessionId, fanout::cancel_notice};
use bytes::Bytes;
use jackfield_wire::acp::Method;
use jackfield_wire::{Fault, Frame, Kind};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Leg {
    pub(super) conn: ConnId,
    pub(super) host: HostId,
    /// Of the host, as it was known when the leg was opened.
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
    /// What the client began with, which is said on every leg.
    Opening(usize),
    /// The client hears a session by this leg from now on.
    Attach(SessionId),
    /// What every host was asked.
    Merge(u64),
}

/// A leg that is gone.
struct Lost<'a> {
    leg: LegId,
    host: &'a HostId,
    why: &'a str,
    spoke: bool,
}

/// A host that is stopping is asked again this often at the most, a pause each.
const BOUNCES_MAX: u32 = 100;

impl Gateway {
    /// The client's leg to this host; it is opened if there is none.
    pub(super) fn leg_to(&mut self, conn: ConnId, host: &HostId) -> LegId {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if let Some(leg) = client.legs.get(host) {
            return *leg;
        }
        self.next_leg += 1;
        let leg = LegId(self.next_leg);
        client.legs.insert(host.clone(), leg);
        let it = Leg {
            conn,
            host: host.clone(),
            incarnation: self.hosts.get(host).map(|it| it.incarnation),
            introduced: Introduced::default(),
            calls: BTreeMap::new(),
            unwritten: 0,
            paused: false,
            spoke: false,
        };
        self.legs.insert(leg, it);
        self.outputs.push_back(GatewayOutput::OpenLeg { leg, host: host.clone() });
        self.tell_leg(leg, Frame::notification(Method::ControlLeg.name(), "{}").into_bytes());
        if let Some((_, binding)) = &self.clients[&conn].tenant {
            let binding = binding.bytes().clone();
            self.tell_leg(leg, binding);
        }
        leg
    }

    pub(super) fn on_leg_opened(&mut self, leg: LegId) {
        let Some(it) = self.legs.get(&leg) else { return };
        let (host, conn) = (it.host.clone(), it.conn);
        self.counters.legs_opened += 1;
        self.note(GatewayNote::LegOpened { leg, host, conn });
    }

    /// A request as this host gets it: under an id of ours.
    pub(super) fn call(&mut self, leg: LegId, call: Call, frame: &Frame) -> Bytes {
        let ours = self.next_id();
        self.legs.get_mut(&leg).expect("the caller found it").calls.insert(ours, call);
        frame.with_id(&ours.to_string()).into_bytes()
    }

    /// Sends a request of a client by this leg, for the first time or again.
    pub(super) fn send(&mut self, conn: ConnId, id: &str, leg: LegId) {
        let ours = self.next_id();
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let open = client.requests.get_mut(id).expect("the caller found it");
        open.sent = Some((leg, ours));
        let text = open.frame.with_id(&ours.to_string()).into_bytes();
        let cancelled = open.cancelled;
        let it = self.legs.get_mut(&leg).expect("the caller found it");
        it.calls.insert(ours, Call::Client(id.into()));
        self.tell_leg(leg, text);
        if cancelled {
            self.withdraw_from(leg, ours);
        }
    }

    pub(super) fn withdraw_from(&mut self, leg: LegId, ours: u64) {
        self.tell_leg(leg, cancel_notice(ours));
    }

    pub(super) fn on_leg(&mut self, leg: LegId, frame: &Frame) {
        let Some(it) = self.legs.get_mut(&leg) else {
            self.counters.stray += 1;
            return;
        };
        it.spoke = true;
        self.doubted.remove(&it.host);
        self.counters.heard(frame);
        match frame.kind() {
            Kind::Response => self.on_leg_answers(leg, frame),
            Kind::Notification => self.on_news(leg, frame),
            Kind::Request => self.ask_client(leg, frame),
        }
    }

    fn on_leg_answers(&mut self, leg: LegId, frame: &Frame) {
        let it = self.legs.get_mut(&leg).expect("it spoke");
        let ours = frame.id().and_then(|it| it.parse::<u64>().ok());
        match ours.and_then(|ours| it.calls.remove(&ours)) {
            Some(Call::Client(id)) => self.on_answer(leg, &id, frame),
            Some(Call::Opening(which)) => self.on_introduced(leg, which, frame),
            Some(Call::Attach(session)) => self.on_reattached(leg, &session, frame),
            Some(Call::Merge(token)) => self.on_merged(token, leg, frame),
            // To what was asked before a loss, and has been asked again since.
            None => self.counters.stray += 1,
        }
    }

    fn on_answer(&mut self, leg: LegId, id: &str, frame: &Frame) {
        let (conn, host) = (self.legs[&leg].conn, self.legs[&leg].host.clone());
        let client = self.clients.get_mut(&conn).expect("its leg spoke");
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
                self.leave_home(conn, leg);
                return self.place_again(conn, id);
            }
            _ => {}
        }
        let request = open.frame.clone();
        self.learn(conn, leg, &request, frame);
        self.finish(conn, &frame.with_id(id), Some(leg));
    }

    /// What a host says by itself.
    fn on_news(&mut self, leg: LegId, frame: &Frame) {
        let (conn, host) = (self.legs[&leg].conn, self.legs[&leg].host.clone());
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        match (frame.known_method(), session) {
            (Some(Method::CancelRequest), _) => self.on_ask_withdrawn(leg, frame),
            (Some(Method::ControlMoved), Some(session)) => {
                if self.is_by(conn, &session, leg) {
                    let note = GatewayNote::Moved { session: session.clone(), host: host.clone() };
                    self.note(note);
                    self.lose(conn, &session, Some(host), false);
                }
            }
            (_, Some(session)) => {
                if self.hears(conn, &session, leg, seq_of(frame)) {
                    self.tell_client(conn, frame.bytes().clone(), Some(leg));
                } else {
                    self.counters.repeated += 1;
                }
            }
            (_, None) => self.tell_client(conn, frame.bytes().clone(), Some(leg)),
        }
    }

    fn on_reattached(&mut self, leg: LegId, session: &SessionId, frame: &Frame) {
        let conn = self.legs[&leg].conn;
        if !self.is_by(conn, session, leg) {
            return;
        }
        match head_of(frame) {
            Some(head) => self.on_heard_upto(conn, session, head),
            // It is no longer there, or not yet.
            None => self.lose(conn, session, None, true),
        }
    }

    pub(super) fn on_leg_gone(&mut self, leg: LegId, why: &str) {
        let Some(it) = self.legs.remove(&leg) else { return };
        let (conn, host) = (it.conn, it.host);
        self.counters.legs_lost += 1;
        self.doubted.insert(host.clone());
        let client = self.clients.get_mut(&conn).expect("a leg has a client");
        client.legs.remove(&host);
        client.untaken -= it.unwritten;
        self.leave_home(conn, leg);
        self.withdraw_asks(conn, |it| it.leg == leg);
        let of_leg = self.clients[&conn].sessions.iter().filter(|(_, it)| it.leg == Some(leg));
        let sessions: Vec<SessionId> = of_leg.map(|(id, _)| id.clone()).collect();
        let count = sessions.len();
        let note = |why: &str| {
            let (host, why) = (host.clone(), why.to_owned());
            GatewayNote::LegLost { leg, host, conn, why, sessions: count }
        };
        self.note(note(why));
        for session in sessions {
            self.lose(conn, &session, Some(host.clone()), !it.spoke);
        }
        for call in it.calls.into_values() {
            match call {
                Call::Client(id) => {
                    let lost = Lost { leg, host: &host, why, spoke: it.spoke };
                    self.ask_elsewhere(conn, &id, &lost);
                }
                Call::Merge(token) => self.miss(token, leg, &host),
                Call::Opening(_) | Call::Attach(_) => {}
            }
        }
        self.pace(conn);
    }

    /// A request that was sent by a leg that is gone. What is about a session waits for its owner.
    fn ask_elsewhere(&mut self, conn: ConnId, id: &str, lost: &Lost<'_>) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let Some(open) = client.requests.get_mut(id) else { return };
        if open.sent.is_none_or(|(by, _)| by != lost.leg) {
            return;
        }
        open.sent = None;
        open.lost.take_if(|_| lost.spoke);
        let Lost { host, why, .. } = lost;
        match open.to {
            To::New => self.place_again(conn, id),
            // What it has done already nobody knows.
            To::Home => {
                let why = format!("`{host}` was lost before it answered: {why}; ask again");
                self.fail(conn, id, &Fault::HostLost { why });
            }
            To::Session(_) | To::Opening | To::All => {}
        }
    }

    /// This leg is no home any more. What the client began with is answered by the next.
    fn leave_home(&mut self, conn: ConnId, leg: LegId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if client.home != Some(leg) {
            return;
        }
        (client.home, client.opening.settled) = (None, false);
        let opening = client.requests.iter().filter(|(_, it)| it.to == To::Opening);
        for id in opening.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.place_again(conn, &id);
        }
    }

    /// Nobody listens to them any more.
    pub(super) fn drop_legs(&mut self, conn: ConnId) {
        self.readings.retain(|_, it| it.conn != conn);
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        client.sessions.clear();
        client.asked.clear();
        client.unplaced.clear();
        (client.home, client.untaken) = (None, 0);
        for leg in std::mem::take(&mut client.legs).into_values() {
            self.legs.remove(&leg);
            self.outputs.push_back(GatewayOutput::CloseLeg { leg });
        }
    }
}

/// Our name for an error, if the answer is one of ours.
pub(super) fn fault_name(answer: &Frame) -> Option<String> {
    let error: serde_json::Value = serde_json::from_str(answer.error()?).ok()?;
    error.pointer("/data/jackfield/code")?.as_str().map(str::to_owned)
}
