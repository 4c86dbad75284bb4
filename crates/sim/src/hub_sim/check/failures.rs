//! Agents that fail repeatedly: only these are suspended, and a client that gets a fallback is notified.

use super::{ReceivedResponse, check_invariant};
use crate::hub_sim::{HubWorld, agent::PROGRAMS, markers};
use jackfield_hub::{AgentId, SessionId, limits};
use std::collections::BTreeMap;

/// Tracks failures since the start of the hub, and the agents that clients requested.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct FailureTracker {
    /// Processes that exited without being asked to, by program.
    ends: BTreeMap<&'static str, usize>,
    /// The agents that clients requested for new sessions, by the mark of the request.
    pub(in crate::hub_sim) wanted: BTreeMap<u64, &'static str>,
}

impl FailureTracker {
    pub(in crate::hub_sim) fn on_restart(&mut self) {
        self.ends.clear();
    }
}

impl HubWorld {
    /// A process exited, or the hub has refused it.
    pub(in crate::hub_sim) fn note_exit(&mut self, agent: AgentId) {
        if let Some(process) = self.procs.get(&agent).filter(|it| !it.stop_requested) {
            *self.failure_tracker.ends.entry(PROGRAMS[process.program].0).or_default() += 1;
        }
    }

    /// An agent that is reported as suspended has failed often enough.
    pub(in crate::hub_sim) fn only_failing_agents_are_suspended(
        &mut self,
        answer: &ReceivedResponse<'_>,
    ) {
        if !markers::contains(answer.text, "\"agent_suspended\"") {
            return;
        }
        self.tally.count("agents suspended");
        let failed = |(name, ends): (&&str, &usize)| {
            let named = markers::contains(answer.text, &format!("\"agent\":\"{name}\""));
            named && limits::RESTARTS_MAX <= *ends
        };
        let holds = self.failure_tracker.ends.iter().any(failed);
        check_invariant("only_failing_agents_are_suspended", holds, || {
            format!("{:?} and {:?}", self.failure_tracker.ends, answer.text)
        });
    }

    /// A session has the agent that its client requested, or the response names the fallback.
    pub(in crate::hub_sim) fn fallback_is_always_reported(
        &mut self,
        answer: &ReceivedResponse<'_>,
        token: u64,
        session: &SessionId,
    ) {
        let is_reported = markers::contains(answer.text, "\"fallback\":[");
        if is_reported {
            self.tally.count("sessions with a fallback agent");
        }
        let Some(wanted) = self.failure_tracker.wanted.get(&token) else { return };
        let Some(state) = self.hub.session(session) else { return };
        let other = &*state.agent != *wanted;
        let listed = state.fallback.is_some();
        check_invariant(
            "fallback_is_always_reported",
            other == is_reported && other == listed,
            || format!("{} wanted {wanted} and received {:?}", answer.conn, answer.text),
        );
    }
}
