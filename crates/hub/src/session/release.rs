//! Releases a session, so that another host can take it over: the running turn ends, the agent is stopped, all events
//! and the summary are stored, and then subscribers are notified.
//!
//! Requests of a relay connection in a released session are not answered: its gateway repeats them at the next host.
//! Other clients get an error that says that the session is served elsewhere.

use super::SessionStage;
use crate::{
    ConnId, Hub, Note, Output, SessionId, context::HubContext, fanout::moved_notice, limits,
    peer::Clients, session::Sessions, timer::HubTimer,
};
use jackfield_events::{AgentSuspended, EventBody};
use jackfield_protocol::{Fault, Frame, acp::Method, is_planted};
use std::collections::BTreeSet;

const WHY: &str = "its host lets it go";

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

impl Clients {
    /// Notifies relay connections that the session moved.
    pub(super) fn send_moved_notices(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        relays: BTreeSet<ConnId>,
    ) {
        for conn in relays {
            self.send(cx, conn, moved_notice(id));
        }
    }
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

impl Sessions {
    /// The released session that a request concerns. While its last turn runs it is served, except for requests that
    /// would start another turn.
    pub(crate) fn find_released_session(&self, frame: &Frame) -> Option<SessionId> {
        let (id, session) = self.by_id.get_key_value(&*frame.session_id()?)?;
        let begins =
            matches!(frame.known_method(), Some(Method::SessionPrompt | Method::ControlRelease));
        let late = session.release.is_some() && (begins || session.turn.is_none());
        late.then(|| id.clone())
    }
}

impl Hub {
    pub(crate) fn on_session_release(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id) else {
            return self.parts.cx.outputs.push_back(Output::LetGone { session: id.clone() });
        };
        session.release.get_or_insert_default().asked = true;
        self.continue_release(id);
    }

    /// Continues the release as far as it is possible now.
    pub(crate) fn continue_release(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get(id).filter(|it| it.release.is_some()) else {
            return;
        };
        let has_turn = session.turn.is_some() && !is_planted("release-session-during-turn");
        if has_turn || session.is_opening() {
            return;
        }
        if session.agent.is_some() {
            let served = session.is_bound();
            self.void_asks(id, WHY);
            if served {
                self.sessions.append_event(
                    &mut self.parts.cx,
                    id,
                    EventBody::Slept(AgentSuspended { why: WHY.into() }),
                );
            }
            self.release_agent(id);
        }
        if self.parts.agents.has_ending_process(id)
            && !is_planted("release-session-with-ending-agent")
        {
            return;
        }
        let session = self.sessions.by_id.get_mut(id).expect("found above");
        let Some(release) = session.release.as_mut().filter(|_| {
            session.log.is_all_durable() || is_planted("release-session-before-durable")
        }) else {
            return;
        };
        match release.last_summary {
            LastSummary::Due => {
                release.last_summary = LastSummary::Sent;
                session.log.request_summary();
                self.with_session(id, |it, parts| it.store_summary(&mut parts.cx));
            }
            LastSummary::Sent => {}
            LastSummary::Written => {
                self.remove(id, &Fault::Fenced { session: id.to_string() });
                self.parts.cx.note(Note::SessionLetGo { session: id.clone() });
            }
        }
    }

    /// All events and summaries that were sent to the journal are stored.
    pub(crate) fn on_all_written(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id).filter(|it| it.log.is_all_durable())
        else {
            return;
        };
        if let Some(release) = &mut session.release {
            if release.last_summary == LastSummary::Sent {
                release.last_summary = LastSummary::Written;
            }
            self.continue_release(id);
        }
    }

    /// The journal failed: the summary is stored again, too.
    pub(crate) fn sum_up_again(&mut self, id: &SessionId) {
        let release = self.sessions.by_id.get_mut(id).and_then(|it| it.release.as_mut());
        if let Some(release) = release {
            release.last_summary = LastSummary::Due;
            self.continue_release(id);
        }
    }

    /// Leaves a request of a relay connection in a released session unanswered. Returns false if it must be answered.
    pub(crate) fn is_left_to_ask_again(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        request: &str,
    ) -> bool {
        let relay = self.parts.clients.is_relay(conn);
        let release = self.sessions.by_id.get_mut(id).and_then(|it| it.release.as_mut());
        let Some(release) = release.filter(|_| relay) else { return false };
        release.relays.insert(conn);
        self.parts.clients.finish_request(conn, request);
        true
    }

    /// Releases a session that no client has used here for some time.
    pub(crate) fn on_unattended(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get(id).filter(|it| it.release.is_none()) else {
            return;
        };
        let asleep = matches!(session.stage, SessionStage::Asleep);
        if self.parts.cx.is_stopping || !asleep || !session.subscribers.is_empty() {
            return; // Whatever changes that will say so.
        }
        let waits = !session.queue.is_empty() || !session.parked.is_empty();
        if waits || !session.log.is_all_durable() || self.parts.agents.has_ending_process(id) {
            self.parts.cx.schedule_unattended_check(id);
        } else {
            self.on_session_release(id);
        }
    }
}
