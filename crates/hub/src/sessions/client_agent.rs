//! `initialize` of a client that names an agent: a process of that agent is found or started, and its answer is passed on.

use super::Sessions;
use crate::{
    ConnId,
    agent::{AgentStart, SlotOwner},
    fallback::{self, NextVariant},
    parts::HubParts,
};
use jackfield_protocol::{Fault, Frame};

impl Sessions {
    pub(crate) fn initialize_client(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        if parts.clients.set_initialize_params(conn, frame)? {
            // The answer has the capabilities of the agent, so the agent starts first.
            self.start_client_agent(parts, conn, id);
        } else {
            let result = parts.clients.describe_hub(conn);
            parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&result));
        }
        Ok(())
    }

    /// Finds or starts the agent of a connection, which answers its `initialize`.
    pub(super) fn start_client_agent(&mut self, parts: &mut HubParts, conn: ConnId, request: &str) {
        let Some(it) = parts.clients.connections.get(&conn) else { return };
        let (Some(launch), params) = (it.launch.clone(), it.initialize_params.clone()) else {
            return;
        };
        let owner = SlotOwner::Client(conn);
        let mut found = self.take_free_slot(parts, &launch, params.as_deref(), &owner);
        if found.is_none() {
            if let Err(fault) = parts.check_agent_quota(parts.clients.tenant_name(conn)) {
                return parts.clients.answer_request(&mut parts.cx, conn, request, Err(&fault));
            }
            let (agents, cx) = (&mut parts.agents, &parts.cx);
            found = agents.take_warm_agent(cx, &launch, params.as_deref(), &owner);
        }
        if found.is_none()
            && let Err(fault) = parts.agents.check_breaker(&parts.cx, &launch.name)
        {
            return self.start_client_fallback(parts, conn, request, &fault, None);
        }
        let agent = match found {
            Some(agent) => agent,
            None if self.may_start(parts, &AgentStart::Client(conn, request.into())) => {
                let limits = parts.clients.start_limits(&parts.cx, Some(conn));
                parts.agents.spawn_agent(&mut parts.cx, launch, params, Some(owner), limits)
            }
            None => return,
        };
        if let Some(it) = parts.clients.connections.get_mut(&conn) {
            it.spare = Some(agent);
        }
        let Some(spare) = parts.agents.processes.get_mut(&agent) else { return };
        match &spare.initialize_result {
            Some(result) => {
                let result = parts.clients.describe_agent(conn, &spare.launch.name, result);
                parts.clients.answer_request(&mut parts.cx, conn, request, Ok(&result));
            }
            None => spare.pending_initialize.push((conn, request.into())),
        }
    }

    /// The agent of a client that waits for `initialize` cannot be started. The next launch variant or the fallback
    /// also serves its sessions.
    pub(super) fn start_client_fallback(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        request: &str,
        fault: &Fault,
        next_variant: Option<&NextVariant>,
    ) {
        let Some(it) = parts.clients.connections.get(&conn) else { return };
        let (launch, fallen) = (it.launch.clone(), it.fallen.clone());
        let failed = fallen.clone();
        let fallback =
            launch.and_then(|it| parts.cx.choose_fallback(&it, fallen, fault, next_variant));
        let Some((launch, fallen)) = fallback else {
            let fault = fallback::with_earlier_failures(fault, &failed);
            return parts.clients.answer_request(&mut parts.cx, conn, request, Err(&fault));
        };
        if let Some(it) = parts.clients.connections.get_mut(&conn) {
            (it.launch, it.fallen) = (Some(launch), fallen);
        }
        self.start_client_agent(parts, conn, request);
    }
}
