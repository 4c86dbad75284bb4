//! Parses tool calls that a model wrote as text, in the notations of the models that do so.

use serde_json::{Deserializer, Map, Value, json};

/// The calls found in a text, each in the format of an entry of `tool_calls`, and the passages that
/// could not be parsed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TextCalls {
    pub(super) calls: Vec<Value>,
    pub(super) garbled: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum ParsedCalls {
    Calls(Vec<Value>),
    /// The text names a tool, but is not a valid call.
    Garbled,
    NotACall,
}

/// Parses the text between the tags of a call.
pub(super) fn parse_text_calls(text: &str, offered: &[String]) -> ParsedCalls {
    let text = strip_end_tokens(text.trim());
    let calls = parse_function_tags(text)
        .or_else(|| parse_mistral_calls(text))
        .or_else(|| parse_json_calls(text));
    let is_offered = |it: &Value| offered.iter().any(|name| it["function"]["name"] == **name);
    match calls {
        Some(calls) if !calls.is_empty() && calls.iter().all(is_offered) => {
            ParsedCalls::Calls(calls)
        }
        None if looks_like_call(text, offered) => ParsedCalls::Garbled,
        _ => ParsedCalls::NotACall,
    }
}

/// Removes the tokens with which Llama ends its turn.
fn strip_end_tokens(text: &str) -> &str {
    let tokens = ["<|eom_id|>", "<|eot_id|>"];
    tokens.iter().fold(text, |text, it| text.strip_suffix(it).unwrap_or(text)).trim()
}

/// `<function=NAME>{…}</function>`, or with `<parameter=KEY>VALUE</parameter>` inside.
fn parse_function_tags(text: &str) -> Option<Vec<Value>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.strip_prefix("<function=") {
        let (name, inside) = start.split_once('>')?;
        let (inside, behind) = inside.split_once("</function>").unwrap_or((inside, ""));
        let arguments = if inside.trim_start().starts_with("<parameter=") {
            parse_parameters(inside)
        } else if inside.trim().is_empty() {
            json!({})
        } else {
            serde_json::from_str(inside.trim()).ok().filter(Value::is_object)?
        };
        calls.push(to_call_entry(name.trim(), &arguments));
        rest = behind.trim_start();
    }
    (!calls.is_empty() && rest.is_empty()).then_some(calls)
}

fn parse_parameters(text: &str) -> Value {
    let mut parameters = Map::new();
    for part in text.split("<parameter=").skip(1) {
        let Some((key, value)) = part.split_once('>') else { continue };
        let value = value.split("</parameter>").next().unwrap_or_default();
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        // A JSON string stays as written, with its quotes; other JSON values are parsed.
        let parsed = serde_json::from_str(value).ok().filter(|it: &Value| !it.is_string());
        parameters.insert(key.trim().to_owned(), parsed.unwrap_or_else(|| json!(value)));
    }
    Value::Object(parameters)
}

/// `NAME[ARGS]{…}`, the notation of newer Mistral models.
fn parse_mistral_calls(text: &str) -> Option<Vec<Value>> {
    let mut calls = Vec::new();
    for part in text.split("[TOOL_CALLS]").filter(|it| !it.trim().is_empty()) {
        let (name, arguments) = part.split_once("[ARGS]")?;
        let arguments = serde_json::from_str(arguments.trim()).ok().filter(Value::is_object)?;
        calls.push(to_call_entry(name.trim(), &arguments));
    }
    Some(calls)
}

/// One JSON call, several in sequence, or a list of them.
fn parse_json_calls(text: &str) -> Option<Vec<Value>> {
    let mut calls = Vec::new();
    for part in text.split_inclusive("};").map(|it| it.strip_suffix(';').unwrap_or(it)) {
        for value in Deserializer::from_str(part).into_iter::<Value>() {
            match value {
                Ok(Value::Array(list)) => calls.extend(list),
                Ok(value) if value["tool_calls"].is_array() => {
                    calls.extend(value["tool_calls"].as_array().into_iter().flatten().cloned());
                }
                Ok(value) => calls.push(value),
                // `};` inside a string does not separate two calls.
                Err(_) if part.len() < text.len() => return parse_single_json_call(text),
                Err(_) => return None,
            }
        }
    }
    Some(calls.iter().map(|it| normalize_call(it).unwrap_or(Value::Null)).collect())
}

fn parse_single_json_call(text: &str) -> Option<Vec<Value>> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(vec![normalize_call(&value).unwrap_or(Value::Null)])
}

/// Accepts the variants of `{name, arguments}`.
fn normalize_call(json: &Value) -> Option<Value> {
    let inner = if json["function"].is_object() { &json["function"] } else { json };
    let name = [&inner["name"], &inner["function"], &inner["tool"]];
    let name = name.iter().find_map(|it| it.as_str())?;
    let arguments =
        ["arguments", "parameters", "args", "input"].iter().find_map(|it| inner.get(*it))?;
    let is_valid = arguments.is_object() || arguments.is_string() || arguments.is_null();
    is_valid.then(|| to_call_entry(name, arguments))
}

fn to_call_entry(name: &str, arguments: &Value) -> Value {
    json!({"function": {"name": name, "arguments": arguments}})
}

/// Whether the text has the name of a tool and a key for arguments.
fn looks_like_call(text: &str, offered: &[String]) -> bool {
    let names_tool = offered.iter().any(|it| text.contains(&format!("\"{it}\"")));
    names_tool && ["\"arguments\"", "\"parameters\""].iter().any(|it| text.contains(it))
}
