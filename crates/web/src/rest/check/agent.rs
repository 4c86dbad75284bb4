//! Validates the agent that a client names, and its settings.

use super::RunBody;
use crate::rest::{
    RestState,
    agents::{AgentDescription, KnownAgent},
    error::{ApiError, ErrorCode},
    runs::{RunSettings, SettingChoices},
    sessions::SessionResource,
};
use jackfield_catalog::{DEFAULT_OPTION, check_model};
use jackfield_protocol::suggest_name;

/// Finds the agent with this id.
pub(super) async fn find_agent(state: &RestState, id: &str) -> Result<KnownAgent, ApiError> {
    let survey = state.agents.survey().await;
    state.agents.find(id, &survey).ok_or_else(|| {
        let suggestion = suggest_name(id, state.agents.names(&survey));
        ApiError::bad_request(format!(
            "unknown agent `{id}`{suggestion}; GET /api/agents lists the agents"
        ))
    })
}

/// The agent of a session that was opened with an unknown command.
pub(super) fn from_session(row: &SessionResource) -> KnownAgent {
    KnownAgent { agent: AgentDescription::from_session(&row.agent, &row.argv), spec: None }
}

impl KnownAgent {
    pub(super) fn run_settings(&self) -> RunSettings {
        RunSettings {
            agent_id: self.agent.id.clone(),
            bin: self.agent.bin.clone(),
            stream_format: self.agent.stream_format.clone(),
            ..RunSettings::default()
        }
    }

    /// Fails if the agent is not installed, before a session is opened.
    pub(super) fn check_installed(&self) -> Result<(), ApiError> {
        if self.agent.available {
            return Ok(());
        }
        let (name, bin) = (&self.agent.name, &self.agent.bin);
        let why = self.agent.diagnostics.iter().find(|it| it["severity"] == "error");
        let fix = why.and_then(|it| it["fix"].as_str()).unwrap_or("install it");
        let message =
            format!("agent {name} (`{bin}`) is not available: {fix}; GET /api/agents checks again");
        let details = why.cloned();
        Err(ApiError { details, ..ApiError::new(ErrorCode::AgentUnavailable, message) })
    }

    /// Validates the settings of the run.
    pub(super) fn validate_choices(&self, body: &RunBody) -> Result<SettingChoices, ApiError> {
        let chosen = |it: &Option<String>| it.clone().filter(|it| it != DEFAULT_OPTION);
        let choices = SettingChoices {
            model: chosen(&body.model),
            reasoning: chosen(&body.reasoning),
            mode: body.mode.clone(),
        };
        if let Some(model) = &choices.model {
            self.check_model(model)?;
        }
        if let Some(reasoning) = &choices.reasoning {
            self.check_reasoning(reasoning)?;
        }
        Ok(choices)
    }

    /// Removes settings that are not valid from the request, and returns why.
    pub(super) fn drop_invalid_choices(&self, body: &mut RunBody) -> Vec<String> {
        let chosen = |it: &Option<String>| it.clone().filter(|it| it != DEFAULT_OPTION);
        let mut dropped = Vec::new();
        if let Some(Err(error)) = chosen(&body.model).map(|it| self.check_model(&it)) {
            body.model = None;
            dropped.push(format!("`model` has no effect: {}", error.message));
        }
        if let Some(Err(error)) = chosen(&body.reasoning).map(|it| self.check_reasoning(&it)) {
            body.reasoning = None;
            dropped.push(format!("`reasoning` has no effect: {}", error.message));
        }
        dropped
    }

    /// Accepts a listed model, and any other that has the form of a model id.
    fn check_model(&self, id: &str) -> Result<(), ApiError> {
        let is_listed = self.agent.models.iter().any(|it| it.id == id);
        if !is_listed && !is_model_id(id) {
            let why = "start with a letter or digit; use letters, digits and `._/:@+-[]`; at most 200 characters";
            return Err(ApiError::invalid(format!(
                "`{}` is not a valid model id: {why}",
                id.escape_debug()
            )));
        }
        let Some((spec, known)) = &self.spec else { return Ok(()) };
        check_model(spec, known, id).map_err(|it| ApiError::invalid(it.to_string()))
    }

    fn check_reasoning(&self, id: &str) -> Result<(), ApiError> {
        let options = &self.agent.reasoning_options;
        if self.spec.is_none() || options.iter().any(|it| it.id == id) {
            return Ok(());
        }
        let known: Vec<String> = options.iter().map(|it| format!("`{}`", it.id)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let id = id.escape_debug();
        Err(ApiError::invalid(format!(
            "agent `{}` has no reasoning option `{id}`; available: {known}",
            self.agent.id
        )))
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._/:@+\[\]-]{0,199}$`, so that a program cannot read it as an option.
fn is_model_id(id: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || b"._/:@+-[]".contains(&it);
    id.len() <= 200
        && id.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric())
        && id.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_agents::{find::ProgramLocations, probe::AgentStatus};
    use jackfield_catalog::Catalog;

    fn codex() -> KnownAgent {
        let catalog = Catalog::builtin();
        let spec = catalog.get("codex").unwrap();
        let places =
            ProgramLocations::new([("PATH".to_owned(), "/nowhere".to_owned())].into_iter());
        let status = AgentStatus::new(spec, &places, None);
        let known = status.models.models.clone();
        KnownAgent {
            agent: AgentDescription::from_spec(spec, &status),
            spec: Some((spec.clone(), known)),
        }
    }

    fn body(model: &str, reasoning: &str) -> RunBody {
        let (model, reasoning) = (Some(model.to_owned()), Some(reasoning.to_owned()));
        RunBody { model, reasoning, ..RunBody::default() }
    }

    #[test]
    fn model_is_listed_or_a_valid_id_but_never_an_option() {
        let codex = codex();
        for good in ["gpt-5.5", "my/model:v1@x+[1m]"] {
            assert_eq!(
                codex.validate_choices(&body(good, "high")).unwrap().model.as_deref(),
                Some(good)
            );
        }
        for bad in ["-m", "--yolo", "", "a b", "a;b", "x\n", "é", &"x".repeat(201)] {
            let error = codex.validate_choices(&body(bad, "high")).unwrap_err();
            assert!(error.message.contains("is not a valid model id"), "{bad}: {error:?}");
        }
    }

    #[test]
    fn reasoning_must_be_offered_and_default_is_no_choice() {
        let codex = codex();
        assert_eq!(
            codex.validate_choices(&body("default", "default")).unwrap(),
            SettingChoices::default()
        );
        let error = codex.validate_choices(&body("default", "galaxy")).unwrap_err();
        assert!(error.message.contains("`high`"), "{error:?}");
    }

    #[test]
    fn missing_agent_is_rejected_with_its_install_hint() {
        let error = codex().check_installed().unwrap_err();
        assert_eq!(error.code, ErrorCode::AgentUnavailable);
        assert!(error.message.contains("npm install -g @openai/codex"), "{error:?}");
    }
}
