//! The end of an agent process: pending requests are answered with the cause, and each session that it served is
//! interrupted once.

use super::{Agent, PendingRequest, Phase};
use crate::{AgentId, Exit, Hub, Note, Output, SessionId, limits, session::SessionStage};
use jackfield_events::{AgentExited, EventBody, RawJson, TurnOutcome};
use jackfield_protocol::{Fault, Frame, is_planted};

/// How a process ended for a session that it served.
struct End<'a> {
    exit: &'a Exit,
    fault: &'a Fault,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It ended by itself.
    Itself,
    /// It was asked to end.
    Asked,
    /// It was ended because of another session that it served.
    Neighbour,
}

impl Hub {
    pub(crate) fn on_agent_gone(&mut self, id: AgentId, exit: &Exit) {
        let Some(agent) = self.parts.agents.processes.remove(&id) else { return };
        self.parts.cx.note(Note::AgentEnded { agent: id, status: exit.status.clone() });
        let fault = fault_of(&agent, exit);
        self.count_failure(&agent, exit);
        self.withdraw_passing(id);
        for conn in &agent.slots.spares {
            if let Some(it) = self.parts.clients.connections.get_mut(conn)
                && it.spare == Some(id)
            {
                it.spare = None;
            }
        }
        for (conn, request) in &agent.pending_initialize {
            if agent.stopping || exit.shortage {
                self.parts.clients.answer_request(&mut self.parts.cx, *conn, request, Err(&fault));
            } else {
                self.introduce_elsewhere(*conn, request, &fault);
            }
        }
        if agent.slots.is_empty() {
            self.parts.agents.on_warm_agent_gone(&mut self.parts.cx, &agent);
        }
        let cause = if agent.stopping { Cause::Asked } else { Cause::Itself };
        let count = if is_planted("end-one-session-of-dead-agent") { 1 } else { usize::MAX };
        for session in agent.slots.sessions.iter().take(count) {
            self.bury_in(session, id, &End { exit, fault: &fault, cause });
        }
        if !is_planted("forget-requests-to-dead-agent") {
            self.answer_all(agent, &fault);
        }
    }

    /// The session continues without its agent: the log says what happened, and the turn gets its outcome.
    fn bury_in(&mut self, id: &SessionId, agent: AgentId, end: &End<'_>) {
        let now = self.parts.cx.now;
        let Some(session) = self.sessions.by_id.get_mut(id).filter(|it| it.agent == Some(agent))
        else {
            return self.on_parted(id);
        };
        if let SessionStage::Opening(opening) = &session.stage {
            let (conn, request) = (opening.conn, opening.request.clone());
            let never_came_up = matches!(end.fault, Fault::AgentNotStarted { .. });
            // The next agent could not be started either.
            let may_another = never_came_up && !end.exit.shortage;
            if may_another && end.cause == Cause::Itself {
                return self.open_elsewhere(id, end.fault);
            }
            self.sessions.by_id.remove(id);
            return self.parts.clients.answer_request(
                &mut self.parts.cx,
                conn,
                &request,
                Err(end.fault),
            );
        }
        session.agent = None;
        session.calls.clear();
        if end.cause == Cause::Itself && !end.exit.shortage {
            session.restarts.ended(now);
        }
        let restoring = matches!(session.stage, SessionStage::Restoring(_));
        session.stage = SessionStage::Asleep;
        let turn = session.turn.as_ref().map(|it| it.number);
        self.parts.cx.schedule_unattended_check(id);
        if end.cause != Cause::Asked || turn.is_some() {
            let status = end.exit.status.as_str().into();
            let stderr = end.exit.stderr.as_str().into();
            self.sessions.append_event(
                &mut self.parts.cx,
                id,
                EventBody::Gone(AgentExited { status, stderr }),
            );
        }
        self.void_asks(id, "the agent that asked is gone");
        self.sessions.finish_served_request(&mut self.parts.cx, id);
        if let Some(turn) = turn {
            let error = RawJson::trusted(end.fault.to_json());
            self.end_turn(id, turn, TurnOutcome::Interrupted(error));
        } else if restoring {
            self.refuse_waiting(id, end.fault);
        } else {
            self.pump(id);
        }
    }

    /// Answers pending requests of clients.
    fn answer_all(&mut self, agent: Agent, fault: &Fault) {
        for waiting in agent.waiting.into_values() {
            let PendingRequest::Client { conn, id, session, .. } = waiting else { continue };
            match session.filter(|it| self.sessions.by_id.contains_key(it)) {
                Some(session) => self.answer_in(&session, conn, &Frame::error_for(&id, fault)),
                None => {
                    self.parts.clients.answer_request(&mut self.parts.cx, conn, &id, Err(fault));
                }
            }
        }
    }

    /// An agent that runs and cannot be used.
    pub(crate) fn refuse_agent(&mut self, id: AgentId, why: &str) {
        let exit =
            Exit { status: why.to_owned(), stderr: String::new(), started: true, shortage: false };
        // It is handled as ended now; its process is stopped and its end ignored.
        self.parts.cx.outputs.push_back(Output::StopAgent { agent: id, now: false });
        self.on_agent_gone(id, &exit);
    }

    /// Kills a process that does not react in one session. Its other sessions are interrupted and restored when it has
    /// ended.
    pub(crate) fn cut_off(&mut self, agent: AgentId, culprit: &SessionId) {
        self.parts.agents.kill_agent(&mut self.parts.cx, agent);
        let why = format!("it was ended with session `{culprit}`, in which it did not stop");
        let exit = Exit { status: why, stderr: String::new(), started: true, shortage: false };
        let Some(fault) = self.parts.agents.processes.get(&agent).map(|it| fault_of(it, &exit))
        else {
            return;
        };
        for session in self.served_by(agent) {
            self.bury_in(
                &session,
                agent,
                &End { exit: &exit, fault: &fault, cause: Cause::Neighbour },
            );
        }
    }

    /// A process that serves other sessions does not answer about this one, and continues without it.
    pub(super) fn give_up_on(&mut self, agent: AgentId, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get(id) else { return };
        let agent_session_id = session.known_agent_session_id();
        let why = format!("it has not opened the session for {} s", limits::START_MS_MAX / 1000);
        let (name, stderr) =
            (self.parts.agents.processes[&agent].launch.name.to_string(), String::new());
        let fault = Fault::AgentNotStarted { agent: name, why: why.clone(), stderr };
        let exit = Exit { status: why, stderr: String::new(), started: true, shortage: false };
        self.leave(agent, id, &agent_session_id);
        self.bury_in(id, agent, &End { exit: &exit, fault: &fault, cause: Cause::Asked });
    }
}

fn fault_of(agent: &Agent, exit: &Exit) -> Fault {
    let name = agent.launch.name.to_string();
    if agent.phase == Phase::Ready {
        Fault::AgentGone { agent: name, status: exit.status.clone(), stderr: exit.stderr.clone() }
    } else {
        Fault::AgentNotStarted {
            agent: name,
            why: exit.status.clone(),
            stderr: exit.stderr.clone(),
        }
    }
}
