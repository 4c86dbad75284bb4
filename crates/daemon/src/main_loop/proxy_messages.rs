//! Messages of the network proxies of sandboxes: questions about hosts, and refused connections.

use super::MainLoop;
use crate::sandbox::{AskingSession, ProxyMessage};
use jackfield_hub::{AgentId, Input, SandboxedSession, tenant_of};
use jackfield_network_proxy::HostQuestion;
use jackfield_policy::RuleEffect;

impl MainLoop {
    pub(super) fn on_proxy_message(&mut self, agent: AgentId, message: ProxyMessage) {
        match message {
            ProxyMessage::Question(question) => self.on_host_question(agent, question),
            ProxyMessage::Withdrawn { host, port } => {
                if let Some(frame) = self.effects.host_asks.withdraw_request(agent, &host, port) {
                    self.feed(Input::AgentSpoke { agent, frame });
                }
            }
            ProxyMessage::Refused(refused) => {
                self.feed(Input::ConnectionRefused { agent, refused });
            }
        }
    }

    /// A sandboxed process connects to a host that no rule of its profile names. The user is asked in the session of
    /// the agent, unless a stored answer applies; without a session the question is dropped, which refuses the
    /// connection.
    fn on_host_question(&mut self, agent: AgentId, question: HostQuestion) {
        let Some(SandboxedSession { id, agent_session_id, profile }) =
            self.hub.sandboxed_session_of(agent)
        else {
            return;
        };
        let changed = self.policy_store.refresh(self.hub.folders_of(agent));
        self.apply_policies(changed);
        // The files of the daemon are shared by all tenants.
        let profile = tenant_of(&id).is_none().then_some(profile);
        let session = AskingSession { agent, id, agent_session_id, profile };
        let request = match session.ask_about(&question.host, question.port) {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(%error, "no random numbers; refusing a connection");
                return;
            }
        };
        // Files that deny a request or require a question win over stored answers.
        let effect = self.hub.judge_request(agent, request.params());
        if !matches!(effect, Some(RuleEffect::Deny | RuleEffect::Ask))
            && let Some(answer) = self.effects.host_asks.find_stored_answer(&session, &question)
        {
            // The connections may have ended meanwhile.
            let _ended = question.reply.send(answer);
            return;
        }
        let request = self.effects.host_asks.open_request(session, request, question);
        self.feed(Input::HostAsked { agent, request });
    }
}
