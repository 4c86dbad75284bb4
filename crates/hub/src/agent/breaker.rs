//! The breaker of an agent. When its processes keep failing, none is started for a while, and whoever
//! wants one is told so at once, with the last error and when it is tried again. Then one process is
//! tried, and the others wait to see what becomes of it.

use super::Agent;
use crate::agent::Agents;
use crate::context::HubContext;
use crate::{
    AgentId, Exit, Hub, limits,
    restart::{RestartCounter, RestartVerdict},
    session::rfc3339,
};
use jackfield_protocol::Fault;

#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    failures: RestartCounter,
    /// What the last one was.
    last: String,
    /// They were too many, and no process has come up since.
    open: bool,
    /// The process that is tried, when they are no longer too many.
    trial: Option<AgentId>,
}

impl Agents {
    /// Whether a process of this agent may be started; the fault says why not.
    pub(crate) fn check_breaker(&mut self, cx: &HubContext, agent: &str) -> Result<(), Fault> {
        let now = cx.now;
        let Some(it) = self.breakers.get_mut(agent).filter(|it| it.open) else { return Ok(()) };
        let window = limits::RESTART_WINDOW_MS / 1000;
        let (why, until) = match it.failures.verdict(now) {
            RestartVerdict::GiveUp { ends, until } => {
                let wait = until.since(now).div_ceil(1000);
                let many = format!("it failed {ends} times within {window} s");
                (
                    format!(
                        "{many}, the last time with `{}`; it is tried again in {wait} s",
                        it.last
                    ),
                    until,
                )
            }
            RestartVerdict::Now | RestartVerdict::At(_) => {
                if !it.trial.is_some_and(|it| self.processes.contains_key(&it)) {
                    return Ok(());
                }
                let last = format!("it failed again and again, the last time with `{}`", it.last);
                (format!("{last}, and one process of it is being tried"), now)
            }
        };
        let until = rfc3339(until.0);
        Err(Fault::AgentSuspended { agent: agent.to_owned(), why, until })
    }

    /// A process was started: if the agent was left alone for a while, this one shows how it is.
    pub(super) fn start_breaker_trial(&mut self, id: AgentId) {
        let name = &self.processes[&id].launch.name;
        if let Some(it) = self.breakers.get_mut(name).filter(|it| it.open) {
            it.trial = Some(id);
        }
    }

    /// A process does what it is there for.
    pub(super) fn on_agent_came_up(&mut self, id: AgentId) {
        let Some(name) = self.processes.get(&id).map(|it| &it.launch.name) else { return };
        if let Some(it) = self.breakers.get_mut(name) {
            (it.open, it.trial) = (false, None);
        }
    }

    /// A turn in this process went well: what was, was.
    pub(crate) fn close_breaker(&mut self, id: AgentId) {
        let Some(it) = self.processes.get_mut(&id) else { return };
        it.has_completed_turn = true;
        self.breakers.remove(&it.launch.name);
    }
}

impl Hub {
    /// Counts a process that ended without being asked to. One that had done its work may have been killed. One that
    /// served only sessions whose processes failed before says nothing new: it may be the sessions. One that could
    /// not be started for want of file descriptors, processes or memory says nothing about the agent.
    pub(super) fn count_failure(&mut self, dead: &Agent, exit: &Exit) {
        let now = self.parts.cx.now;
        let failed = |it: &&crate::SessionId| {
            self.sessions.by_id.get(*it).is_some_and(|it| it.restarts.has_any(now))
        };
        let sessions = &dead.slots.sessions;
        if exit.shortage
            || dead.stopping
            || dead.has_completed_turn
            || (!sessions.is_empty() && sessions.iter().all(|it| failed(&it)))
        {
            return;
        }
        let it = self.parts.agents.breakers.entry(dead.launch.name.clone()).or_default();
        it.failures.ended(now);
        let stderr = exit.stderr.lines().map(str::trim).rfind(|it| !it.is_empty());
        it.last = match stderr {
            Some(line) => format!("{}: {line}", exit.status),
            None => exit.status.clone(),
        };
        it.open |= matches!(it.failures.verdict(now), RestartVerdict::GiveUp { .. });
    }
}
