//! Warm processes: started and introduced before anybody asks, so that the next session of the same
//! shape begins at once.

use super::{Agent, Seat};
use crate::{
    AgentId, Hub, Launch, Time, limits,
    restart::{RestartCounter, RestartVerdict},
    timer::Timer,
};

/// What sessions are opened with: a warm process serves one of exactly its own shape.
#[derive(Debug)]
pub(crate) struct Shape {
    launch: Launch,
    hello: Option<Box<str>>,
    /// When a session of this shape was last opened.
    used: Time,
    restarts: RestartCounter,
}

impl Shape {
    fn fits(&self, agent: &Agent) -> bool {
        agent.launch == self.launch && agent.hello == self.hello
    }
}

impl Hub {
    /// A session was opened: others of its shape may follow.
    pub(crate) fn keep_warm(&mut self, agent: AgentId) {
        let it = &self.agents[&agent];
        if self.wanted_warm(&it.launch.name) == 0 {
            return;
        }
        if let Some(shape) = self.warm.iter_mut().find(|shape| shape.fits(it)) {
            shape.used = self.cx.now;
        } else {
            let (launch, hello) = (it.launch.clone(), it.hello.clone());
            let restarts = RestartCounter::default();
            self.warm.push(Shape { launch, hello, used: self.cx.now, restarts });
        }
        if limits::WARM_SHAPES_MAX < self.warm.len() {
            let oldest = (0..self.warm.len()).min_by_key(|it| self.warm[*it].used);
            self.forget_shape(oldest.expect("there are several"));
        }
        self.warm_up();
    }

    fn wanted_warm(&self, agent: &str) -> usize {
        self.cx.config.pools.get(agent).map_or(0, |it| it.warm)
    }

    /// Starts what is missing, as long as there is room that nobody else needs.
    pub(crate) fn warm_up(&mut self) {
        let mut at = 0;
        while at < self.warm.len() {
            let shape = &mut self.warm[at];
            let verdict = shape.restarts.verdict(self.cx.now);
            if matches!(verdict, RestartVerdict::GiveUp { .. }) {
                self.forget_shape(at);
                continue;
            }
            let name = self.warm[at].launch.name.clone();
            if self.may_start(&name).is_err() {
                at += 1;
                continue;
            }
            let shape = &self.warm[at];
            let wanted = self.wanted_warm(&shape.launch.name);
            let of_shape = |it: &&Agent| it.is_warm() && shape.fits(it);
            let missing = wanted.saturating_sub(self.agents.values().filter(of_shape).count());
            let (launch, hello) = (shape.launch.clone(), shape.hello.clone());
            if let RestartVerdict::At(at) = verdict {
                self.cx.timers.set(at, Timer::Warm);
            } else {
                for _ in 0..missing {
                    if self.cx.is_stopping || !self.starts.is_empty() || !self.has_room() {
                        return;
                    }
                    let agent = self.spawn(launch.clone(), hello.clone(), None);
                    if let Some(ms) = self.cx.config.sleep.idle_after_ms {
                        self.cx.timers.set(self.cx.now.plus(ms), Timer::WarmIdle(agent));
                    }
                }
            }
            at += 1;
        }
    }

    /// A seat in a warm process of this shape, the readiest one.
    pub(crate) fn take_warm(
        &mut self,
        launch: &Launch,
        hello: Option<&str>,
        seat: &Seat,
    ) -> Option<AgentId> {
        let fits =
            |it: &&mut Agent| it.is_warm() && it.launch == *launch && it.hello.as_deref() == hello;
        let mut fitting = self.agents.iter_mut().map(|(id, it)| (*id, it));
        let mut found = None;
        while let Some((id, agent)) = fitting.find(|(_, it)| fits(it)) {
            let ready = agent.is_ready();
            found = Some((id, agent));
            if ready {
                break;
            }
        }
        let (id, agent) = found?;
        agent.seats.sit(seat.clone());
        agent.used = self.cx.now;
        Some(id)
    }

    /// A warm process ended. One that was not asked to is replaced, but not for ever.
    pub(crate) fn on_warm_gone(&mut self, dead: &Agent) {
        if dead.stopping {
            return;
        }
        let now = self.cx.now;
        if let Some(shape) = self.warm.iter_mut().find(|it| it.fits(dead)) {
            shape.restarts.ended(now);
        }
        self.warm_up();
    }

    /// A warm process was not taken for a while: it goes, with its shape, if no session was opened.
    pub(crate) fn on_warm_idle(&mut self, id: AgentId) {
        let Some(idle_after_ms) = self.cx.config.sleep.idle_after_ms else { return };
        let Some(agent) = self.agents.get(&id).filter(|it| it.is_warm()) else { return };
        let shape = self.warm.iter().position(|it| it.fits(agent));
        match shape.map(|it| (it, self.warm[it].used.plus(idle_after_ms))) {
            Some((_, due)) if self.cx.now < due => self.cx.timers.set(due, Timer::WarmIdle(id)),
            Some((shape, _)) => self.forget_shape(shape),
            None => self.stop_agent(id),
        }
    }

    /// Agents are started otherwise from now on: what was started before is of no use.
    pub(crate) fn forget_shapes(&mut self) {
        while !self.warm.is_empty() {
            self.forget_shape(0);
        }
    }

    fn forget_shape(&mut self, at: usize) {
        let shape = self.warm.remove(at);
        let of_shape = |it: &Agent| it.is_warm() && shape.fits(it);
        let agents = self.agents.iter().filter(|(_, it)| of_shape(it));
        let agents: Vec<AgentId> = agents.map(|(id, _)| *id).collect();
        for agent in agents {
            self.stop_agent(agent);
        }
    }
}
