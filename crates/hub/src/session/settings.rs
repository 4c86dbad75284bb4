//! What a client set stays set: a session's new process is told mode, model and options again, and
//! is not prompted before it has answered.

use super::restore::Step;
use crate::session::Sessions;
use crate::{AgentId, Hub, SessionId, Time, agent::PendingRequest, limits, timer::HubTimer};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, is_planted};
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
    /// Each with its name, and how the agent is told.
    fn collect_settings(&self, id: &SessionId) -> Vec<(String, Method, Value)> {
        let session = &self.by_id[id];
        let (state, theirs) = (&session.summary(), &**session.theirs());
        let mut settings = Vec::new();
        if let Some(mode) = state.mode.as_ref().filter(|_| !is_planted("restore-without-mode")) {
            let params = json!({ "sessionId": theirs, "modeId": mode });
            settings.push(("mode".to_owned(), Method::SessionSetMode, params));
        }
        if let Some(model) = &state.model {
            let params = json!({ "sessionId": theirs, "modelId": model });
            settings.push(("model".to_owned(), Method::SessionSetModel, params));
        }
        for (name, option) in &state.config {
            let mut params: Value = serde_json::from_str(option.as_str()).unwrap_or_default();
            params["sessionId"] = json!(theirs);
            settings.push((format!("option {name}"), Method::SessionSetConfigOption, params));
        }
        settings
    }
}

impl Hub {
    /// Sets again what was set.
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

    /// Time is up: what has not answered is said to be so, and the prompt goes.
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
