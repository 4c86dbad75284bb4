//! Parsers of model lists in JSON.

use serde_json::Value;

type IdNamePairs = Vec<(String, String)>;

/// `codex debug models`: an array, or an object with an array in `models`.
pub(super) fn parse_codex(text: &str) -> IdNamePairs {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let models = value.get("models").unwrap_or(&value);
    array_items(models)
        .filter(|it| !matches!(it["visibility"].as_str(), Some("hide" | "hidden")))
        .filter_map(|it| id_and_name(it, &["slug", "id"], &["display_name", "name"]))
        .collect()
}

/// One line that holds an object of type `models`; the provider is prepended to the ids.
pub(super) fn parse_dsh(text: &str) -> IdNamePairs {
    let mut lines = text.lines().filter(|it| !it.trim().is_empty());
    let (Some(line), None) = (lines.next(), lines.next()) else { return Vec::new() };
    let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    if value["type"] != "models" || value["v"] != 1 {
        return Vec::new();
    }
    array_items(&value["models"])
        .filter_map(|it| {
            let (id, name) = id_and_name(it, &["id"], &["name"])?;
            Some((format!("{}/{id}", it["provider"].as_str()?), name))
        })
        .collect()
}

/// A settings file: models by provider, then the one in use.
pub(super) fn parse_qwen_settings(text: &str) -> IdNamePairs {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let providers = value["modelProviders"].as_object().into_iter().flat_map(|it| it.values());
    let mut pairs: IdNamePairs = providers
        .flat_map(array_items)
        .filter_map(|it| id_and_name(it, &["id"], &["name"]))
        .collect();
    match &value["model"] {
        Value::String(id) => pairs.push((id.clone(), id.clone())),
        model => pairs.extend(id_and_name(model, &["id", "name"], &["name"])),
    }
    pairs
}

fn array_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The values of the first present key of `ids` and of `names`; the id if there is no name.
fn id_and_name(value: &Value, ids: &[&str], names: &[&str]) -> Option<(String, String)> {
    let first = |keys: &[&str]| {
        keys.iter().filter_map(|it| value.get(*it)?.as_str()).find(|it| !it.is_empty())
    };
    let id = first(ids)?;
    Some((id.to_owned(), first(names).unwrap_or(id).to_owned()))
}
