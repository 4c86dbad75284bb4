//! Workers start, are asked how they are, end, and are started again, but not for ever.

use super::{
    Bus, BusNote, BusOutput, Home, RestartRule, Timer, WorkerId,
    calls::{Call, CallKind, Calls, Peer},
    pool::{Down, PoolId},
    worker::Worker,
};
use jackfield_hub::{Exit, budget::ByteOwner, restart::RestartVerdict};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use std::sync::Arc;

impl Bus {
    /// Starts a worker in this place of the pool, unless one is there.
    pub(super) fn fill(&mut self, pool: PoolId, slot: usize) {
        let Some(it) = self.pools.get_mut(&pool) else { return };
        let Some(place) = it.slots.get_mut(slot) else { return };
        // Not before its time, and not if it is to stay empty: an old timer may have fired.
        let rests = place.down.as_ref().is_some_and(|it| it.until.is_none_or(|at| self.now < at));
        if self.stopping.is_some() || it.removed || place.worker.is_some() || rests {
            return;
        }
        self.next_worker += 1;
        let worker = WorkerId(self.next_worker);
        place.worker = Some(worker);
        place.down = None;
        let (name, command) = (Arc::clone(&it.spec.id), Arc::clone(&it.spec.command));
        let backlog = self.backlogs.charge_unchecked(&ByteOwner::default(), 0);
        self.workers.insert(worker, Worker::new(pool, slot, self.now, backlog));
        self.outputs.push_back(BusOutput::Spawn { worker, pool: name, command });
    }

    pub(super) fn on_started(&mut self, worker: WorkerId, pid: u32) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.started = true;
        let pool = self.pool_name(worker);
        self.note(BusNote::WorkerStarted { pool, worker, pid });
        self.plan_probe(worker);
    }

    pub(super) fn stop_worker(&mut self, worker: WorkerId, now: bool) {
        if let Some(it) = self.workers.get_mut(&worker) {
            it.stopping = true;
            self.outputs.push_back(BusOutput::StopWorker { worker, now });
        }
    }

    /// Everyone who waits for it is answered at once.
    pub(super) fn on_worker_gone(&mut self, worker: WorkerId, exit: &Exit, clean: bool) {
        if !self.workers.contains_key(&worker) {
            return;
        }
        let pool = self.pool_name(worker);
        let it = self.workers.remove(&worker).expect("found above");
        self.session_count -= it.sessions.len();
        let pending = self.answer_for(it.calls, &pool, exit);
        for (conn, bytes) in it.sent {
            if let Some(conn) = conn {
                self.taken(conn, bytes);
            }
        }
        for conn in it.bound {
            if let Some(client) = self.clients.get_mut(&conn) {
                client.sessions.retain(|(home, _)| *home != Home::Worker(worker));
            }
        }
        if 0 < it.held_by {
            self.clients.values_mut().for_each(|it| it.held.forget(worker));
        }
        let status = exit.status.clone();
        self.note(BusNote::WorkerEnded { pool, worker, status, pending });
        match it.slot {
            Some(slot) => self.vacate(it.pool, slot, exit, clean && !it.stopping),
            None => self.drop_pool_if_empty(it.pool),
        }
        self.stop_if_drained();
    }

    /// What it owed is answered with its end; what it asked is withdrawn.
    fn answer_for(&mut self, mut calls: Calls, pool: &str, exit: &Exit) -> usize {
        let fault = Fault::WorkerGone {
            pool: pool.to_owned(),
            status: exit.status.clone(),
            stderr: exit.stderr.clone(),
        };
        let owed = calls.take_owed();
        let mut pending = 0;
        for (ours, Call { by, id, .. }) in owed {
            let Peer::Client(conn) = by else { continue };
            pending += 1;
            self.pending -= 1;
            let Some(client) = self.clients.get_mut(&conn) else { continue };
            client.calls.settled(&id, ours);
            if !is_planted("bus-forgets-requests-to-dead-worker") {
                self.say(conn, &Frame::error_for(&id, &fault));
            }
            self.close_finished(conn);
        }
        for ((_, ours), whom) in calls.take_asked() {
            let Peer::Client(conn) = whom else { continue };
            let Some(client) = self.clients.get_mut(&conn) else { continue };
            if client.calls.answered(ours).is_some() {
                self.pending -= 1;
                let params = format!(r#"{{"requestId":{ours}}}"#);
                self.say(conn, &Frame::notification(Method::CancelRequest.name(), &params));
            }
        }
        pending
    }

    /// The place of a worker is free: it is filled again, now, later or never.
    fn vacate(&mut self, pool: PoolId, slot: usize, exit: &Exit, clean: bool) {
        let now = self.now;
        let stopping = self.stopping.is_some();
        let it = self.pools.get_mut(&pool).expect("a pool outlives its workers");
        let name = Arc::clone(&it.spec.id);
        let restart = it.spec.restart;
        let place = &mut it.slots[slot];
        place.worker = None;
        let status = exit.status.clone();
        let again = match restart {
            RestartRule::Always => true,
            RestartRule::OnFailure => !clean,
            RestartRule::Never => false,
        };
        if stopping || !again {
            place.down = Some(Down { status, until: None });
            if !stopping {
                self.note(BusNote::LeftEnded { pool: name });
            }
            return;
        }
        place.restarts.ended(now);
        let (at, note) = match place.restarts.verdict(now) {
            RestartVerdict::Now => (now, BusNote::Restarting { pool: name, pause_ms: 0 }),
            RestartVerdict::At(at) => {
                (at, BusNote::Restarting { pool: name, pause_ms: at.since(now) })
            }
            RestartVerdict::GiveUp { ends, until } => {
                (until, BusNote::GaveUp { pool: name, ends, pause_ms: until.since(now) })
            }
        };
        place.down = Some(Down { status, until: Some(at) });
        self.counters.restarts += 1;
        self.timers.set(at, Timer::Start(pool, slot));
        self.note(note);
    }

    fn plan_probe(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get(&worker) else { return };
        if let Some(health) = &self.pools[&it.pool].spec.health {
            self.timers.set(self.now.plus(health.every_ms), Timer::Probe(worker));
        }
    }

    pub(super) fn probe(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get(&worker).filter(|it| !it.stopping) else { return };
        let Some(health) = self.pools[&it.pool].spec.health.clone() else { return };
        let ours = self.next_id();
        let call = Call { by: Peer::Bus, id: "null".into(), kind: CallKind::Plain };
        self.workers.get_mut(&worker).expect("found above").calls.owe(ours, call);
        let request = Frame::request(&ours.to_string(), &health.method, "{}");
        self.tell_worker(worker, request.into_bytes(), None);
        self.timers.set(self.now.plus(health.timeout_ms), Timer::ProbeDue(worker, ours));
    }

    /// Whoever says anything lives: a worker in the middle of a long burst answers when it is done.
    pub(super) fn on_probe_due(&mut self, worker: WorkerId, ours: u64) {
        let now = self.now;
        let Some(it) = self.workers.get_mut(&worker).filter(|it| !it.stopping) else { return };
        let answered = it.calls.answered(ours).is_none();
        let Some(health) = &self.pools[&it.pool].spec.health else { return };
        // One that is not read cannot be heard.
        let silent = 0 == it.held_by && health.timeout_ms <= now.since(it.heard);
        if answered || !silent {
            return self.plan_probe(worker);
        }
        let pool = self.pool_name(worker);
        self.note(BusNote::Unhealthy { pool, worker });
        self.stop_worker(worker, true);
    }
}
