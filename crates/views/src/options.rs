//! What a session lets its user choose: the model, the mode, how hard to think. Agents tell it in
//! three ways, most of them in two at once, and each is set with another method.

use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// What people choose by these words, whatever an agent calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    Model,
    Mode,
    Reasoning,
}

/// What a session offers for one setting, and how it is told the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    way: Way,
    pub current: Option<String>,
    pub choices: Vec<Choice>,
}

/// One value of a setting, under the agent's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub value: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// `session/set_config_option` with this id.
    Option(String),
    /// `session/set_mode`.
    Mode,
    /// `session/set_model`, which is in no schema any more but alive in agents.
    Model,
}

/// A request that makes a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub method: Method,
    pub params: Value,
    /// The value as the agent calls it.
    pub value: String,
}

/// Why there is nothing to ask an agent for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It lets nobody choose.
    NoChoice,
    /// It offers others.
    NotOffered { offered: Vec<String> },
    /// No model is called that.
    NoModelId,
}

/// Lets the agent decide, unless it offers a value of this name.
const DEFAULT: &str = "default";
const MODEL_CHARS_MAX: usize = 200;

impl Setting {
    /// Its name in ACP, which is also the usual id of the option.
    fn category(self) -> &'static str {
        match self {
            Setting::Model => "model",
            Setting::Mode => "mode",
            Setting::Reasoning => "thought_level",
        }
    }

    /// Ids of options without a category that mean it, written in letters and digits only.
    fn ids(self) -> &'static [&'static str] {
        match self {
            Setting::Model => &["model", "models", "modelid", "modelids"],
            Setting::Mode => &["mode", "modes", "modeid", "modeids"],
            Setting::Reasoning => &[
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

    /// How well an option fits: the smaller the better. A provider, too, may be about models.
    fn fits(self, option: &Value) -> Option<u8> {
        if !matches!(text(option, "type"), "" | "select") {
            return None;
        }
        let category = text(option, "category");
        let id: String = text(option, "id").chars().filter(char::is_ascii_alphanumeric).collect();
        let called = self.ids().contains(&id.to_lowercase().as_str());
        let named = text(option, "name").eq_ignore_ascii_case(self.category());
        match (category == self.category(), called) {
            (true, true) => Some(0),
            (true, false) => Some(1),
            (false, true) if text(option, "id") == self.category() => Some(2),
            (false, true) if !KNOWN.contains(&category) => Some(3),
            (false, false) if category.is_empty() && named => Some(4),
            _ => None,
        }
    }
}

/// Categories that say what an option is about; one of these is never about anything else.
const KNOWN: &[&str] = &["model", "mode", "thought_level", "model_config"];

/// What the answer to `session/new`, or the `setup` of a session's log, offers for a setting.
pub fn offer(setup: &Value, setting: Setting) -> Option<Offer> {
    let options = setup["configOptions"].as_array().map_or(&[][..], Vec::as_slice);
    let fitting = options.iter().filter_map(|it| Some((setting.fits(it)?, it)));
    let option = fitting.min_by_key(|(fit, _)| *fit).map(|(_, option)| Offer {
        way: Way::Option(text(option, "id").to_owned()),
        current: current(option, "currentValue"),
        choices: choices(&option["options"], &["value", "id"]),
    });
    let older = match setting {
        Setting::Model => older(&setup["models"], Way::Model, "currentModelId", "availableModels"),
        Setting::Mode => older(&setup["modes"], Way::Mode, "currentModeId", "availableModes"),
        Setting::Reasoning => None,
    };
    match (option, older) {
        // Some agents have the option for the sake of the schema, and the choice in the older list.
        (Some(option), Some(older))
            if option.choices.len() < 2 && option.choices.len() < older.choices.len() =>
        {
            Some(older)
        }
        (option, older) => option.or(older),
    }
}

fn older(told: &Value, way: Way, current_name: &str, list: &str) -> Option<Offer> {
    let choices = choices(&told[list], &["modelId", "id"]);
    let some = !choices.is_empty();
    some.then(|| Offer { way, current: current(told, current_name), choices })
}

/// The request that makes the choice; nothing if the agent shall decide and does so anyway.
pub fn choose(
    setup: &Value,
    setting: Setting,
    session: &str,
    wanted: &str,
) -> Result<Option<Change>, Refused> {
    let wanted = wanted.trim();
    let offer = offer(setup, setting);
    let found = offer.as_ref().and_then(|it| it.find(wanted));
    let value = match (found, &offer) {
        (Some(choice), _) => choice.value.clone(),
        _ if wanted == DEFAULT => return Ok(None),
        // Lists of models are seldom complete: the agent knows whether it has it.
        (None, _) if setting == Setting::Model => {
            is_model_id(wanted).then(|| wanted.to_owned()).ok_or(Refused::NoModelId)?
        }
        (None, None) => return Err(Refused::NoChoice),
        (None, Some(offer)) => return Err(Refused::NotOffered { offered: offer.values() }),
    };
    let way = offer.map_or(Way::Model, |it| it.way);
    let (method, params) = match way {
        Way::Option(id) => (
            Method::SessionSetConfigOption,
            json!({ "sessionId": session, "configId": id, "value": value }),
        ),
        Way::Mode => (Method::SessionSetMode, json!({ "sessionId": session, "modeId": value })),
        Way::Model => (Method::SessionSetModel, json!({ "sessionId": session, "modelId": value })),
    };
    Ok(Some(Change { method, params, value }))
}

impl Offer {
    /// What people call a value: by its id or its name, exactly or at least with the same letters.
    pub fn find(&self, wanted: &str) -> Option<&Choice> {
        let by = |fits: &dyn Fn(&str) -> bool| {
            let value = self.choices.iter().find(|it| fits(&it.value));
            value.or_else(|| self.choices.iter().find(|it| fits(&it.name)))
        };
        by(&|it| it == wanted).or_else(|| by(&|it| it.to_lowercase() == wanted.to_lowercase()))
    }

    pub fn values(&self) -> Vec<String> {
        self.choices.iter().map(|it| it.value.clone()).collect()
    }
}

/// Every option of a session and where it stands, for people: `("model", "opus (of opus, sonnet)")`.
pub fn described(setup: &Value) -> Vec<(String, String)> {
    let line = |name: &str, current: Option<String>, choices: &[Choice]| {
        let values: Vec<&str> = choices.iter().map(|it| it.value.as_str()).collect();
        let of =
            if values.is_empty() { String::new() } else { format!(" (of {})", values.join(", ")) };
        (name.to_owned(), format!("{}{of}", current.unwrap_or_else(|| "-".to_owned())))
    };
    let mut lines = Vec::new();
    for (word, setting) in [("model", Setting::Model), ("mode", Setting::Mode)] {
        let told = offer(setup, setting);
        let older = told.filter(|it| !matches!(it.way, Way::Option(_)));
        lines.extend(older.map(|it| line(word, it.current, &it.choices)));
    }
    for option in setup["configOptions"].as_array().into_iter().flatten() {
        let choices = choices(&option["options"], &["value", "id"]);
        lines.push(line(text(option, "id"), current(option, "currentValue"), &choices));
    }
    lines
}

/// What a model may be called where nobody has listed it: nothing that could be taken for a flag.
fn is_model_id(id: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || "._/:@+[]-".contains(it);
    id.len() <= MODEL_CHARS_MAX
        && id.starts_with(|it: char| it.is_ascii_alphanumeric())
        && id.chars().all(fits)
}

fn current(told: &Value, name: &str) -> Option<String> {
    match &told[name] {
        Value::String(value) if value.is_empty() => None,
        Value::String(value) => Some(value.clone()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Values with names, in groups or not; none of them twice.
fn choices(values: &Value, ids: &[&str]) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    for value in values.as_array().into_iter().flatten() {
        let group = value["options"].is_array();
        let id = ids.iter().map(|it| text(value, it)).find(|it| !it.is_empty()).unwrap_or_default();
        let name = Some(text(value, "name")).filter(|it| !it.is_empty()).unwrap_or(id);
        let one = Choice { value: id.to_owned(), name: name.to_owned() };
        let more = if group { choices(&value["options"], ids) } else { vec![one] };
        for choice in more.into_iter().filter(|it| !it.value.is_empty()) {
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
mod tests {
    use super::*;

    fn option(id: &str, category: Option<&str>, values: &[&str]) -> Value {
        let values: Vec<Value> =
            values.iter().map(|it| json!({ "value": it, "name": it.to_uppercase() })).collect();
        json!({
            "id": id, "name": id, "category": category, "type": "select",
            "currentValue": values.first().map(|it| &it["value"]), "options": values,
        })
    }

    fn setup(options: &[Value]) -> Value {
        json!({ "configOptions": options })
    }

    fn config_id(setup: &Value, setting: Setting) -> Option<String> {
        match offer(setup, setting)?.way {
            Way::Option(id) => Some(id),
            Way::Mode | Way::Model => None,
        }
    }

    fn chosen(setup: &Value, setting: Setting, wanted: &str) -> (Method, Value) {
        let change = choose(setup, setting, "s-1", wanted).unwrap().unwrap();
        (change.method, change.params)
    }

    #[test]
    fn the_option_is_found_by_its_category_its_id_or_its_name() {
        let id = |options: &[Value], setting| config_id(&setup(options), setting);
        let provider = option("provider", Some("model"), &["a", "b"]);
        let model = option("model", Some("model"), &["m"]);
        assert_eq!(id(&[provider.clone(), model], Setting::Model).as_deref(), Some("model"));
        assert_eq!(id(&[provider], Setting::Model).as_deref(), Some("provider"));
        assert_eq!(id(&[option("fast", Some("model_config"), &["on"])], Setting::Model), None);
        let bare = option("Model-ID", None, &["m"]);
        assert_eq!(id(&[bare], Setting::Model).as_deref(), Some("Model-ID"));
        let mut named = option("which", None, &["m"]);
        named["name"] = json!("Model");
        assert_eq!(id(&[named], Setting::Model).as_deref(), Some("which"));
        let thinking = option("thinking", Some("thinking"), &["off", "high"]);
        assert_eq!(id(&[thinking], Setting::Reasoning).as_deref(), Some("thinking"));
        let effort = option("effort", Some("thought_level"), &["low"]);
        assert_eq!(id(&[effort], Setting::Reasoning).as_deref(), Some("effort"));
        // `model` contains `mode`, and is none.
        assert_eq!(id(&[option("model", None, &["m"])], Setting::Mode), None);
        let collaboration = option("collaboration_mode", Some("collaboration_mode"), &["plan"]);
        assert_eq!(id(&[collaboration], Setting::Mode), None);
        let switch = json!({ "id": "mode", "type": "boolean", "currentValue": true });
        assert_eq!(id(&[switch], Setting::Mode), None);
    }

    #[test]
    fn a_choice_is_told_the_way_the_agent_offers_it() {
        let models = json!({ "currentModelId": "a", "availableModels": [
            { "modelId": "a", "name": "Alpha" }, { "modelId": "b", "name": "Beta" },
        ] });
        let ways = json!({ "currentModeId": "ask", "availableModes": [
            { "id": "ask", "name": "Ask" }, { "id": "https://x#plan", "name": "Plan" },
        ] });
        let older = json!({ "models": models, "modes": ways });
        let (method, params) = chosen(&older, Setting::Model, "beta");
        assert_eq!(method, Method::SessionSetModel);
        assert_eq!(params, json!({ "sessionId": "s-1", "modelId": "b" }));
        let (method, params) = chosen(&older, Setting::Mode, "plan");
        assert_eq!(method, Method::SessionSetMode);
        assert_eq!(params, json!({ "sessionId": "s-1", "modeId": "https://x#plan" }));
        let mut both = older.clone();
        both["configOptions"] = json!([option("mode", Some("mode"), &["ask", "plan"])]);
        let (method, params) = chosen(&both, Setting::Mode, "PLAN");
        assert_eq!(method, Method::SessionSetConfigOption);
        assert_eq!(params, json!({ "sessionId": "s-1", "configId": "mode", "value": "plan" }));
    }

    #[test]
    fn an_option_without_a_choice_gives_way_to_the_older_list() {
        let models = json!({ "currentModelId": "b", "availableModels": [
            { "modelId": "a" }, { "modelId": "b" }, { "modelId": " b " }, { "modelId": "" },
        ] });
        let mut told = setup(&[option("model", Some("model"), &["a"])]);
        assert_eq!(config_id(&told, Setting::Model).as_deref(), Some("model"));
        told["models"] = models;
        let offer = offer(&told, Setting::Model).unwrap();
        assert_eq!(
            (offer.values(), offer.current.as_deref()),
            (vec!["a".into(), "b".into()], Some("b"))
        );
        assert_eq!(offer.way, Way::Model);
    }

    #[test]
    fn values_are_found_in_groups_and_an_exact_name_comes_first() {
        let option = json!({ "id": "model", "options": [
            { "group": "x", "name": "X", "options": [
                { "value": "x/opus", "name": "Opus" }, { "value": "OPUS", "name": "Other" },
            ] },
            { "value": "y/opus", "name": "opus" },
        ] });
        let offer = offer(&setup(&[option]), Setting::Model).unwrap();
        let found = |wanted: &str| offer.find(wanted).map(|it| it.value.as_str());
        assert_eq!(found("opus"), Some("y/opus"));
        assert_eq!(found("OPUS"), Some("OPUS"));
        assert_eq!(found("oPuS"), Some("OPUS"));
        assert_eq!(found("sonnet"), None);
    }

    #[test]
    fn a_model_that_is_not_listed_is_the_agents_to_judge_but_never_looks_like_a_flag() {
        let told = setup(&[option("model", Some("model"), &["a", "b"])]);
        let (method, params) = chosen(&told, Setting::Model, " gpt-6[1m] ");
        assert_eq!(
            (method, &params["value"]),
            (Method::SessionSetConfigOption, &json!("gpt-6[1m]"))
        );
        let (method, params) = chosen(&Value::Null, Setting::Model, "x/y:z@1+2");
        assert_eq!((method, &params["modelId"]), (Method::SessionSetModel, &json!("x/y:z@1+2")));
        let long = "x".repeat(MODEL_CHARS_MAX + 1);
        for bad in ["-x", "", "a b", "a;b", "é", &long] {
            assert_eq!(choose(&told, Setting::Model, "s-1", bad), Err(Refused::NoModelId), "{bad}");
        }
    }

    #[test]
    fn modes_and_levels_must_be_offered_and_default_leaves_it_to_the_agent() {
        let told = setup(&[option("effort", Some("thought_level"), &["low", "high"])]);
        let offered = vec!["low".to_owned(), "high".to_owned()];
        let choose = |setting, wanted| choose(&told, setting, "s-1", wanted);
        assert_eq!(choose(Setting::Reasoning, "max"), Err(Refused::NotOffered { offered }));
        assert_eq!(choose(Setting::Mode, "plan"), Err(Refused::NoChoice));
        assert_eq!(choose(Setting::Reasoning, "default"), Ok(None));
        assert_eq!(choose(Setting::Model, "default"), Ok(None));
        let told = setup(&[option("model", Some("model"), &["default", "opus"])]);
        assert_eq!(chosen(&told, Setting::Model, "default").1["value"], "default");
    }

    #[test]
    fn every_option_is_described_once() {
        let mut told = setup(&[
            option("model", Some("model"), &["a", "b"]),
            json!({ "id": "auto_approve", "type": "boolean", "currentValue": false }),
        ]);
        told["models"] = json!({ "currentModelId": "a", "availableModels": [{ "modelId": "a" }] });
        told["modes"] = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask" }] });
        let lines: Vec<String> =
            described(&told).into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(lines, ["mode: ask (of ask)", "model: a (of a, b)", "auto_approve: false"]);
        assert_eq!(described(&json!({ "configOptions": 7, "modes": [] })), []);
    }
}
