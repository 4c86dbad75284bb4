//! Workers: their state, their unwritten bytes, and the updates they send too early.

mod deferred_updates;
mod outer_session;
mod recipients;

pub(super) use recipients::MessageRecipients;

use super::{
    config::{BACKLOG_LIMITS, OuterSessionId, PoolConfig, SessionAffinity},
    context::BusContext,
    ids::{PoolId, SessionScope, WorkerId},
    output::{BusNote, BusOutput, MessageSender},
    tables::{CallKind, CallPeer, PendingCall, RoutingTables},
};
use bytes::Bytes;
use deferred_updates::DeferredUpdates;
use jackfield_hub::{
    ConnId, Time,
    budget::{ByteCharge, ByteOwner},
};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

#[derive(Debug, Default)]
pub(super) struct Workers {
    by_id: BTreeMap<WorkerId, Worker>,
    last_id: u64,
}

#[derive(Debug)]
pub(super) struct Worker {
    id: WorkerId,
    pool: PoolId,
    pool_name: Arc<str>,
    /// The table that has its sessions.
    scope: SessionScope,
    /// Whether it gets the `sessionId` beside `params`.
    outer_session_id: OuterSessionId,
    /// Its slot in the pool; a retiring worker has none.
    slot: Option<usize>,
    /// Sessions that are being opened.
    opening: usize,
    /// Updates for sessions that the worker has not named yet, in order.
    deferred_updates: DeferredUpdates,
    /// Bytes that are not yet written to it, and the clients that sent them.
    backlog: ByteCharge,
    unwritten: VecDeque<(Option<ConnId>, usize)>,
    /// The number of clients that must read before it is read again.
    held_by: usize,
    /// It was asked to stop.
    stopping: bool,
    /// It gets no new sessions, and is stopped when it is unused.
    retiring: bool,
    started: bool,
    last_frame_at: Time,
    /// Number of messages that could not be delivered.
    undelivered: u64,
}

impl Workers {
    /// Starts a worker in a slot of a pool.
    pub(super) fn spawn_worker(
        &mut self,
        cx: &mut BusContext,
        pool: PoolId,
        slot: usize,
        config: &PoolConfig,
    ) -> WorkerId {
        self.last_id += 1;
        let id = WorkerId(self.last_id);
        self.by_id.insert(id, Worker::new(cx, id, pool, slot, config));
        cx.push_output(BusOutput::SpawnWorker {
            worker: id,
            pool: Arc::clone(&config.id),
            command: Arc::clone(&config.command),
        });
        id
    }

    pub(super) fn get(&self, id: WorkerId) -> Option<&Worker> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: WorkerId) -> Option<&mut Worker> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.by_id.values_mut()
    }

    /// The workers of this pool, including those that retire.
    pub(super) fn in_pool(&self, pool: PoolId) -> impl Iterator<Item = &Worker> {
        self.by_id.values().filter(move |it| it.pool == pool)
    }

    /// Removes a worker that ended.
    pub(super) fn remove_worker(&mut self, id: WorkerId) -> Option<Worker> {
        self.by_id.remove(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn is_alive(&self, id: WorkerId) -> bool {
        self.by_id.get(&id).is_some_and(|it| !it.stopping)
    }

    /// The worker lost its slot: it gets no new sessions and is stopped when it is unused.
    pub(super) fn retire_worker(
        &mut self,
        cx: &mut BusContext,
        tables: &RoutingTables,
        id: WorkerId,
    ) {
        if let Some(worker) = self.by_id.get_mut(&id) {
            worker.slot = None;
            worker.retiring = true;
            worker.stop_if_retired(cx, tables);
        }
    }

    /// Stops a retiring worker that is unused.
    pub(super) fn stop_if_retired(
        &mut self,
        cx: &mut BusContext,
        tables: &RoutingTables,
        id: WorkerId,
    ) {
        if let Some(worker) = self.by_id.get_mut(&id) {
            worker.stop_if_retired(cx, tables);
        }
    }

    /// A client has read, or is gone: one client fewer must read before the worker is read again.
    pub(super) fn release_worker(&mut self, cx: &mut BusContext, id: WorkerId) {
        let Some(worker) = self.by_id.get_mut(&id) else { return };
        worker.held_by -= 1;
        if worker.held_by == 0 && !is_planted("bus-never-resumes-reading") {
            cx.push_output(BusOutput::ResumeWorker { worker: id });
        }
    }
}

impl Worker {
    fn new(
        cx: &BusContext,
        id: WorkerId,
        pool: PoolId,
        slot: usize,
        config: &PoolConfig,
    ) -> Worker {
        Worker {
            id,
            pool,
            pool_name: Arc::clone(&config.id),
            scope: match config.affinity {
                SessionAffinity::Session => SessionScope::Pool(pool),
                SessionAffinity::Connection => SessionScope::Worker(id),
            },
            outer_session_id: config.outer_session_id,
            slot: Some(slot),
            opening: 0,
            deferred_updates: DeferredUpdates::default(),
            backlog: cx.backlogs().charge_unchecked(&ByteOwner::default(), 0),
            unwritten: VecDeque::new(),
            held_by: 0,
            stopping: false,
            retiring: false,
            started: false,
            last_frame_at: cx.now(),
            undelivered: 0,
        }
    }

    pub(super) fn id(&self) -> WorkerId {
        self.id
    }

    pub(super) fn pool(&self) -> PoolId {
        self.pool
    }

    pub(super) fn pool_name(&self) -> &Arc<str> {
        &self.pool_name
    }

    pub(super) fn scope(&self) -> SessionScope {
        self.scope
    }

    pub(super) fn slot(&self) -> Option<usize> {
        self.slot
    }

    pub(super) fn is_started(&self) -> bool {
        self.started
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// A client must read before the worker is read again.
    pub(super) fn is_held(&self) -> bool {
        0 < self.held_by
    }

    pub(super) fn last_frame_at(&self) -> Time {
        self.last_frame_at
    }

    pub(super) fn backlog_bytes(&self) -> usize {
        self.backlog.bytes()
    }

    /// Whether it may get new sessions.
    pub(super) fn accepts_sessions(&self) -> bool {
        !self.stopping && !self.retiring
    }

    /// Sessions that clients use, sessions that are being opened, and bound clients.
    pub(super) fn load(&self, tables: &RoutingTables) -> usize {
        self.opening + tables.count_users(self.id)
    }

    pub(super) fn on_started(&mut self, cx: &mut BusContext, pid: u32) {
        self.started = true;
        let pool = Arc::clone(&self.pool_name);
        cx.push_note(BusNote::WorkerStarted { pool, worker: self.id, pid });
    }

    pub(super) fn on_frame(&mut self, cx: &BusContext) {
        self.last_frame_at = cx.now();
    }

    pub(super) fn stop(&mut self, cx: &mut BusContext, now: bool) {
        self.stopping = true;
        cx.push_output(BusOutput::StopWorker { worker: self.id, now });
    }

    fn stop_if_retired(&mut self, cx: &mut BusContext, tables: &RoutingTables) {
        if !self.retiring || self.stopping {
            return;
        }
        let mut calls = tables.calls.received_by(CallPeer::Worker(self.id));
        if calls.next().is_none() && self.load(tables) == 0 {
            self.stop(cx, false);
        }
    }

    /// Refuses messages while too many bytes are not yet written to the worker.
    pub(super) fn check_backlog(&self, cx: &BusContext) -> Result<(), Fault> {
        let unwritten = self.backlog.bytes();
        if unwritten <= BACKLOG_LIMITS.own_max && !cx.backlogs().is_exceeded_by(unwritten) {
            return Ok(());
        }
        let what = format!("{unwritten} bytes are not yet read by the worker; try again later");
        Err(Fault::Overloaded { what })
    }

    /// Sends a message of a client, or of the bus. Returns the bytes that must be written.
    pub(super) fn send_text(
        &mut self,
        cx: &mut BusContext,
        text: Bytes,
        sender: Option<ConnId>,
    ) -> usize {
        if self.stopping {
            return 0;
        }
        cx.count_sent(text.len());
        let bytes = text.len() + 1;
        self.backlog.resize(self.backlog.bytes() + bytes);
        match self.unwritten.back_mut() {
            Some((conn, sum)) if *conn == sender => *sum += bytes,
            _ => self.unwritten.push_back((sender, bytes)),
        }
        cx.push_output(BusOutput::SendToWorker { worker: self.id, text });
        bytes
    }

    /// Sends a frame that the bus created.
    pub(super) fn send_own_frame(&mut self, cx: &mut BusContext, frame: Frame) {
        self.send_text(cx, frame.into_bytes(), None);
    }

    /// These bytes were written. [`Self::take_written`] tells whose they were.
    pub(super) fn reduce_backlog(&mut self, bytes: usize) {
        self.backlog.resize(self.backlog.bytes().saturating_sub(bytes));
    }

    /// The next of the `left` written bytes that have the same sender.
    pub(super) fn take_written(&mut self, left: &mut usize) -> Option<(Option<ConnId>, usize)> {
        if *left == 0 {
            return None;
        }
        let (conn, sum) = self.unwritten.front_mut()?;
        let (conn, written) = (*conn, (*left).min(*sum));
        *left -= written;
        *sum -= written;
        if *sum == 0 {
            self.unwritten.pop_front();
        }
        Some((conn, written))
    }

    /// A client must read before the worker is read again.
    pub(super) fn pause_reading(&mut self, cx: &mut BusContext) {
        self.held_by += 1;
        if self.held_by == 1 {
            cx.push_output(BusOutput::PauseWorker { worker: self.id });
        }
    }

    /// A request is sent to the worker.
    pub(super) fn on_call_added(&mut self, kind: &CallKind) {
        self.opening += usize::from(*kind == CallKind::Opens);
    }

    /// A request to the worker was answered, or its sender is gone.
    pub(super) fn on_call_taken(&mut self, call: &PendingCall) {
        self.opening -= usize::from(call.kind == CallKind::Opens);
    }

    /// The worker sends an update for a session before it has answered the request that opens it.
    pub(super) fn defer_update(&mut self, cx: &mut BusContext, session: Arc<str>, frame: &Frame) {
        if !self.deferred_updates.add_update(cx, session, frame.clone()) {
            let why = "too many updates before its session was named";
            self.report_undelivered(cx, frame, why);
        }
    }

    /// Takes the deferred updates of a session that has a name now.
    pub(super) fn take_deferred_updates(&mut self, session: &str) -> Vec<Frame> {
        self.deferred_updates.take_session(session)
    }

    /// If no session is being opened any more, the deferred updates belong to no known session.
    pub(super) fn drop_deferred_updates(&mut self, cx: &mut BusContext) {
        if self.opening == 0 {
            cx.count_undelivered(self.deferred_updates.drop_all());
        }
    }

    /// Answers a request of the worker that no client can answer.
    pub(super) fn refuse_request(&mut self, cx: &mut BusContext, frame: &Frame, why: &str) {
        let fault = Fault::NoClient { why: why.to_owned() };
        let id = frame.id().expect("a request has an id");
        self.send_own_frame(cx, Frame::error_for(id, &fault));
        self.report_undelivered(cx, frame, why);
    }

    /// Logged at powers of two, so that one worker cannot fill the log.
    pub(super) fn report_undelivered(&mut self, cx: &mut BusContext, frame: &Frame, why: &str) {
        cx.count_undelivered(1);
        self.undelivered += 1;
        if self.undelivered.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let from = MessageSender::Worker(self.id);
            cx.push_note(BusNote::Unrouted { from, method, reason: why.to_owned() });
        }
    }
}
