//! Requests of an agent for one client, such as those for files that an editor has open: the answer goes straight back.
//! They are not in the log. When the agent withdraws one or ends, its client is notified.

use super::Sessions;
use crate::{
    AgentId, ConnId, SessionId, fanout::cancel_notice, log::Effect, parts::HubParts,
    peer::IssuedRequest,
};
use bytes::Bytes;

impl Sessions {
    /// Clients need not answer the requests of an agent that has ended.
    pub(super) fn withdraw_direct_requests(&mut self, parts: &mut HubParts, agent: AgentId) {
        let of_agent = |it: &IssuedRequest| matches!(it, IssuedRequest::Direct { agent: of, .. } if *of == agent);
        for (conn, issued, text) in parts.clients.take_issued_requests(of_agent) {
            let IssuedRequest::Direct { session, .. } = issued else { continue };
            self.send_cancel_notice(parts, conn, session.as_ref(), text);
        }
    }

    /// The agent withdrew a request to one client.
    pub(super) fn on_direct_request_withdrawn(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        request: &str,
    ) {
        let issued = parts.clients.find_direct_request(agent, request);
        if let Some((conn, hub_id, session)) = issued {
            // The client still sends one answer, and the agent gets it.
            self.send_cancel_notice(parts, conn, session.as_ref(), cancel_notice(hub_id));
        }
    }

    /// The request itself may still wait for the log of its session.
    fn send_cancel_notice(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        session: Option<&SessionId>,
        text: Bytes,
    ) {
        match session.and_then(|it| self.by_id.get_mut(it)) {
            Some(session) => session.run_after_log(parts, Effect::ToClient { conn, text }),
            None => parts.clients.send(&mut parts.cx, conn, text),
        }
    }
}
