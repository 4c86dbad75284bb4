//! The options of a session that a user can change: the mode, the model, the reasoning effort.

use crate::model::ModelInfo;
use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const EFFORT: &str = "effort";
/// Leaves the effort to the server.
const DEFAULT_EFFORT: &str = "default";
const EFFORTS: [(&str, &str); 5] = [
    (DEFAULT_EFFORT, "Default"),
    ("minimal", "Minimal"),
    ("low", "Low"),
    ("medium", "Medium"),
    ("high", "High"),
];

/// What the agent may do without a permission request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AgentMode {
    /// Reads freely, and asks before it changes anything.
    #[default]
    Ask,
    /// Changes files of the session freely, and asks before anything else.
    Edit,
    /// Is offered only tools that change nothing.
    ReadOnly,
}

impl AgentMode {
    const ALL: [(AgentMode, &str, &str, &str); 3] = [
        (AgentMode::Ask, "ask", "Ask", "Asks before it changes a file or runs a command"),
        (AgentMode::Edit, "edit", "Edit", "Changes files by itself, asks before it runs a command"),
        (AgentMode::ReadOnly, "read-only", "Read only", "Reads and searches, changes nothing"),
    ];

    /// Also accepts the names of the two modes of `OpenCode`.
    pub(crate) fn from_id(id: &str) -> Option<AgentMode> {
        match id {
            "build" => Some(AgentMode::default()),
            "plan" => Some(AgentMode::ReadOnly),
            _ => AgentMode::ALL.iter().find(|it| it.1 == id).map(|it| it.0),
        }
    }

    pub(crate) fn id(self) -> &'static str {
        AgentMode::ALL.iter().find(|it| it.0 == self).map_or("ask", |it| it.1)
    }
}

/// The current values of the options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionOptions {
    pub(crate) mode: AgentMode,
    pub(crate) model: String,
    /// `None` leaves the effort to the server.
    pub(crate) effort: Option<String>,
}

/// Why an option could not be set.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionError {
    #[error("unknown option `{0}`; the options are `mode`, `model` and `effort`")]
    UnknownOption(String),
    #[error("`{value}` is not a valid {option}; choose one of {choices}")]
    InvalidValue { option: &'static str, value: String, choices: String },
    #[error("the name of the model is empty")]
    EmptyModel,
}

impl SessionOptions {
    /// Sets an option. Any name of a model is accepted, because servers serve more models than they
    /// list.
    pub(crate) fn set_option(&mut self, option: &str, value: &str) -> Result<(), OptionError> {
        let invalid_value = |option, choices: &[&str]| OptionError::InvalidValue {
            option,
            value: value.to_owned(),
            choices: choices.join(", "),
        };
        match option {
            MODE => {
                let mode = AgentMode::from_id(value);
                let ids = AgentMode::ALL.map(|it| it.1);
                self.mode = mode.ok_or_else(|| invalid_value(MODE, &ids))?;
            }
            MODEL if value.is_empty() => return Err(OptionError::EmptyModel),
            MODEL => value.clone_into(&mut self.model),
            EFFORT if !EFFORTS.iter().any(|it| it.0 == value) => {
                return Err(invalid_value(EFFORT, &EFFORTS.map(|it| it.0)));
            }
            EFFORT => self.effort = (value != DEFAULT_EFFORT).then(|| value.to_owned()),
            _ => return Err(OptionError::UnknownOption(option.to_owned())),
        }
        Ok(())
    }

    /// Returns the options in the format of ACP, with the choices and the current values.
    pub(crate) fn to_config_options(&self, listed: &[ModelInfo]) -> Vec<SessionConfigOption> {
        let modes = AgentMode::ALL.map(|(_, id, name, description)| {
            SessionConfigSelectOption::new(id, name).description(description.to_owned())
        });
        let models: Vec<SessionConfigSelectOption> = self
            .model_ids(listed)
            .into_iter()
            .map(|it| SessionConfigSelectOption::new(it.to_owned(), it.to_owned()))
            .collect();
        let efforts = EFFORTS.map(|(id, name)| SessionConfigSelectOption::new(id, name));
        let effort = self.effort.clone().unwrap_or_else(|| DEFAULT_EFFORT.to_owned());
        vec![
            SessionConfigOption::select(MODE, "Mode", self.mode.id(), modes.to_vec())
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(MODEL, "Model", self.model.clone(), models)
                .category(SessionConfigOptionCategory::Model),
            SessionConfigOption::select(EFFORT, "Reasoning effort", effort, efforts.to_vec())
                .category(SessionConfigOptionCategory::ThoughtLevel),
        ]
    }

    /// Returns the listed models, and the current one if it is not among them.
    fn model_ids<'a>(&'a self, listed: &'a [ModelInfo]) -> Vec<&'a str> {
        let mut models: Vec<&str> = listed.iter().map(|it| it.id.as_str()).collect();
        if !models.contains(&self.model.as_str()) {
            models.insert(0, &self.model);
        }
        models
    }

    /// Returns the models, for clients that do not support options. The ACP schema no longer has
    /// this form.
    pub(crate) fn to_model_state(&self, listed: &[ModelInfo]) -> Value {
        let models = self.model_ids(listed).into_iter();
        let models: Vec<Value> = models.map(|it| json!({ "modelId": it, "name": it })).collect();
        json!({ "availableModels": models, "currentModelId": self.model })
    }

    /// Returns the modes, for clients that do not support options.
    pub(crate) fn to_mode_state(&self) -> SessionModeState {
        let modes = AgentMode::ALL.map(|(_, id, name, description)| {
            SessionMode::new(id, name).description(description.to_owned())
        });
        SessionModeState::new(self.mode.id(), modes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> SessionOptions {
        SessionOptions { mode: AgentMode::Ask, model: "gpt-4o".to_owned(), effort: None }
    }

    #[test]
    fn offered_value_can_be_set_and_becomes_current() {
        let mut options = options();
        for (option, value) in [(MODE, "read-only"), (MODEL, "other"), (EFFORT, "high")] {
            options.set_option(option, value).unwrap();
            let config = serde_json::to_value(options.to_config_options(&[])).unwrap();
            let config = config.as_array().unwrap().iter().find(|it| it["id"] == option).unwrap();
            assert_eq!(config["currentValue"], value);
            let offered = config["options"].as_array().unwrap();
            assert!(offered.iter().any(|it| it["value"] == value), "{config}");
        }
        options.set_option(EFFORT, "default").unwrap();
        assert_eq!(options.effort, None);
    }

    #[test]
    fn modes_of_opencode_are_accepted() {
        let mut options = options();
        for (name, mode) in [("plan", AgentMode::ReadOnly), ("build", AgentMode::Ask)] {
            options.set_option(MODE, name).unwrap();
            assert_eq!(options.mode, mode);
        }
    }

    #[test]
    fn models_are_also_described_in_the_older_form() {
        let listed = [ModelInfo { id: "large".to_owned(), ..ModelInfo::default() }];
        let expected = json!({
            "availableModels": [
                { "modelId": "gpt-4o", "name": "gpt-4o" },
                { "modelId": "large", "name": "large" },
            ],
            "currentModelId": "gpt-4o",
        });
        assert_eq!(options().to_model_state(&listed), expected);
    }

    #[test]
    fn invalid_option_and_value_are_refused_with_the_choices() {
        let error = options().set_option(MODE, "yolo").unwrap_err().to_string();
        assert_eq!(error, "`yolo` is not a valid mode; choose one of ask, edit, read-only");
        assert_eq!(options().set_option("x", "y"), Err(OptionError::UnknownOption("x".to_owned())));
    }
}
