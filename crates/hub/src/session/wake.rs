//! A session that needs an agent: whether one may be started now, and with which command. No process is started while the
//! last one of the session still ends, because some agents permit only one writer.

use super::{Session, SessionStage, open::additional_directories};
use crate::{
    ConnId, Launch, SandboxRequest, SessionId, VariantChoice, agent::Agents, limits,
    parts::HubParts, restart::RestartVerdict, timer::HubTimer,
};
use jackfield_protocol::Fault;
use std::path::PathBuf;

impl Agents {
    /// Whether a process that had the session was asked to stop and has not ended.
    pub(super) fn has_ending_process(&self, id: &SessionId) -> bool {
        self.processes.values().any(|it| it.stopping && it.slots.has(id))
    }
}

impl Session {
    /// Whether a process is needed: the session is being opened, or requests wait for its agent.
    pub(crate) fn needs_agent(&self) -> bool {
        match self.stage {
            SessionStage::Opening(_) => self.agent.is_none(),
            SessionStage::Asleep => {
                self.release.is_none() && (!self.queue.is_empty() || !self.parked.is_empty())
            }
            SessionStage::Importing(_) | SessionStage::Restoring(_) | SessionStage::Bound => false,
        }
    }

    /// Whether the session has or will have an agent.
    pub(crate) fn is_awake(&self) -> bool {
        matches!(
            self.stage,
            SessionStage::Opening(_) | SessionStage::Restoring(_) | SessionStage::Bound
        )
    }

    /// Whether a process may be started for the session now. Otherwise a timer is set, or waiting requests are refused.
    pub(crate) fn can_start_agent(&mut self, parts: &mut HubParts) -> bool {
        if !self.needs_agent() {
            return false;
        }
        if self.is_opening() {
            return true;
        }
        if parts.cx.is_stopping {
            self.refuse_waiting(parts, &Fault::Stopping);
            return false;
        }
        if self.awaits_process_end(parts) {
            return false;
        }
        match self.restarts.verdict(parts.cx.now) {
            RestartVerdict::Now => return true,
            RestartVerdict::At(at) => parts.cx.timers.set(at, HubTimer::Wake(self.id.clone())),
            RestartVerdict::GiveUp { ends, until } => {
                let wait = (until.0.saturating_sub(parts.cx.now.0)).div_ceil(1000);
                let why = format!("its agent ended {ends} times; try again in {wait} s");
                let session = self.id.to_string();
                self.refuse_waiting(parts, &Fault::CannotResume { session, why });
            }
        }
        false
    }

    /// Whether the last process of the session still ends. Restoring continues when it has, or after some time.
    fn awaits_process_end(&mut self, parts: &mut HubParts) -> bool {
        if !parts.agents.has_ending_process(&self.id) {
            self.restore_history.end_deadline = None;
            return false;
        }
        let latest = parts.cx.now.plus(limits::PARTING_MS_MAX);
        let deadline = *self.restore_history.end_deadline.get_or_insert(latest);
        let is_waiting = parts.cx.now < deadline;
        if is_waiting {
            parts.cx.timers.set(deadline, HubTimer::Wake(self.id.clone()));
        }
        is_waiting
    }

    /// How the next agent of the session is started, and the client whose request it is started for.
    pub(crate) fn next_launch(&self, parts: &HubParts) -> (Launch, Option<ConnId>) {
        if let SessionStage::Opening(opening) = &self.stage {
            return (opening.launch.clone(), Some(opening.conn));
        }
        let client = self.asker();
        (self.restore_launch(parts, client), client)
    }

    /// The command of the requesting client, if it is the same agent; else the configured one; else the former one.
    fn restore_launch(&self, parts: &HubParts, client: Option<ConnId>) -> Launch {
        let state = self.summary();
        let client = client.and_then(|it| parts.clients.connections.get(&it));
        let of_client = client.and_then(|it| it.launch.as_ref());
        let known = of_client
            .filter(|it| it.name == state.agent)
            .or_else(|| parts.cx.config.agents.get(&state.agent));
        // An agent that is known by name may have been started with a command.
        let argv = known.map(|it| &it.argv).filter(|it| !it.is_empty());
        Launch {
            name: state.agent.clone(),
            argv: argv.unwrap_or(&state.argv).clone(),
            cwd: PathBuf::from(&state.cwd),
            env: known.and_then(|it| it.env.clone()),
            variant: state.variant.clone().map_or(VariantChoice::Any, VariantChoice::Preferred),
            sandbox: SandboxRequest {
                // A session keeps its profile until a client chooses another.
                profile: client.and_then(|it| it.sandbox.clone()).or_else(|| state.sandbox.clone()),
                directories: additional_directories(&state.params.parse().unwrap_or_default()),
            },
        }
    }
}
