//! Clients that read too slowly: how long workers wait for them, and when they are closed.
//!
//! A worker that serves one client waits for that client. A worker that serves several waits at most
//! [`SHARED_HOLD_MS`] for one of them; then the messages for that client are kept, up to a bound in bytes and in
//! time, and the client is closed when it exceeds either.

use super::{
    Bus, BusNote, BusOutput, Home, OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX, SHARED_HOLD_MS, STALLED_MS,
    Timer, WorkerId, calls::Peer, client::Client, sessions::Session,
};
use jackfield_hub::{ConnId, Time};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::{collections::BTreeSet, sync::Arc};

/// What a client that is closed can do about it.
const WAY_OUT: &str = "read faster and connect again, raise `max_output_queue`, or give the pool \
                       `\"affinity\": \"connection\"` and more instances";

/// The workers that a client with too many unread bytes keeps waiting.
#[derive(Debug, Default)]
pub(super) struct HeldWorkers {
    waiting: BTreeSet<WorkerId>,
    /// When the first of those that wait began to.
    since: Time,
    /// Workers that do not wait any more until the client has read: other clients use them.
    released: BTreeSet<WorkerId>,
    /// A timer for the client is set.
    watched: bool,
}

impl HeldWorkers {
    /// The client is within its bound.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.released.is_empty()
    }

    /// This worker is gone.
    pub(super) fn forget(&mut self, worker: WorkerId) {
        self.waiting.remove(&worker);
        self.released.remove(&worker);
    }
}

impl Bus {
    /// The client has more unread bytes than it may have: the worker that speaks to it waits, unless it has
    /// waited long enough and serves other clients too.
    pub(super) fn hold_back(&mut self, conn: ConnId, from: Option<WorkerId>) {
        self.watch_slow_client(conn);
        self.watch_all_outboxes();
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
                    "{unread} bytes for this connection are unread, at most {bytes_max} may be while \
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
            (client.took, client.held.since) = (self.now, self.now);
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

    /// One timer for each client over its bound.
    fn watch_slow_client(&mut self, conn: ConnId) {
        let now = self.now;
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if client.held.watched {
            return;
        }
        client.held.watched = true;
        let hold_ends = client.held.since.plus(SHARED_HOLD_MS);
        let is_held = !client.held.waiting.is_empty() && now < hold_ends;
        let at = if is_held { hold_ends } else { now.plus(SHARED_HOLD_MS) };
        self.timers.set(at.min(now.plus(self.limits.backpressure_ms)), Timer::Slow(conn));
    }

    fn watch_all_outboxes(&mut self) {
        if !self.outboxes_watched && self.outboxes.all_max() < self.outboxes.used() {
            self.outboxes_watched = true;
            self.timers.set(self.now.plus(SHARED_HOLD_MS), Timer::Outboxes);
        }
    }

    /// No worker waits for this client any more, and it is within its bound or gone.
    pub(super) fn let_go_of(&mut self, conn: ConnId) {
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

    /// Looks at a client that was over its bound a moment ago.
    pub(super) fn on_slow(&mut self, conn: ConnId) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.held.watched = false;
        if client.closing || client.held.is_empty() {
            return;
        }
        if client.took.plus(self.limits.backpressure_ms) <= now {
            let why = format!(
                "{} bytes for this connection are unread, and none was read in {} ms",
                client.outbox.bytes(),
                now.since(client.took)
            );
            return self.close_slow_client(conn, why);
        }
        if client.held.since.plus(SHARED_HOLD_MS) <= now {
            self.release_shared_workers(conn);
        }
        self.watch_slow_client(conn);
    }

    /// Workers that serve other clients have waited for this one long enough.
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

    /// Whether a client other than this one waits for an answer of the worker, is bound to it, or uses one of its
    /// sessions.
    fn is_used_by_others(&self, worker: WorkerId, conn: ConnId) -> bool {
        let Some(it) = self.workers.get(&worker) else { return false };
        if it.bound.iter().any(|bound| *bound != conn)
            || it.calls.has_owed(|by| matches!(by, Peer::Client(other) if other != conn))
        {
            return true;
        }
        let sessions = self.clients.get(&conn).map(|client| &client.sessions);
        let of_this_client_only = |(home, id): &&(Home, Arc<str>)| {
            self.session(*home, id).is_some_and(|it| it.worker == worker && it.clients == [conn])
        };
        let own = sessions.map_or(0, |it| it.iter().filter(of_this_client_only).count());
        own < it.used_sessions
    }

    fn session(&self, home: Home, id: &str) -> Option<&Session> {
        let table = match home {
            Home::Pool(pool) => self.pools.get(&pool).map(|it| &it.sessions),
            Home::Worker(worker) => self.workers.get(&worker).map(|it| &it.sessions),
        };
        table?.get(id)
    }

    /// All clients together have more unread bytes than they may: while that is so, the client with the most of
    /// them that has stopped reading is closed, one after the other.
    pub(super) fn on_outboxes_full(&mut self) {
        self.outboxes_watched = false;
        let open = self.clients.iter().filter(|(_, it)| !it.closing);
        let unread: usize = open.clone().map(|(_, it)| it.outbox.bytes()).sum();
        if unread <= self.outboxes.all_max() {
            return self.watch_all_outboxes();
        }
        let is_stalled = |it: &Client| {
            OUTBOX_BYTES_MIN < it.outbox.bytes() && STALLED_MS <= self.now.since(it.took)
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
        self.watch_all_outboxes();
    }

    /// What was kept for it is sent if it reads on at once, and the error after it.
    fn close_slow_client(&mut self, conn: ConnId, why: String) {
        let unread = self.clients[&conn].outbox.bytes();
        let what = format!("{why}: the connection is closed; {WAY_OUT}");
        self.say(conn, &Frame::error_for("null", &Fault::Overloaded { what }));
        self.note(BusNote::ClientSlow { conn, unread, why });
        self.let_go_of(conn);
        self.hang_up(conn);
    }
}
