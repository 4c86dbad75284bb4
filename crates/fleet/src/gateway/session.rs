//! What a client has to do with a session: which host connection, what waits for it, and what was heard.

use super::{
    Gateway, GatewayNote, HostConnectionId, HostId, Timer,
    client::To,
    heard::{Heard, head_of},
    host_connection::Call,
};
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Value, json};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Use {
    /// To the owner, if that is known.
    pub(super) host_conn: Option<HostConnectionId>,
    /// In order, and since when.
    pub(super) waits: VecDeque<(Time, Wait)>,
    /// How the client listens to it, if it does.
    pub(super) attached: Option<Manner>,
    /// It has a name, and no owner but the host that is being told it: it cannot be looked for.
    pinned: bool,
    pub(super) heard: Heard,
    /// Since when no owner has shown that it serves it.
    lost: Option<Time>,
}

#[derive(Debug)]
pub(super) enum Wait {
    Request(Box<str>),
    Notice(Frame),
}

/// As the client said it to `_jackfield/attach`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    pub(super) observe: bool,
    pub(super) facts: bool,
}

/// What makes a session heard that exists.
const ATTACHES: [Method; 3] = [Method::SessionLoad, Method::SessionResume, Method::ControlAttach];

impl Gateway {
    /// A request about a session.
    pub(super) fn ask_in(&mut self, conn: ConnId, session: &SessionId, frame: &Frame) {
        let id = frame.id().expect("a request has an id");
        if let Err(fault) = self.may_wait(conn, session) {
            self.say(conn, &Frame::error_for(id, &fault));
            return self.unrouted(conn, frame, &fault);
        }
        let is_prompt = frame.is_method(Method::SessionPrompt);
        let kept = if is_prompt { self.with_key(frame) } else { frame.clone() };
        self.begin(conn, kept, To::Session(session.clone()));
        let it = self.used(conn, session);
        if is_prompt {
            // Whoever prompts hears the turn.
            it.attached.get_or_insert_default();
        } else if rewinds(frame) {
            it.heard.rewind();
        }
        self.say_in(conn, session, Wait::Request(id.into()));
    }

    pub(super) fn notify_in(&mut self, conn: ConnId, session: &SessionId, frame: &Frame) {
        let may = self.check_kept(conn, frame).and_then(|()| self.may_wait(conn, session));
        if let Err(fault) = may {
            return self.unrouted(conn, frame, &fault);
        }
        self.clients.get_mut(&conn).expect("it spoke").kept += frame.bytes().len();
        self.used(conn, session);
        self.say_in(conn, session, Wait::Notice(frame.clone()));
    }

    fn may_wait(&self, conn: ConnId, session: &SessionId) -> Result<(), Fault> {
        let waiting = self.clients[&conn].sessions.get(session).map_or(0, |it| it.waits.len());
        if waiting < self.config.limits.waiting_max {
            return Ok(());
        }
        let what = format!("{waiting} messages wait for the owner of session `{session}`");
        Err(Fault::Overloaded { what })
    }

    fn used(&mut self, conn: ConnId, session: &SessionId) -> &mut Use {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        client.sessions.entry(session.clone()).or_default()
    }

    /// To the owner, or behind what waits for it.
    fn say_in(&mut self, conn: ConnId, session: &SessionId, what: Wait) {
        let (now, patience) = (self.now, self.config.limits.lost_ms);
        let it = self.used(conn, session);
        if let Some(host_conn) = it.host_conn {
            return self.carry(conn, session, host_conn, what);
        }
        it.waits.push_back((now, what));
        self.timers.set(now.plus(patience), Timer::Lost(conn, session.clone()));
        self.seek(session, conn, None, false);
    }

    fn carry(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
        what: Wait,
    ) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        match what {
            Wait::Request(id) if client.requests.contains_key(&id) => {
                self.send(conn, &id, host_conn);
            }
            // It was withdrawn while it waited.
            Wait::Request(_) => {}
            Wait::Notice(frame) => {
                client.kept -= frame.bytes().len();
                self.send_to_host(host_conn, frame.bytes().clone());
            }
        }
        self.leave_if_idle(conn, session);
    }

    /// The owner is known: what was heard is heard on, and what waited is said.
    pub(super) fn bind(&mut self, conn: ConnId, session: &SessionId, host: &HostId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        if client.sessions.get(session).is_none_or(|it| it.host_conn.is_some()) {
            return;
        }
        let host_conn = self.host_conn_to(conn, host);
        self.introduce(host_conn);
        self.used(conn, session).host_conn = Some(host_conn);
        self.attach_by(conn, session, host_conn);
        for (_, what) in std::mem::take(&mut self.used(conn, session).waits) {
            self.carry(conn, session, host_conn, what);
        }
        self.leave_if_idle(conn, session);
    }

    /// A session that the client hears is heard on by this host connection.
    pub(super) fn attach_by(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) {
        let it = self.used(conn, session);
        if let Some(Manner { observe, facts }) = it.attached
            && let Some(after) = it.heard.resume()
            && (is_planted("gateway-replays-twice") || !self.asks_to_hear(conn, session))
        {
            let params = json!({
                "sessionId": &**session, "after": after, "observe": observe, "facts": facts,
            });
            let frame = Frame::request("0", Method::ControlAttach.name(), &params.to_string());
            let text = self.call(host_conn, Call::Attach(session.clone()), &frame);
            self.send_to_host(host_conn, text);
        }
    }

    /// What waits has the session told from an earlier place: that is all it needs, and twice is once
    /// too often.
    fn asks_to_hear(&self, conn: ConnId, session: &SessionId) -> bool {
        let client = &self.clients[&conn];
        client.sessions[session].waits.iter().any(|(_, it)| match it {
            Wait::Request(id) => client.requests.get(id).is_some_and(|it| rewinds(&it.frame)),
            Wait::Notice(_) => false,
        })
    }

    /// The host connection is of no use for this session any more: the owner is looked for, and gets what was
    /// not answered.
    pub(super) fn lose(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        avoid: Option<HostId>,
        pause: bool,
    ) {
        let (now, patience) = (self.now, self.config.limits.lost_ms);
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get_mut(session) else { return };
        let Some(host_conn) = it.host_conn.take() else { return };
        it.heard.lose();
        it.pinned = false;
        let (again, unknown) = self.recall(conn, session, host_conn);
        self.counters.moves += 1;
        self.counters.resent += again.len() as u64;
        let it = self.used(conn, session);
        let since = *it.lost.get_or_insert(now);
        for id in again.into_iter().rev() {
            if !is_planted("gateway-forgets-open-request") {
                it.waits.push_front((since, Wait::Request(id)));
            }
        }
        if !it.waits.is_empty() {
            self.timers.set(since.plus(patience), Timer::Lost(conn, session.clone()));
        }
        if !is_planted("gateway-leaves-requests-open") {
            self.withdraw_asks(conn, |it| {
                it.host_conn == host_conn && it.session.as_ref() == Some(session)
            });
        }
        for id in unknown {
            let why = "its host was lost before it answered: see in `session/list` whether there is a fork";
            self.fail(conn, &id, &Fault::HostLost { why: why.to_owned() });
        }
        if !self.clients.contains_key(&conn) {
            return;
        }
        self.leave_if_idle(conn, session);
        if self.clients[&conn].sessions.contains_key(session) {
            self.seek(session, conn, avoid, pause);
        }
    }

    /// The requests in a session that were sent by a host connection: which to send again, in order, and which must not
    /// be, because they may have been done and nobody would know them again.
    fn recall(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) -> (Vec<Box<str>>, Vec<Box<str>>) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let of_it = |to: &To| matches!(to, To::Session(of) if of == session);
        let (mut again, mut unknown) = (Vec::new(), Vec::new());
        for (id, open) in client.requests.iter_mut().filter(|(_, it)| of_it(&it.to)) {
            let Some((_, ours)) = open.sent.take() else { continue };
            let host_conn = self.host_conns.get_mut(&host_conn);
            // An answer that still comes is to be nobody's. One that has come said that it was not done.
            let undone = host_conn.is_some_and(|host_conn| host_conn.calls.remove(&ours).is_none());
            if !undone && open.frame.is_method(Method::SessionFork) {
                unknown.push(id.clone());
            } else {
                again.push((open.order, id.clone()));
            }
        }
        again.sort_unstable();
        (again.into_iter().map(|(_, id)| id).collect(), unknown)
    }

    /// What has waited too long for an owner is answered; the client may go on with the rest.
    pub(super) fn on_waited(&mut self, conn: ConnId, session: &SessionId) {
        let patience = self.config.limits.lost_ms;
        let mut told = false;
        while let Some(client) = self.clients.get_mut(&conn)
            && let Some(it) = client.sessions.get_mut(session).filter(|it| it.host_conn.is_none())
            && let Some((since, _)) = it.waits.front()
        {
            let due = since.plus(patience);
            if self.now < due {
                return self.timers.set(due, Timer::Lost(conn, session.clone()));
            }
            let (_, what) = it.waits.pop_front().expect("seen above");
            let fault = self.lost_fault(session);
            if !std::mem::replace(&mut told, true) {
                let (session, why) = (Some(session.clone()), fault.to_string());
                self.note(GatewayNote::GaveUp { conn, session, why });
            }
            self.give_up(conn, session, what, &fault);
        }
    }

    fn give_up(&mut self, conn: ConnId, session: &SessionId, what: Wait, fault: &Fault) {
        match what {
            Wait::Request(id) => self.fail(conn, &id, fault),
            Wait::Notice(frame) => {
                let client = self.clients.get_mut(&conn).expect("the caller found it");
                client.kept -= frame.bytes().len();
                self.unrouted(conn, &frame, fault);
            }
        }
        self.leave_if_idle(conn, session);
    }

    /// There is no such session: whatever waits for it is told so.
    pub(super) fn forget(&mut self, conn: ConnId, session: &SessionId, fault: &Fault) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get_mut(session).filter(|it| it.host_conn.is_none()) else {
            return;
        };
        it.attached = None;
        for (_, what) in std::mem::take(&mut it.waits) {
            self.give_up(conn, session, what, fault);
        }
        if let Some(client) = self.clients.get_mut(&conn) {
            client.sessions.remove(session);
        }
    }

    /// What nobody listens to and nothing is open in is looked for afresh the next time.
    pub(super) fn leave_if_idle(&mut self, conn: ConnId, session: &SessionId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get(session) else { return };
        let quiet = it.attached.is_none() && !it.pinned && it.waits.is_empty();
        let asks = |to: &To| matches!(to, To::Session(of) if of == session);
        if quiet && !client.requests.values().any(|it| asks(&it.to)) {
            client.sessions.remove(session);
        }
    }

    /// What an answer says about sessions: what was opened or found is heard by this host connection.
    pub(super) fn learn(
        &mut self,
        conn: ConnId,
        host_conn: HostConnectionId,
        request: &Frame,
        answer: &Frame,
    ) {
        let method = request.known_method();
        let session = request.session_id().map(|it| SessionId::from(&*it));
        let client = self.clients.get_mut(&conn).expect("its host connection spoke");
        if let Some(it) = session.as_ref().and_then(|it| client.sessions.get_mut(it)) {
            it.lost = None;
            if method.is_some_and(|it| ATTACHES.contains(&it)) {
                it.heard.told_upto(head_of(answer));
            }
        }
        self.count_placed(conn, request, answer);
        if answer.result().is_none() {
            return;
        }
        match (method, session) {
            (Some(Method::SessionNew | Method::SessionFork | Method::ControlImport), _) => {
                let Some(named) = answer.session_id().map(|it| SessionId::from(&*it)) else {
                    return;
                };
                let it = self.used(conn, &named);
                if method == Some(Method::ControlImport) {
                    (it.host_conn, it.pinned) = (Some(host_conn), true);
                } else if it.attached.is_none() {
                    let from =
                        head_of(answer).or((method == Some(Method::SessionNew)).then_some(0));
                    it.heard = from.map_or_else(Heard::default, Heard::upto);
                    (it.host_conn, it.attached) = (Some(host_conn), Some(Manner::default()));
                }
            }
            (Some(Method::SessionDelete), Some(session)) => {
                let client = self.clients.get_mut(&conn).expect("its host connection spoke");
                if let Some(it) = client.sessions.get_mut(&session) {
                    (it.attached, it.pinned) = (None, false);
                }
            }
            (Some(method), Some(session)) if ATTACHES.contains(&method) => {
                self.used(conn, &session).attached = Some(manner(request));
            }
            _ => {}
        }
    }

    pub(super) fn on_heard_upto(&mut self, conn: ConnId, session: &SessionId, head: u64) {
        let it = self.used(conn, session);
        it.lost = None;
        it.heard.told_upto(Some(head));
    }

    /// Whether this host connection speaks for the session to this client.
    pub(super) fn is_by(
        &self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) -> bool {
        let it = self.clients.get(&conn).and_then(|it| it.sessions.get(session));
        it.is_some_and(|it| it.host_conn == Some(host_conn))
    }

    /// A frame of a session came by this host connection. Says whether the client has yet to hear it.
    pub(super) fn hears(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
        seq: Option<u64>,
    ) -> bool {
        let client = self.clients.get_mut(&conn).expect("its host connection spoke");
        let Some(it) = client.sessions.get_mut(session) else {
            // Said before the answer that names it.
            if let Some(seq) = seq {
                let mut heard = Heard::upto(0);
                heard.hears(seq);
                let attached = Some(Manner::default());
                let it = Use { host_conn: Some(host_conn), attached, heard, ..Use::default() };
                client.sessions.insert(session.clone(), it);
            }
            return true;
        };
        if it.host_conn != Some(host_conn) {
            return false;
        }
        it.lost = None;
        let Some(seq) = seq else { return true };
        it.attached.get_or_insert_default();
        it.heard.hears(seq)
    }

    /// Prompts that were sent are to stop, wherever they get to.
    pub(super) fn cancel_prompts(&mut self, conn: ConnId, session: &SessionId) {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        for open in client.requests.values_mut() {
            let of_it = matches!(&open.to, To::Session(of) if of == session);
            let sent = open.sent.is_some();
            open.cancelled |= of_it && sent && open.frame.is_method(Method::SessionPrompt);
        }
    }
}

/// Whether it makes a session heard from an earlier place.
fn rewinds(request: &Frame) -> bool {
    matches!(request.known_method(), Some(Method::SessionLoad | Method::ControlAttach))
}

pub(super) fn manner(attach: &Frame) -> Manner {
    let params: Value =
        attach.params().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let flag = |name: &str| params[name].as_bool().unwrap_or(false);
    Manner { observe: flag("observe"), facts: flag("facts") }
}
