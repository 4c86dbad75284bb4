//! What every part of the gateway uses: the configuration, the time of the current input, timers,
//! outputs, counters and ids.

use super::{
    config::{GatewayConfig, GatewayLimits},
    gauges::GatewayCounters,
    output::{GatewayNote, GatewayOutput},
};
use jackfield_hub::{ConnId, SessionId, Time, timer::Timers};
use jackfield_protocol::Frame;
use std::collections::VecDeque;

/// A timer that is no longer needed still fires and has no effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GatewayTimer {
    /// Search the owner of this session again.
    RetrySearch(SessionId),
    /// Messages that wait for the owner of this session may have expired.
    SessionWait(ConnId, SessionId),
    /// Choose a host for this client's queued requests again.
    RetryPlacement(ConnId),
    /// Requests that wait for a host may have expired.
    PlacementWait(ConnId),
    /// The time for hosts to answer is over.
    Merge(u64),
    /// A host did not answer the request of this watcher.
    RestartWatch(ConnId),
}

#[derive(Debug)]
pub(super) struct GatewayContext {
    config: GatewayConfig,
    /// The time of the current input. It never goes back.
    now: Time,
    timers: Timers<GatewayTimer>,
    outputs: VecDeque<GatewayOutput>,
    counters: GatewayCounters,
    last_id: u64,
}

impl GatewayContext {
    pub(super) fn new(config: GatewayConfig, now: Time) -> GatewayContext {
        GatewayContext {
            config,
            now,
            timers: Timers::default(),
            outputs: VecDeque::new(),
            counters: GatewayCounters::default(),
            last_id: 0,
        }
    }

    pub(super) fn begin_input(&mut self, now: Time) {
        assert!(self.outputs.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
    }

    pub(super) fn config(&self) -> &GatewayConfig {
        &self.config
    }

    pub(super) fn limits(&self) -> &GatewayLimits {
        &self.config.limits
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn set_timer(&mut self, at: Time, timer: GatewayTimer) {
        self.timers.set(at, timer);
    }

    /// The next timer whose time has come.
    pub(super) fn take_due_timer(&mut self) -> Option<GatewayTimer> {
        self.timers.due(self.now)
    }

    pub(super) fn next_timer_at(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(super) fn push_output(&mut self, output: GatewayOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn pop_output(&mut self) -> Option<GatewayOutput> {
        self.outputs.pop_front()
    }

    /// Reports something to the operator.
    pub(super) fn note(&mut self, note: GatewayNote) {
        self.push_output(GatewayOutput::Note(note));
    }

    /// A unique id for a request to a host, and the order of requests.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn counters(&self) -> GatewayCounters {
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

    pub(super) fn count_host_connection_opened(&mut self) {
        self.counters.host_connections_opened += 1;
    }

    pub(super) fn count_host_connection_lost(&mut self) {
        self.counters.host_connections_lost += 1;
    }

    /// Counts a session that lost its owner, and its requests that are sent again.
    pub(super) fn count_move(&mut self, resent: usize) {
        self.counters.moves += 1;
        self.counters.resent += resent as u64;
    }

    pub(super) fn count_refused(&mut self) {
        self.counters.refused += 1;
    }

    pub(super) fn count_repeated(&mut self) {
        self.counters.repeated += 1;
    }

    pub(super) fn count_stray(&mut self) {
        self.counters.stray += 1;
    }
}
