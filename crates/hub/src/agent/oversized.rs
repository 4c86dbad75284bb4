//! A message of an agent that exceeds the size limit. It is lost: the log says so, and a request that waits for it fails.

use crate::{AgentId, Hub, Output, SessionId};
use jackfield_events::{EventBody, MessageDropped};
use jackfield_protocol::{Frame, FrameHead, LineTooLong};

impl Hub {
    pub(crate) fn on_oversized(&mut self, agent: AgentId, line: &LineTooLong) {
        let head = line.frame_head();
        for session in self.sessions_of_oversized(agent, &head) {
            let what = match &head {
                FrameHead { method: Some(method), .. } => format!("`{method}`"),
                FrameHead { id: Some(_), .. } => "an answer".to_owned(),
                _ => "a message".to_owned(),
            };
            let (bytes, limit) = (line.size as u64, line.limit as u64);
            self.sessions.append_event(
                &mut self.parts.cx,
                &session,
                EventBody::LeftOut(MessageDropped { what: what.into(), bytes, limit }),
            );
        }
        let FrameHead { id: Some(id), method, .. } = head else { return };
        let error = Frame::error_for(&id, &line.fault());
        if method.is_some() {
            self.parts.cx.outputs.push_back(Output::ToAgent { agent, text: error.into_bytes() });
        } else {
            self.on_agent(agent, error);
        }
    }

    /// The session that it names, else those with a running turn, else all sessions of the agent.
    fn sessions_of_oversized(&self, agent: AgentId, head: &FrameHead) -> Vec<SessionId> {
        let Some(it) = self.parts.agents.processes.get(&agent) else { return Vec::new() };
        if let Some(named) = head
            .session
            .as_deref()
            .and_then(|name| self.sessions.find_by_agent_session_id(it, name))
        {
            return vec![named];
        }
        let mut served = self.served_by(agent);
        // A session that is being opened has no log yet.
        served.retain(|id| 0 < self.sessions.by_id[id].log.head().0);
        let busy = |id: &SessionId| self.sessions.by_id[id].turn.is_some();
        if served.iter().any(busy) {
            served.retain(busy);
        }
        served
    }
}
