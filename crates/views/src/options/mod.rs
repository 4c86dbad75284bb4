//! The settings that a session offers to its user: the model, the mode, the reasoning effort. Agents
//! describe them in three forms, often in two at once, and each form is set with a different method.

mod stored;

pub use stored::{StoredSettings, take_commands};

use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// A setting with one name for all agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSetting {
    Model,
    Mode,
    Reasoning,
}

/// The values that a session offers for one setting, and the method that sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingOffer {
    method: SettingMethod,
    pub current: Option<String>,
    pub choices: Vec<SettingChoice>,
}

/// One value of a setting, with the agent's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChoice {
    pub value: String,
    pub name: String,
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SettingMethod {
    /// `session/set_config_option` with this id.
    Option(String),
    /// `session/set_mode`.
    Mode,
    /// `session/set_model`, which the ACP schema no longer has but agents still support.
    Model,
}

/// A request that changes a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    pub method: Method,
    pub params: Value,
    /// The value in the agent's spelling.
    pub value: String,
}

/// Why a setting cannot be changed to the wanted value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingError {
    /// The agent does not offer this setting.
    NotConfigurable,
    /// The agent offers other values.
    NotOffered { offered: Vec<String> },
    /// The text is not a valid model id.
    InvalidModelId,
}

/// Leaves the choice to the agent, unless the agent offers a value of this name.
const DEFAULT: &str = "default";
const MODEL_CHARS_MAX: usize = 200;

impl SessionSetting {
    /// The category in ACP, which is also the usual id of the option.
    fn category(self) -> &'static str {
        match self {
            SessionSetting::Model => "model",
            SessionSetting::Mode => "mode",
            SessionSetting::Reasoning => "thought_level",
        }
    }

    /// Option ids that mean this setting, reduced to lowercase letters and digits.
    fn known_ids(self) -> &'static [&'static str] {
        match self {
            SessionSetting::Model => &["model", "models", "modelid", "modelids"],
            SessionSetting::Mode => &["mode", "modes", "modeid", "modeids"],
            SessionSetting::Reasoning => &[
                "thoughtlevel",
                "thinking",
                "thinkinglevel",
                "thinkingeffort",
                "reasoning",
                "reasoningeffort",
                "effort",
            ],
        }
    }

    /// Ranks how well an option matches; a smaller rank is better. An option for the provider may have the
    /// category `model` too.
    fn match_rank(self, option: &Value) -> Option<u8> {
        if !matches!(text(option, "type"), "" | "select") {
            return None;
        }
        let category = text(option, "category");
        let id: String = text(option, "id").chars().filter(char::is_ascii_alphanumeric).collect();
        let has_known_id = self.known_ids().contains(&id.to_lowercase().as_str());
        let has_known_name = text(option, "name").eq_ignore_ascii_case(self.category());
        match (category == self.category(), has_known_id) {
            (true, true) => Some(0),
            (true, false) => Some(1),
            (false, true) if text(option, "id") == self.category() => Some(2),
            (false, true) if !KNOWN_CATEGORIES.contains(&category) => Some(3),
            (false, false) if category.is_empty() && has_known_name => Some(4),
            _ => None,
        }
    }
}

/// Categories with a defined meaning: an option of one of them is never matched by its id.
const KNOWN_CATEGORIES: &[&str] = &["model", "mode", "thought_level", "model_config"];

/// Finds what the result of `session/new`, or the `setup` of a session's log, offers for a setting.
pub fn find_offer(setup: &Value, setting: SessionSetting) -> Option<SettingOffer> {
    let options = setup["configOptions"].as_array().map_or(&[][..], Vec::as_slice);
    let matching = options.iter().filter_map(|it| Some((setting.match_rank(it)?, it)));
    let option = matching.min_by_key(|(rank, _)| *rank).map(|(_, option)| SettingOffer {
        method: SettingMethod::Option(text(option, "id").to_owned()),
        current: current_value(option, "currentValue"),
        choices: list_choices(option),
    });
    let legacy = match setting {
        SessionSetting::Model => legacy_offer(
            &setup["models"],
            SettingMethod::Model,
            "currentModelId",
            "availableModels",
        ),
        SessionSetting::Mode => {
            legacy_offer(&setup["modes"], SettingMethod::Mode, "currentModeId", "availableModes")
        }
        SessionSetting::Reasoning => None,
    };
    match (option, legacy) {
        // Some agents have an option with a single value and list the other values in the older form.
        (Some(option), Some(legacy))
            if option.choices.len() < 2 && option.choices.len() < legacy.choices.len() =>
        {
            Some(legacy)
        }
        (option, legacy) => option.or(legacy),
    }
}

/// An offer in the older form: a list of values beside the config options.
fn legacy_offer(
    offered: &Value,
    method: SettingMethod,
    current_name: &str,
    list: &str,
) -> Option<SettingOffer> {
    let choices = parse_choices(&offered[list], &["modelId", "id"]);
    let has_choices = !choices.is_empty();
    has_choices.then(|| SettingOffer {
        method,
        current: current_value(offered, current_name),
        choices,
    })
}

/// Plans the request that sets the wanted value; `None` if the choice is left to the agent.
pub fn plan_change(
    setup: &Value,
    setting: SessionSetting,
    session: &str,
    wanted: &str,
) -> Result<Option<SettingChange>, SettingError> {
    let wanted = wanted.trim();
    let offer = find_offer(setup, setting);
    let found = offer.as_ref().and_then(|it| it.find(wanted));
    let value = match (found, &offer) {
        (Some(choice), _) => choice.value.clone(),
        _ if wanted == DEFAULT => return Ok(None),
        // Lists of models are rarely complete, so the agent decides whether it has this one.
        (None, _) if setting == SessionSetting::Model => {
            is_model_id(wanted).then(|| wanted.to_owned()).ok_or(SettingError::InvalidModelId)?
        }
        (None, None) => return Err(SettingError::NotConfigurable),
        (None, Some(offer)) => return Err(SettingError::NotOffered { offered: offer.values() }),
    };
    let method = offer.map_or(SettingMethod::Model, |it| it.method);
    let (method, params) = match method {
        SettingMethod::Option(id) => (
            Method::SessionSetConfigOption,
            json!({ "sessionId": session, "configId": id, "value": value }),
        ),
        SettingMethod::Mode => {
            (Method::SessionSetMode, json!({ "sessionId": session, "modeId": value }))
        }
        SettingMethod::Model => {
            (Method::SessionSetModel, json!({ "sessionId": session, "modelId": value }))
        }
    };
    Ok(Some(SettingChange { method, params, value }))
}

impl SettingOffer {
    /// The config option that is this setting, if it is one.
    pub fn option_id(&self) -> Option<&str> {
        match &self.method {
            SettingMethod::Option(id) => Some(id),
            SettingMethod::Mode | SettingMethod::Model => None,
        }
    }

    /// Finds a value by its id or its name; an exact match comes before one that ignores case.
    pub fn find(&self, wanted: &str) -> Option<&SettingChoice> {
        let find_by = |fits: &dyn Fn(&str) -> bool| {
            let value = self.choices.iter().find(|it| fits(&it.value));
            value.or_else(|| self.choices.iter().find(|it| fits(&it.name)))
        };
        let lowercase = wanted.to_lowercase();
        find_by(&|it| it == wanted).or_else(|| find_by(&|it| it.to_lowercase() == lowercase))
    }

    pub fn values(&self) -> Vec<String> {
        self.choices.iter().map(|it| it.value.clone()).collect()
    }
}

/// The values of a config option, without their groups.
pub fn list_choices(option: &Value) -> Vec<SettingChoice> {
    parse_choices(&option["options"], &["value", "id"])
}

/// Every option of a session with its current value, for display: `("model", "opus (of opus, sonnet)")`.
pub fn describe_options(setup: &Value) -> Vec<(String, String)> {
    let line = |name: &str, current: Option<String>, choices: &[SettingChoice]| {
        let values: Vec<&str> = choices.iter().map(|it| it.value.as_str()).collect();
        let of =
            if values.is_empty() { String::new() } else { format!(" (of {})", values.join(", ")) };
        (name.to_owned(), format!("{}{of}", current.unwrap_or_else(|| "-".to_owned())))
    };
    let mut lines = Vec::new();
    for (name, setting) in [("model", SessionSetting::Model), ("mode", SessionSetting::Mode)] {
        let offer = find_offer(setup, setting);
        let legacy = offer.filter(|it| !matches!(it.method, SettingMethod::Option(_)));
        lines.extend(legacy.map(|it| line(name, it.current, &it.choices)));
    }
    for option in setup["configOptions"].as_array().into_iter().flatten() {
        let choices = list_choices(option);
        lines.push(line(text(option, "id"), current_value(option, "currentValue"), &choices));
    }
    lines
}

/// Whether an unlisted text may be a model id. It must not look like a command-line flag.
fn is_model_id(id: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || "._/:@+[]-".contains(it);
    id.len() <= MODEL_CHARS_MAX
        && id.starts_with(|it: char| it.is_ascii_alphanumeric())
        && id.chars().all(fits)
}

fn current_value(offered: &Value, name: &str) -> Option<String> {
    match &offered[name] {
        Value::String(value) if value.is_empty() => None,
        Value::String(value) => Some(value.clone()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The values with their names, in groups or not, without duplicates.
fn parse_choices(values: &Value, ids: &[&str]) -> Vec<SettingChoice> {
    let mut found: Vec<SettingChoice> = Vec::new();
    for value in values.as_array().into_iter().flatten() {
        let is_group = value["options"].is_array();
        let id = ids.iter().map(|it| text(value, it)).find(|it| !it.is_empty()).unwrap_or_default();
        let name = Some(text(value, "name")).filter(|it| !it.is_empty()).unwrap_or(id);
        let description = Some(text(value, "description")).filter(|it| !it.is_empty());
        let choice = SettingChoice {
            value: id.to_owned(),
            name: name.to_owned(),
            description: description.map(str::to_owned),
        };
        let choices = if is_group { parse_choices(&value["options"], ids) } else { vec![choice] };
        for choice in choices.into_iter().filter(|it| !it.value.is_empty()) {
            if found.iter().all(|it| it.value != choice.value) {
                found.push(choice);
            }
        }
    }
    found
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests;
