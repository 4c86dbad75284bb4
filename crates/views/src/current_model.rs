//! The model in use, read from a config option or from the older list of models.

use crate::options::{SessionSetting, find_offer};
use jackfield_events::{EventBody, ReceivedEvent};
use serde_json::{Map, Value, json};

/// The model that a session uses, folded from its events.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CurrentModel(Option<String>);

impl CurrentModel {
    pub(crate) fn fold_event(&mut self, event: &ReceivedEvent) {
        let model = match &event.body {
            EventBody::Opened(opened) => find_current_model(&opened.setup),
            EventBody::Bound(bound) => find_current_model(&bound.setup),
            EventBody::Configured(changed) => {
                let chosen = changed.frame["params"]["modelId"].as_str().map(str::to_owned);
                chosen.or_else(|| model_in_options(&changed.answer["configOptions"]))
            }
            EventBody::Said(message) => {
                model_in_options(&message.frame["params"]["update"]["configOptions"])
            }
            _ => None,
        };
        self.0 = model.or_else(|| self.0.take());
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The current model in the setup that an agent returned with the session.
pub(crate) fn find_current_model(setup: &Value) -> Option<String> {
    // Some agents name the model and offer no other.
    let named = || setup["models"]["currentModelId"].as_str().map(str::to_owned);
    let model = find_offer(setup, SessionSetting::Model).and_then(|it| it.current).or_else(named);
    model.filter(|it| !it.is_empty())
}

pub(crate) fn model_in_options(options: &Value) -> Option<String> {
    find_current_model(&json!({ "configOptions": options }))
}

/// The options with their current values.
pub(crate) fn option_values(options: &Value) -> Map<String, Value> {
    let options = options.as_array().into_iter().flatten();
    let value = |it: &Value| Some((it["id"].as_str()?.to_owned(), it["currentValue"].clone()));
    options.filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_read_from_an_option_or_the_older_list() {
        let option = json!({ "id": "model", "category": "model", "currentValue": "b" });
        let older = json!({ "currentModelId": "a" });
        assert_eq!(find_current_model(&json!({ "models": older })).as_deref(), Some("a"));
        let both = json!({ "models": older, "configOptions": [option] });
        assert_eq!(find_current_model(&both).as_deref(), Some("b"));
        assert_eq!(find_current_model(&json!({ "models": { "currentModelId": "" } })), None);
        assert_eq!(find_current_model(&json!(null)), None);
    }

    #[test]
    fn provider_and_model_settings_are_not_the_model() {
        let options = json!([
            { "id": "provider", "category": "model", "currentValue": "openai" },
            { "id": "model", "category": "model", "currentValue": "gpt" },
            { "id": "fast", "category": "model_config", "currentValue": "off" },
        ]);
        assert_eq!(model_in_options(&options).as_deref(), Some("gpt"));
        assert_eq!(model_in_options(&json!([options[2]])), None);
    }
}
