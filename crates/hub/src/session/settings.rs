//! Restores mode, model and options of a session in its new process. The process gets no prompt before it has answered
//! them.

use super::{Session, restore_state::Step};
use crate::{
    AgentId, ConnId, Time,
    agent::{PendingRequest, error_of},
    limits,
    parts::HubParts,
    timer::HubTimer,
};
use jackfield_events::RawJson;
use jackfield_protocol::{Frame, acp::Method, is_planted};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

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

impl Session {
    /// `_jackfield/settings`: the setup of the agent, what clients have changed, and where the log has later lists.
    pub(crate) fn describe_settings(&self, parts: &mut HubParts, conn: ConnId, id: &str) {
        let state = self.summary();
        let setup = state.setup.parse::<Value>().unwrap_or_default();
        // The value of the option that a client set last; the agent's answer may have it too.
        let value = |it: &RawJson| it.parse::<Value>().and_then(|it| it.get("value").cloned());
        let config: BTreeMap<&str, Value> =
            state.config.iter().filter_map(|(name, it)| Some((&**name, value(it)?))).collect();
        let settings = json!({
            "setup": setup,
            "mode": state.mode,
            "model": state.model,
            "config": config,
            "commandsSeq": state.setting_events.commands,
            "optionsSeq": state.setting_events.options,
            "promptCapabilities": state.prompt_capabilities,
            "directories": state.dirs(),
        });
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&settings.to_string()));
    }

    /// All settings, each with its name, method and parameters.
    fn collect_settings(&self) -> Vec<(String, Method, Value)> {
        let (state, agent_session_id) = (self.summary(), &**self.agent_session_id());
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

    /// Sends all settings to the agent.
    pub(super) fn restore_settings(&mut self, parts: &mut HubParts, agent: AgentId) {
        let settings = self.collect_settings();
        if settings.is_empty() {
            return self.bind(parts, agent);
        }
        let until = parts.cx.now.plus(limits::SETTING_MS_MAX);
        let open = settings.iter().map(|(name, ..)| name.clone()).collect();
        let Some(restoring) = self.restoring() else { return };
        restoring.step = Step::Settling(PendingSettings { open, until });
        for (name, method, params) in settings {
            let pending = PendingRequest::Setting(self.id.clone(), name);
            self.send_agent_request(parts, agent, method, &params.to_string(), pending);
        }
        parts.cx.timers.set(until, HubTimer::Restore(self.id.clone()));
    }

    pub(crate) fn on_setting_response(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        name: &str,
        frame: &Frame,
    ) {
        if self.agent != Some(agent) {
            return;
        }
        let Some(restoring) = self.restoring() else { return };
        let Step::Settling(settling) = &mut restoring.step else { return };
        if !settling.open.remove(name) {
            return;
        }
        let done = settling.open.is_empty();
        if frame.result().is_none() {
            let error = error_of(frame);
            let error: Value = serde_json::from_str(&error).unwrap_or_default();
            let why = error["message"].as_str().unwrap_or("refused");
            restoring.tried.push(json!({ "setting": name, "why": why }));
        }
        if done {
            self.bind(parts, agent);
        }
    }

    /// The time is over: unanswered settings are recorded, and the session is bound.
    pub(super) fn finish_settings(&mut self, parts: &mut HubParts, agent: AgentId) {
        let Some(restoring) = self.restoring() else { return };
        if let Step::Settling(settling) = &mut restoring.step {
            for name in std::mem::take(&mut settling.open) {
                let why = format!("no answer within {} s", limits::SETTING_MS_MAX / 1000);
                restoring.tried.push(json!({ "setting": name, "why": why }));
            }
        }
        self.bind(parts, agent);
    }
}
