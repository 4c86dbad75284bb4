//! The lifecycle of workers: start, health check, end, and limited restarts.

use super::{
    Bus, BusNote, BusOutput, RestartRule, SessionScope, Timer, WorkerId,
    pending_calls::{CallKind, CallPeer, PendingCall, PendingCalls},
    pool::{PoolId, StoppedWorker},
    worker::Worker,
};
use jackfield_hub::{Exit, budget::ByteOwner, restart::RestartVerdict};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use std::sync::Arc;

impl Bus {
    /// Starts a worker in this slot of the pool, unless it has one.
    pub(super) fn fill_slot(&mut self, pool: PoolId, slot: usize) {
        let Some(it) = self.pools.get_mut(&pool) else { return };
        let Some(slot_state) = it.slots.get_mut(slot) else { return };
        // Not before its time, and not if it must stay empty: an old timer may have fired.
        let is_waiting =
            slot_state.stopped.as_ref().is_some_and(|it| it.until.is_none_or(|at| self.now < at));
        if self.stopping.is_some() || it.removed || slot_state.worker.is_some() || is_waiting {
            return;
        }
        self.next_worker += 1;
        let worker = WorkerId(self.next_worker);
        slot_state.worker = Some(worker);
        slot_state.stopped = None;
        let (name, command) = (Arc::clone(&it.spec.id), Arc::clone(&it.spec.command));
        let backlog = self.backlogs.charge_unchecked(&ByteOwner::default(), 0);
        self.workers.insert(worker, Worker::new(pool, slot, self.now, backlog));
        self.outputs.push_back(BusOutput::SpawnWorker { worker, pool: name, command });
    }

    pub(super) fn on_worker_started(&mut self, worker: WorkerId, pid: u32) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.started = true;
        let pool = self.pool_name(worker);
        self.note(BusNote::WorkerStarted { pool, worker, pid });
        self.schedule_health_check(worker);
    }

    pub(super) fn stop_worker(&mut self, worker: WorkerId, now: bool) {
        if let Some(it) = self.workers.get_mut(&worker) {
            it.stopping = true;
            self.outputs.push_back(BusOutput::StopWorker { worker, now });
        }
    }

    /// Answers all requests to the worker at once.
    pub(super) fn on_worker_gone(&mut self, worker: WorkerId, exit: &Exit, clean: bool) {
        if !self.workers.contains_key(&worker) {
            return;
        }
        let pool = self.pool_name(worker);
        let it = self.workers.remove(&worker).expect("found above");
        self.session_count -= it.sessions.len();
        let refused = self.fail_pending_calls(it.pending_calls, &pool, exit);
        for (conn, bytes) in it.sent {
            if let Some(conn) = conn {
                self.on_written(conn, bytes);
            }
        }
        for conn in it.bound {
            if let Some(client) = self.clients.get_mut(&conn) {
                client.sessions.retain(|(scope, _)| *scope != SessionScope::Worker(worker));
            }
        }
        if 0 < it.held_by {
            self.clients.values_mut().for_each(|it| it.held.remove_worker(worker));
        }
        let status = exit.status.clone();
        self.note(BusNote::WorkerEnded { pool, worker, status, pending: refused });
        match it.slot {
            Some(slot) => self.vacate_slot(it.pool, slot, exit, clean && !it.stopping),
            None => self.remove_pool_if_empty(it.pool),
        }
        self.advance_stop();
    }

    /// Answers the requests to the worker with an error and cancels its own requests.
    fn fail_pending_calls(
        &mut self,
        mut pending_calls: PendingCalls,
        pool: &str,
        exit: &Exit,
    ) -> usize {
        let fault = Fault::WorkerGone {
            pool: pool.to_owned(),
            status: exit.status.clone(),
            stderr: exit.stderr.clone(),
        };
        let received = pending_calls.take_all_received();
        let mut refused = 0;
        for (bus_id, PendingCall { caller, id, .. }) in received {
            let CallPeer::Client(conn) = caller else { continue };
            refused += 1;
            self.pending -= 1;
            let Some(client) = self.clients.get_mut(&conn) else { continue };
            client.pending_calls.remove_sent(&id, bus_id);
            if !is_planted("bus-forgets-requests-to-dead-worker") {
                self.send_own_frame(conn, &Frame::error_for(&id, &fault));
            }
            self.close_if_finished(conn);
        }
        for ((_, bus_id), callee) in pending_calls.take_all_sent() {
            let CallPeer::Client(conn) = callee else { continue };
            let Some(client) = self.clients.get_mut(&conn) else { continue };
            if client.pending_calls.take_received(bus_id).is_some() {
                self.pending -= 1;
                let params = format!(r#"{{"requestId":{bus_id}}}"#);
                self.send_own_frame(
                    conn,
                    &Frame::notification(Method::CancelRequest.name(), &params),
                );
            }
        }
        refused
    }

    /// The slot of a worker is free: it is filled again now, later or never.
    fn vacate_slot(&mut self, pool: PoolId, slot: usize, exit: &Exit, clean: bool) {
        let now = self.now;
        let stopping = self.stopping.is_some();
        let it = self.pools.get_mut(&pool).expect("a pool outlives its workers");
        let name = Arc::clone(&it.spec.id);
        let restart = it.spec.restart;
        let slot_state = &mut it.slots[slot];
        slot_state.worker = None;
        let status = exit.status.clone();
        let should_restart = match restart {
            RestartRule::Always => true,
            RestartRule::OnFailure => !clean,
            RestartRule::Never => false,
        };
        if stopping || !should_restart {
            slot_state.stopped = Some(StoppedWorker { status, until: None });
            if !stopping {
                self.note(BusNote::NotRestarted { pool: name });
            }
            return;
        }
        slot_state.restarts.ended(now);
        let (at, note) = match slot_state.restarts.verdict(now) {
            RestartVerdict::Now => (now, BusNote::Restarting { pool: name, pause_ms: 0 }),
            RestartVerdict::At(at) => {
                (at, BusNote::Restarting { pool: name, pause_ms: at.since(now) })
            }
            RestartVerdict::GiveUp { ends, until } => {
                (until, BusNote::GaveUp { pool: name, ends, pause_ms: until.since(now) })
            }
        };
        slot_state.stopped = Some(StoppedWorker { status, until: Some(at) });
        self.counters.restarts += 1;
        self.timers.set(at, Timer::StartWorker(pool, slot));
        self.note(note);
    }

    fn schedule_health_check(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get(&worker) else { return };
        if let Some(health) = &self.pools[&it.pool].spec.health {
            self.timers.set(self.now.plus(health.every_ms), Timer::HealthCheck(worker));
        }
    }

    pub(super) fn send_health_check(&mut self, worker: WorkerId) {
        let Some(it) = self.workers.get(&worker).filter(|it| !it.stopping) else { return };
        let Some(health) = self.pools[&it.pool].spec.health.clone() else { return };
        let bus_id = self.next_id();
        let call = PendingCall { caller: CallPeer::Bus, id: "null".into(), kind: CallKind::Plain };
        self.workers
            .get_mut(&worker)
            .expect("found above")
            .pending_calls
            .add_received(bus_id, call);
        let request = Frame::request(&bus_id.to_string(), &health.method, "{}");
        self.send_to_worker(worker, request.into_bytes(), None);
        self.timers.set(self.now.plus(health.timeout_ms), Timer::HealthCheckDue(worker, bus_id));
    }

    /// Any frame counts as a sign of life: a busy worker may answer the health check late.
    pub(super) fn check_health(&mut self, worker: WorkerId, bus_id: u64) {
        let now = self.now;
        let Some(it) = self.workers.get_mut(&worker).filter(|it| !it.stopping) else { return };
        let is_answered = it.pending_calls.take_received(bus_id).is_none();
        let Some(health) = &self.pools[&it.pool].spec.health else { return };
        // A worker that is not read cannot be heard.
        let is_silent = 0 == it.held_by && health.timeout_ms <= now.since(it.last_frame_at);
        if is_answered || !is_silent {
            return self.schedule_health_check(worker);
        }
        let pool = self.pool_name(worker);
        self.note(BusNote::Unhealthy { pool, worker });
        self.stop_worker(worker, true);
    }
}
