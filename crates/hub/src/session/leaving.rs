//! Letting a session go: a turn that runs ends, the agent is stopped, everything is written, and then
//! whoever listens is told where not to look for it any more. Another host may adopt it.
//!
//! A relay connection is not answered what it asked in such a session: the gateway behind it asks again where the
//! session is then. Everybody else is told that the session is served elsewhere.

use super::Stage;
use crate::{ConnId, Hub, Note, Output, SessionId, fanout::moved_notice, limits, timer::Timer};
use jackfield_events::{AgentSuspended, EventBody};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use std::collections::BTreeSet;

const WHY: &str = "its host lets it go";

/// A session that is no longer ours, or soon will not be.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// Whoever runs the hub is told when it is over.
    pub(super) asked: bool,
    last_summary: LastSummary,
    /// Legs that asked something in it and are not answered.
    pub(super) relays: BTreeSet<ConnId>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LastSummary {
    #[default]
    Due,
    /// On its way to the journal.
    Sent,
    Written,
}

impl Hub {
    pub(crate) fn on_let_go(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return self.cx.outputs.push_back(Output::LetGone { session: id.clone() });
        };
        session.leaving.get_or_insert_default().asked = true;
        self.let_go_on(id);
    }

    /// Goes on with letting a session go, as far as it can be done now.
    pub(crate) fn let_go_on(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id).filter(|it| it.leaving.is_some()) else { return };
        let has_turn = session.turn.is_some() && !is_planted("release-session-during-turn");
        if has_turn || session.is_opening() {
            return;
        }
        if session.agent.is_some() {
            let served = session.is_bound();
            self.void_asks(id, WHY);
            if served {
                self.append(id, EventBody::Slept(AgentSuspended { why: WHY.into() }));
            }
            self.release_agent(id);
        }
        if self.has_ending_process(id) && !is_planted("release-session-with-ending-agent") {
            return;
        }
        let session = self.sessions.get_mut(id).expect("found above");
        let Some(leaving) = session.leaving.as_mut().filter(|_| {
            session.log.is_all_durable() || is_planted("release-session-before-durable")
        }) else {
            return;
        };
        match leaving.last_summary {
            LastSummary::Due => {
                leaving.last_summary = LastSummary::Sent;
                session.log.request_summary();
                self.summarize(id);
            }
            LastSummary::Sent => {}
            LastSummary::Written => {
                self.remove(id, &Fault::Fenced { session: id.to_string() });
                self.note(Note::SessionLetGo { session: id.clone() });
                self.after_stop();
            }
        }
    }

    /// The journal has all that it was given.
    pub(crate) fn on_all_written(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id).filter(|it| it.log.is_all_durable()) else {
            return;
        };
        if let Some(leaving) = &mut session.leaving {
            if leaving.last_summary == LastSummary::Sent {
                leaving.last_summary = LastSummary::Written;
            }
            self.let_go_on(id);
        }
    }

    /// The journal could not take what it was given: the summary is written again, too.
    pub(crate) fn sum_up_again(&mut self, id: &SessionId) {
        let leaving = self.sessions.get_mut(id).and_then(|it| it.leaving.as_mut());
        if let Some(leaving) = leaving {
            leaving.last_summary = LastSummary::Due;
            self.let_go_on(id);
        }
    }

    /// The session that a request comes too late for. While its last turn runs it is served, save for
    /// what would begin another.
    pub(crate) fn too_late_for(&self, frame: &Frame) -> Option<SessionId> {
        let (id, session) = self.sessions.get_key_value(&*frame.session_id()?)?;
        let begins =
            matches!(frame.known_method(), Some(Method::SessionPrompt | Method::ControlRelease));
        let late = session.leaving.is_some() && (begins || session.turn.is_none());
        late.then(|| id.clone())
    }

    /// Leaves a request of a relay connection in a session that goes elsewhere without an answer. False if it is
    /// none, and is to be answered.
    pub(crate) fn is_left_to_ask_again(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        request: &str,
    ) -> bool {
        let relay = self.is_relay(conn);
        let leaving = self.sessions.get_mut(id).and_then(|it| it.leaving.as_mut());
        let Some(leaving) = leaving.filter(|_| relay) else { return false };
        leaving.relays.insert(conn);
        self.finish_request(conn, request);
        true
    }

    /// The last word about a session to those who can find it elsewhere.
    pub(super) fn send_away(&mut self, id: &SessionId, relays: BTreeSet<ConnId>) {
        for conn in relays {
            self.send(conn, moved_notice(id));
        }
    }

    /// A session may have lost the last who needs it here.
    pub(crate) fn is_unattended(&mut self, id: &SessionId) {
        if !self.cx.config.keep_asleep {
            let at = self.cx.now.plus(limits::UNATTENDED_MS);
            self.cx.timers.set(at, Timer::Unattended(id.clone()));
        }
    }

    /// Nobody may have needed a session here for a while: then it goes.
    pub(crate) fn on_unattended(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id).filter(|it| it.leaving.is_none()) else { return };
        let asleep = matches!(session.stage, Stage::Asleep);
        if self.cx.is_stopping || !asleep || !session.subscribers.is_empty() {
            return; // Whatever changes that will say so.
        }
        let waits = !session.queue.is_empty() || !session.parked.is_empty();
        if waits || !session.log.is_all_durable() || self.has_ending_process(id) {
            self.is_unattended(id);
        } else {
            self.on_let_go(id);
        }
    }
}
