//! The settings of a session as the hub stores them: what the agent offered first, and what was set since.

use jackfield_events::PromptCapabilities;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The answer to `_jackfield/settings`. Large values are in the log; the answer has the numbers of their events.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSettings {
    /// The result of `session/new`, or of the request that restored the session.
    #[serde(default)]
    setup: Value,
    /// The last mode and model that were set.
    mode: Option<String>,
    model: Option<String>,
    /// The values of options that clients have set.
    #[serde(default)]
    config: Map<String, Value>,
    /// The event with the latest commands.
    pub commands_seq: Option<u64>,
    /// The event with the latest options.
    pub options_seq: Option<u64>,
    #[serde(default)]
    pub prompt_capabilities: PromptCapabilities,
    /// The working directory, then the additional ones.
    #[serde(default)]
    pub directories: Vec<String>,
}

impl StoredSettings {
    /// The setup with the values that were set since. `options_event` is the event with the latest options.
    pub fn current_setup(&self, options_event: Option<Value>) -> Value {
        let mut setup = if self.setup.is_object() { self.setup.clone() } else { json!({}) };
        match options_event.and_then(take_options) {
            Some(options) => setup["configOptions"] = options,
            // The setup is older than these values.
            None => set_values(&mut setup["configOptions"], &self.config),
        }
        if let (Some(mode), true) = (&self.mode, setup["modes"].is_object()) {
            setup["modes"]["currentModeId"] = json!(mode);
        }
        if let (Some(model), true) = (&self.model, setup["models"].is_object()) {
            setup["models"]["currentModelId"] = json!(model);
        }
        setup
    }
}

/// The list of commands in an update of the agent.
pub fn take_commands(mut event: Value) -> Option<Value> {
    event.pointer_mut("/frame/params/update/availableCommands").map(Value::take)
}

/// The config options in an update of the agent or in its answer to a change.
fn take_options(mut event: Value) -> Option<Value> {
    let pointers = ["/frame/params/update/configOptions", "/answer/configOptions"];
    let pointer = pointers.into_iter().find(|it| event.pointer(it).is_some_and(Value::is_array))?;
    event.pointer_mut(pointer).map(Value::take)
}

/// Sets the current values of config options.
fn set_values(options: &mut Value, values: &Map<String, Value>) {
    for option in options.as_array_mut().into_iter().flatten() {
        let value = option["id"].as_str().and_then(|id| values.get(id));
        if let Some(value) = value.cloned() {
            option["currentValue"] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_from_an_update_or_from_an_answer() {
        let update = json!({ "frame": { "params": { "update": { "configOptions": [1] } } } });
        assert_eq!(take_options(update), Some(json!([1])));
        let answer = json!({ "frame": { "params": { "configId": "x" } }, "answer": { "configOptions": [2] } });
        assert_eq!(take_options(answer), Some(json!([2])));
        assert_eq!(take_options(json!({ "answer": {} })), None);
    }
}
