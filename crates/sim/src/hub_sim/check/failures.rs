//! Agents that keep failing: only they are left alone, and whoever gets another instead is told.

use super::{Answer, hold};
use crate::hub_sim::{World, agent::PROGRAMS, peek};
use jackfield_hub::{AgentId, SessionId, limits};
use std::collections::BTreeMap;

/// What is known of failures in this life of the hub, and of what clients want.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Failures {
    /// Processes that ended unasked, by program.
    ends: BTreeMap<&'static str, usize>,
    /// The agents that clients named for their new sessions, by the marks of their requests.
    pub(in crate::hub_sim) wanted: BTreeMap<u64, &'static str>,
}

impl Failures {
    pub(in crate::hub_sim) fn start_again(&mut self) {
        self.ends.clear();
    }
}

impl World {
    /// A process ended, or the hub has refused it.
    pub(in crate::hub_sim) fn note_end(&mut self, agent: AgentId) {
        if let Some(process) = self.procs.get(&agent).filter(|it| !it.stop_asked) {
            *self.failures.ends.entry(PROGRAMS[process.program].0).or_default() += 1;
        }
    }

    /// Who is told that an agent is left alone has an agent that failed often enough.
    pub(in crate::hub_sim) fn only_who_keeps_failing_is_left_alone(&mut self, answer: &Answer<'_>) {
        if !peek::contains(answer.text, "\"agent_suspended\"") {
            return;
        }
        self.tally.count("agents left alone");
        let failed = |(name, ends): (&&str, &usize)| {
            let named = peek::contains(answer.text, &format!("\"agent\":\"{name}\""));
            named && limits::RESTARTS_MAX <= *ends
        };
        let holds = self.failures.ends.iter().any(failed);
        hold("only_who_keeps_failing_is_left_alone", holds, || {
            format!("{:?} and {:?}", self.failures.ends, answer.text)
        });
    }

    /// A session is of the agent that its client named, or the answer says otherwise.
    pub(in crate::hub_sim) fn a_fallback_is_never_silent(
        &mut self,
        answer: &Answer<'_>,
        token: u64,
        session: &SessionId,
    ) {
        let says = peek::contains(answer.text, "\"fallback\":[");
        if says {
            self.tally.count("sessions of another agent");
        }
        let Some(wanted) = self.failures.wanted.get(&token) else { return };
        let Some(state) = self.hub.session(session) else { return };
        let other = &*state.agent != *wanted;
        let listed = state.fallback.is_some();
        hold("a_fallback_is_never_silent", other == says && other == listed, || {
            format!("{} wanted {wanted} and heard {:?}", answer.conn, answer.text)
        });
    }
}
