//! Tests of session settings.

use super::*;

fn option(id: &str, category: Option<&str>, values: &[&str]) -> Value {
    let values: Vec<Value> =
        values.iter().map(|it| json!({ "value": it, "name": it.to_uppercase() })).collect();
    json!({
        "id": id, "name": id, "category": category, "type": "select",
        "currentValue": values.first().map(|it| &it["value"]), "options": values,
    })
}

fn setup_with(options: &[Value]) -> Value {
    json!({ "configOptions": options })
}

fn config_id(setup: &Value, setting: SessionSetting) -> Option<String> {
    find_offer(setup, setting)?.option_id().map(str::to_owned)
}

fn planned_request(setup: &Value, setting: SessionSetting, wanted: &str) -> (Method, Value) {
    let change = plan_change(setup, setting, "s-1", wanted).unwrap().unwrap();
    (change.method, change.params)
}

#[test]
fn option_is_found_by_its_category_id_or_name() {
    let id = |options: &[Value], setting| config_id(&setup_with(options), setting);
    let provider = option("provider", Some("model"), &["a", "b"]);
    let model = option("model", Some("model"), &["m"]);
    assert_eq!(id(&[provider.clone(), model], SessionSetting::Model).as_deref(), Some("model"));
    assert_eq!(id(&[provider], SessionSetting::Model).as_deref(), Some("provider"));
    assert_eq!(id(&[option("fast", Some("model_config"), &["on"])], SessionSetting::Model), None);
    let bare = option("Model-ID", None, &["m"]);
    assert_eq!(id(&[bare], SessionSetting::Model).as_deref(), Some("Model-ID"));
    let mut named = option("which", None, &["m"]);
    named["name"] = json!("Model");
    assert_eq!(id(&[named], SessionSetting::Model).as_deref(), Some("which"));
    let thinking = option("thinking", Some("thinking"), &["off", "high"]);
    assert_eq!(id(&[thinking], SessionSetting::Reasoning).as_deref(), Some("thinking"));
    let effort = option("effort", Some("thought_level"), &["low"]);
    assert_eq!(id(&[effort], SessionSetting::Reasoning).as_deref(), Some("effort"));
    // `model` starts with `mode` and is a different setting.
    assert_eq!(id(&[option("model", None, &["m"])], SessionSetting::Mode), None);
    let collaboration = option("collaboration_mode", Some("collaboration_mode"), &["plan"]);
    assert_eq!(id(&[collaboration], SessionSetting::Mode), None);
    let switch = json!({ "id": "mode", "type": "boolean", "currentValue": true });
    assert_eq!(id(&[switch], SessionSetting::Mode), None);
}

#[test]
fn request_uses_the_method_that_the_agent_offers() {
    let models = json!({ "currentModelId": "a", "availableModels": [
        { "modelId": "a", "name": "Alpha" }, { "modelId": "b", "name": "Beta" },
    ] });
    let modes = json!({ "currentModeId": "ask", "availableModes": [
        { "id": "ask", "name": "Ask" }, { "id": "https://x#plan", "name": "Plan" },
    ] });
    let legacy = json!({ "models": models, "modes": modes });
    let (method, params) = planned_request(&legacy, SessionSetting::Model, "beta");
    assert_eq!(method, Method::SessionSetModel);
    assert_eq!(params, json!({ "sessionId": "s-1", "modelId": "b" }));
    let (method, params) = planned_request(&legacy, SessionSetting::Mode, "plan");
    assert_eq!(method, Method::SessionSetMode);
    assert_eq!(params, json!({ "sessionId": "s-1", "modeId": "https://x#plan" }));
    let mut both = legacy.clone();
    both["configOptions"] = json!([option("mode", Some("mode"), &["ask", "plan"])]);
    let (method, params) = planned_request(&both, SessionSetting::Mode, "PLAN");
    assert_eq!(method, Method::SessionSetConfigOption);
    assert_eq!(params, json!({ "sessionId": "s-1", "configId": "mode", "value": "plan" }));
}

#[test]
fn option_with_a_single_value_yields_to_the_older_list() {
    let models = json!({ "currentModelId": "b", "availableModels": [
        { "modelId": "a" }, { "modelId": "b" }, { "modelId": " b " }, { "modelId": "" },
    ] });
    let mut setup = setup_with(&[option("model", Some("model"), &["a"])]);
    assert_eq!(config_id(&setup, SessionSetting::Model).as_deref(), Some("model"));
    setup["models"] = models;
    let offer = find_offer(&setup, SessionSetting::Model).unwrap();
    assert_eq!(
        (offer.values(), offer.current.as_deref()),
        (vec!["a".into(), "b".into()], Some("b"))
    );
    assert_eq!(offer.method, SettingMethod::Model);
}

#[test]
fn values_are_found_in_groups_and_exact_names_come_first() {
    let option = json!({ "id": "model", "options": [
        { "group": "x", "name": "X", "options": [
            { "value": "x/opus", "name": "Opus" }, { "value": "OPUS", "name": "Other" },
        ] },
        { "value": "y/opus", "name": "opus" },
    ] });
    let offer = find_offer(&setup_with(&[option]), SessionSetting::Model).unwrap();
    let found = |wanted: &str| offer.find(wanted).map(|it| it.value.as_str());
    assert_eq!(found("opus"), Some("y/opus"));
    assert_eq!(found("OPUS"), Some("OPUS"));
    assert_eq!(found("oPuS"), Some("OPUS"));
    assert_eq!(found("sonnet"), None);
}

#[test]
fn unlisted_model_is_sent_to_the_agent_unless_it_looks_like_a_flag() {
    let setup = setup_with(&[option("model", Some("model"), &["a", "b"])]);
    let (method, params) = planned_request(&setup, SessionSetting::Model, " gpt-6[1m] ");
    assert_eq!((method, &params["value"]), (Method::SessionSetConfigOption, &json!("gpt-6[1m]")));
    let (method, params) = planned_request(&Value::Null, SessionSetting::Model, "x/y:z@1+2");
    assert_eq!((method, &params["modelId"]), (Method::SessionSetModel, &json!("x/y:z@1+2")));
    let long = "x".repeat(MODEL_CHARS_MAX + 1);
    for bad in ["-x", "", "a b", "a;b", "é", &long] {
        assert_eq!(
            plan_change(&setup, SessionSetting::Model, "s-1", bad),
            Err(SettingError::InvalidModelId),
            "{bad}"
        );
    }
}

#[test]
fn modes_and_levels_must_be_offered_and_default_is_no_change() {
    let setup = setup_with(&[option("effort", Some("thought_level"), &["low", "high"])]);
    let offered = vec!["low".to_owned(), "high".to_owned()];
    let plan_change = |setting, wanted| plan_change(&setup, setting, "s-1", wanted);
    assert_eq!(
        plan_change(SessionSetting::Reasoning, "max"),
        Err(SettingError::NotOffered { offered })
    );
    assert_eq!(plan_change(SessionSetting::Mode, "plan"), Err(SettingError::NotConfigurable));
    assert_eq!(plan_change(SessionSetting::Reasoning, "default"), Ok(None));
    assert_eq!(plan_change(SessionSetting::Model, "default"), Ok(None));
    let setup = setup_with(&[option("model", Some("model"), &["default", "opus"])]);
    assert_eq!(planned_request(&setup, SessionSetting::Model, "default").1["value"], "default");
}

#[test]
fn each_option_is_described_once() {
    let mut setup = setup_with(&[
        option("model", Some("model"), &["a", "b"]),
        json!({ "id": "auto_approve", "type": "boolean", "currentValue": false }),
    ]);
    setup["models"] = json!({ "currentModelId": "a", "availableModels": [{ "modelId": "a" }] });
    setup["modes"] = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask" }] });
    let lines: Vec<String> = describe_options(&setup)
        .into_iter()
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    assert_eq!(lines, ["mode: ask (of ask)", "model: a (of a, b)", "auto_approve: false"]);
    assert_eq!(describe_options(&json!({ "configOptions": 7, "modes": [] })), []);
}
