//! Gives sessions and clients an agent process: which processes are stopped for a new one, and which starts wait.
//!
//! A process counts from its start until it is asked to stop or has ended, although it needs some time to end.

use super::Sessions;
use crate::{
    AgentId, ConnId, Launch, SessionId,
    agent::{Agent, AgentStart, SlotOwner},
    parts::HubParts,
    session::{Session, SessionStage},
    session_name::{known_to, tenant_of},
};
use jackfield_protocol::{Fault, is_planted};

impl Sessions {
    /// Gives a session a process, or queues its start if no process may be started.
    pub(super) fn find_agent(&mut self, parts: &mut HubParts, id: &SessionId) {
        let Some(session) = self.by_id.get_mut(id) else { return };
        if !session.can_start_agent(parts) {
            return;
        }
        let is_restored = !session.is_opening();
        let (launch, client) = session.next_launch(parts);
        let tenant = tenant_of(id).filter(|_| !is_planted("wake-beyond-quota"));
        let quota = if is_restored { self.check_session_quota(parts, tenant) } else { Ok(()) };
        match quota.and_then(|()| self.find_or_start_agent(parts, id, &launch, client)) {
            Ok(Some(agent)) => self.with(id, |it| it.assign_agent(parts, agent)),
            Ok(None) => {}
            Err(fault) => self.with(id, |it| it.on_agent_refused(parts, &fault)),
        }
    }

    /// Finds a process for a session: the one that was started for the client, one that runs, a warm one, or a new one if
    /// another process may be started and the circuit breaker of the agent is closed.
    fn find_or_start_agent(
        &mut self,
        parts: &mut HubParts,
        id: &SessionId,
        launch: &Launch,
        client: Option<ConnId>,
    ) -> Result<Option<AgentId>, Fault> {
        let owner = SlotOwner::Session(id.clone());
        let params = client.and_then(|it| parts.clients.initialize_params(it));
        let found = client
            .and_then(|it| take_spare_agent(parts, it, launch, id))
            .or_else(|| self.take_free_slot(parts, launch, params.as_deref(), &owner));
        if found.is_some() {
            return Ok(found);
        }
        parts.check_agent_quota(tenant_of(id))?;
        let (agents, cx) = (&mut parts.agents, &mut parts.cx);
        if let Some(warm) = agents.take_warm_agent(cx, launch, params.as_deref(), &owner) {
            return Ok(Some(warm));
        }
        agents.check_breaker(cx, &launch.name)?;
        let may_start = self.may_start(parts, &AgentStart::Session(id.clone()));
        let limits = parts.clients.start_limits(&parts.cx, client);
        let (agents, cx) = (&mut parts.agents, &mut parts.cx);
        Ok(may_start.then(|| agents.spawn_agent(cx, launch.clone(), params, Some(owner), limits)))
    }

    /// Whether an agent may be started for this now. Otherwise the start is queued.
    pub(super) fn may_start(&mut self, parts: &mut HubParts, start: &AgentStart) -> bool {
        if parts.cx.config.sleep.max_live.is_none() {
            return true;
        }
        let is_first = parts.agents.starts.front().is_none_or(|it| it == start);
        if is_first && self.make_place(parts) {
            parts.agents.starts.pop_front();
            return true;
        }
        if !parts.agents.starts.contains(start) && !is_planted("forget-start-that-waits") {
            parts.agents.starts.push_back(start.clone());
        }
        false
    }

    /// Runs queued starts in order, as far as processes may be started.
    pub(crate) fn run_queued_starts(&mut self, parts: &mut HubParts) {
        while let Some(start) = parts.agents.starts.front().cloned() {
            let is_wanted = self.is_wanted(parts, &start);
            if is_wanted && !self.has_free_slot(parts, &start) && !self.make_place(parts) {
                return;
            }
            match &start {
                _ if !is_wanted => {}
                AgentStart::Client(conn, request) => {
                    self.start_client_agent(parts, *conn, request);
                }
                AgentStart::Session(id) => self.find_agent(parts, id),
            }
            // Whatever its outcome, this start is done.
            parts.agents.starts.pop_front_if(|it| *it == start);
        }
    }

    /// Whether a running process has a free slot for this by now.
    fn has_free_slot(&self, parts: &HubParts, start: &AgentStart) -> bool {
        let (owner, launch, client) = match start {
            AgentStart::Client(conn, _) => {
                let it = parts.clients.connections.get(conn);
                let launch = it.and_then(|it| it.launch.clone());
                let Some(launch) = launch else { return false };
                (SlotOwner::Client(*conn), launch, Some(*conn))
            }
            AgentStart::Session(id) => {
                let Some(session) = self.by_id.get(id) else { return false };
                let (launch, client) = session.next_launch(parts);
                (SlotOwner::Session(id.clone()), launch, client)
            }
        };
        let params = client.and_then(|it| parts.clients.initialize_params(it));
        self.find_free_slot(parts, &launch, params.as_deref(), &owner).is_some()
    }

    fn is_wanted(&self, parts: &HubParts, start: &AgentStart) -> bool {
        match start {
            AgentStart::Client(conn, _) => parts.clients.connections.contains_key(conn),
            AgentStart::Session(id) => self.by_id.get(id).is_some_and(Session::needs_agent),
        }
    }

    /// The hub stops: all queued starts are refused.
    pub(crate) fn refuse_queued_starts(&mut self, parts: &mut HubParts) {
        for start in std::mem::take(&mut parts.agents.starts) {
            let (conn, request) = match start {
                AgentStart::Client(conn, request) => (conn, request),
                AgentStart::Session(id) => {
                    let opening = self.by_id.get(&id).filter(|it| it.agent.is_none());
                    let Some(SessionStage::Opening(opening)) = opening.map(|it| &it.stage) else {
                        continue; // Requests that wait for a suspended session are answered there.
                    };
                    let waiting = (opening.conn, opening.request.clone());
                    self.by_id.remove(&id);
                    waiting
                }
            };
            let stopping = Err(&Fault::Stopping);
            parts.clients.answer_request(&mut parts.cx, conn, &request, stopping);
        }
    }

    /// Whether one more process may run; if necessary, an idle one is stopped.
    fn make_place(&mut self, parts: &mut HubParts) -> bool {
        while !parts.agents.has_free_place(&parts.cx) {
            if !self.stop_idle_agent(parts, "others need the place")
                && !parts.agents.stop_idle_spare(&mut parts.cx)
            {
                return false;
            }
        }
        true
    }

    pub(crate) fn on_memory_pressure(&mut self, parts: &mut HubParts) {
        self.stop_idle_agent(parts, "the machine is short of memory");
    }

    /// Stops the process that is needed least: a warm one, else the one whose sessions were idle for the longest time.
    /// Returns false if there is none.
    fn stop_idle_agent(&mut self, parts: &mut HubParts, why: &str) -> bool {
        if let Some(warm) = parts.agents.find_least_used(Agent::is_warm) {
            parts.agents.stop_agent(&mut parts.cx, warm);
            return true;
        }
        let agent = parts.agents.find_least_used(|it| self.can_suspend_agent(it));
        if let Some(agent) = agent {
            self.suspend_sessions(parts, agent, why);
        }
        agent.is_some()
    }

    /// Suspends all sessions of a process. The process ends first, because restoring waits for that. A client that waits
    /// there to open a session gets another process.
    fn suspend_sessions(&mut self, parts: &mut HubParts, agent: AgentId, why: &str) {
        let sessions = self.served_by(parts, agent);
        for id in &sessions {
            self.with(id, |it| it.append_suspended(&mut parts.cx, why));
        }
        parts.agents.stop_agent(&mut parts.cx, agent);
        for id in &sessions {
            self.with(id, |it| it.release_idle_agent(parts));
        }
    }

    /// Whether this process can be stopped without losing anything but the time to start another.
    fn can_suspend_agent(&self, agent: &Agent) -> bool {
        let sessions = &agent.slots.sessions;
        let can_suspend =
            |id: &SessionId| self.by_id.get(id).is_some_and(|it| it.can_suspend(agent));
        !sessions.is_empty() && sessions.iter().all(can_suspend)
    }

    /// Whether one more session of this tenant may have an agent.
    pub(super) fn check_session_quota(
        &self,
        parts: &HubParts,
        tenant: Option<&str>,
    ) -> Result<(), Fault> {
        let count = || known_to(tenant, &self.by_id).filter(|(_, it)| it.is_awake()).count();
        parts.tenants.check_session_quota(tenant, count)
    }
}

/// The process that was started for this client, if it is of this agent. A process whose sandbox was made for another
/// directory is given up.
fn take_spare_agent(
    parts: &mut HubParts,
    conn: ConnId,
    launch: &Launch,
    session: &SessionId,
) -> Option<AgentId> {
    let spare = parts.clients.connections.get(&conn)?.spare?;
    let agent = parts.agents.processes.get(&spare)?;
    let is_same = agent.launch.name == launch.name
        && agent.launch.argv == launch.argv
        && agent.has_variant_of(launch)
        && parts.clients.tenant_of_agent(agent) == tenant_of(session);
    if agent.stopping || !is_same {
        return None;
    }
    let fits = agent.has_sandbox_for(launch);
    parts.clients.connections.get_mut(&conn)?.spare = None;
    if !fits {
        parts.agents.leave_spare(&mut parts.cx, spare, conn);
        return None;
    }
    parts.agents.give_spare_to_session(spare, conn, session);
    Some(spare)
}
