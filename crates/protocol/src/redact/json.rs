//! Secrets in values: in any string, and behind any key that says so.

use super::{
    HIDDEN,
    context::LineContext,
    is_secret_name,
    lead::PrecedingWord,
    names::{self, NameKind},
    text,
    value::accepts_quoted,
};
use serde_json::{Map, Value};

/// Hides what is secret in every string of the value, and all that stands behind a telling key.
pub fn json(value: &mut Value) {
    match value {
        Value::String(it) => hide_in(it),
        Value::Array(items) => items.iter_mut().for_each(json),
        Value::Object(members) => object(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object(members: &mut Map<String, Value>) {
    // `{"name":"X_API_KEY","value":"…"}`: variables and headers in ACP.
    let named = members.get("name").and_then(Value::as_str).is_some_and(is_secret_name);
    for (key, value) in members.iter_mut() {
        if is_secret_name(key) || named && key == "value" {
            hide_whole(value);
        } else if key == "env" {
            hide_variables(value);
        } else if is_encoded(key, value) {
            hide_whole(value);
        } else {
            json(value);
        }
    }
}

/// Whether the value is a user and a password in base64, behind a key that says so.
fn is_encoded(key: &str, value: &Value) -> bool {
    let kind = names::kind(key).filter(|it| *it == NameKind::Encoded);
    kind.is_some_and(|kind| value.as_str().is_some_and(|it| accepts_quoted(it, kind)))
}

/// The values of an environment, whatever their names: as an object, or as a list of pairs.
fn hide_variables(env: &mut Value) {
    match env {
        Value::Object(members) => members.values_mut().for_each(hide_whole),
        Value::Array(items) => {
            for item in items {
                match item.get_mut("value") {
                    Some(value) => hide_whole(value),
                    None => json(item),
                }
            }
        }
        other => json(other),
    }
}

/// A string is hidden whatever it says; numbers and flags are no secrets.
fn hide_whole(value: &mut Value) {
    match value {
        Value::String(it) if !it.is_empty() => HIDDEN.clone_into(it),
        other => json(other),
    }
}

fn hide_in(it: &mut String) {
    if let std::borrow::Cow::Owned(hidden) = text(it) {
        *it = hidden;
    }
}

/// A command line: also an argument behind a telling flag, and the password of `curl -u`.
pub fn argv(args: &[String]) -> Vec<String> {
    let mut flagged = false;
    let mut context = LineContext::default();
    let mut before = PrecedingWord::Nothing;
    let shown = |arg: &String| {
        let hide = std::mem::take(&mut flagged) && !arg.starts_with('-');
        flagged = arg.starts_with("--") && is_secret_name(arg);
        let attached = context.attached(arg);
        let hidden = match std::mem::replace(&mut before, context.read(arg)) {
            PrecedingWord::Whole => Some(0..arg.len()),
            PrecedingWord::BehindColon => arg.find(':').map(|it| it + 1..arg.len()),
            _ => attached,
        };
        match hidden {
            _ if hide => HIDDEN.to_owned(),
            Some(it) => format!("{}{HIDDEN}{}", &arg[..it.start], &arg[it.end..]),
            None => text(arg).into_owned(),
        }
    };
    args.iter().map(shown).collect()
}
