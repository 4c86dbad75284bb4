//! Which model is in use, where agents say so: a config option, or the older list of models.

use serde_json::{Map, Value};

/// Of what an agent offered with the session.
pub(super) fn current(setup: &Value) -> Option<String> {
    let older = || named(&setup["models"]["currentModelId"]);
    of_options(&setup["configOptions"]).or_else(older)
}

pub(super) fn of_options(options: &Value) -> Option<String> {
    let all = || options.as_array().into_iter().flatten();
    // Some have the provider in the same category.
    let by_name = || all().find(|it| it["id"] == "model" && is_about_models(it));
    let by_category = || all().find(|it| it["category"] == "model");
    named(&by_name().or_else(by_category)?["currentValue"])
}

/// The options, each with its value.
pub(super) fn values(options: &Value) -> Map<String, Value> {
    let options = options.as_array().into_iter().flatten();
    let value = |it: &Value| Some((it["id"].as_str()?.to_owned(), it["currentValue"].clone()));
    options.filter_map(value).collect()
}

fn is_about_models(option: &Value) -> bool {
    option["category"].as_str().is_none_or(|it| it == "model")
}

fn named(model: &Value) -> Option<String> {
    model.as_str().filter(|it| !it.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        assert_eq!(of_options(&options[2]), None);
        let foreign = json!([{ "id": "model", "category": "thought_level", "currentValue": "x" }]);
        assert_eq!(of_options(&foreign), None);
    }
}
