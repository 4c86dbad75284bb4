//! Frames from clients, and the cleanup when a client disconnects.

use super::{
    Bus, BusNote, BusOutput, SessionScope, WorkerId,
    output::MessageSender,
    pending_calls::{CallKind, CallPeer, PendingCall, PendingCalls},
    pool::PoolId,
    route::OPEN_METHOD,
    slow_clients::HeldWorkers,
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
    pub(super) pending_calls: PendingCalls,
    pub(super) sessions: BTreeSet<(SessionScope, Arc<str>)>,
    /// Its worker in each pool with connection affinity.
    pub(super) bound: BTreeMap<PoolId, WorkerId>,
    /// Bytes that were sent to it and are not yet written, and when it last read some of them.
    pub(super) outbox: ByteCharge,
    pub(super) last_read_at: Time,
    /// Bytes of the client that are not yet written to workers.
    pub(super) unwritten_to_workers: usize,
    /// Its socket is not read at the moment.
    pub(super) paused: bool,
    /// Workers that wait until it has read.
    pub(super) held: HeldWorkers,
    /// It has closed its sending side.
    pub(super) finished: bool,
    /// The bus is closing it; further frames are ignored.
    pub(super) closing: bool,
    /// Number of messages that could not be routed.
    unrouted: u64,
}

impl Client {
    fn new(now: Time, outbox: ByteCharge) -> Client {
        Client {
            pending_calls: PendingCalls::default(),
            sessions: BTreeSet::new(),
            bound: BTreeMap::new(),
            outbox,
            last_read_at: now,
            unwritten_to_workers: 0,
            paused: false,
            held: HeldWorkers::default(),
            finished: false,
            closing: false,
            unrouted: 0,
        }
    }
}

/// Methods that end the session they name.
const CLOSE_METHODS: [&str; 2] = [Method::SessionClose.name(), Method::SessionDelete.name()];
/// Notifications that cancel a request by its id, in ACP and in MCP.
pub(super) const CANCEL_METHODS: [&str; 2] =
    [Method::CancelRequest.name(), "notifications/cancelled"];

impl Bus {
    pub(super) fn on_client_opened(&mut self, conn: ConnId) {
        self.counters.clients_opened += 1;
        let outbox = self.outboxes.charge_unchecked(&ByteOwner::default(), 0);
        let known = self.clients.insert(conn, Client::new(self.now, outbox));
        assert!(known.is_none(), "a conn id is used once");
        let open = self.clients.len();
        if self.limits.clients_max < open {
            let what = format!("{} clients are connected, which is the limit", open - 1);
            self.send_own_frame(conn, &Frame::error_for("null", &Fault::Overloaded { what }));
            self.close_client(conn);
        } else if self.stopping.is_some() {
            self.close_client(conn);
        }
    }

    pub(super) fn on_client_frame(&mut self, conn: ConnId, frame: &Frame) {
        if self.clients.get(&conn).is_none_or(|it| it.closing) {
            return;
        }
        self.counters.count_received(frame);
        match frame.kind() {
            Kind::Request => match self.relay_request(conn, frame) {
                Ok(()) => {}
                Err(fault) => self.refuse_client(conn, frame, &fault),
            },
            Kind::Notification => self.on_client_notification(conn, frame),
            Kind::Response => self.on_client_response(conn, frame),
        }
    }

    /// Answers a line that is not a JSON-RPC message. The connection stays open.
    pub(super) fn on_invalid_frame(&mut self, conn: ConnId, fault: &Fault) {
        self.counters.refused += 1;
        self.send_own_frame(conn, &Frame::error_for(fault.request_id(), fault));
    }

    fn relay_request(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        if self.limits.pending_max <= self.pending {
            let what = format!("{} requests are pending, which is the limit", self.pending);
            return Err(Fault::Overloaded { what });
        }
        let worker = self.route(conn, frame)?;
        self.check_backlog(worker)?;
        let method = frame.method();
        let kind = match method.as_deref() {
            Some(OPEN_METHOD) => CallKind::Opens,
            Some(it) if CLOSE_METHODS.contains(&it) => match frame.session_id() {
                Some(id) => CallKind::Closes(id.as_ref().into()),
                None => CallKind::Plain,
            },
            _ => CallKind::Plain,
        };
        let bus_id = self.next_id();
        let id: Arc<str> = frame.id().expect("a request has an id").into();
        self.clients.get_mut(&conn).expect("it sent a frame").pending_calls.add_sent(
            Arc::clone(&id),
            CallPeer::Worker(worker),
            bus_id,
        );
        let it = self.workers.get_mut(&worker).expect("just routed to");
        it.opening += usize::from(kind == CallKind::Opens);
        it.pending_calls
            .add_received(bus_id, PendingCall { caller: CallPeer::Client(conn), id, kind });
        self.pending += 1;
        let text = if is_planted("bus-keeps-client-request-id") {
            frame.bytes().clone()
        } else {
            frame.with_id(&bus_id.to_string()).into_bytes()
        };
        self.send_to_worker(worker, text, Some(conn));
        Ok(())
    }

    fn on_client_notification(&mut self, conn: ConnId, frame: &Frame) {
        if frame.method().is_some_and(|it| CANCEL_METHODS.contains(&&*it)) {
            let callee =
                frame.request_id().and_then(|id| self.clients[&conn].pending_calls.find_sent(id));
            if let Some((CallPeer::Worker(worker), bus_id)) = callee {
                let bus_id = bus_id.to_string();
                let splice = Splice { request_id: Some(&bus_id), ..Splice::default() };
                return self.send_to_worker(worker, frame.spliced(splice).into_bytes(), Some(conn));
            }
            // The request was already answered.
            return;
        }
        let worker = self.route(conn, frame);
        match worker.and_then(|it| self.check_backlog(it).map(|()| it)) {
            Ok(worker) => self.send_to_worker(worker, frame.bytes().clone(), Some(conn)),
            Err(fault) => self.on_unrouted(conn, frame, &fault),
        }
    }

    fn on_client_response(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        let call = parse_bus_id(frame)
            .and_then(|it| client.pending_calls.take_received(it).map(|call| (it, call)));
        let Some((bus_id, PendingCall { caller: CallPeer::Worker(worker), id, .. })) = call else {
            self.counters.stray += 1;
            return;
        };
        self.pending -= 1;
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.pending_calls.remove_sent(&id, bus_id);
        self.send_to_worker(worker, frame.with_id(&id).into_bytes(), Some(conn));
    }

    pub(super) fn refuse_client(&mut self, conn: ConnId, frame: &Frame, fault: &Fault) {
        let id = frame.id().expect("a request has an id");
        self.send_own_frame(conn, &Frame::error_for(id, fault));
        self.on_unrouted(conn, frame, fault);
    }

    /// Logged at powers of two, so that one client cannot fill the log.
    fn on_unrouted(&mut self, conn: ConnId, frame: &Frame, fault: &Fault) {
        self.counters.refused += 1;
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        client.unrouted += 1;
        if client.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let from = MessageSender::Client(conn);
            self.note(BusNote::Unrouted { from, method, reason: fault.to_string() });
        }
    }

    /// The client has closed its sending side: it still gets its responses, but cannot answer
    /// requests.
    pub(super) fn on_client_finished(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.finished = true;
        self.refuse_worker_requests(conn);
        self.close_if_finished(conn);
    }

    /// Closes a client that has closed its sending side and has all its responses.
    pub(super) fn close_if_finished(&mut self, conn: ConnId) {
        let client = &self.clients[&conn];
        if client.finished && !client.pending_calls.has_sent() {
            self.close_client(conn);
        }
    }

    pub(super) fn close_client(&mut self, conn: ConnId) {
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
        self.refuse_worker_requests(conn);
        self.release_workers_of(conn);
        let client = self.clients.remove(&conn).expect("found above");
        let mut pending_calls = client.pending_calls;
        for ((_, bus_id), callee) in pending_calls.take_all_sent() {
            let CallPeer::Worker(worker) = callee else { continue };
            self.drop_call(worker, bus_id);
        }
        for (scope, id) in client.sessions {
            let Some(session) = self.session_table(scope).and_then(|it| it.get_mut(&id)) else {
                continue;
            };
            session.clients.retain(|it| *it != conn);
            if session.clients.is_empty() {
                let worker = session.worker;
                self.count_session(worker, -1);
                self.add_idle_session(scope, id);
                self.retire_if_idle(worker);
            }
        }
        for worker in client.bound.into_values() {
            if let Some(it) = self.workers.get_mut(&worker) {
                it.bound.remove(&conn);
                self.retire_if_idle(worker);
            }
        }
        self.advance_stop();
    }

    /// Drops a request whose sender is gone; its response will be discarded.
    fn drop_call(&mut self, worker: WorkerId, bus_id: u64) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        if let Some(call) = it.pending_calls.take_received(bus_id) {
            it.opening -= usize::from(call.kind == CallKind::Opens);
            self.pending -= 1;
            self.drop_deferred_updates(worker);
            self.retire_if_idle(worker);
        }
    }

    /// Refuses the requests of workers that the client did not answer.
    fn refuse_worker_requests(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        for (bus_id, call) in client.pending_calls.take_all_received() {
            self.pending -= 1;
            let CallPeer::Worker(worker) = call.caller else { continue };
            let Some(it) = self.workers.get_mut(&worker) else { continue };
            it.pending_calls.remove_sent(&call.id, bus_id);
            let fault =
                Fault::NoClient { why: "the client disconnected before it answered".to_owned() };
            self.send_to_worker(worker, Frame::error_for(&call.id, &fault).into_bytes(), None);
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// The bus's id in a response of a peer.
pub(super) fn parse_bus_id(frame: &Frame) -> Option<u64> {
    frame.id()?.parse().ok()
}
