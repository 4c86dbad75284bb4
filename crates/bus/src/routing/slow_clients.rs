//! Clients that read too slowly: how long workers wait for them, and when they are closed.
//!
//! A worker that serves one client waits for that client. A worker that serves several waits at
//! most [`SHARED_HOLD_MS`] for one of them. Then messages for that client are buffered, up to a
//! limit in bytes and in time, and the client is closed when it exceeds either.

use super::{
    Bus, BusNote, BusOutput, OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX, SHARED_HOLD_MS, STALLED_MS,
    SessionScope, Timer, WorkerId, client::Client, pending_calls::CallPeer, sessions::SessionRoute,
};
use jackfield_hub::{ConnId, Time};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::{collections::BTreeSet, sync::Arc};

/// What the user of a closed client can do.
const SLOW_CLIENT_HINT: &str = "read faster and connect again, raise `max_output_queue`, or give the pool \
                       `\"affinity\": \"connection\"` and more instances";

/// The workers that wait for a client with too many unread bytes.
#[derive(Debug, Default)]
pub(super) struct HeldWorkers {
    waiting: BTreeSet<WorkerId>,
    /// When the first of them began to wait.
    since: Time,
    /// Workers that no longer wait until the client has read, since other clients use them.
    released: BTreeSet<WorkerId>,
    /// A timer for the client is set.
    has_timer: bool,
}

impl HeldWorkers {
    /// Whether the client is within its limit.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.released.is_empty()
    }

    /// Removes a worker that ended.
    pub(super) fn remove_worker(&mut self, worker: WorkerId) {
        self.waiting.remove(&worker);
        self.released.remove(&worker);
    }
}

impl Bus {
    /// The client exceeds its limit: the sending worker waits, unless it has waited long enough and
    /// serves other clients too.
    pub(super) fn hold_sender(&mut self, conn: ConnId, from: Option<WorkerId>) {
        self.set_client_timer(conn);
        self.set_outbox_timer();
        let Some(worker) = from else { return };
        let client = &self.clients[&conn];
        if client.held.released.contains(&worker) {
            let unread = client.outbox.bytes();
            let bytes_max = OUTBOX_FACTOR_MAX * self.limits.outbox_bytes_max;
            if unread <= bytes_max {
                return;
            }
            if self.is_used_by_others(worker, conn) {
                let why = format!(
                    "{unread} bytes for this connection are unread; the limit is {bytes_max} while \
                     other clients use the same worker"
                );
                return self.close_slow_client(conn, why);
            }
        }
        self.hold_worker(conn, worker);
    }

    fn hold_worker(&mut self, conn: ConnId, worker: WorkerId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        client.held.released.remove(&worker);
        if client.held.waiting.is_empty() {
            (client.last_read_at, client.held.since) = (self.now, self.now);
        }
        if client.held.waiting.insert(worker)
            && let Some(it) = self.workers.get_mut(&worker)
        {
            it.held_by += 1;
            if it.held_by == 1 {
                self.outputs.push_back(BusOutput::PauseWorker { worker });
            }
        }
    }

    /// Sets one timer per client above its limit.
    fn set_client_timer(&mut self, conn: ConnId) {
        let now = self.now;
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if client.held.has_timer {
            return;
        }
        client.held.has_timer = true;
        let hold_ends = client.held.since.plus(SHARED_HOLD_MS);
        let is_held = !client.held.waiting.is_empty() && now < hold_ends;
        let at = if is_held { hold_ends } else { now.plus(SHARED_HOLD_MS) };
        self.timers.set(at.min(now.plus(self.limits.backpressure_ms)), Timer::SlowClient(conn));
    }

    fn set_outbox_timer(&mut self) {
        if !self.has_outbox_timer && self.outboxes.all_max() < self.outboxes.used_bytes() {
            self.has_outbox_timer = true;
            self.timers.set(self.now.plus(SHARED_HOLD_MS), Timer::Outboxes);
        }
    }

    /// Resumes all workers that wait for this client, which is within its limit or gone.
    pub(super) fn release_workers_of(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.held.released.clear();
        for worker in std::mem::take(&mut client.held.waiting) {
            self.release_worker(worker);
        }
    }

    fn release_worker(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.held_by -= 1;
        if it.held_by == 0 && !is_planted("bus-never-resumes-reading") {
            self.outputs.push_back(BusOutput::ResumeWorker { worker });
        }
    }

    /// Checks a client that exceeded its limit.
    pub(super) fn check_slow_client(&mut self, conn: ConnId) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.held.has_timer = false;
        if client.closing || client.held.is_empty() {
            return;
        }
        if client.last_read_at.plus(self.limits.backpressure_ms) <= now {
            let why = format!(
                "{} bytes for this connection are unread, and none was read in {} ms",
                client.outbox.bytes(),
                now.since(client.last_read_at)
            );
            return self.close_slow_client(conn, why);
        }
        if client.held.since.plus(SHARED_HOLD_MS) <= now {
            self.release_shared_workers(conn);
        }
        self.set_client_timer(conn);
    }

    /// Resumes the workers that serve other clients, too.
    fn release_shared_workers(&mut self, conn: ConnId) {
        let held = &self.clients[&conn].held.waiting;
        let shared: BTreeSet<WorkerId> =
            held.iter().copied().filter(|it| self.is_used_by_others(*it, conn)).collect();
        let client = self.clients.get_mut(&conn).expect("found above");
        client.held.waiting.retain(|it| !shared.contains(it));
        client.held.released.extend(&shared);
        for worker in shared {
            self.release_worker(worker);
        }
    }

    /// Whether another client waits for a response of the worker, is bound to it, or uses one of
    /// its sessions.
    fn is_used_by_others(&self, worker: WorkerId, conn: ConnId) -> bool {
        let Some(it) = self.workers.get(&worker) else { return false };
        if it.bound.iter().any(|bound| *bound != conn)
            || it
                .pending_calls
                .has_received_from(|by| matches!(by, CallPeer::Client(other) if other != conn))
        {
            return true;
        }
        let sessions = self.clients.get(&conn).map(|client| &client.sessions);
        let is_exclusive = |(scope, id): &&(SessionScope, Arc<str>)| {
            self.session_route(*scope, id)
                .is_some_and(|it| it.worker == worker && it.clients == [conn])
        };
        let own_sessions = sessions.map_or(0, |it| it.iter().filter(is_exclusive).count());
        own_sessions < it.used_sessions
    }

    fn session_route(&self, scope: SessionScope, id: &str) -> Option<&SessionRoute> {
        let session_table = match scope {
            SessionScope::Pool(pool) => self.pools.get(&pool).map(|it| &it.sessions),
            SessionScope::Worker(worker) => self.workers.get(&worker).map(|it| &it.sessions),
        };
        session_table?.get(id)
    }

    /// While all clients together exceed the limit, closes the client that has stopped reading and
    /// has the most unread bytes, one after the other.
    pub(super) fn check_outboxes(&mut self) {
        self.has_outbox_timer = false;
        let open = self.clients.iter().filter(|(_, it)| !it.closing);
        let unread: usize = open.clone().map(|(_, it)| it.outbox.bytes()).sum();
        if unread <= self.outboxes.all_max() {
            return self.set_outbox_timer();
        }
        let is_stalled = |it: &Client| {
            OUTBOX_BYTES_MIN < it.outbox.bytes() && STALLED_MS <= self.now.since(it.last_read_at)
        };
        let stalled = open.filter(|(_, it)| is_stalled(it)).max_by_key(|(_, it)| it.outbox.bytes());
        if let Some((conn, client)) = stalled {
            let (conn, own) = (*conn, client.outbox.bytes());
            let why = format!(
                "{unread} bytes for all clients are unread, {own} of them for this connection, which has \
                 stopped reading"
            );
            self.close_slow_client(conn, why);
        }
        self.set_outbox_timer();
    }

    /// Buffered messages are still sent if the client reads at once, followed by the error.
    fn close_slow_client(&mut self, conn: ConnId, why: String) {
        let unread = self.clients[&conn].outbox.bytes();
        let what = format!("{why}: the connection is closed; {SLOW_CLIENT_HINT}");
        self.send_own_frame(conn, &Frame::error_for("null", &Fault::Overloaded { what }));
        self.note(BusNote::ClientSlow { conn, unread, reason: why });
        self.release_workers_of(conn);
        self.close_client(conn);
    }
}
