//! Frames from workers, and which clients receive them.

use super::{
    Bus, BusNote, WorkerId,
    client::{CANCEL_METHODS, parse_bus_id},
    output::MessageSender,
    pending_calls::{CallKind, CallPeer, PendingCall, PendingCalls},
    pool::PoolId,
    sessions::SessionTable,
};
use bytes::Bytes;
use jackfield_hub::{
    ConnId, Time,
    budget::{ByteCharge, ByteOwner},
    limits,
};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Kind, Splice, is_planted};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// A request that may refer to a pending request.
const ELICIT_METHOD: &str = Method::ElicitationCreate.name();

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) pool: PoolId,
    /// Its slot in the pool; a retiring worker has none.
    pub(super) slot: Option<usize>,
    pub(super) pending_calls: PendingCalls,
    /// Sessions that clients use, and sessions that are being opened.
    pub(super) used_sessions: usize,
    pub(super) opening: usize,
    /// Clients that are bound to it, and their sessions, in a pool with connection affinity.
    pub(super) bound: BTreeSet<ConnId>,
    pub(super) sessions: SessionTable,
    /// Updates for sessions that the worker has not named yet, in order.
    deferred_updates: VecDeque<DeferredUpdate>,
    unnamed_updates: ByteOwner,
    /// Bytes that are not yet written to it, and the clients that sent them.
    pub(super) backlog: ByteCharge,
    pub(super) sent: VecDeque<(Option<ConnId>, usize)>,
    /// The number of clients that must read before it is read again.
    pub(super) held_by: usize,
    /// It was asked to stop.
    pub(super) stopping: bool,
    /// It gets no new sessions, and is stopped when it is unused.
    pub(super) retiring: bool,
    pub(super) started: bool,
    pub(super) last_frame_at: Time,
    unrouted: u64,
}

/// An update for a session that the worker has not named yet.
#[derive(Debug)]
struct DeferredUpdate {
    session: Arc<str>,
    text: Bytes,
    _charge: ByteCharge,
}

impl Worker {
    pub(super) fn new(pool: PoolId, slot: usize, now: Time, backlog: ByteCharge) -> Worker {
        Worker {
            pool,
            slot: Some(slot),
            pending_calls: PendingCalls::default(),
            used_sessions: 0,
            opening: 0,
            bound: BTreeSet::new(),
            sessions: SessionTable::default(),
            deferred_updates: VecDeque::new(),
            unnamed_updates: ByteOwner::default(),
            backlog,
            sent: VecDeque::new(),
            held_by: 0,
            stopping: false,
            retiring: false,
            started: false,
            last_frame_at: now,
            unrouted: 0,
        }
    }

    /// Whether it may get new sessions.
    pub(super) fn accepts_sessions(&self) -> bool {
        !self.stopping && !self.retiring
    }

    pub(super) fn load(&self) -> usize {
        self.used_sessions + self.opening + self.bound.len()
    }
}

impl Bus {
    pub(super) fn on_worker_frame(&mut self, worker: WorkerId, frame: &Frame) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.last_frame_at = self.now;
        self.counters.count_received(frame);
        match frame.kind() {
            Kind::Response => self.on_worker_response(worker, frame),
            Kind::Notification => self.on_worker_notification(worker, frame),
            Kind::Request => self.forward_request(worker, frame),
        }
    }

    fn on_worker_response(&mut self, worker: WorkerId, frame: &Frame) {
        let it = self.workers.get_mut(&worker).expect("it sent a frame");
        let call = parse_bus_id(frame)
            .and_then(|id| it.pending_calls.take_received(id).map(|call| (id, call)));
        let Some((bus_id, call)) = call else {
            // Often the response to a client that has disconnected.
            self.counters.stray += 1;
            return;
        };
        it.opening -= usize::from(call.kind == CallKind::Opens);
        let CallPeer::Client(conn) = call.caller else { return self.retire_if_idle(worker) };
        self.pending -= 1;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.pending_calls.remove_sent(&call.id, bus_id);
        match self.apply_response(worker, conn, frame, &call.kind) {
            Ok(()) => {
                let text = frame.with_id(&call.id).into_bytes();
                self.send_to_client(conn, text, Some(worker));
            }
            Err(fault) => self.send_own_frame(conn, &Frame::error_for(&call.id, &fault)),
        }
        self.drop_deferred_updates(worker);
        self.close_if_finished(conn);
        self.retire_if_idle(worker);
        self.advance_stop();
    }

    /// Updates the sessions from a response.
    fn apply_response(
        &mut self,
        worker: WorkerId,
        conn: ConnId,
        frame: &Frame,
        kind: &CallKind,
    ) -> Result<(), Fault> {
        let scope = self.session_scope(worker).expect("it sent a frame");
        if let CallKind::Closes(id) = kind
            && frame.result().is_some()
        {
            self.remove_session(scope, id);
        }
        let Some(id) = frame.session_id() else { return Ok(()) };
        let other = self.session_table(scope).and_then(|it| it.get(&id)).map(|it| it.worker);
        if other.is_some_and(|it| it != worker && self.is_alive(it)) {
            let why = format!(
                "the worker chose the session id `{id}`, which another worker uses: give \
                 the pool one instance, or `\"affinity\": \"connection\"`"
            );
            return Err(Fault::Internal { why });
        }
        self.reserve_sessions(scope, [Some(&id), None])?;
        self.assign_session(scope, &id, worker, conn);
        if !is_planted("bus-drops-early-updates") {
            self.send_deferred_updates(worker, &id);
        }
        Ok(())
    }

    fn on_worker_notification(&mut self, worker: WorkerId, frame: &Frame) {
        if frame.method().is_some_and(|it| CANCEL_METHODS.contains(&&*it)) {
            return self.forward_cancel(worker, frame);
        }
        match self.recipients(worker, frame) {
            MessageRecipients::Many(conns) => match conns.split_last() {
                Some((last, add_idle_session)) => {
                    for conn in add_idle_session {
                        self.send_to_client(*conn, frame.bytes().clone(), Some(worker));
                    }
                    self.send_to_client(*last, frame.bytes().clone(), Some(worker));
                }
                None => self.on_no_recipient(worker, frame, "no client uses its session any more"),
            },
            MessageRecipients::One(conn) => {
                self.send_to_client(conn, frame.bytes().clone(), Some(worker));
            }
            MessageRecipients::Deferred(id) => self.defer_update(worker, id, frame),
            MessageRecipients::Unknown(why) => self.on_no_recipient(worker, frame, why),
        }
    }

    /// A worker cancels its request.
    fn forward_cancel(&mut self, worker: WorkerId, frame: &Frame) {
        let callee =
            frame.request_id().and_then(|id| self.workers[&worker].pending_calls.find_sent(id));
        let Some((CallPeer::Client(conn), bus_id)) = callee else { return };
        let bus_id = bus_id.to_string();
        let splice = Splice { request_id: Some(&bus_id), ..Splice::default() };
        self.send_to_client(conn, frame.spliced(splice).into_bytes(), Some(worker));
    }

    /// Forwards a request of a worker to the client that used the session last.
    fn forward_request(&mut self, worker: WorkerId, frame: &Frame) {
        // The request may refer to a pending request instead of a session.
        let related_request =
            frame.request_id().filter(|_| frame.method().as_deref() == Some(ELICIT_METHOD));
        let related_request = related_request.and_then(|it| it.parse().ok());
        let call =
            related_request.and_then(|it| self.workers[&worker].pending_calls.get_received(it));
        let related_request = match call {
            Some(PendingCall { caller: CallPeer::Client(conn), id, .. }) => {
                Some((*conn, Arc::clone(id)))
            }
            _ => None,
        };
        let callee = match (&related_request, self.recipients(worker, frame)) {
            (Some((conn, _)), _) => Ok(*conn),
            (None, MessageRecipients::One(conn)) => Ok(conn),
            (None, MessageRecipients::Many(conns)) => {
                conns.last().copied().ok_or("its client disconnected")
            }
            (None, MessageRecipients::Deferred(_)) => Err("the session has no id yet"),
            (None, MessageRecipients::Unknown(why)) => Err(why),
        };
        let is_reading =
            |it: &ConnId| self.clients.get(it).is_some_and(|it| !it.finished && !it.closing);
        let conn = match callee {
            Ok(conn) if is_reading(&conn) => conn,
            Ok(_) => return self.refuse_worker(worker, frame, "its client disconnected"),
            Err(why) => return self.refuse_worker(worker, frame, why),
        };
        let bus_id = self.next_id();
        let id: Arc<str> = frame.id().expect("a request has an id").into();
        let it = self.workers.get_mut(&worker).expect("it sent a frame");
        it.pending_calls.add_sent(Arc::clone(&id), CallPeer::Client(conn), bus_id);
        let client = self.clients.get_mut(&conn).expect("checked above");
        client.pending_calls.add_received(
            bus_id,
            PendingCall { caller: CallPeer::Worker(worker), id, kind: CallKind::Plain },
        );
        self.pending += 1;
        let bus_id = bus_id.to_string();
        let request_id = related_request.as_ref().map(|(_, id)| &**id);
        let splice = Splice { id: Some(&bus_id), request_id, ..Splice::default() };
        self.send_to_client(conn, frame.spliced(splice).into_bytes(), Some(worker));
    }

    fn refuse_worker(&mut self, worker: WorkerId, frame: &Frame, why: &'static str) {
        let fault = Fault::NoClient { why: why.to_owned() };
        let id = frame.id().expect("a request has an id");
        self.send_to_worker(worker, Frame::error_for(id, &fault).into_bytes(), None);
        self.on_no_recipient(worker, frame, why);
    }

    fn recipients(&self, worker: WorkerId, frame: &Frame) -> MessageRecipients {
        let it = &self.workers[&worker];
        let pool = &self.pools[&it.pool];
        let is_bound = pool.spec.affinity == super::SessionAffinity::Connection;
        let session_table = if is_bound { &it.sessions } else { &pool.sessions };
        let (outer, inner) = (frame.outer_session_id(), frame.session_id());
        let mut named = None;
        for id in [outer, inner].into_iter().flatten() {
            match session_table
                .get(&id)
                .filter(|it| it.worker == worker || is_planted("bus-mixes-sessions-of-workers"))
            {
                Some(session) => return MessageRecipients::from_conns(&session.clients),
                None => named = Some(id),
            }
        }
        match named {
            Some(id) if 0 < it.opening => MessageRecipients::Deferred(id.as_ref().into()),
            None if is_bound => {
                MessageRecipients::from_conns(&it.bound.iter().copied().collect::<Vec<_>>())
            }
            Some(_) => MessageRecipients::Unknown("no client has used its session"),
            None => MessageRecipients::Unknown("the message names no session"),
        }
    }

    /// A worker sends an update for a session before it has answered the request that opens it.
    fn defer_update(&mut self, worker: WorkerId, id: Arc<str>, frame: &Frame) {
        let it = self.workers.get_mut(&worker).expect("it sent a frame");
        match self.unnamed_updates.charge(&it.unnamed_updates, frame.bytes().len()) {
            Ok(charge) if it.deferred_updates.len() < limits::EARLY_MAX => {
                it.deferred_updates.push_back(DeferredUpdate {
                    session: id,
                    text: frame.bytes().clone(),
                    _charge: charge,
                });
            }
            _ => {
                self.on_no_recipient(
                    worker,
                    frame,
                    "too many updates before its session was named",
                );
            }
        }
    }

    /// The session has a name now: earlier updates are delivered before the response.
    fn send_deferred_updates(&mut self, worker: WorkerId, id: &str) {
        let it = self.workers.get_mut(&worker).expect("it sent a frame");
        if it.deferred_updates.is_empty() {
            return;
        }
        let (updates, rest) =
            std::mem::take(&mut it.deferred_updates).into_iter().partition(|it| *it.session == *id);
        it.deferred_updates = rest;
        let scope = self.session_scope(worker).expect("it sent a frame");
        let session = self.session_table(scope).and_then(|it| it.get(id)).expect("just attached");
        let conns = session.clients.clone();
        let updates: VecDeque<DeferredUpdate> = updates;
        for update in updates {
            for conn in &conns {
                self.send_to_client(*conn, update.text.clone(), Some(worker));
            }
        }
    }

    /// Nothing is being opened any more: the deferred updates belong to no known session.
    pub(super) fn drop_deferred_updates(&mut self, worker: WorkerId) {
        let it = self.workers.get_mut(&worker).expect("the caller found it");
        if it.opening == 0 && !it.deferred_updates.is_empty() {
            self.counters.undelivered += it.deferred_updates.len() as u64;
            it.deferred_updates.clear();
        }
    }

    /// Logged at powers of two, so that one worker cannot fill the log.
    fn on_no_recipient(&mut self, worker: WorkerId, frame: &Frame, why: &'static str) {
        self.counters.undelivered += 1;
        let it = self.workers.get_mut(&worker).expect("it sent a frame");
        it.unrouted += 1;
        if it.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let from = MessageSender::Worker(worker);
            self.note(BusNote::Unrouted { from, method, reason: why.to_owned() });
        }
    }

    /// Stops a retiring worker that is unused.
    pub(super) fn retire_if_idle(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get(&worker) else { return };
        let is_busy = 0 < it.pending_calls.received_count() || 0 < it.load();
        if it.retiring && !it.stopping && !is_busy {
            self.stop_worker(worker, false);
        }
    }
}

/// The clients that receive a message of a worker.
enum MessageRecipients {
    One(ConnId),
    Many(Vec<ConnId>),
    /// The clients of a session that is being opened, once it has a name.
    Deferred(Arc<str>),
    Unknown(&'static str),
}

impl MessageRecipients {
    /// Avoids an allocation in the common case of one client.
    fn from_conns(conns: &[ConnId]) -> MessageRecipients {
        match conns {
            [one] => MessageRecipients::One(*one),
            many => MessageRecipients::Many(many.to_vec()),
        }
    }
}
