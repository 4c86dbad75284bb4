//! Reading calls that were written as text, in the notations of the models that do it.

use serde_json::{Deserializer, Map, Value, json};

/// The calls that stood in a text, each as an entry of `tool_calls`, and what could not be read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Written {
    pub(super) calls: Vec<Value>,
    pub(super) garbled: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    Calls(Vec<Value>),
    /// It names a tool, and is broken.
    Garbled,
    /// It may be anything.
    Other,
}

/// Reads what stands between the tags of a call.
pub(super) fn read_calls(text: &str, offered: &[String]) -> Reading {
    let text = without_end(text.trim());
    let calls = tagged(text).or_else(|| marked(text)).or_else(|| in_json(text));
    let is_offered = |it: &Value| offered.iter().any(|name| it["function"]["name"] == **name);
    match calls {
        Some(calls) if !calls.is_empty() && calls.iter().all(is_offered) => Reading::Calls(calls),
        None if looks_like_call(text, offered) => Reading::Garbled,
        _ => Reading::Other,
    }
}

/// Without the marks with which Llama ends its turn.
fn without_end(text: &str) -> &str {
    let ends = ["<|eom_id|>", "<|eot_id|>"];
    ends.iter().fold(text, |text, it| text.strip_suffix(it).unwrap_or(text)).trim()
}

/// `<function=NAME>{…}</function>`, or with `<parameter=KEY>VALUE</parameter>` in it.
fn tagged(text: &str) -> Option<Vec<Value>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.strip_prefix("<function=") {
        let (name, inside) = start.split_once('>')?;
        let (inside, behind) = inside.split_once("</function>").unwrap_or((inside, ""));
        let arguments = if inside.trim_start().starts_with("<parameter=") {
            parameters(inside)
        } else if inside.trim().is_empty() {
            json!({})
        } else {
            serde_json::from_str(inside.trim()).ok().filter(Value::is_object)?
        };
        calls.push(entry(name.trim(), &arguments));
        rest = behind.trim_start();
    }
    (!calls.is_empty() && rest.is_empty()).then_some(calls)
}

fn parameters(text: &str) -> Value {
    let mut found = Map::new();
    for part in text.split("<parameter=").skip(1) {
        let Some((key, value)) = part.split_once('>') else { continue };
        let value = value.split("</parameter>").next().unwrap_or_default();
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        // Only what is no string could be meant as something else.
        let read = serde_json::from_str(value).ok().filter(|it: &Value| !it.is_string());
        found.insert(key.trim().to_owned(), read.unwrap_or_else(|| json!(value)));
    }
    Value::Object(found)
}

/// `NAME[ARGS]{…}`, as newer models of Mistral have it.
fn marked(text: &str) -> Option<Vec<Value>> {
    let mut calls = Vec::new();
    for part in text.split("[TOOL_CALLS]").filter(|it| !it.trim().is_empty()) {
        let (name, arguments) = part.split_once("[ARGS]")?;
        let arguments = serde_json::from_str(arguments.trim()).ok().filter(Value::is_object)?;
        calls.push(entry(name.trim(), &arguments));
    }
    Some(calls)
}

/// One call or several, one behind the other or in a list.
fn in_json(text: &str) -> Option<Vec<Value>> {
    let mut calls = Vec::new();
    for part in text.split_inclusive("};").map(|it| it.strip_suffix(';').unwrap_or(it)) {
        for value in Deserializer::from_str(part).into_iter::<Value>() {
            match value {
                Ok(Value::Array(list)) => calls.extend(list),
                Ok(value) if value["tool_calls"].is_array() => {
                    calls.extend(value["tool_calls"].as_array().into_iter().flatten().cloned());
                }
                Ok(value) => calls.push(value),
                // A text with `};` inside a string is not several.
                Err(_) if part.len() < text.len() => return in_one_json(text),
                Err(_) => return None,
            }
        }
    }
    Some(calls.iter().map(|it| call(it).unwrap_or(Value::Null)).collect())
}

fn in_one_json(text: &str) -> Option<Vec<Value>> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(vec![call(&value).unwrap_or(Value::Null)])
}

/// `{name, arguments}` in its variations.
fn call(json: &Value) -> Option<Value> {
    let inner = if json["function"].is_object() { &json["function"] } else { json };
    let name = [&inner["name"], &inner["function"], &inner["tool"]];
    let name = name.iter().find_map(|it| it.as_str())?;
    let arguments =
        ["arguments", "parameters", "args", "input"].iter().find_map(|it| inner.get(*it))?;
    let is_fit = arguments.is_object() || arguments.is_string() || arguments.is_null();
    is_fit.then(|| entry(name, arguments))
}

fn entry(name: &str, arguments: &Value) -> Value {
    json!({"function": {"name": name, "arguments": arguments}})
}

/// The name of a tool, and a word for what it is given.
fn looks_like_call(text: &str, offered: &[String]) -> bool {
    let names = offered.iter().any(|it| text.contains(&format!("\"{it}\"")));
    names && ["\"arguments\"", "\"parameters\""].iter().any(|it| text.contains(it))
}
