//! The bus: routes JSON-RPC messages between any number of clients and pools of workers.
//!
//! Read in this order: [`BusConfig`], [`BusInput`], [`BusOutput`], then the parts, each of which imports
//! only the ones before it: `context` (time, limits, timers, outputs), `tables` (pending requests,
//! sessions, bound connections), `worker`, `pool` (which worker; restarts, health checks, reload),
//! `client` (frames from clients, flow control). [`Bus`] passes inputs to them; what concerns workers
//! and clients is in `worker_input`.
//!
//! - **Invariant:** a request is answered exactly once, to its sender, under the sender's id: by the
//!   recipient, or by the bus with the reason why it failed.
//! - **Invariant:** a client receives only responses to its own requests, and only messages of sessions
//!   that it uses.
//! - **Invariant:** messages between one client and one worker keep their order; none is lost and none
//!   is delivered twice.
//! - **Invariant:** every buffer is bounded, and exceeding a bound is reported.

mod client;
mod config;
mod context;
mod gauges;
mod ids;
mod input;
mod methods;
mod output;
mod parts;
mod pool;
mod tables;
#[cfg(test)]
mod tests;
mod worker;
mod worker_input;

pub use config::{
    BACKLOG_LIMITS, BusConfig, BusLimits, HealthCheck, IDLE_SESSIONS_MAX, LauncherConfig,
    OUTBOX_BYTES_ALL_MAX, OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX, OuterSessionId, PoolConfig,
    RestartRule, SHARED_HOLD_MS, STALLED_MS, SessionAffinity, UNNAMED_UPDATE_LIMITS,
    UNSENT_BYTES_MAX, WorkerCommand, WorkerDeathRule,
};
pub use gauges::{BusCounters, BusGauges, PoolGauges};
pub use ids::WorkerId;
pub use input::BusInput;
pub use output::{BusNote, BusOutput, MessageSender};

use client::Clients;
use context::{BusContext, BusTimer, StopPhase};
use jackfield_hub::Time;
use jackfield_protocol::{Fault, Frame};
use parts::BusParts;
use pool::Pools;
use tables::{CallPeer, RoutingTables};
use worker::Workers;

#[derive(Debug)]
pub struct Bus {
    clients: Clients,
    parts: BusParts,
}

impl Bus {
    /// Creates the bus and starts every worker.
    pub fn new(config: BusConfig, now: Time) -> Bus {
        let mut cx = BusContext::new(config.limits, now);
        let (mut workers, mut pools) = (Workers::default(), Pools::new(config.launcher));
        for pool in config.pools {
            pools.add_pool(&mut cx, &mut workers, pool);
        }
        let tables = RoutingTables::default();
        Bus { clients: Clients::default(), parts: BusParts { cx, workers, pools, tables } }
    }

    pub fn handle(&mut self, now: Time, input: BusInput) {
        let Bus { clients, parts } = self;
        parts.cx.begin_input(now);
        let BusParts { cx, workers, pools, tables } = parts;
        match input {
            BusInput::ClientOpened { conn } => clients.on_client_opened(cx, conn),
            BusInput::ClientSentFrame { conn, frame } => {
                if let Some(client) = clients.get_mut(conn) {
                    client.on_frame(parts, &frame);
                }
            }
            BusInput::ClientSentInvalidFrame { conn, fault } => {
                clients.on_invalid_frame(cx, conn, &fault);
            }
            BusInput::ClientWrote { conn, bytes } => {
                if let Some(client) = clients.get_mut(conn) {
                    client.on_wrote(parts, bytes);
                }
            }
            BusInput::ClientFinished { conn } => {
                if let Some(client) = clients.get_mut(conn) {
                    client.on_finished(parts);
                }
            }
            BusInput::ClientGone { conn } => {
                clients.on_client_gone(parts, conn);
                self.advance_stop();
            }
            BusInput::WorkerStarted { worker, pid } => {
                pools.on_worker_started(cx, workers, worker, pid);
            }
            BusInput::WorkerSentFrame { worker, frame } => self.on_worker_frame(worker, &frame),
            BusInput::WorkerWrote { worker, bytes } => self.on_worker_wrote(worker, bytes),
            BusInput::WorkerGone { worker, exit, clean } => {
                self.on_worker_gone(worker, &exit, clean);
            }
            BusInput::Reload { config } => {
                cx.set_limits(config.limits);
                pools.reload_pools(cx, workers, tables, config);
            }
            BusInput::Tick => self.on_tick(),
            BusInput::Stop => self.on_stop(),
        }
    }

    pub fn poll_output(&mut self) -> Option<BusOutput> {
        self.parts.cx.pop_output()
    }

    /// The latest time at which the bus needs [`BusInput::Tick`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.parts.cx.next_timeout()
    }

    pub fn gauges(&self) -> BusGauges {
        let BusParts { cx, workers, pools, tables } = &self.parts;
        BusGauges {
            counters: cx.counters(),
            clients: self.clients.len(),
            sessions: tables.sessions.session_count(),
            pending: tables.calls.pending_count(),
            pools: pools.gauges(workers, tables),
        }
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.parts.cx.pop_due_timer() {
            let BusParts { cx, workers, pools, tables } = &mut self.parts;
            match timer {
                BusTimer::StartWorker(pool, slot) => pools.fill_slot(cx, workers, pool, slot),
                BusTimer::HealthCheck(worker) => {
                    pools.send_health_check(cx, workers, tables, worker);
                }
                BusTimer::HealthCheckDue(worker, bus_id) => {
                    pools.check_health(cx, workers, tables, worker, bus_id);
                }
                BusTimer::SlowClient(conn) => {
                    if let Some(client) = self.clients.get_mut(conn) {
                        client.check_slow(&mut self.parts);
                    }
                }
                BusTimer::IdleAgent(pool) => {
                    pools.stop_idle_agent(cx, workers, tables, pool);
                }
                BusTimer::Outboxes => self.clients.check_outboxes(&mut self.parts),
                BusTimer::Drain => {
                    if cx.stop_phase() == Some(StopPhase::Draining) {
                        self.stop_workers(false);
                    }
                }
            }
        }
    }

    /// Stops: no new requests, then pending requests are answered, workers stopped, clients closed.
    fn on_stop(&mut self) {
        let BusParts { cx, tables, .. } = &mut self.parts;
        if cx.is_stopping() {
            return self.stop_workers(true);
        }
        cx.set_stop_phase(StopPhase::Draining);
        cx.push_note(BusNote::Draining { pending: tables.calls.pending_count() });
        cx.set_timer_in(cx.limits().drain_ms, BusTimer::Drain);
        self.advance_stop();
    }

    fn advance_stop(&mut self) {
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        match cx.stop_phase() {
            Some(StopPhase::Draining) if tables.calls.pending_count() == 0 => {
                self.stop_workers(false);
            }
            Some(StopPhase::Ending) if workers.is_empty() => {
                cx.set_stop_phase(StopPhase::Stopped);
                self.clients.close_all(cx);
                cx.push_output(BusOutput::Stopped);
            }
            _ => {}
        }
    }

    /// Refuses all pending requests to workers, and stops the workers.
    fn stop_workers(&mut self, now: bool) {
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        if cx.stop_phase() == Some(StopPhase::Stopped) {
            return;
        }
        cx.set_stop_phase(StopPhase::Ending);
        for worker in workers.iter_mut() {
            while let Some(call) = tables.calls.take_next_received(CallPeer::Worker(worker.id())) {
                let CallPeer::Client(conn) = call.caller else { continue };
                let Some(client) = self.clients.get_mut(conn) else { continue };
                client.send_own_frame(cx, &Frame::error_for(&call.id, &Fault::Stopping));
            }
            worker.stop(cx, now);
        }
        self.advance_stop();
    }
}
