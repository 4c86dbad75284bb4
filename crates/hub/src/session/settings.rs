//! Restores mode, model and options of a session in its new process. The process gets no prompt before it has answered
//! them.

use super::restore::Step;
use crate::{
    AgentId, Hub, SessionId, Time, agent::PendingRequest, limits, session::Sessions,
    timer::HubTimer,
};
use jackfield_protocol::{Frame, acp::Method, is_planted};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Settings that were sent and are not answered.
#[derive(Debug)]
pub(super) struct PendingSettings {
    open: BTreeSet<String>,
    until: Time,
}

impl PendingSettings {
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.until <= now
    }
}

impl Sessions {
    /// All settings, each with its name, method and parameters.
    fn collect_settings(&self, id: &SessionId) -> Vec<(String, Method, Value)> {
        let session = &self.by_id[id];
        let (state, agent_session_id) = (&session.summary(), &**session.agent_session_id());
        let mut settings = Vec::new();
        if let Some(mode) = state.mode.as_ref().filter(|_| !is_planted("restore-without-mode")) {
            let params = json!({ "sessionId": agent_session_id, "modeId": mode });
            settings.push(("mode".to_owned(), Method::SessionSetMode, params));
        }
        if let Some(model) = &state.model {
            let params = json!({ "sessionId": agent_session_id, "modelId": model });
            settings.push(("model".to_owned(), Method::SessionSetModel, params));
        }
        for (name, option) in &state.config {
            let mut params: Value = serde_json::from_str(option.as_str()).unwrap_or_default();
            params["sessionId"] = json!(agent_session_id);
            settings.push((format!("option {name}"), Method::SessionSetConfigOption, params));
        }
        settings
    }
}

impl Hub {
    /// Sends all settings to the agent.
    pub(super) fn set_again(&mut self, agent: AgentId, id: &SessionId) {
        let settings = self.sessions.collect_settings(id);
        if settings.is_empty() {
            return self.bind(agent, id);
        }
        let until = self.parts.cx.now.plus(limits::SETTING_MS_MAX);
        let open = settings.iter().map(|(name, ..)| name.clone()).collect();
        let Some(restoring) = self.sessions.restoring(id) else { return };
        restoring.step = Step::Settling(PendingSettings { open, until });
        for (name, method, params) in settings {
            let waiting = PendingRequest::Setting(id.clone(), name);
            self.ask_agent(agent, method.name(), &params.to_string(), waiting);
        }
        self.parts.cx.timers.set(until, HubTimer::Restore(id.clone()));
    }

    pub(crate) fn on_set(&mut self, agent: AgentId, id: &SessionId, name: &str, frame: &Frame) {
        if self.sessions.by_id.get(id).is_none_or(|it| it.agent != Some(agent)) {
            return;
        }
        let Some(restoring) = self.sessions.restoring(id) else { return };
        let Step::Settling(settling) = &mut restoring.step else { return };
        if !settling.open.remove(name) {
            return;
        }
        let done = settling.open.is_empty();
        if frame.result().is_none() {
            let error = crate::agent::error_of(frame);
            let error: Value = serde_json::from_str(&error).unwrap_or_default();
            let why = error["message"].as_str().unwrap_or("refused");
            restoring.tried.push(json!({ "setting": name, "why": why }));
        }
        if done {
            self.bind(agent, id);
        }
    }

    /// The time is over: unanswered settings are recorded, and the session is bound.
    pub(super) fn settled(&mut self, agent: AgentId, id: &SessionId) {
        let Some(restoring) = self.sessions.restoring(id) else { return };
        if let Step::Settling(settling) = &mut restoring.step {
            for name in std::mem::take(&mut settling.open) {
                let why = format!("no answer within {} s", limits::SETTING_MS_MAX / 1000);
                restoring.tried.push(json!({ "setting": name, "why": why }));
            }
        }
        self.bind(agent, id);
    }
}
