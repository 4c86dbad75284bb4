//! The model in use, read from a config option or from the older list of models.

use crate::options::{SessionSetting, find_offer};
use serde_json::{Map, Value, json};

/// The current model in the setup that an agent returned with the session.
pub(super) fn find_current_model(setup: &Value) -> Option<String> {
    // Some agents name the model and offer no other.
    let named = || setup["models"]["currentModelId"].as_str().map(str::to_owned);
    let model = find_offer(setup, SessionSetting::Model).and_then(|it| it.current).or_else(named);
    model.filter(|it| !it.is_empty())
}

pub(super) fn model_in_options(options: &Value) -> Option<String> {
    find_current_model(&json!({ "configOptions": options }))
}

/// The options with their current values.
pub(super) fn option_values(options: &Value) -> Map<String, Value> {
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
