//! A message of an agent that exceeds the size limit. It is lost: the log says so, and a request that waits for it fails.

use super::Sessions;
use crate::{AgentId, Output, SessionId, parts::HubParts};
use jackfield_events::{EventBody, MessageDropped};
use jackfield_protocol::{Frame, FrameHead, LineTooLong};

impl Sessions {
    pub(crate) fn on_oversized_message(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        line: &LineTooLong,
    ) {
        let head = line.frame_head();
        for session in self.sessions_of_oversized(parts, agent, &head) {
            let what = match &head {
                FrameHead { method: Some(method), .. } => format!("`{method}`"),
                FrameHead { id: Some(_), .. } => "an answer".to_owned(),
                _ => "a message".to_owned(),
            };
            let (bytes, limit) = (line.size as u64, line.limit as u64);
            let dropped = MessageDropped { what: what.into(), bytes, limit };
            self.with(&session, |it| {
                it.append_event(&mut parts.cx, EventBody::LeftOut(dropped));
            });
        }
        let FrameHead { id: Some(id), method, .. } = head else { return };
        let error = Frame::error_for(&id, &line.fault());
        if method.is_some() {
            parts.cx.outputs.push_back(Output::ToAgent { agent, text: error.into_bytes() });
        } else {
            self.on_agent_message(parts, agent, error);
        }
    }

    /// The session that it names, else those with a running turn, else all sessions of the agent.
    fn sessions_of_oversized(
        &self,
        parts: &HubParts,
        agent: AgentId,
        head: &FrameHead,
    ) -> Vec<SessionId> {
        let Some(it) = parts.agents.processes.get(&agent) else { return Vec::new() };
        let named = head.session.as_deref();
        if let Some(named) = named.and_then(|name| self.find_by_agent_session_id(it, name)) {
            return vec![named];
        }
        let mut served = self.served_by(parts, agent);
        // A session that is being opened has no log yet.
        served.retain(|id| self.by_id.get(id).is_some_and(|it| 0 < it.log.head().0));
        let has_turn = |id: &SessionId| self.by_id.get(id).is_some_and(|it| it.turn.is_some());
        if served.iter().any(has_turn) {
            served.retain(has_turn);
        }
        served
    }
}
