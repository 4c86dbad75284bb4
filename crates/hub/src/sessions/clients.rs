//! Clients and the sessions that they use: requests for an agent process, and the end of a connection.

use super::Sessions;
use crate::{
    AgentId, ConnId, Output, SessionId, Tenant, agent::Agent, parts::HubParts,
    peer::ClientConnection,
};
use jackfield_protocol::{Fault, Frame};
use std::sync::Arc;

impl Sessions {
    /// Forwards a request to the agent of the session that it names, or to the agent of the client.
    pub(crate) fn forward_request(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<(), Fault> {
        if frame.session_id().is_some() {
            return self.find_session(frame)?.forward_request(parts, conn, frame.clone());
        }
        let Some(agent) = self.find_client_agent(parts, conn) else {
            let method = frame.method().unwrap_or_default().into_owned();
            return Err(Fault::MethodNotFound { method });
        };
        if let Some(text) = parts.forward_request(agent, None, conn, frame) {
            parts.cx.outputs.push_back(Output::ToAgent { agent, text });
        }
        Ok(())
    }

    /// The process for messages that name no session: the one that was started for this client, or one that serves a
    /// session of it.
    pub(crate) fn find_client_agent(&self, parts: &HubParts, conn: ConnId) -> Option<AgentId> {
        let conn = parts.clients.connections.get(&conn)?;
        let of_sessions = conn.attached.iter().filter_map(|id| self.by_id.get(id)?.agent);
        let is_ready = |it: &AgentId| parts.agents.processes.get(it).is_some_and(Agent::is_ready);
        conn.spare.into_iter().chain(of_sessions).find(is_ready)
    }

    /// Binds a new connection to a tenant. A connection that cannot be bound is closed, so that it is not taken for one of
    /// the operator.
    pub(crate) fn bind_tenant(&mut self, parts: &mut HubParts, conn: ConnId, frame: &Frame) {
        let Some(it) = parts.clients.connections.get_mut(&conn) else { return };
        if it.tenant.is_some() || it.initialize_params.is_some() {
            return;
        }
        let Some(tenant) = Tenant::of_binding(frame) else {
            parts.cx.outputs.push_back(Output::CloseClient { conn });
            return self.on_client_gone(parts, conn);
        };
        let tenant = Arc::new(tenant);
        it.tenant = Some(tenant.clone());
        parts.tenants.register_tenant(tenant, parts.cx.now);
    }

    pub(crate) fn on_client_gone(&mut self, parts: &mut HubParts, id: ConnId) {
        let Some(conn) = parts.clients.remove_connection(id) else { return };
        for session in &conn.attached {
            if let Some(it) = self.by_id.get_mut(session) {
                it.subscribers.remove(&id);
                parts.cx.schedule_unattended_check(session);
            }
        }
        parts.cx.refuse_direct_requests(conn.asked.into_values().collect());
        if let Some(spare) = conn.spare {
            parts.agents.leave_spare(&mut parts.cx, spare, id);
        }
        self.abandon_openings(parts, id);
        self.abandon_imports(parts, id);
        self.remove_log_pages(id);
        self.remove_watcher(id);
    }

    /// Closes clients that send nothing more and have all their answers.
    pub(crate) fn close_finished_clients(&mut self, parts: &mut HubParts) {
        let is_settled = |id: &ConnId, conn: &ClientConnection| {
            let in_session =
                |session: &SessionId| self.by_id.get(session).is_none_or(|it| it.owes_nothing(*id));
            let has_message = || self.by_id.values().any(|it| it.log.has_message_for(*id));
            conn.requests.is_empty() && conn.attached.iter().all(in_session) && !has_message()
        };
        let due = parts.clients.connections.iter();
        let due = due.filter(|(id, it)| it.finished && is_settled(id, it));
        let due: Vec<ConnId> = due.map(|(&id, _)| id).collect();
        for conn in due {
            parts.cx.outputs.push_back(Output::CloseClient { conn });
            self.on_client_gone(parts, conn);
        }
    }
}
