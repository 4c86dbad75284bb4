//! Readers of lists meant for programs.

use serde_json::Value;

type Found = Vec<(String, String)>;

/// `codex debug models`: an array, or an object with one in `models`.
pub(super) fn codex(text: &str) -> Found {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let models = value.get("models").unwrap_or(&value);
    items(models)
        .filter(|it| !matches!(it["visibility"].as_str(), Some("hide" | "hidden")))
        .filter_map(|it| named(it, &["slug", "id"], &["display_name", "name"]))
        .collect()
}

/// One line that holds an object of type `models`; ids get the provider in front.
pub(super) fn dsh(text: &str) -> Found {
    let mut lines = text.lines().filter(|it| !it.trim().is_empty());
    let (Some(line), None) = (lines.next(), lines.next()) else { return Vec::new() };
    let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    if value["type"] != "models" || value["v"] != 1 {
        return Vec::new();
    }
    items(&value["models"])
        .filter_map(|it| {
            let (id, name) = named(it, &["id"], &["name"])?;
            Some((format!("{}/{id}", it["provider"].as_str()?), name))
        })
        .collect()
}

/// A settings file: models by provider, then the one in use.
pub(super) fn qwen_settings(text: &str) -> Found {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let providers = value["modelProviders"].as_object().into_iter().flat_map(|it| it.values());
    let mut found: Found =
        providers.flat_map(items).filter_map(|it| named(it, &["id"], &["name"])).collect();
    match &value["model"] {
        Value::String(id) => found.push((id.clone(), id.clone())),
        model => found.extend(named(model, &["id", "name"], &["name"])),
    }
    found
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The first of the keys for the id that is there, and of those for the name.
fn named(value: &Value, ids: &[&str], names: &[&str]) -> Option<(String, String)> {
    let first = |keys: &[&str]| {
        keys.iter().filter_map(|it| value.get(*it)?.as_str()).find(|it| !it.is_empty())
    };
    let id = first(ids)?;
    Some((id.to_owned(), first(names).unwrap_or(id).to_owned()))
}
