//! The end of the agent process of a session: the log says what happened, and the turn gets its outcome.

use super::{Session, SessionStage};
use crate::{
    AgentId, Exit,
    fallback::{NextVariant, with_earlier_failures},
    message::HubMessage,
    parts::HubParts,
};
use jackfield_events::{AgentExited, EventBody, RawJson, TurnOutcome};
use jackfield_protocol::Fault;

/// How a process ended for a session that it served.
pub(crate) struct AgentEnd<'a> {
    pub(crate) exit: &'a Exit,
    pub(crate) fault: &'a Fault,
    pub(crate) cause: AgentEndCause,
    /// The launch variant to try instead, if the process has not answered `initialize`.
    pub(crate) next_variant: Option<&'a NextVariant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentEndCause {
    /// It ended by itself.
    Itself,
    /// It was asked to end.
    Asked,
    /// It was ended because of another session that it served.
    OtherSession,
}

impl Session {
    /// The session continues without its agent.
    pub(crate) fn on_agent_ended(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        end: &AgentEnd<'_>,
    ) {
        if self.agent != Some(agent) {
            // A session that waited for the end of this process continues.
            if matches!(self.stage, SessionStage::Asleep) {
                self.advance(parts);
            }
            return;
        }
        if matches!(self.stage, SessionStage::Opening(_)) {
            return self.on_opening_interrupted(parts, end);
        }
        self.agent = None;
        self.calls.clear();
        if end.cause == AgentEndCause::Itself && !end.exit.shortage {
            self.restarts.ended(parts.cx.now);
        }
        let was_restoring = matches!(self.stage, SessionStage::Restoring(_));
        self.stage = SessionStage::Asleep;
        let turn = self.turn.as_ref().map(|it| it.number);
        parts.cx.schedule_unattended_check(&self.id);
        if end.cause != AgentEndCause::Asked || turn.is_some() {
            let status = end.exit.status.as_str().into();
            let stderr = end.exit.stderr.as_str().into();
            self.append_event(&mut parts.cx, EventBody::Gone(AgentExited { status, stderr }));
        }
        self.close_user_requests(parts, "the agent that asked is gone");
        self.end_served_requests(&mut parts.cx);
        if let Some(turn) = turn {
            let error = RawJson::trusted(end.fault.to_json());
            self.end_turn(parts, turn, TurnOutcome::Interrupted(error));
        } else if was_restoring {
            self.refuse_waiting(parts, end.fault);
        } else {
            self.advance(parts);
        }
    }

    fn on_opening_interrupted(&mut self, parts: &mut HubParts, end: &AgentEnd<'_>) {
        let never_started = matches!(end.fault, Fault::AgentNotStarted { .. });
        // Without processes, descriptors or memory another agent could not be started either.
        let may_try_another = never_started && !end.exit.shortage;
        if may_try_another && end.cause == AgentEndCause::Itself {
            self.open_with_fallback(parts, end.fault, end.next_variant);
        } else {
            self.fail_opening(parts, end.fault);
        }
    }

    /// A process that serves other sessions does not answer about this one, and continues without it.
    pub(crate) fn on_agent_unresponsive(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        why: String,
    ) {
        let Some(process) = parts.agents.processes.get(&agent) else { return };
        let (name, stderr) = (process.launch.name.to_string(), String::new());
        let fault = Fault::AgentNotStarted { agent: name, why: why.clone(), stderr };
        let exit = Exit::with_status(why);
        let agent_session_id = self.known_agent_session_id();
        self.leave_agent(parts, agent, &agent_session_id);
        let cause = AgentEndCause::Asked;
        let end = AgentEnd { exit: &exit, fault: &fault, cause, next_variant: None };
        self.on_agent_ended(parts, agent, &end);
    }

    /// The agent of a session that is being opened cannot be started: its next launch variant or its fallback is tried, or
    /// the client is answered.
    pub(super) fn open_with_fallback(
        &mut self,
        parts: &mut HubParts,
        fault: &Fault,
        next_variant: Option<&NextVariant>,
    ) {
        self.agent = None;
        let SessionStage::Opening(opening) = &mut self.stage else { return };
        let fallen = opening.fallen.clone();
        let failed = fallen.clone();
        let fallback = parts.cx.choose_fallback(&opening.launch, fallen, fault, next_variant);
        let Some(fallback) = fallback else {
            return self.fail_opening(parts, &with_earlier_failures(fault, &failed));
        };
        (opening.launch, opening.fallen) = fallback;
        parts.cx.post(HubMessage::FindAgent(self.id.clone()));
    }
}
