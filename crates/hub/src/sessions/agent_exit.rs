//! The end of an agent process: pending requests are answered with the cause, and each session that it served is
//! interrupted once.

use super::Sessions;
use crate::{
    AgentId, Exit, Note, Output, SessionId,
    agent::{Agent, PendingRequest},
    parts::HubParts,
    session::{AgentEnd, AgentEndCause},
};
use jackfield_protocol::{Fault, Frame, is_planted};

impl Sessions {
    pub(crate) fn on_agent_gone(&mut self, parts: &mut HubParts, id: AgentId, exit: &Exit) {
        let Some(agent) = parts.agents.processes.remove(&id) else { return };
        parts.cx.note(Note::AgentEnded { agent: id, status: exit.status.clone() });
        let (fault, next_variant) = (agent.exit_fault(exit), agent.next_variant());
        if self.counts_as_failure(parts, &agent, exit) {
            parts.agents.count_failure(parts.cx.now, &agent.launch.name, exit);
        }
        self.withdraw_direct_requests(parts, id);
        for conn in &agent.slots.spares {
            if let Some(it) = parts.clients.connections.get_mut(conn)
                && it.spare == Some(id)
            {
                it.spare = None;
            }
        }
        for (conn, request) in &agent.pending_initialize {
            if agent.stopping || exit.shortage {
                parts.clients.answer_request(&mut parts.cx, *conn, request, Err(&fault));
            } else {
                self.start_client_fallback(parts, *conn, request, &fault, next_variant.as_ref());
            }
        }
        if agent.slots.is_empty() {
            parts.agents.on_warm_agent_gone(&mut parts.cx, &agent);
        }
        let cause = if agent.stopping { AgentEndCause::Asked } else { AgentEndCause::Itself };
        let count = if is_planted("end-one-session-of-dead-agent") { 1 } else { usize::MAX };
        for session in agent.slots.sessions.iter().take(count) {
            let end = AgentEnd { exit, fault: &fault, cause, next_variant: next_variant.as_ref() };
            self.with(session, |it| it.on_agent_ended(parts, id, &end));
        }
        if !is_planted("forget-requests-to-dead-agent") {
            self.answer_pending_requests(parts, agent, &fault);
        }
    }

    /// Answers pending requests of clients.
    fn answer_pending_requests(&mut self, parts: &mut HubParts, agent: Agent, fault: &Fault) {
        for pending in agent.waiting.into_values() {
            let PendingRequest::Client { conn, id, session, .. } = pending else { continue };
            match session.and_then(|it| self.by_id.get_mut(&it)) {
                Some(session) => {
                    session.answer_after_log(parts, conn, &Frame::error_for(&id, fault));
                }
                None => parts.clients.answer_request(&mut parts.cx, conn, &id, Err(fault)),
            }
        }
    }

    /// An agent that runs and cannot be used.
    pub(super) fn refuse_agent(&mut self, parts: &mut HubParts, id: AgentId, why: &str) {
        let exit = Exit::with_status(why.to_owned());
        // It is handled as ended now; its process is stopped and its end ignored.
        parts.cx.outputs.push_back(Output::StopAgent { agent: id, now: false });
        self.on_agent_gone(parts, id, &exit);
    }

    /// A process was killed because it did not react in one session. Its other sessions are interrupted, and restored when
    /// it has ended.
    pub(super) fn interrupt_sessions(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        culprit: &SessionId,
    ) {
        let why = format!("it was ended with session `{culprit}`, in which it did not stop");
        let exit = Exit::with_status(why);
        let Some(killed) = parts.agents.processes.get(&agent) else { return };
        let fault = killed.exit_fault(&exit);
        let cause = AgentEndCause::OtherSession;
        let end = AgentEnd { exit: &exit, fault: &fault, cause, next_variant: None };
        for session in self.served_by(parts, agent) {
            self.with(&session, |it| it.on_agent_ended(parts, agent, &end));
        }
    }

    /// Whether a process failed that was not asked to end. It does not count if it had completed a turn, if all its sessions
    /// had failed in another process before (then the sessions may be the cause), if another launch variant is tried, or if
    /// it could not be started because the system has no file descriptors, processes or memory left.
    fn counts_as_failure(&self, parts: &HubParts, dead: &Agent, exit: &Exit) -> bool {
        let now = parts.cx.now;
        let has_failed =
            |it: &SessionId| self.by_id.get(it).is_some_and(|it| it.restarts.has_any(now));
        let sessions = &dead.slots.sessions;
        let are_cause = !sessions.is_empty() && sessions.iter().all(has_failed);
        let has_next = dead.next_variant().is_some();
        !(exit.shortage || dead.stopping || dead.has_completed_turn || are_cause || has_next)
    }
}
