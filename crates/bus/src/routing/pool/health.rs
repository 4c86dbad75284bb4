//! Health checks: a worker that answers none and sends nothing else is stopped.

use super::{
    super::{
        config::HealthCheck,
        context::{BusContext, BusTimer},
        ids::WorkerId,
        output::BusNote,
        tables::{CallKind, CallPeer, PendingCall, RoutingTables},
        worker::{Worker, Workers},
    },
    Pools,
};
use jackfield_protocol::Frame;
use std::sync::Arc;

impl Pools {
    pub(in super::super) fn on_worker_started(
        &self,
        cx: &mut BusContext,
        workers: &mut Workers,
        id: WorkerId,
        pid: u32,
    ) {
        let Some(worker) = workers.get_mut(id) else { return };
        worker.on_started(cx, pid);
        self.schedule_health_check(cx, worker);
    }

    fn health_check_of(&self, worker: &Worker) -> Option<&HealthCheck> {
        self.by_id.get(&worker.pool())?.config.health.as_ref()
    }

    fn schedule_health_check(&self, cx: &mut BusContext, worker: &Worker) {
        if let Some(health) = self.health_check_of(worker) {
            cx.set_timer_in(health.every_ms, BusTimer::HealthCheck(worker.id()));
        }
    }

    pub(in super::super) fn send_health_check(
        &self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        id: WorkerId,
    ) {
        let Some(worker) = workers.get_mut(id).filter(|it| !it.is_stopping()) else { return };
        let Some(health) = self.health_check_of(worker) else { return };
        let (caller, kind) = (CallPeer::Bus, CallKind::Plain);
        let call = PendingCall { caller, id: "null".into(), kind, outer_id: None };
        let bus_id = tables.calls.add_call(CallPeer::Worker(id), call);
        worker.send_own_frame(cx, Frame::request(&bus_id.to_string(), &health.method, "{}"));
        cx.set_timer_in(health.timeout_ms, BusTimer::HealthCheckDue(id, bus_id));
    }

    /// Any frame counts as a sign of life: a busy worker may answer the health check late.
    pub(in super::super) fn check_health(
        &self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        id: WorkerId,
        bus_id: u64,
    ) {
        let Some(worker) = workers.get_mut(id).filter(|it| !it.is_stopping()) else { return };
        let is_answered = tables.calls.take_received(CallPeer::Worker(id), bus_id).is_none();
        let Some(health) = self.health_check_of(worker) else { return };
        let silent_ms = cx.now().since(worker.last_frame_at());
        // A worker that is not read cannot be heard.
        let is_silent = !worker.is_held() && health.timeout_ms <= silent_ms;
        if is_answered || !is_silent {
            return self.schedule_health_check(cx, worker);
        }
        let pool = Arc::clone(worker.pool_name());
        cx.push_note(BusNote::Unhealthy { pool, worker: id });
        worker.stop(cx, true);
    }
}
