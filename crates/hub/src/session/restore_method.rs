//! The methods by which an agent can restore a session: which of them it offers, and their parameters.

use super::{Session, agent_params::AgentParams};
use crate::{
    agent::{PeerCapabilities, RestoreMethod},
    context::HubContext,
};
use jackfield_protocol::is_planted;
use serde_json::{Value, json};

/// Whether a method can be tried.
pub(super) enum MethodCheck {
    Try,
    Not(&'static str),
    /// It does not apply to this session.
    NoMatter,
}

impl Session {
    /// Whether an agent that has lost the session may continue in a new one with a digest.
    pub(super) fn may_reseed(&self, cx: &HubContext) -> bool {
        cx.config.policies.can_reseed(&self.summary().cwd)
    }

    /// The parameters of `session/new`, with the session id of the agent.
    pub(super) fn restore_params(&self, cx: &HubContext, way: RestoreMethod) -> String {
        let state = self.summary();
        let mut params: Value = serde_json::from_str(state.params.as_str()).unwrap_or_default();
        if !params.is_object() {
            params = json!({});
        }
        match (way, &state.forked) {
            (RestoreMethod::New, _) => {}
            (RestoreMethod::Fork, Some(origin)) => {
                params["sessionId"] = json!(&*origin.agent_session);
            }
            _ => params["sessionId"] = json!(&*state.agent_session),
        }
        params["cwd"] = json!(state.cwd);
        if params.get("mcpServers").is_none() {
            params["mcpServers"] = json!([]);
        }
        let (config, agent, cwd) = (&cx.config, &*state.agent, &*state.cwd);
        let params = params.to_string();
        let composed = AgentParams { config, agent, cwd, unenforced: false }.compose(&params);
        composed.unwrap_or(params)
    }

    pub(super) fn check_method(
        &self,
        cx: &HubContext,
        offered: PeerCapabilities,
        way: RestoreMethod,
        is_at_fork_point: bool,
    ) -> MethodCheck {
        const SILENT: &str = "the agent does not offer it";
        let state = self.summary();
        let nameless = state.agent_session.is_empty();
        match way {
            RestoreMethod::Resume | RestoreMethod::Load if nameless => MethodCheck::NoMatter,
            RestoreMethod::Resume | RestoreMethod::Load
                if state.unseeded && !is_planted("resume-unseeded-session") =>
            {
                MethodCheck::Not("no turn has ended in it since the session was reseeded")
            }
            RestoreMethod::Resume if offered.resume => MethodCheck::Try,
            RestoreMethod::Load if offered.load => MethodCheck::Try,
            RestoreMethod::Resume | RestoreMethod::Load => MethodCheck::Not(SILENT),
            RestoreMethod::Fork => match &state.forked {
                Some(_) if !nameless => MethodCheck::NoMatter,
                Some(_) if !offered.fork => MethodCheck::Not(SILENT),
                Some(_) if is_at_fork_point => MethodCheck::Try,
                Some(_) => MethodCheck::Not("the session it branched off has gone on or is gone"),
                None => MethodCheck::NoMatter,
            },
            RestoreMethod::New if self.may_reseed(cx) => MethodCheck::Try,
            RestoreMethod::New => MethodCheck::Not("the policy does not allow it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{AgentId, Config, ConnId, Hub, Input, Output, Recovered, Time};
    use jackfield_events::{AgentBound, EventBody, ForkOrigin, RestoreStep, SessionSummary};
    use jackfield_protocol::Frame;

    fn state(turns: u64, agent_session: &str, forked: Option<ForkOrigin>) -> SessionSummary {
        let (seq, agent_session) = (5, agent_session.into());
        let (agent, argv, cwd) = ("claude".into(), vec!["claude".to_owned()], "/x".to_owned());
        SessionSummary {
            seq,
            agent,
            argv,
            cwd,
            agent_session,
            turns,
            forked,
            ..SessionSummary::default()
        }
    }

    /// A hub with a session and a fork of it, in which a client prompts. The agent offers all methods.
    fn branch_is_prompted(source_turns: u64) -> (Hub, AgentId, String) {
        let origin =
            ForkOrigin { session: "s-old".into(), seq: 5, whole: true, agent_session: "a1".into() };
        let sessions = [
            Recovered { session: "s-old".into(), state: state(source_turns, "a1", None) },
            Recovered { session: "s-new".into(), state: state(2, "", Some(origin)) },
        ];
        let mut hub = Hub::new(Config::default(), Time(1), sessions);
        let conn = ConnId(1);
        let prompt =
            r#"{"id":2,"method":"session/prompt","params":{"sessionId":"s-new","prompt":[]}}"#;
        let hello = r#"{"id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
        tell(&mut hub, Input::ClientOpened { conn, peer: None });
        for said in [hello, prompt] {
            let frame = Frame::parse_str(said).expect("well-formed");
            tell(&mut hub, Input::ClientSpoke { conn, frame });
        }
        let agent = *hub.parts.agents.processes.keys().next().expect("one was started");
        let capabilities = r#"{"loadSession":true,"sessionCapabilities":{"resume":{},"fork":{}}}"#;
        let hello = format!(r#"{{"id":1,"result":{{"agentCapabilities":{capabilities}}}}}"#);
        let frame = Frame::parse_str(&hello).expect("well-formed");
        let outputs = tell(&mut hub, Input::AgentSpoke { agent, frame });
        let asked = outputs.iter().find_map(|it| match it {
            Output::ToAgent { text, .. } => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        });
        (hub, agent, asked.expect("the agent is asked for the session"))
    }

    fn tell(hub: &mut Hub, input: Input) -> Vec<Output> {
        hub.handle(Time(2), input);
        std::iter::from_fn(|| hub.poll_output()).collect()
    }

    #[test]
    fn a_branch_of_a_session_that_has_not_gone_on_is_the_agents_own() {
        let (mut hub, agent, asked) = branch_is_prompted(2);
        assert!(asked.contains(r#""method":"session/fork""#), "{asked}");
        assert!(asked.contains(r#""sessionId":"a1""#), "{asked}");
        let frame =
            Frame::parse_str(r#"{"id":2,"result":{"sessionId":"a2"}}"#).expect("well-formed");
        let outputs = tell(&mut hub, Input::AgentSpoke { agent, frame });
        let bound = outputs.into_iter().find_map(|it| match it {
            Output::Append { event, .. } => Some(event.body),
            _ => None,
        });
        let Some(EventBody::Bound(AgentBound { restore: step, agent_session, .. })) = bound else {
            panic!("{bound:?}")
        };
        assert_eq!((step, agent_session.as_deref()), (RestoreStep::Forked, Some("a2")));
    }

    #[test]
    fn a_branch_of_a_session_that_has_gone_on_is_told_what_was() {
        let (_, _, asked) = branch_is_prompted(3);
        assert!(asked.contains(r#""method":"session/new""#), "{asked}");
    }
}
