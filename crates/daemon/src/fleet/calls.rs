//! What the loop does when the fleet calls.

use super::{Call, Load, Taken};
use crate::main_loop::MainLoop;
use jackfield_agents::StopUrgency;
use jackfield_fleet::TenantUsage;
use jackfield_hub::{AppendFailure, Input, SessionId, Usage};

impl MainLoop {
    pub(crate) fn on_call(&mut self, call: Call) {
        match call {
            Call::HostConnection(stream) => self.on_host_conn(stream),
            Call::Has(session, tell) => {
                let _unheard = tell.send(self.hub.session(&session).is_some());
            }
            Call::Adopted(taken, tell) => {
                let Taken { session, epoch, state, from } = *taken;
                self.effects.port.register_claim(session.clone().into(), epoch);
                self.feed(Input::Adopted { session, state: Box::new(state), from });
                let _unheard = tell.send(());
            }
            Call::Drain => {
                for session in self.session_ids() {
                    self.feed(Input::LetGo { session });
                }
            }
            Call::CutOff(tell) => {
                self.cut_off();
                let _unheard = tell.send(());
            }
            Call::Elsewhere(tenants) => self.feed(Input::Elsewhere { tenants }),
            Call::Report(tell) => {
                let gauges = self.hub.gauges();
                let small = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
                let sessions = small(gauges.sessions.values().sum());
                let live = small(gauges.agents);
                // Starts that wait will have the places that become free.
                let free = gauges.places_free.map(|it| it.saturating_sub(gauges.starts_waiting));
                let free = free.map(small);
                let share = |it: Usage| TenantUsage { sessions: it.sessions, agents: it.agents };
                let tenants =
                    self.hub.usage().into_iter().map(|(name, it)| (name.into(), share(it)));
                let tenants = tenants.collect();
                let _unheard = tell.send(Load { sessions, live, free, tenants });
            }
        }
    }

    fn session_ids(&self) -> Vec<SessionId> {
        self.hub.session_ids().cloned().collect()
    }

    /// Somebody else may soon have every session: no agent of ours may do anything any more.
    fn cut_off(&mut self) {
        for agent in self.effects.agents.values_mut() {
            agent.stop(StopUrgency::Now);
        }
        self.effects.served.end_now();
        for session in self.session_ids() {
            self.effects.port.forget_claim(&session);
            let why = AppendFailure::Fenced;
            self.feed(Input::AppendFailed { session, why });
        }
    }
}
