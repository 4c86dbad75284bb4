//! Warm processes, which are started and initialized in advance, so that the next session of the same agent starts at
//! once.

use super::{Agent, SlotOwner};
use crate::{
    AgentId, Launch, Time,
    agent::Agents,
    context::HubContext,
    limits,
    restart::{RestartCounter, RestartVerdict},
    timer::HubTimer,
};

/// The parameters of a start. A warm process serves only sessions with exactly these.
#[derive(Debug)]
pub(crate) struct ProcessShape {
    launch: Launch,
    initialize_params: Option<Box<str>>,
    /// When a session with these parameters was last opened.
    last_active_at: Time,
    restarts: RestartCounter,
}

impl ProcessShape {
    fn fits(&self, agent: &Agent) -> bool {
        agent.launch == self.launch && agent.initialize_params == self.initialize_params
    }
}

impl Agents {
    /// A session was opened: others with the same parameters may follow.
    pub(crate) fn keep_warm(&mut self, cx: &mut HubContext, agent: AgentId) {
        let it = &self.processes[&agent];
        if cx.config.warm_process_count(&it.launch.name) == 0 {
            return;
        }
        if let Some(shape) = self.warm_shapes.iter_mut().find(|shape| shape.fits(it)) {
            shape.last_active_at = cx.now;
        } else {
            let (launch, initialize_params) = (it.launch.clone(), it.initialize_params.clone());
            let restarts = RestartCounter::default();
            self.warm_shapes.push(ProcessShape {
                launch,
                initialize_params,
                last_active_at: cx.now,
                restarts,
            });
        }
        if limits::WARM_SHAPES_MAX < self.warm_shapes.len() {
            let oldest =
                (0..self.warm_shapes.len()).min_by_key(|it| self.warm_shapes[*it].last_active_at);
            self.forget_warm_shape(cx, oldest.expect("there are several"));
        }
        self.start_warm_agents(cx);
    }

    /// Starts missing warm processes, as long as other starts do not need the limit.
    pub(crate) fn start_warm_agents(&mut self, cx: &mut HubContext) {
        let mut at = 0;
        while at < self.warm_shapes.len() {
            let shape = &mut self.warm_shapes[at];
            let verdict = shape.restarts.verdict(cx.now);
            if matches!(verdict, RestartVerdict::GiveUp { .. }) {
                self.forget_warm_shape(cx, at);
                continue;
            }
            let name = self.warm_shapes[at].launch.name.clone();
            if self.check_breaker(cx, &name).is_err() {
                at += 1;
                continue;
            }
            let shape = &self.warm_shapes[at];
            let wanted = cx.config.warm_process_count(&shape.launch.name);
            let of_shape = |it: &&Agent| it.is_warm() && shape.fits(it);
            let missing = wanted.saturating_sub(self.processes.values().filter(of_shape).count());
            let (launch, initialize_params) =
                (shape.launch.clone(), shape.initialize_params.clone());
            if let RestartVerdict::At(at) = verdict {
                cx.timers.set(at, HubTimer::Warm);
            } else {
                for _ in 0..missing {
                    if cx.is_stopping || !self.starts.is_empty() || !self.has_free_place(cx) {
                        return;
                    }
                    let limits = cx.config.liveness.start_limits(None);
                    let (launch, params) = (launch.clone(), initialize_params.clone());
                    let agent = self.spawn_agent(cx, launch, params, None, limits);
                    if let Some(ms) = cx.config.sleep.idle_after_ms {
                        cx.timers.set(cx.now.plus(ms), HubTimer::WarmIdle(agent));
                    }
                }
            }
            at += 1;
        }
    }

    /// A warm process with these parameters, preferably one that is ready.
    pub(crate) fn take_warm_agent(
        &mut self,
        cx: &HubContext,
        launch: &Launch,
        initialize_params: Option<&str>,
        owner: &SlotOwner,
    ) -> Option<AgentId> {
        let fits = |it: &&mut Agent| {
            it.is_warm()
                && it.is_started_as(launch)
                && it.initialize_params.as_deref() == initialize_params
        };
        let mut fitting = self.processes.iter_mut().map(|(id, it)| (*id, it));
        let mut found = None;
        while let Some((id, agent)) = fitting.find(|(_, it)| fits(it)) {
            let ready = agent.is_ready();
            found = Some((id, agent));
            if ready {
                break;
            }
        }
        let (id, agent) = found?;
        agent.slots.assign(owner.clone());
        agent.last_active_at = cx.now;
        Some(id)
    }

    /// A warm process ended by itself. It is replaced, but not without limit.
    pub(crate) fn on_warm_agent_gone(&mut self, cx: &mut HubContext, dead: &Agent) {
        if dead.stopping {
            return;
        }
        let now = cx.now;
        if let Some(shape) = self.warm_shapes.iter_mut().find(|it| it.fits(dead)) {
            shape.restarts.ended(now);
        }
        self.start_warm_agents(cx);
    }

    /// A warm process was not used for some time: it is stopped, unless a session was opened since.
    pub(crate) fn on_warm_agent_idle(&mut self, cx: &mut HubContext, id: AgentId) {
        let Some(idle_after_ms) = cx.config.sleep.idle_after_ms else { return };
        let Some(agent) = self.processes.get(&id).filter(|it| it.is_warm()) else { return };
        let shape = self.warm_shapes.iter().position(|it| it.fits(agent));
        match shape.map(|it| (it, self.warm_shapes[it].last_active_at.plus(idle_after_ms))) {
            Some((_, due)) if cx.now < due => cx.timers.set(due, HubTimer::WarmIdle(id)),
            Some((shape, _)) => self.forget_warm_shape(cx, shape),
            None => self.stop_agent(cx, id),
        }
    }

    /// The configuration of agents changed: warm processes are of no use.
    pub(crate) fn forget_warm_shapes(&mut self, cx: &mut HubContext) {
        while !self.warm_shapes.is_empty() {
            self.forget_warm_shape(cx, 0);
        }
    }

    fn forget_warm_shape(&mut self, cx: &mut HubContext, at: usize) {
        let shape = self.warm_shapes.remove(at);
        let of_shape = |it: &Agent| it.is_warm() && shape.fits(it);
        let agents = self.processes.iter().filter(|(_, it)| of_shape(it));
        let agents: Vec<AgentId> = agents.map(|(id, _)| *id).collect();
        for agent in agents {
            self.stop_agent(cx, agent);
        }
    }
}
