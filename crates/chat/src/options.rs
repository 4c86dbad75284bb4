//! What a user can choose in a session: the mode, the model, how hard it thinks.

use crate::model::Listed;
use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use serde::{Deserialize, Serialize};

pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const EFFORT: &str = "effort";
/// The server decides.
const DEFAULT_EFFORT: &str = "default";
const EFFORTS: [(&str, &str); 5] = [
    (DEFAULT_EFFORT, "Default"),
    ("minimal", "Minimal"),
    ("low", "Low"),
    ("medium", "Medium"),
    ("high", "High"),
];

/// How freely the agent acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Reads freely, asks before it changes anything.
    #[default]
    Ask,
    /// Changes files of the session freely, asks before anything else.
    Edit,
    /// Is not even offered what changes something.
    ReadOnly,
}

impl Mode {
    const ALL: [(Mode, &str, &str, &str); 3] = [
        (Mode::Ask, "ask", "Ask", "Asks before it changes a file or runs a command"),
        (Mode::Edit, "edit", "Edit", "Changes files by itself, asks before it runs a command"),
        (Mode::ReadOnly, "read-only", "Read only", "Reads and searches, changes nothing"),
    ];

    pub(crate) fn from_id(id: &str) -> Option<Mode> {
        Mode::ALL.iter().find(|it| it.1 == id).map(|it| it.0)
    }

    pub(crate) fn id(self) -> &'static str {
        Mode::ALL.iter().find(|it| it.0 == self).map_or("ask", |it| it.1)
    }
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choices {
    pub(crate) mode: Mode,
    pub(crate) model: String,
    /// `None`: the server decides.
    pub(crate) effort: Option<String>,
}

/// Why a choice was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("there is no option `{0}`: the options are `mode`, `model` and `effort`")]
    Option(String),
    #[error("`{value}` is no {option}: choose one of {choices}")]
    Value { option: &'static str, value: String, choices: String },
    #[error("a model has a name")]
    Nameless,
}

impl Choices {
    /// Chooses. Any model can be named: servers serve more than they list.
    pub(crate) fn set(&mut self, option: &str, value: &str) -> Result<(), Refused> {
        match option {
            MODE => {
                let ids = || Mode::ALL.map(|it| it.1).join(", ");
                self.mode = Mode::from_id(value).ok_or_else(|| no_value(MODE, value, ids()))?;
            }
            MODEL if value.is_empty() => return Err(Refused::Nameless),
            MODEL => value.clone_into(&mut self.model),
            EFFORT if !EFFORTS.iter().any(|it| it.0 == value) => {
                return Err(no_value(EFFORT, value, EFFORTS.map(|it| it.0).join(", ")));
            }
            EFFORT => self.effort = (value != DEFAULT_EFFORT).then(|| value.to_owned()),
            _ => return Err(Refused::Option(option.to_owned())),
        }
        Ok(())
    }

    /// The options for a client, with what is chosen.
    pub(crate) fn options(&self, listed: &[Listed]) -> Vec<SessionConfigOption> {
        let ways = Mode::ALL.map(|(_, id, name, about)| {
            SessionConfigSelectOption::new(id, name).description(about.to_owned())
        });
        let mut models: Vec<&str> = listed.iter().map(|it| it.id.as_str()).collect();
        if !models.contains(&self.model.as_str()) {
            models.insert(0, &self.model);
        }
        let models: Vec<SessionConfigSelectOption> = models
            .into_iter()
            .map(|it| SessionConfigSelectOption::new(it.to_owned(), it.to_owned()))
            .collect();
        let efforts = EFFORTS.map(|(id, name)| SessionConfigSelectOption::new(id, name));
        let effort = self.effort.clone().unwrap_or_else(|| DEFAULT_EFFORT.to_owned());
        vec![
            SessionConfigOption::select(MODE, "Mode", self.mode.id(), ways.to_vec())
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(MODEL, "Model", self.model.clone(), models)
                .category(SessionConfigOptionCategory::Model),
            SessionConfigOption::select(EFFORT, "Reasoning effort", effort, efforts.to_vec())
                .category(SessionConfigOptionCategory::ThoughtLevel),
        ]
    }

    /// The modes, for clients that do not know options.
    pub(crate) fn modes(&self) -> SessionModeState {
        let modes = Mode::ALL
            .map(|(_, id, name, about)| SessionMode::new(id, name).description(about.to_owned()));
        SessionModeState::new(self.mode.id(), modes.to_vec())
    }
}

fn no_value(option: &'static str, value: &str, choices: String) -> Refused {
    Refused::Value { option, value: value.to_owned(), choices }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Choices {
        Choices { mode: Mode::Ask, model: "gpt-4o".to_owned(), effort: None }
    }

    #[test]
    fn what_is_offered_can_be_chosen_and_is_current_then() {
        let mut it = choices();
        for (option, value) in [(MODE, "read-only"), (MODEL, "other"), (EFFORT, "high")] {
            it.set(option, value).unwrap();
            let told = serde_json::to_value(it.options(&[])).unwrap();
            let told = told.as_array().unwrap().iter().find(|it| it["id"] == option).unwrap();
            assert_eq!(told["currentValue"], value);
            let offered = told["options"].as_array().unwrap();
            assert!(offered.iter().any(|it| it["value"] == value), "{told}");
        }
        it.set(EFFORT, "default").unwrap();
        assert_eq!(it.effort, None);
    }

    #[test]
    fn what_is_not_offered_is_refused_with_what_is() {
        let error = choices().set(MODE, "yolo").unwrap_err().to_string();
        assert_eq!(error, "`yolo` is no mode: choose one of ask, edit, read-only");
        assert_eq!(choices().set("x", "y"), Err(Refused::Option("x".to_owned())));
    }
}
