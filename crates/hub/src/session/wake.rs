//! Starts an agent for a session that has none. No process is started while the last one of the session still ends,
//! because some agents permit only one writer.

use super::{SessionRestore, SessionStage};
use crate::{
    Hub, Launch, SessionId, agent::Agents, limits, restart::RestartVerdict,
    session_name::tenant_of, timer::HubTimer,
};
use jackfield_protocol::{Fault, is_planted};
use std::path::PathBuf;

impl Agents {
    /// Whether a process that had the session was asked to stop and has not ended.
    pub(super) fn has_ending_process(&self, id: &SessionId) -> bool {
        self.processes.values().any(|it| it.stopping && it.slots.has(id))
    }
}

impl Hub {
    pub(crate) fn wake(&mut self, id: &SessionId) {
        if self.parts.cx.is_stopping {
            return self.refuse_waiting(id, &Fault::Stopping);
        }
        if self.is_parting(id) {
            return;
        }
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        match session.restarts.verdict(self.parts.cx.now) {
            RestartVerdict::Now => {}
            RestartVerdict::At(at) => {
                return self.parts.cx.timers.set(at, HubTimer::Wake(id.clone()));
            }
            RestartVerdict::GiveUp { ends, until } => {
                let wait = (until.0.saturating_sub(self.parts.cx.now.0)).div_ceil(1000);
                let why = format!("its agent ended {ends} times; try again in {wait} s");
                let session = id.to_string();
                return self.refuse_waiting(id, &Fault::CannotResume { session, why });
            }
        }
        let asker = session.asker();
        if let Err(fault) =
            self.may_be_awake(tenant_of(id).filter(|_| !is_planted("wake-beyond-quota")))
        {
            return self.refuse_waiting(id, &fault);
        }
        let launch = self.launch_again(id, asker);
        let initialize_params = asker
            .and_then(|it| self.parts.clients.connections.get(&it))
            .and_then(|it| it.initialize_params.clone());
        let agent = match self.seat(id, &launch, asker, initialize_params) {
            Ok(Some(agent)) => agent,
            Ok(None) => return,
            Err(fault) => return self.refuse_waiting(id, &fault),
        };
        let session = self.sessions.by_id.get_mut(id).expect("found above");
        session.stage = SessionStage::Restoring(SessionRestore::default());
        session.restore_history = super::RestoreHistory::default();
        self.assign_session(agent, id);
    }

    /// How the agent of the session is started: with the command of the requesting client, if it is the same agent.
    pub(crate) fn launch_again(&self, id: &SessionId, asker: Option<crate::ConnId>) -> Launch {
        let state = &self.sessions.by_id[id].summary();
        let of_conn = asker
            .and_then(|it| self.parts.clients.connections.get(&it))
            .and_then(|it| it.launch.as_ref());
        let same = |it: &&Launch| it.name == state.agent;
        let known = of_conn.filter(same).or_else(|| self.parts.cx.config.agents.get(&state.agent));
        Launch {
            name: state.agent.clone(),
            // An agent that is known by name may have been started with a command.
            argv: known
                .map(|it| &it.argv)
                .filter(|it| !it.is_empty())
                .unwrap_or(&state.argv)
                .clone(),
            cwd: PathBuf::from(&state.cwd),
            env: known.and_then(|it| it.env.clone()),
        }
    }

    /// Whether the last process of the session still ends. Restoring continues when it has, or after some time.
    fn is_parting(&mut self, id: &SessionId) -> bool {
        let ends = self.parts.agents.has_ending_process(id);
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        if !ends {
            session.restore_history.parted_at = None;
            return false;
        }
        let latest = self.parts.cx.now.plus(limits::PARTING_MS_MAX);
        let at = *session.restore_history.parted_at.get_or_insert(latest);
        if self.parts.cx.now < at {
            self.parts.cx.timers.set(at, HubTimer::Wake(id.clone()));
        }
        self.parts.cx.now < at
    }

    /// A process that was given up has ended: a session that waited for that continues.
    pub(crate) fn on_parted(&mut self, id: &SessionId) {
        if self.sessions.by_id.get(id).is_some_and(|it| matches!(it.stage, SessionStage::Asleep)) {
            self.pump(id);
        }
    }
}
