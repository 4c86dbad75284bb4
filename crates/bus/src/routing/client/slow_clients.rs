//! Clients that read too slowly: how long workers wait for them, and when they are closed.
//!
//! A worker that serves one client waits for that client. A worker that serves several waits at
//! most [`SHARED_HOLD_MS`] for one of them. Then messages for that client are buffered, up to a
//! limit in bytes and in time, and the client is closed when it exceeds either.

use super::{
    super::{
        config::{OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX, SHARED_HOLD_MS, STALLED_MS},
        context::{BusContext, BusTimer},
        ids::WorkerId,
        output::BusNote,
        parts::BusParts,
    },
    Client, Clients,
};
use jackfield_hub::Time;
use jackfield_protocol::{Fault, Frame};
use std::collections::BTreeSet;

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

impl Clients {
    /// While all clients together exceed the limit, closes the client that has stopped reading and
    /// has the most unread bytes, one after the other.
    pub(in super::super) fn check_outboxes(&mut self, parts: &mut BusParts) {
        parts.cx.clear_outbox_timer();
        let now = parts.cx.now();
        let open = self.by_id.values_mut().filter(|it| !it.closing);
        let mut unread = 0;
        let mut largest: Option<&mut Client> = None;
        for client in open {
            let bytes = client.outbox.bytes();
            unread += bytes;
            let is_stalled =
                OUTBOX_BYTES_MIN < bytes && STALLED_MS <= now.since(client.last_read_at);
            if is_stalled && largest.as_ref().is_none_or(|it| it.outbox.bytes() <= bytes) {
                largest = Some(client);
            }
        }
        if parts.cx.outboxes().all_max() < unread
            && let Some(client) = largest
        {
            let own = client.outbox.bytes();
            let why = format!(
                "{unread} bytes for all clients are unread, {own} of them for this connection, which has \
                 stopped reading"
            );
            client.close_slow(parts, why);
        }
        parts.cx.set_outbox_timer();
    }
}

impl Client {
    /// The client exceeds its limit: the sending worker waits, unless it has waited long enough and
    /// serves other clients too.
    pub(super) fn hold_sender(&mut self, parts: &mut BusParts, worker: WorkerId) {
        if self.held.released.contains(&worker) {
            let unread = self.outbox.bytes();
            let bytes_max = OUTBOX_FACTOR_MAX * parts.cx.limits().outbox_bytes_max;
            if unread <= bytes_max {
                return;
            }
            if parts.tables.is_used_by_others(worker, self.conn) {
                let why = format!(
                    "{unread} bytes for this connection are unread; the limit is {bytes_max} while \
                     other clients use the same worker"
                );
                return self.close_slow(parts, why);
            }
        }
        self.hold_worker(parts, worker);
    }

    fn hold_worker(&mut self, parts: &mut BusParts, id: WorkerId) {
        let now = parts.cx.now();
        self.held.released.remove(&id);
        if self.held.waiting.is_empty() {
            (self.last_read_at, self.held.since) = (now, now);
        }
        if self.held.waiting.insert(id)
            && let Some(worker) = parts.workers.get_mut(id)
        {
            worker.pause_reading(&mut parts.cx);
        }
    }

    /// Sets one timer per client above its limit.
    pub(super) fn set_timer(&mut self, cx: &mut BusContext) {
        if self.held.has_timer {
            return;
        }
        self.held.has_timer = true;
        let now = cx.now();
        let hold_ends = self.held.since.plus(SHARED_HOLD_MS);
        let is_held = !self.held.waiting.is_empty() && now < hold_ends;
        let at = if is_held { hold_ends } else { now.plus(SHARED_HOLD_MS) };
        let at = at.min(now.plus(cx.limits().backpressure_ms));
        cx.set_timer(at, BusTimer::SlowClient(self.conn));
    }

    /// Resumes all workers that wait for this client, which is within its limit or gone.
    pub(super) fn release_workers(&mut self, parts: &mut BusParts) {
        self.held.released.clear();
        for worker in std::mem::take(&mut self.held.waiting) {
            parts.workers.release_worker(&mut parts.cx, worker);
        }
    }

    /// Checks a client that exceeded its limit.
    pub(in super::super) fn check_slow(&mut self, parts: &mut BusParts) {
        let now = parts.cx.now();
        self.held.has_timer = false;
        if self.closing || self.held.is_empty() {
            return;
        }
        if self.last_read_at.plus(parts.cx.limits().backpressure_ms) <= now {
            let why = format!(
                "{} bytes for this connection are unread, and none was read in {} ms",
                self.outbox.bytes(),
                now.since(self.last_read_at)
            );
            return self.close_slow(parts, why);
        }
        if self.held.since.plus(SHARED_HOLD_MS) <= now {
            self.release_shared_workers(parts);
        }
        self.set_timer(&mut parts.cx);
    }

    /// Resumes the workers that serve other clients, too.
    fn release_shared_workers(&mut self, parts: &mut BusParts) {
        let is_shared = |it: &WorkerId| parts.tables.is_used_by_others(*it, self.conn);
        let (shared, waiting): (BTreeSet<_>, _) =
            std::mem::take(&mut self.held.waiting).into_iter().partition(is_shared);
        self.held.waiting = waiting;
        self.held.released.extend(&shared);
        for worker in shared {
            parts.workers.release_worker(&mut parts.cx, worker);
        }
    }

    /// Buffered messages are still sent if the client reads at once, followed by the error.
    fn close_slow(&mut self, parts: &mut BusParts, why: String) {
        let unread = self.outbox.bytes();
        let what = format!("{why}: the connection is closed; {SLOW_CLIENT_HINT}");
        let fault = Fault::Overloaded { what };
        self.send_own_frame(&mut parts.cx, &Frame::error_for("null", &fault));
        parts.cx.push_note(BusNote::ClientSlow { conn: self.conn, unread, reason: why });
        self.release_workers(parts);
        self.close(&mut parts.cx);
    }
}
