//! What all parts of the bus use: the time of the current input, limits, timers, outputs, counters
//! and byte budgets.

use super::{
    config::{
        BACKLOG_LIMITS, BusLimits, OUTBOX_BYTES_ALL_MAX, OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX,
        SHARED_HOLD_MS, UNNAMED_UPDATE_LIMITS,
    },
    gauges::BusCounters,
    ids::{PoolId, WorkerId},
    output::{BusNote, BusOutput},
};
use jackfield_hub::{ByteLimits, ConnId, Time, budget::ByteBudget, timer::Timers};
use jackfield_protocol::Frame;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct BusContext {
    limits: BusLimits,
    /// The time of the current input. It never goes back.
    now: Time,
    timers: Timers<BusTimer>,
    outputs: VecDeque<BusOutput>,
    counters: BusCounters,
    stop_phase: Option<StopPhase>,
    /// Bytes not yet written to workers.
    backlogs: ByteBudget,
    /// Bytes of updates for sessions that their worker has not named yet.
    unnamed_updates: ByteBudget,
    /// Bytes not yet written to clients.
    outboxes: ByteBudget,
    /// A timer for all outboxes together is set.
    has_outbox_timer: bool,
}

/// A timer that is no longer needed still fires and has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BusTimer {
    /// Start a worker in this slot of a pool again.
    StartWorker(PoolId, usize),
    /// Send a health check to this worker.
    HealthCheck(WorkerId),
    /// The health check with this id should have been answered.
    HealthCheckDue(WorkerId, u64),
    /// This pool of the launcher may be unused.
    IdleAgent(PoolId),
    /// This client exceeded its outbox limit.
    SlowClient(ConnId),
    /// All clients together exceeded the outbox limit.
    Outboxes,
    /// The time to answer requests before the stop is over.
    Drain,
}

/// The phase of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopPhase {
    /// Pending requests are still answered.
    Draining,
    /// The workers are stopping.
    Ending,
    Stopped,
}

impl BusContext {
    pub(super) fn new(limits: BusLimits, now: Time) -> BusContext {
        let outbox_limits = ByteLimits {
            own_max: usize::MAX,
            own_min: OUTBOX_BYTES_MIN,
            all_max: OUTBOX_BYTES_ALL_MAX.max(2 * OUTBOX_FACTOR_MAX * limits.outbox_bytes_max),
        };
        BusContext {
            limits,
            now,
            timers: Timers::default(),
            outputs: VecDeque::new(),
            counters: BusCounters::default(),
            stop_phase: None,
            backlogs: ByteBudget::new(BACKLOG_LIMITS),
            unnamed_updates: ByteBudget::new(UNNAMED_UPDATE_LIMITS),
            outboxes: ByteBudget::new(outbox_limits),
            has_outbox_timer: false,
        }
    }

    pub(super) fn begin_input(&mut self, now: Time) {
        assert!(self.outputs.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn limits(&self) -> &BusLimits {
        &self.limits
    }

    pub(super) fn set_limits(&mut self, limits: BusLimits) {
        self.limits = limits;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop_phase.is_some()
    }

    pub(super) fn stop_phase(&self) -> Option<StopPhase> {
        self.stop_phase
    }

    pub(super) fn set_stop_phase(&mut self, phase: StopPhase) {
        self.stop_phase = Some(phase);
    }

    pub(super) fn push_output(&mut self, output: BusOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn push_note(&mut self, note: BusNote) {
        self.outputs.push_back(BusOutput::Note(note));
    }

    pub(super) fn pop_output(&mut self) -> Option<BusOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn set_timer(&mut self, at: Time, timer: BusTimer) {
        self.timers.set(at, timer);
    }

    pub(super) fn set_timer_in(&mut self, delay_ms: u64, timer: BusTimer) {
        self.timers.set(self.now.plus(delay_ms), timer);
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(super) fn pop_due_timer(&mut self) -> Option<BusTimer> {
        self.timers.due(self.now)
    }

    pub(super) fn counters(&self) -> BusCounters {
        self.counters
    }

    pub(super) fn count_received(&mut self, frame: &Frame) {
        self.counters.messages_in += 1;
        self.counters.bytes_in += frame.bytes().len() as u64;
    }

    pub(super) fn count_sent(&mut self, bytes: usize) {
        self.counters.messages_out += 1;
        self.counters.bytes_out += bytes as u64;
    }

    pub(super) fn count_client_opened(&mut self) {
        self.counters.clients_opened += 1;
    }

    pub(super) fn count_client_closed(&mut self) {
        self.counters.clients_closed += 1;
    }

    pub(super) fn count_restart(&mut self) {
        self.counters.restarts += 1;
    }

    pub(super) fn count_refused(&mut self) {
        self.counters.refused += 1;
    }

    pub(super) fn count_undelivered(&mut self, messages: usize) {
        self.counters.undelivered += messages as u64;
    }

    pub(super) fn count_stray_response(&mut self) {
        self.counters.stray += 1;
    }

    pub(super) fn backlogs(&self) -> &ByteBudget {
        &self.backlogs
    }

    pub(super) fn unnamed_updates(&self) -> &ByteBudget {
        &self.unnamed_updates
    }

    pub(super) fn outboxes(&self) -> &ByteBudget {
        &self.outboxes
    }

    /// Sets the timer for all outboxes together if they exceed their limit.
    pub(super) fn set_outbox_timer(&mut self) {
        if !self.has_outbox_timer && self.outboxes.all_max() < self.outboxes.used_bytes() {
            self.has_outbox_timer = true;
            self.set_timer_in(SHARED_HOLD_MS, BusTimer::Outboxes);
        }
    }

    /// The timer for all outboxes together has fired.
    pub(super) fn clear_outbox_timer(&mut self) {
        self.has_outbox_timer = false;
    }
}
