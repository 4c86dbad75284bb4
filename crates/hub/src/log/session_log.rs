//! The log of one session as the hub sees it: the summary of all events, the events that are not durable yet, and
//! the state of retries and of the stored summary.

use super::{DurabilityGate, Effect, Released, Texts};
use crate::{
    AgentId, ConnId,
    budget::{ByteBudget, ByteCharge, ByteOwner, update_charge},
    limits,
};
use bytes::Bytes;
use jackfield_events::{EventBody, Seq, SessionEvent, SessionSummary, SummaryUpdate, Time};
use jackfield_protocol::{Frame, is_planted};

#[derive(Debug)]
pub(crate) struct SessionLog {
    /// The summary of all appended events.
    summary: SessionSummary,
    gate: DurabilityGate,
    /// Appends that failed in a row.
    failed_appends: u32,
    /// The last append failed and its retry has not begun. Events are only held; the retry sends all of them.
    is_stalled: bool,
    /// The stored summary is older than the last event that changes it.
    is_summary_due: bool,
    /// The bytes of pending events. Most sessions have none, and then no charge.
    pending_charge: Option<ByteCharge>,
}

/// An event that was appended, and what the hub must do about it.
#[derive(Debug)]
pub(crate) struct AppendedEvent {
    pub(crate) event: SessionEvent,
    /// The event goes to the journal now, with this summary. Otherwise the next retry sends it.
    pub(crate) is_stored_now: bool,
    pub(crate) summary: Option<Bytes>,
    /// A summary must be stored later, and no timer is set for it.
    pub(crate) needs_summary_timer: bool,
}

/// What a failed append leads to.
#[derive(Debug)]
pub(crate) struct AppendRetry {
    pub(crate) delay_ms: u64,
    /// Failures in a row.
    pub(crate) failures: u32,
}

impl SessionLog {
    /// Continues the log that this summary describes.
    pub(crate) fn recovered(summary: SessionSummary) -> SessionLog {
        SessionLog {
            gate: DurabilityGate::recovered(summary.upto()),
            summary,
            failed_appends: 0,
            is_stalled: false,
            is_summary_due: false,
            pending_charge: None,
        }
    }

    pub(crate) fn summary(&self) -> &SessionSummary {
        &self.summary
    }

    /// The sequence number of the last event.
    pub(crate) fn head(&self) -> Seq {
        self.gate.head()
    }

    /// The sequence number of the last durable event.
    pub(crate) fn durable(&self) -> Seq {
        self.gate.durable()
    }

    pub(crate) fn is_all_durable(&self) -> bool {
        self.gate.is_all_durable()
    }

    pub(crate) fn pending_events(&self) -> impl Iterator<Item = &SessionEvent> {
        self.gate.pending_events()
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.gate.pending_bytes()
    }

    pub(crate) fn failed_appends(&self) -> u32 {
        self.failed_appends
    }

    /// Appends an event. It is delivered when the journal has reported it durable.
    pub(crate) fn append_event(&mut self, at: Time, body: EventBody) -> AppendedEvent {
        let event = SessionEvent { seq: self.gate.head().next(), at, body };
        let update = self.summary.fold(&event);
        self.gate.hold_event(event.clone());
        let is_deferred = update == SummaryUpdate::Deferred;
        let needs_summary_timer = is_deferred && !std::mem::replace(&mut self.is_summary_due, true);
        let is_stalled = if is_planted("drop-events-during-retry") {
            self.failed_appends != 0
        } else {
            self.is_stalled
        };
        let is_immediate = update == SummaryUpdate::Immediate && !is_stalled;
        let summary = is_immediate.then(|| self.summary.to_summary());
        AppendedEvent { event, is_stored_now: !is_stalled, summary, needs_summary_timer }
    }

    /// Keeps an effect until all events are durable. Returns it, with the last event, if it may run now.
    pub(crate) fn defer_effect(&mut self, effect: Effect) -> Option<(Seq, Effect)> {
        if self.is_all_durable() || is_planted("run-effects-before-durable") {
            return Some((self.head(), effect));
        }
        self.gate.defer_effect(effect);
        None
    }

    /// All events up to `upto` are durable. Returns what may happen now, oldest first.
    pub(crate) fn release_events(&mut self, upto: Seq) -> Vec<Released> {
        self.failed_appends = 0;
        self.gate.release_events(upto)
    }

    /// An append failed. All pending events are sent again after the delay, by [`SessionLog::retry_appends`].
    pub(crate) fn count_failed_append(&mut self) -> AppendRetry {
        let delay_ms = limits::APPEND_RETRY_MS << self.failed_appends.min(16);
        self.failed_appends += 1;
        self.is_stalled = true;
        let delay_ms = delay_ms.min(limits::APPEND_RETRY_MS_MAX);
        AppendRetry { delay_ms, failures: self.failed_appends }
    }

    /// All pending events for the journal, the last one with a summary. The journal skips those that it has.
    pub(crate) fn retry_appends(&mut self) -> Vec<(SessionEvent, Option<Bytes>)> {
        self.is_stalled = false;
        let (summary, head) = (self.summary.to_summary(), self.head());
        let with_summary =
            |event: &SessionEvent| (event.clone(), (event.seq == head).then(|| summary.clone()));
        self.pending_events().map(with_summary).collect()
    }

    /// Whether a summary is due and would not be ahead of the stored events.
    pub(crate) fn can_store_summary(&self) -> bool {
        self.is_summary_due && self.is_all_durable()
    }

    /// Makes a summary due.
    pub(crate) fn request_summary(&mut self) {
        self.is_summary_due = true;
    }

    /// The summary of all events up to the last one, if it is due.
    pub(crate) fn take_due_summary(&mut self) -> Option<(Seq, Bytes)> {
        let is_due = std::mem::take(&mut self.is_summary_due);
        is_due.then(|| (self.head(), self.summary.to_summary()))
    }

    /// Charges the bytes of pending events to the budget of all sessions.
    pub(crate) fn charge_pending_bytes(&mut self, budget: &ByteBudget) {
        let bytes = self.gate.pending_bytes();
        update_charge(&mut self.pending_charge, budget, &ByteOwner::default(), bytes);
    }

    /// Shares texts that many sessions have in common.
    pub(crate) fn share_texts(&mut self, texts: &mut Texts) {
        texts.share_all(&mut self.summary);
    }

    /// All events of an import are appended. The next summary says that the session is complete.
    pub(crate) fn complete_import(&mut self) {
        self.summary.importing = false;
    }

    /// Whether a message for this client waits for an event.
    pub(crate) fn has_message_for(&self, conn: ConnId) -> bool {
        self.gate.has_message_for(conn)
    }

    /// Removes requests and notifications that were not sent to this agent yet.
    pub(crate) fn withdraw_agent_frames(&mut self, agent: AgentId) -> Vec<Frame> {
        self.gate.withdraw_agent_frames(agent)
    }

    /// Messages for clients that wait for events, when the session is removed.
    pub(crate) fn into_client_messages(self) -> impl Iterator<Item = (ConnId, Bytes)> {
        self.gate.into_client_messages()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_events::AgentSuspended;

    fn log() -> SessionLog {
        SessionLog::recovered(SessionSummary { seq: 4, ..SessionSummary::default() })
    }

    fn append(log: &mut SessionLog) -> AppendedEvent {
        log.append_event(Time(0), EventBody::Slept(AgentSuspended { why: "test".into() }))
    }

    #[test]
    fn events_appended_after_a_failure_are_sent_by_the_retry_only() {
        let mut log = log();
        assert!(append(&mut log).is_stored_now);
        assert_eq!(log.count_failed_append().failures, 1);
        assert!(!append(&mut log).is_stored_now);
        let sent = log.retry_appends();
        let sent: Vec<_> = sent.iter().map(|(it, summary)| (it.seq.0, summary.is_some())).collect();
        assert_eq!(sent, [(5, false), (6, true)]);
        assert!(append(&mut log).is_stored_now);
    }

    #[test]
    fn retry_delay_doubles_up_to_its_limit_and_starts_again_after_success() {
        let mut log = log();
        append(&mut log);
        let first = log.count_failed_append().delay_ms;
        assert_eq!(log.count_failed_append().delay_ms, 2 * first);
        for _ in 0..40 {
            log.count_failed_append();
        }
        assert_eq!(log.count_failed_append().delay_ms, limits::APPEND_RETRY_MS_MAX);
        assert_eq!(log.release_events(Seq(5)).len(), 1);
        assert_eq!(log.count_failed_append().delay_ms, first);
    }

    #[test]
    fn summary_is_stored_only_when_all_events_are_durable() {
        let mut log = log();
        append(&mut log);
        log.request_summary();
        assert!(!log.can_store_summary());
        log.release_events(Seq(5));
        assert!(log.can_store_summary());
        assert_eq!(log.take_due_summary().map(|it| it.0), Some(Seq(5)));
        assert!(log.take_due_summary().is_none());
    }

    #[test]
    fn effect_runs_at_once_only_if_no_event_is_pending() {
        let mut log = log();
        let effect = || Effect::ToSubscribers { text: Bytes::new() };
        assert_eq!(log.defer_effect(effect()).map(|it| it.0), Some(Seq(4)));
        append(&mut log);
        assert!(log.defer_effect(effect()).is_none());
    }
}
