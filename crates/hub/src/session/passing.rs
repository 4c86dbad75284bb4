//! Requests of an agent for one client, such as those for files that an editor has open: the answer goes straight back.
//! They are not in the log.

use crate::{
    AgentId, ConnId, Hub, SessionId, fanout::cancel_notice, log::Effect, peer::IssuedRequest,
};
use bytes::Bytes;
use jackfield_protocol::Frame;

impl Hub {
    /// Sends a request to one client.
    pub(crate) fn issue_passing(
        &mut self,
        agent: AgentId,
        id: Option<&SessionId>,
        conn: ConnId,
        frame: &Frame,
    ) {
        let agent_request_id = frame.id().expect("a request has an id").into();
        let max = self.parts.cx.config.limits.asks_max;
        let Some(it) = self.parts.clients.connections.get_mut(&conn) else {
            return self.parts.cx.refuse_agent_request(agent, frame);
        };
        let charge = match self.parts.cx.retained_bytes.charge(&it.kept, frame.bytes().len()) {
            Ok(charge) if it.passing() < max => charge,
            Ok(_) => {
                let what =
                    format!("{max} requests wait for this client, as many as may; wait for one");
                return self.parts.cx.defer_agent_request(agent, frame, what);
            }
            Err(over) => return self.parts.cx.defer_agent_request(agent, frame, over.to_string()),
        };
        let our_id = it.issue(IssuedRequest::Passing {
            agent,
            agent_request_id,
            session: id.cloned(),
            _charge: charge,
        });
        let our_id = our_id.to_string();
        let text = frame.with_id(&our_id).bytes().clone();
        match id {
            Some(id) => self.after_log(id, Effect::ToClient { conn, text }),
            None => self.parts.clients.send(&mut self.parts.cx, conn, text),
        }
    }

    /// Clients need not answer the requests of an agent that has ended.
    pub(crate) fn withdraw_passing(&mut self, agent: AgentId) {
        let of_agent = |it: &IssuedRequest| matches!(it, IssuedRequest::Passing { agent: of, .. } if *of == agent);
        for (conn, issued, text) in self.parts.clients.take_issued_requests(of_agent) {
            let IssuedRequest::Passing { session, .. } = issued else { continue };
            self.tell_withdrawn(conn, session.as_ref(), text);
        }
    }

    /// The request itself may still wait for the log of its session.
    fn tell_withdrawn(&mut self, conn: ConnId, session: Option<&SessionId>, text: Bytes) {
        match session.filter(|it| self.sessions.by_id.contains_key(*it)) {
            Some(id) => self.after_log(id, Effect::ToClient { conn, text }),
            None => self.parts.clients.send(&mut self.parts.cx, conn, text),
        }
    }

    /// The agent withdrew a request to one client.
    pub(super) fn on_passing_withdrawn(&mut self, agent: AgentId, request: &str) {
        let about = |it: &IssuedRequest| match it {
            IssuedRequest::Passing { agent: of, agent_request_id, session, .. }
                if *of == agent && &**agent_request_id == request =>
            {
                Some(session.clone())
            }
            _ => None,
        };
        let asked_of = self.parts.clients.connections.iter().find_map(|(&conn, it)| {
            it.asked.iter().find_map(|(&our_id, it)| Some((conn, our_id, about(it)?)))
        });
        if let Some((conn, our_id, session)) = asked_of {
            // The client still sends one answer, and the agent gets it.
            self.tell_withdrawn(conn, session.as_ref(), cancel_notice(our_id));
        }
    }
}
