//! An agent ended: everyone who waited for it is answered at once, with the cause.

use super::{Agent, Phase, Purpose, Waiting};
use crate::{
    AgentId, Exit, Hub, Note, Output, SessionId,
    log::{Body, Json, Outcome},
    session::Stage,
};
use jackfield_wire::{Fault, Frame};

impl Hub {
    pub(crate) fn on_agent_gone(&mut self, id: AgentId, exit: &Exit) {
        let Some(agent) = self.agents.remove(&id) else { return };
        self.note(Note::AgentEnded { agent: id, status: exit.status.clone() });
        let fault = fault_of(&agent, exit);
        self.withdraw_passing(id, &agent.purpose);
        if let Some((conn, request)) = &agent.introduces {
            self.answer(*conn, request, Err(&fault));
        }
        match &agent.purpose {
            Purpose::Spare(conn) => {
                if let Some(it) = self.conns.get_mut(conn)
                    && it.spare == Some(id)
                {
                    it.spare = None;
                }
            }
            Purpose::Warm => self.on_warm_gone(&agent),
            Purpose::Session(session) => self.bury_in(&session.clone(), id, &agent, exit, &fault),
        }
        self.answer_all(agent, &fault);
        self.after_stop();
    }

    /// The session outlives its agent: the log says what happened, and the turn has its outcome.
    fn bury_in(
        &mut self,
        id: &SessionId,
        agent: AgentId,
        dead: &Agent,
        exit: &Exit,
        fault: &Fault,
    ) {
        let now = self.now;
        let Some(session) = self.sessions.get_mut(id).filter(|it| it.agent == Some(agent)) else {
            return self.on_parted(id);
        };
        if let Stage::Opening(opening) = &session.stage {
            let (conn, request) = (opening.conn, opening.request.clone());
            self.sessions.remove(id);
            return self.answer(conn, &request, Err(fault));
        }
        session.agent = None;
        session.calls.clear();
        if !dead.stopping {
            session.restarts.ended(now);
        }
        let waking = matches!(session.stage, Stage::Waking(_));
        session.stage = Stage::Asleep;
        let turn = session.turn.as_ref().map(|it| it.number);
        if !dead.stopping || turn.is_some() {
            let (status, stderr) = (exit.status.as_str().into(), exit.stderr.as_str().into());
            self.append(id, Body::Gone { status, stderr });
        }
        self.void_asks(id, "the agent that asked is gone");
        if let Some(turn) = turn {
            let error = Json::trusted(fault.to_json());
            self.end_turn(id, turn, Outcome::Interrupted(error));
        } else if waking {
            self.refuse_waiting(id, fault);
        } else {
            self.pump(id);
        }
    }

    /// Clients whose own requests the agent had.
    fn answer_all(&mut self, agent: Agent, fault: &Fault) {
        for waiting in agent.waiting.into_values() {
            let Waiting::Client { conn, id, session, .. } = waiting else { continue };
            match session.filter(|it| self.sessions.contains_key(it)) {
                Some(session) => self.answer_in(&session, conn, &Frame::error_for(&id, fault)),
                None => self.answer(conn, &id, Err(fault)),
            }
        }
    }

    /// An agent that cannot be used although it runs.
    pub(crate) fn refuse_agent(&mut self, id: AgentId, why: &str) {
        let exit = Exit { status: why.to_owned(), stderr: String::new(), started: true };
        // It is buried like a dead one now; its process is stopped and its end ignored.
        self.outputs.push_back(Output::StopAgent { agent: id, now: false });
        self.on_agent_gone(id, &exit);
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
