//! Which model is in use, where agents say so: a config option, or the older list of models.

use crate::options::{Setting, offer};
use serde_json::{Map, Value, json};

/// Of what an agent offered with the session.
pub(super) fn current(setup: &Value) -> Option<String> {
    // Some name the model and offer no other.
    let named = || setup["models"]["currentModelId"].as_str().map(str::to_owned);
    let model = offer(setup, Setting::Model).and_then(|it| it.current).or_else(named);
    model.filter(|it| !it.is_empty())
}

pub(super) fn of_options(options: &Value) -> Option<String> {
    current(&json!({ "configOptions": options }))
}

/// The options, each with its value.
pub(super) fn values(options: &Value) -> Map<String, Value> {
    let options = options.as_array().into_iter().flatten();
    let value = |it: &Value| Some((it["id"].as_str()?.to_owned(), it["currentValue"].clone()));
    options.filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_an_option_or_in_the_older_list() {
        let option = json!({ "id": "model", "category": "model", "currentValue": "b" });
        let older = json!({ "currentModelId": "a" });
        assert_eq!(current(&json!({ "models": older })).as_deref(), Some("a"));
        let both = json!({ "models": older, "configOptions": [option] });
        assert_eq!(current(&both).as_deref(), Some("b"));
        assert_eq!(current(&json!({ "models": { "currentModelId": "" } })), None);
        assert_eq!(current(&json!(null)), None);
    }

    #[test]
    fn a_provider_or_a_setting_of_the_model_is_no_model() {
        let options = json!([
            { "id": "provider", "category": "model", "currentValue": "openai" },
            { "id": "model", "category": "model", "currentValue": "gpt" },
            { "id": "fast", "category": "model_config", "currentValue": "off" },
        ]);
        assert_eq!(of_options(&options).as_deref(), Some("gpt"));
        assert_eq!(of_options(&json!([options[2]])), None);
    }
}
