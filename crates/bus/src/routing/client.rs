//! Clients: what they say, and what is left to do when they go.

use super::{
    Bus, BusNote, BusOutput, Home, WorkerId,
    calls::{Call, CallKind, Calls, Peer},
    output::MessageSender,
    pool::PoolId,
    route::OPENS,
    slow::HeldWorkers,
};
use jackfield_hub::{
    ConnId, Time,
    budget::{ByteCharge, ByteOwner},
};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Kind, Splice, is_planted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Client {
    pub(super) calls: Calls,
    pub(super) sessions: BTreeSet<(Home, Arc<str>)>,
    /// Its worker in each pool where connections stay with one.
    pub(super) bound: BTreeMap<PoolId, WorkerId>,
    /// Bytes handed to it and not yet written, and when it last took some of them.
    pub(super) outbox: ByteCharge,
    pub(super) took: Time,
    /// Bytes of it that workers have not taken.
    pub(super) untaken: usize,
    /// Its reading is paused.
    pub(super) paused: bool,
    /// Workers that wait until it has read.
    pub(super) held: HeldWorkers,
    /// Will say nothing more.
    pub(super) finished: bool,
    /// Was hung up on: what it says now is not heard.
    pub(super) closing: bool,
    /// Messages that went nowhere.
    unrouted: u64,
}

impl Client {
    fn new(now: Time, outbox: ByteCharge) -> Client {
        Client {
            calls: Calls::default(),
            sessions: BTreeSet::new(),
            bound: BTreeMap::new(),
            outbox,
            took: now,
            untaken: 0,
            paused: false,
            held: HeldWorkers::default(),
            finished: false,
            closing: false,
            unrouted: 0,
        }
    }
}

/// What ends the session it names.
const CLOSES: [&str; 2] = [Method::SessionClose.name(), Method::SessionDelete.name()];
/// What withdraws a request by its id: in ACP and in MCP.
pub(super) const WITHDRAWS: [&str; 2] = [Method::CancelRequest.name(), "notifications/cancelled"];

impl Bus {
    pub(super) fn on_opened(&mut self, conn: ConnId) {
        self.counters.clients_opened += 1;
        let outbox = self.outboxes.charge_unchecked(&ByteOwner::default(), 0);
        let known = self.clients.insert(conn, Client::new(self.now, outbox));
        assert!(known.is_none(), "a conn id is used once");
        let open = self.clients.len();
        if self.limits.clients_max < open {
            let what = format!("{} clients are connected, as many as may be", open - 1);
            self.say(conn, &Frame::error_for("null", &Fault::Overloaded { what }));
            self.hang_up(conn);
        } else if self.stopping.is_some() {
            self.hang_up(conn);
        }
    }

    pub(super) fn on_client(&mut self, conn: ConnId, frame: &Frame) {
        if self.clients.get(&conn).is_none_or(|it| it.closing) {
            return;
        }
        self.counters.heard(frame);
        match frame.kind() {
            Kind::Request => match self.ask_worker(conn, frame) {
                Ok(()) => {}
                Err(fault) => self.refuse_client(conn, frame, &fault),
            },
            Kind::Notification => self.on_notice(conn, frame),
            Kind::Response => self.on_client_answers(conn, frame),
        }
    }

    /// A line that is no message: it is answered, and the next one is heard.
    pub(super) fn on_invalid_frame(&mut self, conn: ConnId, fault: &Fault) {
        self.counters.refused += 1;
        self.say(conn, &Frame::error_for(fault.request_id(), fault));
    }

    fn ask_worker(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        if self.limits.pending_max <= self.pending {
            let what = format!("{} requests wait for an answer, as many as may be", self.pending);
            return Err(Fault::Overloaded { what });
        }
        let worker = self.route(conn, frame)?;
        self.check_backlog(worker)?;
        let method = frame.method();
        let kind = match method.as_deref() {
            Some(OPENS) => CallKind::Opens,
            Some(it) if CLOSES.contains(&it) => match frame.session_id() {
                Some(id) => CallKind::Closes(id.as_ref().into()),
                None => CallKind::Plain,
            },
            _ => CallKind::Plain,
        };
        let ours = self.next_id();
        let id: Arc<str> = frame.id().expect("a request has an id").into();
        self.clients.get_mut(&conn).expect("it spoke").calls.ask(
            Arc::clone(&id),
            Peer::Worker(worker),
            ours,
        );
        let it = self.workers.get_mut(&worker).expect("routed to");
        it.opening += usize::from(kind == CallKind::Opens);
        it.calls.owe(ours, Call { by: Peer::Client(conn), id, kind });
        self.pending += 1;
        let text = if is_planted("bus-keeps-client-request-id") {
            frame.bytes().clone()
        } else {
            frame.with_id(&ours.to_string()).into_bytes()
        };
        self.tell_worker(worker, text, Some(conn));
        Ok(())
    }

    fn on_notice(&mut self, conn: ConnId, frame: &Frame) {
        if frame.method().is_some_and(|it| WITHDRAWS.contains(&&*it)) {
            let asked = frame.request_id().and_then(|id| self.clients[&conn].calls.whom(id));
            if let Some((Peer::Worker(worker), ours)) = asked {
                let ours = ours.to_string();
                let splice = Splice { request_id: Some(&ours), ..Splice::default() };
                return self.tell_worker(worker, frame.spliced(splice).into_bytes(), Some(conn));
            }
            // It was answered in the meantime: nobody knows the id any more.
            return;
        }
        let worker = self.route(conn, frame);
        match worker.and_then(|it| self.check_backlog(it).map(|()| it)) {
            Ok(worker) => self.tell_worker(worker, frame.bytes().clone(), Some(conn)),
            Err(fault) => self.on_unrouted(conn, frame, &fault),
        }
    }

    fn on_client_answers(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        let call = ours(frame).and_then(|it| client.calls.answered(it).map(|call| (it, call)));
        let Some((ours, Call { by: Peer::Worker(worker), id, .. })) = call else {
            self.counters.stray += 1;
            return;
        };
        self.pending -= 1;
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.calls.settled(&id, ours);
        self.tell_worker(worker, frame.with_id(&id).into_bytes(), Some(conn));
    }

    pub(super) fn refuse_client(&mut self, conn: ConnId, frame: &Frame, fault: &Fault) {
        let id = frame.id().expect("a request has an id");
        self.say(conn, &Frame::error_for(id, fault));
        self.on_unrouted(conn, frame, fault);
    }

    /// Told now and then: a client that goes on for ever must not fill the log.
    fn on_unrouted(&mut self, conn: ConnId, frame: &Frame, fault: &Fault) {
        self.counters.refused += 1;
        let client = self.clients.get_mut(&conn).expect("it spoke");
        client.unrouted += 1;
        if client.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let from = MessageSender::Client(conn);
            self.note(BusNote::Unrouted { from, method, why: fault.to_string() });
        }
    }

    /// It has closed its side: it is served until it has its answers, and can answer nothing.
    pub(super) fn on_finished(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.finished = true;
        self.refuse_asks_of(conn);
        self.close_finished(conn);
    }

    /// Hangs up on a client that has said everything and heard everything.
    pub(super) fn close_finished(&mut self, conn: ConnId) {
        let client = &self.clients[&conn];
        if client.finished && !client.calls.waits() {
            self.hang_up(conn);
        }
    }

    pub(super) fn hang_up(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if !client.closing {
            client.closing = true;
            self.outputs.push_back(BusOutput::CloseClient { conn });
        }
    }

    pub(super) fn on_client_gone(&mut self, conn: ConnId) {
        if !self.clients.contains_key(&conn) {
            return;
        }
        self.counters.clients_closed += 1;
        self.refuse_asks_of(conn);
        self.let_go_of(conn);
        let client = self.clients.remove(&conn).expect("found above");
        let mut calls = client.calls;
        for ((_, ours), whom) in calls.take_asked() {
            let Peer::Worker(worker) = whom else { continue };
            self.abandon(worker, ours);
        }
        for (home, id) in client.sessions {
            let Some(session) = self.table(home).and_then(|it| it.get_mut(&id)) else { continue };
            session.clients.retain(|it| *it != conn);
            if session.clients.is_empty() {
                let worker = session.worker;
                self.count_session(worker, -1);
                self.rest(home, id);
                self.retire_if_idle(worker);
            }
        }
        for worker in client.bound.into_values() {
            if let Some(it) = self.workers.get_mut(&worker) {
                it.bound.remove(&conn);
                self.retire_if_idle(worker);
            }
        }
        self.stop_if_drained();
    }

    /// Nobody wants this answer any more; when it comes, it is dropped.
    fn abandon(&mut self, worker: WorkerId, ours: u64) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        if let Some(call) = it.calls.answered(ours) {
            it.opening -= usize::from(call.kind == CallKind::Opens);
            self.pending -= 1;
            self.drop_held(worker);
            self.retire_if_idle(worker);
        }
    }

    /// What workers asked it will not be answered.
    fn refuse_asks_of(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        for (ours, call) in client.calls.take_owed() {
            self.pending -= 1;
            let Peer::Worker(worker) = call.by else { continue };
            let Some(it) = self.workers.get_mut(&worker) else { continue };
            it.calls.settled(&call.id, ours);
            let fault = Fault::NoClient { why: "the one that was asked is gone".to_owned() };
            self.tell_worker(worker, Frame::error_for(&call.id, &fault).into_bytes(), None);
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// Our id, as a peer sends it back.
pub(super) fn ours(frame: &Frame) -> Option<u64> {
    frame.id()?.parse().ok()
}
