//! The circuit breaker of an agent. After too many failures no process is started for some time, and requests are refused
//! with the last error and the time of the next try. Then one process is tried, and other starts wait for its outcome.

use super::Agents;
use crate::{
    AgentId, Exit, Time,
    context::HubContext,
    limits,
    restart::{RestartCounter, RestartVerdict},
};
use jackfield_events::AgentName;
use jackfield_protocol::{Fault, rfc3339};

#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    failures: RestartCounter,
    /// The last failure.
    last: String,
    /// There were too many failures, and no process has started since.
    open: bool,
    /// The process that is tried after the pause.
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

    /// A process was started: if the breaker is open, this one is the trial.
    pub(super) fn start_breaker_trial(&mut self, id: AgentId) {
        let name = &self.processes[&id].launch.name;
        if let Some(it) = self.breakers.get_mut(name).filter(|it| it.open) {
            it.trial = Some(id);
        }
    }

    /// A process has started successfully.
    pub(crate) fn on_agent_came_up(&mut self, id: AgentId) {
        let Some(name) = self.processes.get(&id).map(|it| &it.launch.name) else { return };
        if let Some(it) = self.breakers.get_mut(name) {
            (it.open, it.trial) = (false, None);
        }
    }

    /// A turn in this process has completed: closes the breaker.
    pub(crate) fn close_breaker(&mut self, id: AgentId) {
        let Some(it) = self.processes.get_mut(&id) else { return };
        it.has_completed_turn = true;
        self.breakers.remove(&it.launch.name);
    }

    /// Counts a process that failed.
    pub(crate) fn count_failure(&mut self, now: Time, agent: &AgentName, exit: &Exit) {
        let it = self.breakers.entry(agent.clone()).or_default();
        it.failures.ended(now);
        let stderr = exit.stderr.lines().map(str::trim).rfind(|it| !it.is_empty());
        it.last = match stderr {
            Some(line) => format!("{}: {line}", exit.status),
            None => exit.status.clone(),
        };
        it.open |= matches!(it.failures.verdict(now), RestartVerdict::GiveUp { .. });
    }
}
