//! The agent a client names, and what it lets people choose.

use super::RunBody;
use crate::rest::{
    Api,
    agents::{Agent, Found},
    error::{ApiError, Code},
    runs::{Choices, Start},
    sessions::Row,
};
use jackfield_catalog::{DEFAULT_OPTION, check_model};

/// The agent of this id.
pub(super) async fn find(api: &Api, id: &str) -> Result<Found, ApiError> {
    let survey = api.agents.survey().await;
    api.agents.find(id, &survey).ok_or_else(|| ApiError::bad(format!("unknown agent: {id}")))
}

/// The agent of a session that was opened with a command of somebody's.
pub(super) fn unknown(row: &Row) -> Found {
    Found { shown: Agent::of_session(&row.agent, &row.argv), spec: None }
}

impl Found {
    pub(super) fn start(&self) -> Start {
        Start {
            agent_id: self.shown.id.clone(),
            bin: self.shown.bin.clone(),
            stream_format: self.shown.stream_format.clone(),
            ..Start::default()
        }
    }

    /// Said before anything is started for it.
    pub(super) fn check_installed(&self) -> Result<(), ApiError> {
        if self.shown.available {
            return Ok(());
        }
        let (name, bin) = (&self.shown.name, &self.shown.bin);
        let why = self.shown.diagnostics.iter().find(|it| it["severity"] == "error");
        let way = why.and_then(|it| it["fix"].as_str()).unwrap_or("install it");
        let message = format!(
            "agent {name} (`{bin}`) cannot be used here: {way}; GET /api/agents looks again"
        );
        let details = why.cloned();
        Err(ApiError { details, ..ApiError::new(Code::AgentUnavailable, message) })
    }

    /// What is set before the prompt.
    pub(super) fn choices(&self, body: &RunBody) -> Result<Choices, ApiError> {
        let chosen = |it: &Option<String>| it.clone().filter(|it| it != DEFAULT_OPTION);
        let choices = Choices {
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

    /// One that is listed is taken as it is, any other must look like one.
    fn check_model(&self, id: &str) -> Result<(), ApiError> {
        let listed = self.shown.models.iter().any(|it| it.id == id);
        if !listed && !is_model(id) {
            let why =
                "begin with a letter or digit, use letters, digits and `._/:@+-[]`, at most 200";
            return Err(ApiError::invalid(format!("`{}` is no model: {why}", id.escape_debug())));
        }
        let Some((spec, known)) = &self.spec else { return Ok(()) };
        check_model(spec, known, id).map_err(|it| ApiError::invalid(it.to_string()))
    }

    fn check_reasoning(&self, id: &str) -> Result<(), ApiError> {
        let options = &self.shown.reasoning_options;
        if self.spec.is_none() || options.iter().any(|it| it.id == id) {
            return Ok(());
        }
        let known: Vec<String> = options.iter().map(|it| format!("`{}`", it.id)).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        let id = id.escape_debug();
        Err(ApiError::invalid(format!("`{id}` is no reasoning of {}: {known}", self.shown.id)))
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._/:@+\[\]-]{0,199}$`: nothing that a program could take for an option.
fn is_model(id: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"._/:@+-[]".contains(&it);
    id.len() <= 200
        && id.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric())
        && id.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_agents::{find::ProgramLocations, probe::AgentStatus};
    use jackfield_catalog::Catalog;

    fn codex() -> Found {
        let catalogue = Catalog::builtin();
        let spec = catalogue.get("codex").unwrap();
        let places =
            ProgramLocations::new([("PATH".to_owned(), "/nowhere".to_owned())].into_iter());
        let standing = AgentStatus::new(spec, &places, None);
        let known = standing.models.models.clone();
        Found { shown: Agent::of_spec(spec, &standing), spec: Some((spec.clone(), known)) }
    }

    fn body(model: &str, reasoning: &str) -> RunBody {
        let (model, reasoning) = (Some(model.to_owned()), Some(reasoning.to_owned()));
        RunBody { model, reasoning, ..RunBody::default() }
    }

    #[test]
    fn a_model_is_listed_or_looks_like_one_and_never_like_an_option() {
        let codex = codex();
        for good in ["gpt-5.5", "my/model:v1@x+[1m]"] {
            assert_eq!(codex.choices(&body(good, "high")).unwrap().model.as_deref(), Some(good));
        }
        for bad in ["-m", "--yolo", "", "a b", "a;b", "x\n", "é", &"x".repeat(201)] {
            let error = codex.choices(&body(bad, "high")).unwrap_err();
            assert!(error.message.contains("is no model"), "{bad}: {error:?}");
        }
    }

    #[test]
    fn reasoning_is_one_of_the_agents_options_and_default_is_no_choice() {
        let codex = codex();
        assert_eq!(codex.choices(&body("default", "default")).unwrap(), Choices::default());
        let error = codex.choices(&body("default", "galaxy")).unwrap_err();
        assert!(error.message.contains("`high`"), "{error:?}");
    }

    #[test]
    fn an_agent_that_is_not_here_is_refused_with_the_way_to_get_it() {
        let error = codex().check_installed().unwrap_err();
        assert_eq!(error.code, Code::AgentUnavailable);
        assert!(error.message.contains("npm install -g @openai/codex"), "{error:?}");
    }
}
