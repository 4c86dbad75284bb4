//! What the agent of a session offers: choices of modes, models and options, and commands.

use crate::rest::error::ApiError;
use jackfield_events::PromptCapabilities;
use jackfield_hub_client::{HubClientError, HubConnection};
use jackfield_protocol::acp::Method;
use jackfield_views::options::{
    SessionSetting, SettingChoice, SettingOffer, find_offer, list_choices,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The settings of a session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "modes": {
        "current": "code",
        "available": [{ "id": "plan", "name": "Plan" }, { "id": "code", "name": "Code" }],
    },
    "models": null,
    "options": [{
        "id": "effort", "name": "Effort", "type": "select", "current": "low",
        "choices": [{ "value": "low", "name": "Low" }, { "value": "high", "name": "High" }],
    }],
    "commands": [{ "name": "review", "description": "Review the changes", "hint": "a branch" }],
    "prompt": { "image": true, "audio": false, "embeddedContext": true },
}))]
pub(crate) struct SessionSettings {
    /// `null` if the agent offers no modes.
    modes: Option<OfferedValues>,
    /// `null` if the agent offers no models.
    models: Option<OfferedValues>,
    /// All other options of the agent.
    options: Vec<SettingOption>,
    commands: Vec<AgentCommand>,
    prompt: AcceptedContent,
}

/// The modes or the models of an agent.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct OfferedValues {
    current: Option<String>,
    available: Vec<OfferedValue>,
}

/// A mode or a model.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct OfferedValue {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// An option of an agent.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SettingOption {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// `select`: one of `choices`; `boolean`: true or false.
    #[serde(rename = "type")]
    kind: String,
    current: Option<OptionValue>,
    choices: Vec<OptionChoice>,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OptionValue {
    Text(String),
    Flag(bool),
}

/// A value that an option can have.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct OptionChoice {
    value: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// A command of the agent: a prompt that begins with `/` and its name runs it.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AgentCommand {
    name: String,
    description: String,
    /// What can follow the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What the agent accepts in a prompt besides text.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcceptedContent {
    /// An agent that accepts no images gets their paths.
    image: bool,
    audio: bool,
    embedded_context: bool,
}

impl SessionSettings {
    /// Reads the setup of a session, with its current values, and the list of commands.
    pub(super) fn new(setup: &Value, commands: &Value, prompt: PromptCapabilities) -> Self {
        let offers = [SessionSetting::Mode, SessionSetting::Model].map(|it| find_offer(setup, it));
        let is_shown = |id: &str| offers.iter().flatten().any(|it| it.option_id() == Some(id));
        let options = setup["configOptions"].as_array().into_iter().flatten();
        let options = options.filter_map(SettingOption::parse).filter(|it| !is_shown(&it.id));
        let options = options.collect();
        let commands = commands.as_array().into_iter().flatten();
        let commands = commands.filter_map(AgentCommand::parse).collect();
        let PromptCapabilities { image, audio, embedded_context } = prompt;
        let prompt = AcceptedContent { image, audio, embedded_context };
        let [modes, models] = offers.map(|it| it.map(OfferedValues::from));
        SessionSettings { modes, models, options, commands, prompt }
    }
}

impl From<SettingOffer> for OfferedValues {
    fn from(offer: SettingOffer) -> OfferedValues {
        let value = |SettingChoice { value, name, description }| OfferedValue {
            id: value,
            name,
            description,
        };
        let available = offer.choices.into_iter().map(value).collect();
        OfferedValues { current: offer.current, available }
    }
}

impl SettingOption {
    fn parse(option: &Value) -> Option<SettingOption> {
        let id = option["id"].as_str()?.to_owned();
        let choice =
            |SettingChoice { value, name, description }| OptionChoice { value, name, description };
        Some(SettingOption {
            name: option["name"].as_str().unwrap_or(&id).to_owned(),
            description: option["description"].as_str().map(str::to_owned),
            kind: option["type"].as_str().unwrap_or("select").to_owned(),
            current: serde_json::from_value(option["currentValue"].clone()).ok(),
            choices: list_choices(option).into_iter().map(choice).collect(),
            id,
        })
    }
}

impl AgentCommand {
    fn parse(command: &Value) -> Option<AgentCommand> {
        let hint = command.pointer("/input/hint").and_then(Value::as_str);
        Some(AgentCommand {
            name: command["name"].as_str()?.to_owned(),
            description: command["description"].as_str().unwrap_or_default().to_owned(),
            hint: hint.map(str::to_owned),
        })
    }
}

/// A new value of an option.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptionChange {
    id: String,
    value: OptionValue,
}

impl OptionChange {
    /// Sends the value to the agent, if the agent offers it.
    pub(super) async fn apply(
        &self,
        connection: &mut HubConnection,
        session: &str,
        setup: &Value,
    ) -> Result<(), ApiError> {
        let params = self.plan(session, setup).map_err(ApiError::invalid)?;
        match connection.call_method(Method::SessionSetConfigOption, &params).await {
            Ok(_) => Ok(()),
            Err(HubClientError::Refused(error)) if error.error_name().is_empty() => {
                let why = error.message().unwrap_or("no reason given");
                Err(ApiError::invalid(format!("the agent rejected option `{}`: {why}", self.id)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The parameters of the request, or why the agent does not offer this.
    fn plan(&self, session: &str, setup: &Value) -> Result<Value, String> {
        let OptionChange { id, value } = self;
        let options = setup["configOptions"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(option) = options.iter().find(|it| it["id"] == **id) else {
            let known: Vec<&str> = options.iter().filter_map(|it| it["id"].as_str()).collect();
            return Err(format!("the agent has no option `{id}`: it has {}", list_names(&known)));
        };
        let params = json!({ "sessionId": session, "configId": id, "value": value });
        match (option["type"].as_str(), value) {
            (Some("boolean"), OptionValue::Flag(_)) => {
                let mut params = params;
                params["type"] = json!("boolean");
                Ok(params)
            }
            (Some("boolean"), OptionValue::Text(_)) => {
                Err(format!("option `{id}` must be true or false"))
            }
            (_, OptionValue::Flag(_)) => Err(format!("option `{id}` must be one of its choices")),
            (_, OptionValue::Text(text)) => {
                let choices = list_choices(option);
                if choices.iter().any(|it| it.value == *text) {
                    return Ok(params);
                }
                let known: Vec<&str> = choices.iter().map(|it| &*it.value).collect();
                Err(format!("option `{id}` has no value `{text}`: it has {}", list_names(&known)))
            }
        }
    }
}

fn list_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Value {
        json!({
            "modes": {
                "currentModeId": "code",
                "availableModes": [
                    { "id": "plan", "name": "Plan", "description": "Only read" },
                    { "id": "code", "name": "Code" },
                ],
            },
            "configOptions": [
                { "id": "model", "name": "Model", "category": "model", "type": "select",
                  "currentValue": "big", "options": [
                    { "value": "big", "name": "Big" }, { "value": "small", "name": "Small" }] },
                { "id": "effort", "name": "Effort", "category": "thought_level", "type": "select",
                  "currentValue": "low", "options": [
                    { "name": "Usual", "options": [{ "value": "low", "name": "Low" }] }] },
                { "id": "web", "name": "Search", "type": "boolean", "currentValue": true },
                { "name": "without an id" },
            ],
        })
    }

    fn change(id: &str, value: &Value) -> Result<Value, String> {
        let value = serde_json::from_value(value.clone()).unwrap();
        OptionChange { id: id.to_owned(), value }.plan("s-1", &setup())
    }

    #[test]
    fn option_that_is_the_model_is_listed_as_models_only() {
        let commands = json!([
            { "name": "review", "description": "Review", "input": { "hint": "a branch" } },
            { "name": "help" },
            { "description": "without a name" },
        ]);
        let prompt = PromptCapabilities { image: true, ..PromptCapabilities::default() };
        let settings = SessionSettings::new(&setup(), &commands, prompt);
        let choice = |id: &str, name: &str| json!({ "id": id, "name": name });
        let plan = json!({ "id": "plan", "name": "Plan", "description": "Only read" });
        let low = json!({ "value": "low", "name": "Low" });
        let expected = json!({
            "modes": { "current": "code", "available": [plan, choice("code", "Code")] },
            "models": {
                "current": "big", "available": [choice("big", "Big"), choice("small", "Small")],
            },
            "options": [
                { "id": "effort", "name": "Effort", "type": "select", "current": "low",
                  "choices": [low] },
                { "id": "web", "name": "Search", "type": "boolean", "current": true,
                  "choices": [] },
            ],
            "commands": [
                { "name": "review", "description": "Review", "hint": "a branch" },
                { "name": "help", "description": "" },
            ],
            "prompt": { "image": true, "audio": false, "embeddedContext": false },
        });
        assert_eq!(serde_json::to_value(settings).unwrap(), expected);
    }

    #[test]
    fn nothing_is_offered_by_a_setup_without_settings() {
        let settings =
            SessionSettings::new(&json!({}), &Value::Null, PromptCapabilities::default());
        assert_eq!((settings.modes, settings.models), (None, None));
        assert!(settings.options.is_empty() && settings.commands.is_empty());
    }

    #[test]
    fn option_is_set_to_an_offered_value_only() {
        let expected = json!({ "sessionId": "s-1", "configId": "effort", "value": "low" });
        assert_eq!(change("effort", &json!("low")), Ok(expected));
        let flag = change("web", &json!(false)).unwrap();
        assert_eq!((&flag["type"], &flag["value"]), (&json!("boolean"), &json!(false)));
        assert!(change("effort", &json!("galaxy")).unwrap_err().contains("it has `low`"));
        assert!(change("effort", &json!(true)).unwrap_err().contains("one of its choices"));
        assert!(change("web", &json!("on")).unwrap_err().contains("true or false"));
        assert!(change("x", &json!("y")).unwrap_err().contains("`model`, `effort`, `web`"));
    }
}
