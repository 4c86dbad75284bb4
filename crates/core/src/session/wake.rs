//! Waking: a session without an agent gets one again. No process is started while the last one of
//! the session still ends, because some agents let only one write.

use super::{Stage, Waking};
use crate::{
    Hub, Launch, SessionId,
    agent::{Purpose, Start},
    limits,
    restart::Verdict,
    timer::Timer,
};
use jackfield_wire::Fault;
use std::path::PathBuf;

impl Hub {
    pub(crate) fn wake(&mut self, id: &SessionId) {
        if self.stopping {
            return self.refuse_waiting(id, &Fault::Stopping);
        }
        if self.is_parting(id) {
            return;
        }
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        match session.restarts.verdict(self.now) {
            Verdict::Now => {}
            Verdict::At(at) => return self.timers.set(at, Timer::Wake(id.clone())),
            Verdict::GiveUp { ends, until } => {
                let wait = (until.0.saturating_sub(self.now.0)).div_ceil(1000);
                let why = format!("its agent ended {ends} times; try again in {wait} s");
                let session = id.to_string();
                return self.refuse_waiting(id, &Fault::CannotResume { session, why });
            }
        }
        if !self.has_place(&Start::Session(id.clone())) {
            return;
        }
        let session = self.sessions.get_mut(id).expect("found above");
        let asker = session.queue.front().map(|it| it.conn);
        let asker = asker.or_else(|| session.parked.front().map(|it| it.0));
        session.stage = Stage::Waking(Waking::default());
        session.standing = super::Standing::default();
        let launch = self.launch_again(id, asker);
        let spare = asker.and_then(|it| self.take_spare(it, &launch, id));
        let agent =
            spare.unwrap_or_else(|| self.spawn(launch, asker, Purpose::Session(id.clone())));
        self.sessions.get_mut(id).expect("found above").agent = Some(agent);
        if self.agents[&agent].is_ready() {
            self.climb(agent, id);
        }
    }

    /// How the session's agent is started: as the asking client would, if it is the same agent.
    fn launch_again(&self, id: &SessionId, asker: Option<crate::ConnId>) -> Launch {
        let state = &self.sessions[id].state;
        let of_conn = asker.and_then(|it| self.conns.get(&it)).and_then(|it| it.launch.as_ref());
        let same = |it: &&Launch| it.name == state.agent;
        let known = of_conn.filter(same).or_else(|| self.config.agents.get(&state.agent));
        Launch {
            name: state.agent.clone(),
            // One that is known by name only may have been started with a command all the same.
            argv: known
                .map(|it| &it.argv)
                .filter(|it| !it.is_empty())
                .unwrap_or(&state.argv)
                .clone(),
            cwd: PathBuf::from(&state.cwd),
            env: known.and_then(|it| it.env.clone()),
        }
    }

    /// Whether the session's last process still ends; the wake goes on when it has, or after a while.
    fn is_parting(&mut self, id: &SessionId) -> bool {
        let of_it = |it: &Purpose| matches!(it, Purpose::Session(session) if session == id);
        let ends = self.agents.values().any(|it| it.stopping && of_it(&it.purpose));
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        if !ends {
            session.standing.parted_at = None;
            return false;
        }
        let latest = self.now.plus(limits::PARTING_MS_MAX);
        let at = *session.standing.parted_at.get_or_insert(latest);
        if self.now < at {
            self.timers.set(at, Timer::Wake(id.clone()));
        }
        self.now < at
    }

    /// A process that was let go has ended: a session that waited for that goes on.
    pub(crate) fn on_parted(&mut self, id: &SessionId) {
        if self.sessions.get(id).is_some_and(|it| matches!(it.stage, Stage::Asleep)) {
            self.pump(id);
        }
    }
}
