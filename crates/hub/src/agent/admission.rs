//! Limits the number of running agents: which processes are stopped for a new one, and which starts wait.
//!
//! A process counts from its start until it is asked to stop or has ended, although it needs some time to end.

use super::{Agent, PendingRequest, SlotOwner};
use crate::{
    AgentId, ConnId, Hub, Launch, SessionId, Time, agent::Agents, context::HubContext,
    session::SessionStage,
};
use jackfield_protocol::{Fault, is_planted};

/// A start that waits until another process may run. Each is queued once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentStart {
    /// For the `initialize` of a client, which is answered with the capabilities of the agent.
    Hello(ConnId, Box<str>),
    /// For a session that is being opened or restored.
    Session(SessionId),
}

impl Agents {
    pub(crate) fn has_free_place(&self, cx: &HubContext) -> bool {
        self.count_free_places(cx).is_none_or(|it| 0 < it)
    }

    /// The number of processes that may still be started; nothing without a limit.
    pub(crate) fn count_free_places(&self, cx: &HubContext) -> Option<usize> {
        let alive = self.processes.values().filter(|it| !it.stopping).count();
        Some(
            cx.config
                .sleep
                .max_live?
                .max(1)
                .saturating_add(usize::from(is_planted("one-agent-too-many")))
                .saturating_sub(alive),
        )
    }

    /// Stops a process that waits for its client to open a session; it can be started again.
    fn stop_idle_spare(&mut self, cx: &mut HubContext) -> bool {
        let idle = |it: &Agent| {
            let spare = it.slots.sessions.is_empty() && !it.slots.is_empty();
            spare && it.is_ready() && !it.waiting.values().any(PendingRequest::is_wanted)
        };
        let used = |(id, it): &(&AgentId, &Agent)| -> (Time, AgentId) { (it.last_active_at, **id) };
        let spare = self.processes.iter().filter(|(_, it)| idle(it)).min_by_key(used);
        let Some(spare) = spare.map(|(id, _)| *id) else { return false };
        self.stop_agent(cx, spare);
        true
    }
}

impl Hub {
    /// Whether an agent may be started for this now. Otherwise the start is queued.
    pub(crate) fn has_place(&mut self, start: &AgentStart) -> bool {
        if self.parts.cx.config.sleep.max_live.is_none() {
            return true;
        }
        let is_first = self.parts.agents.starts.front().is_none_or(|it| it == start);
        if is_first && self.make_place() {
            self.parts.agents.starts.pop_front();
            return true;
        }
        if !self.parts.agents.starts.contains(start) && !is_planted("forget-start-that-waits") {
            self.parts.agents.starts.push_back(start.clone());
        }
        false
    }

    /// Runs queued starts in order, as far as processes may be started.
    pub(crate) fn admit(&mut self) {
        while let Some(start) = self.parts.agents.starts.front().cloned() {
            let wanted = self.is_wanted(&start);
            if wanted && !self.finds_a_seat(&start) && !self.make_place() {
                return;
            }
            match &start {
                _ if !wanted => {}
                AgentStart::Hello(conn, request) => self.introduce(*conn, request),
                AgentStart::Session(id) if self.sessions.by_id[id].is_opening() => {
                    self.find_agent(id);
                }
                AgentStart::Session(id) => self.pump(id),
            }
            // Whatever its outcome, this start is done.
            self.parts.agents.starts.pop_front_if(|it| *it == start);
        }
    }

    /// Whether a running process has a free slot for this by now.
    fn finds_a_seat(&self, start: &AgentStart) -> bool {
        let initialize_params =
            |conn: &ConnId| self.parts.clients.connections.get(conn)?.initialize_params.as_deref();
        match start {
            AgentStart::Hello(conn, _) => {
                let launch =
                    self.parts.clients.connections.get(conn).and_then(|it| it.launch.as_ref());
                let seat = SlotOwner::Client(*conn);
                launch
                    .is_some_and(|it| self.free_seat(it, initialize_params(conn), &seat).is_some())
            }
            AgentStart::Session(id) => {
                let Some((launch, asker)) = self.wants(id) else { return false };
                let initialize_params = asker.as_ref().and_then(initialize_params);
                self.free_seat(&launch, initialize_params, &SlotOwner::Session(id.clone()))
                    .is_some()
            }
        }
    }

    /// The launch of a session without a process, and its client.
    fn wants(&self, id: &SessionId) -> Option<(Launch, Option<ConnId>)> {
        let session = self.sessions.by_id.get(id)?;
        if let SessionStage::Opening(opening) = &session.stage {
            return Some((opening.launch.clone(), Some(opening.conn)));
        }
        let asker = session.asker();
        Some((self.launch_again(id, asker), asker))
    }

    fn is_wanted(&self, start: &AgentStart) -> bool {
        match start {
            AgentStart::Hello(conn, _) => self.parts.clients.connections.contains_key(conn),
            AgentStart::Session(id) => {
                self.sessions.by_id.get(id).is_some_and(|it| match it.stage {
                    SessionStage::Opening(_) => it.agent.is_none(),
                    SessionStage::Asleep => {
                        it.release.is_none() && (!it.queue.is_empty() || !it.parked.is_empty())
                    }
                    SessionStage::Importing(_)
                    | SessionStage::Restoring(_)
                    | SessionStage::Bound => false,
                })
            }
        }
    }

    /// The hub stops: all queued starts are refused.
    pub(crate) fn refuse_starts(&mut self) {
        for start in std::mem::take(&mut self.parts.agents.starts) {
            match start {
                AgentStart::Hello(conn, request) => {
                    self.parts.clients.answer_request(
                        &mut self.parts.cx,
                        conn,
                        &request,
                        Err(&Fault::Stopping),
                    );
                }
                AgentStart::Session(id) => {
                    let opening = self.sessions.by_id.get(&id).filter(|it| it.agent.is_none());
                    let Some(SessionStage::Opening(opening)) = opening.map(|it| &it.stage) else {
                        continue; // Requests that wait for a suspended session are answered there.
                    };
                    let (conn, request) = (opening.conn, opening.request.clone());
                    self.sessions.by_id.remove(&id);
                    self.parts.clients.answer_request(
                        &mut self.parts.cx,
                        conn,
                        &request,
                        Err(&Fault::Stopping),
                    );
                }
            }
        }
    }

    /// Whether one more process may run; if necessary, an idle one is stopped.
    fn make_place(&mut self) -> bool {
        while !self.parts.agents.has_free_place(&self.parts.cx) {
            if !self.free_one("others need the place")
                && !self.parts.agents.stop_idle_spare(&mut self.parts.cx)
            {
                return false;
            }
        }
        true
    }

    /// Stops the process that is needed least: a warm one, else the one whose sessions were idle for the longest time.
    /// Returns false if there is none.
    pub(crate) fn free_one(&mut self, why: &str) -> bool {
        let least = |hub: &Hub, fits: &dyn Fn(&Agent) -> bool| {
            let fits = hub.parts.agents.processes.iter().filter(|(_, it)| !it.stopping && fits(it));
            let by_use = |(id, it): &(&AgentId, &Agent)| (it.last_active_at, **id);
            fits.min_by_key(by_use).map(|(id, _)| *id)
        };
        if let Some(warm) = least(self, &Agent::is_warm) {
            self.parts.agents.stop_agent(&mut self.parts.cx, warm);
            return true;
        }
        let Some(agent) = least(self, &|it| self.sessions.can_suspend_agent(it)) else {
            return false;
        };
        self.put_all_to_sleep(agent, why);
        true
    }
}
