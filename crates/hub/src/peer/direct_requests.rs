//! Requests of an agent for one client, such as those for files that an editor has open. They are not in the log.

use super::{Clients, IssuedRequest};
use crate::{AgentId, ConnId, Output, SessionId, context::HubContext};
use bytes::Bytes;
use jackfield_protocol::{Fault, Frame};

impl Clients {
    /// Registers a request to one client. Returns it with the request id of the hub, or nothing if it was refused.
    pub(crate) fn issue_direct_request(
        &mut self,
        cx: &mut HubContext,
        agent: AgentId,
        session: Option<&SessionId>,
        conn: ConnId,
        frame: &Frame,
    ) -> Option<Bytes> {
        let max = cx.config.limits.asks_max;
        let Some(it) = self.connections.get_mut(&conn) else {
            cx.refuse_agent_request(agent, frame);
            return None;
        };
        let overload = match cx.retained_bytes.charge(&it.kept, frame.bytes().len()) {
            Ok(charge) if it.count_direct_requests() < max => {
                let request = IssuedRequest::Direct {
                    agent,
                    agent_request_id: frame.id().expect("a request has an id").into(),
                    session: session.cloned(),
                    _charge: charge,
                };
                let hub_id = it.issue(request).to_string();
                return Some(frame.with_id(&hub_id).bytes().clone());
            }
            Ok(_) => format!("{max} requests wait for this client, as many as may; wait for one"),
            Err(over) => over.to_string(),
        };
        cx.defer_agent_request(agent, frame, overload);
        None
    }

    /// The client that has a request of an agent, the request id of the hub, and the session.
    pub(crate) fn find_direct_request(
        &self,
        agent: AgentId,
        request: &str,
    ) -> Option<(ConnId, u64, Option<SessionId>)> {
        let session_of = |it: &IssuedRequest| match it {
            IssuedRequest::Direct { agent: of, agent_request_id, session, .. }
                if *of == agent && &**agent_request_id == request =>
            {
                Some(session.clone())
            }
            _ => None,
        };
        self.connections.iter().find_map(|(&conn, it)| {
            it.asked.iter().find_map(|(&hub_id, it)| Some((conn, hub_id, session_of(it)?)))
        })
    }

    /// A client sends nothing more: it gets its answers, and requests to it are refused.
    pub(crate) fn on_client_finished(&mut self, cx: &mut HubContext, id: ConnId) {
        let Some(conn) = self.connections.get_mut(&id) else { return };
        conn.finished = true;
        self.finished += 1;
        let is_direct = |it: &mut IssuedRequest| matches!(it, IssuedRequest::Direct { .. });
        let direct = conn.asked.extract_if(.., |_, it| is_direct(it));
        let direct = direct.map(|(_, it)| it).collect();
        cx.refuse_direct_requests(direct);
    }
}

impl HubContext {
    /// Refuses the requests of agents that only this client has.
    pub(crate) fn refuse_direct_requests(&mut self, issued: Vec<IssuedRequest>) {
        for request in issued {
            if let IssuedRequest::Direct { agent, agent_request_id, .. } = request {
                let why = "the client that was asked is gone".to_owned();
                let frame = Frame::error_for(&agent_request_id, &Fault::Internal { why });
                self.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
            }
        }
    }

    /// Refuses a request that nothing serves.
    pub(crate) fn refuse_agent_request(&mut self, agent: AgentId, frame: &Frame) {
        let method = frame.method().map(std::borrow::Cow::into_owned).unwrap_or_default();
        self.fail_agent_request(agent, frame, &Fault::MethodNotFound { method });
    }

    /// Refuses a request that cannot be retained until a client answers it.
    pub(crate) fn defer_agent_request(&mut self, agent: AgentId, frame: &Frame, what: String) {
        self.fail_agent_request(agent, frame, &Fault::Overloaded { what });
    }

    fn fail_agent_request(&mut self, agent: AgentId, frame: &Frame, fault: &Fault) {
        let id = frame.id().expect("a request has an id");
        let answer = Frame::error_for(id, fault);
        self.outputs.push_back(Output::ToAgent { agent, text: answer.bytes().clone() });
    }
}
