//! The parts of the hub that a session works with: clients, agents, tenants, the storage and the shared context.
//! Other sessions are not among them; a session sends them a [`HubMessage`](crate::message::HubMessage).

use crate::{
    AgentId, AgentPool, ConnId, Launch, Output, SessionId,
    agent::{Agent, Agents, PendingRequest, is_journaled},
    budget::ByteOwner,
    context::HubContext,
    peer::{Clients, RequestRoute},
    storage::StorageState,
    tenant::Tenants,
    timer::HubTimer,
};
use bytes::Bytes;
use jackfield_events::{AgentName, AgentSessionId, TenantName};
use jackfield_protocol::{Fault, Frame, Splice, is_planted};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct HubParts {
    pub(crate) cx: HubContext,
    pub(crate) clients: Clients,
    pub(crate) agents: Agents,
    pub(crate) tenants: Tenants,
    pub(crate) storage: StorageState,
}

impl HubParts {
    pub(crate) fn new(cx: HubContext) -> HubParts {
        HubParts {
            cx,
            clients: Clients::default(),
            agents: Agents::default(),
            tenants: Tenants::default(),
            storage: StorageState::default(),
        }
    }

    /// The configuration has other agents.
    pub(crate) fn change_agents(
        &mut self,
        agents: BTreeMap<AgentName, Launch>,
        pools: BTreeMap<AgentName, AgentPool>,
    ) {
        (self.cx.config.agents, self.cx.config.pools) = (agents, pools);
        self.agents.forget_warm_shapes(&mut self.cx);
    }

    /// Whether one more agent process of this tenant may run. A process that was asked to stop does not count.
    pub(crate) fn check_agent_quota(&self, tenant: Option<&str>) -> Result<(), Fault> {
        let of_tenant = |it: &&Agent| !it.stopping && self.clients.tenant_of_agent(it) == tenant;
        let count = || self.agents.processes.values().filter(of_tenant).count();
        self.tenants.check_agent_quota(tenant, count)
    }

    /// Charges a message of an agent to its tenant, and pauses the agent when the credit is used up.
    pub(crate) fn charge_agent_message(&mut self, id: AgentId) {
        if self.tenants.is_empty() {
            return; // Most hubs have no tenants, and this runs for every message.
        }
        let Some(agent) = self.agents.processes.get(&id) else { return };
        let Some(tenant) = self.clients.tenant_of_agent(agent) else { return };
        if self.tenants.charge_message(&mut self.cx, tenant, id) {
            self.cx.outputs.push_back(Output::PauseAgent { agent: id });
        }
    }

    /// There may be credit again: paused agents of a tenant are read, unless the journal is behind.
    pub(crate) fn on_rate_timer(&mut self, tenant: &TenantName) {
        for id in self.tenants.take_resumable_agents(&mut self.cx, tenant) {
            if self.agents.processes.get(&id).is_some_and(|it| !it.paused) {
                self.cx.outputs.push_back(Output::ResumeAgent { agent: id });
            }
        }
    }

    /// Registers a request of a client that is forwarded to an agent. Returns it with the request id of the hub, or
    /// nothing if it was answered with an error.
    pub(crate) fn forward_request(
        &mut self,
        agent: AgentId,
        session: Option<(&SessionId, &AgentSessionId)>,
        conn: ConnId,
        frame: &Frame,
    ) -> Option<Bytes> {
        let id: Box<str> = frame.id().expect("a request has an id").into();
        let gone = ByteOwner::default();
        let owner = self.clients.connections.get(&conn).map_or(&gone, |it| &it.kept);
        let charge = match self.cx.retained_bytes.charge(owner, frame.bytes().len()) {
            Ok(charge) => charge,
            Err(over) => {
                let fault = Fault::Overloaded { what: over.to_string() };
                self.clients.answer_request(&mut self.cx, conn, &id, Err(&fault));
                return None;
            }
        };
        let setting = is_journaled(frame).then(|| frame.clone());
        let limit = self.cx.config.liveness.setting_ms_max.filter(|_| setting.is_some());
        let pending = PendingRequest::Client {
            conn,
            id: id.clone(),
            session: session.map(|(id, _)| id.clone()),
            setting,
            _charge: charge,
        };
        let hub_id = self.agents.processes.get_mut(&agent)?.expect(pending);
        if let Some(limit) = limit {
            self.cx.timers.set(self.cx.now.plus(limit), HubTimer::Setting(agent, hub_id));
        }
        if let Some(it) = self.clients.connections.get_mut(&conn) {
            it.requests.insert(id, RequestRoute::Agent(agent, hub_id));
        }
        let hub_id = hub_id.to_string();
        let id = if is_planted("keep-client-request-id") { frame.id() } else { Some(&*hub_id) };
        let session_id = session.map(|(_, id)| &**id);
        Some(frame.spliced(Splice { id, session_id, request_id: None }).bytes().clone())
    }
}
