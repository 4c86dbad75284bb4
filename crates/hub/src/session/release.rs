//! Releases a session, so that another host can take it over: the running turn ends, the agent is stopped, all events
//! and the summary are stored, and then subscribers are notified.
//!
//! Requests of a relay connection in a released session are not answered: its gateway repeats them at the next host.
//! Other clients get an error that says that the session is served elsewhere.

use super::{Session, SessionStage};
use crate::{
    ConnId, SessionId, context::HubContext, limits, message::HubMessage, parts::HubParts,
    timer::HubTimer,
};
use jackfield_events::{AgentSuspended, EventBody};
use jackfield_protocol::{Frame, acp::Method, is_planted};
use std::collections::BTreeSet;

const WHY: &str = "its host releases it";

/// The state of a release.
#[derive(Debug, Default)]
pub(crate) struct SessionRelease {
    /// The driver is notified when it is complete.
    pub(super) asked: bool,
    last_summary: LastSummary,
    /// Relay connections with requests that are not answered.
    pub(super) relays: BTreeSet<ConnId>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LastSummary {
    #[default]
    Due,
    /// It was sent to the journal.
    Sent,
    Written,
}

impl HubContext {
    /// Checks later whether any client still uses the session here.
    pub(crate) fn schedule_unattended_check(&mut self, id: &SessionId) {
        if !self.config.keep_asleep {
            let at = self.now.plus(limits::UNATTENDED_MS);
            self.timers.set(at, HubTimer::Unattended(id.clone()));
        }
    }
}

impl Session {
    /// Whether a request comes too late because the session is being released. While its last turn runs it is served,
    /// except for requests that would start another turn.
    pub(crate) fn is_released_for(&self, frame: &Frame) -> bool {
        let starts_turn =
            matches!(frame.known_method(), Some(Method::SessionPrompt | Method::ControlRelease));
        self.release.is_some() && (starts_turn || self.turn.is_none())
    }

    /// Releases the session. The driver is notified when that is complete.
    pub(crate) fn begin_release(&mut self, parts: &mut HubParts) {
        self.release.get_or_insert_default().asked = true;
        self.continue_release(parts);
    }

    /// Continues the release as far as it is possible now.
    pub(crate) fn continue_release(&mut self, parts: &mut HubParts) {
        if self.release.is_none() {
            return;
        }
        let has_turn = self.turn.is_some() && !is_planted("release-session-during-turn");
        if has_turn || self.is_opening() {
            return;
        }
        if self.agent.is_some() {
            let served = self.is_bound();
            self.close_user_requests(parts, WHY);
            if served {
                self.append_event(
                    &mut parts.cx,
                    EventBody::Slept(AgentSuspended { why: WHY.into() }),
                );
            }
            self.release_agent(parts);
        }
        if parts.agents.has_ending_process(&self.id)
            && !is_planted("release-session-with-ending-agent")
        {
            return;
        }
        let Some(release) = self
            .release
            .as_mut()
            .filter(|_| self.log.is_all_durable() || is_planted("release-session-before-durable"))
        else {
            return;
        };
        match release.last_summary {
            LastSummary::Due => {
                release.last_summary = LastSummary::Sent;
                self.log.request_summary();
                self.store_summary(&mut parts.cx);
            }
            LastSummary::Sent => {}
            LastSummary::Written => {
                parts.cx.post(HubMessage::RemoveReleased(self.id.clone()));
            }
        }
    }

    /// All events and summaries that were sent to the journal are stored.
    pub(crate) fn on_all_durable(&mut self, parts: &mut HubParts) {
        if !self.log.is_all_durable() {
            return;
        }
        if let Some(release) = &mut self.release {
            if release.last_summary == LastSummary::Sent {
                release.last_summary = LastSummary::Written;
            }
            self.continue_release(parts);
        }
    }

    /// The journal failed: the summary is stored again, too.
    pub(crate) fn restart_last_summary(&mut self, parts: &mut HubParts) {
        if let Some(release) = &mut self.release {
            release.last_summary = LastSummary::Due;
            self.continue_release(parts);
        }
    }

    /// Leaves a request of a relay connection in a released session unanswered. Returns false if it must be answered.
    pub(crate) fn leave_to_next_host(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        request: &str,
    ) -> bool {
        let is_relay = parts.clients.is_relay(conn);
        let Some(release) = self.release.as_mut().filter(|_| is_relay) else { return false };
        release.relays.insert(conn);
        parts.clients.finish_request(conn, request);
        true
    }

    /// Releases a session that no client has used here for some time.
    pub(crate) fn on_unattended_timer(&mut self, parts: &mut HubParts) {
        let is_asleep = matches!(self.stage, SessionStage::Asleep);
        let is_used = !is_asleep || !self.subscribers.is_empty();
        if self.release.is_some() || parts.cx.is_stopping || is_used {
            return; // When that changes, the timer is set again.
        }
        let waits = !self.queue.is_empty() || !self.parked.is_empty();
        if waits || !self.log.is_all_durable() || parts.agents.has_ending_process(&self.id) {
            parts.cx.schedule_unattended_check(&self.id);
        } else {
            self.begin_release(parts);
        }
    }
}
