//! Handles calls of the fleet in the main loop.

use super::MainLoop;
use crate::fleet::{AdoptedSession, FleetCall, HostLoad};
use jackfield_agents::StopUrgency;
use jackfield_fleet::TenantUsage;
use jackfield_hub::{AppendFailure, Input, SessionId, Usage};

impl MainLoop {
    pub(super) fn on_call(&mut self, call: FleetCall) {
        match call {
            FleetCall::HostConnection(stream) => self.on_host_conn(stream),
            FleetCall::HasSession(session, response) => {
                let _ignored = response.send(self.hub.session(&session).is_some());
            }
            FleetCall::Adopted(adopted, response) => {
                let AdoptedSession { session, epoch, state, from } = *adopted;
                self.effects.journal_port.register_claim(session.clone().into(), epoch);
                self.feed(Input::Adopted { session, state: Box::new(state), from });
                let _ignored = response.send(());
            }
            FleetCall::Drain => {
                for session in self.session_ids() {
                    self.feed(Input::ReleaseSession { session });
                }
            }
            FleetCall::StopEverything(response) => {
                self.stop_everything();
                let _ignored = response.send(());
            }
            FleetCall::UsageElsewhere(tenants) => self.feed(Input::TenantUsageReported { tenants }),
            FleetCall::ReportLoad(response) => {
                let gauges = self.hub.gauges();
                let to_u32 = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
                let sessions = to_u32(gauges.sessions.values().sum());
                let live = to_u32(gauges.agents);
                // Waiting starts will use the processes that become free.
                let free = gauges.places_free.map(|it| it.saturating_sub(gauges.starts_waiting));
                let free = free.map(to_u32);
                let to_tenant_usage =
                    |it: Usage| TenantUsage { sessions: it.sessions, agents: it.agents };
                let tenants = self
                    .hub
                    .usage()
                    .into_iter()
                    .map(|(name, it)| (name.into(), to_tenant_usage(it)));
                let tenants = tenants.collect();
                let _ignored = response.send(HostLoad { sessions, live, free, tenants });
            }
        }
    }

    fn session_ids(&self) -> Vec<SessionId> {
        self.hub.session_ids().cloned().collect()
    }

    /// Another host may soon own every session: stops all agents and gives up all sessions.
    fn stop_everything(&mut self) {
        for agent in self.effects.agents.values_mut() {
            agent.stop(StopUrgency::Now);
        }
        self.effects.served.end_now();
        for session in self.session_ids() {
            self.effects.journal_port.forget_claim(&session);
            let why = AppendFailure::Fenced;
            self.feed(Input::AppendFailed { session, why });
        }
    }
}
