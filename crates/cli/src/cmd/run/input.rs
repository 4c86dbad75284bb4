//! What a line of stdin means when every line is a prompt.

use clap::ValueEnum;
use serde_json::{Value, json};

/// What a line of stdin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Input {
    /// A prompt, as it stands there; empty lines are none
    #[default]
    Text,
    /// `{"prompt":"…"}`, `{"prompt":[BLOCK,…]}` or `{"type":"cancel"}`
    Json,
}

/// What a line wants.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Empty,
    /// The content blocks of a prompt.
    Prompt(Vec<Value>),
    /// The running turn shall stop.
    Cancel,
    /// Nobody knows; why.
    Unclear(String),
}

impl Input {
    pub(super) fn read(self, line: &str) -> Line {
        match self {
            _ if line.trim().is_empty() => Line::Empty,
            Input::Text => Line::Prompt(vec![text(line.trim_end())]),
            Input::Json => match serde_json::from_str(line) {
                Ok(value) => message(&value),
                Err(error) => Line::Unclear(format!("it is no JSON: {error}")),
            },
        }
    }
}

/// A text as a content block.
pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn message(value: &Value) -> Line {
    let Some(members) = value.as_object() else {
        return Line::Unclear("it is no object".to_owned());
    };
    match members.get("type").map(|it| it.as_str().unwrap_or_default()) {
        Some("cancel") => return Line::Cancel,
        None | Some("prompt") => {}
        Some(_) => return Line::Unclear(format!("nothing has the type {}", members["type"])),
    }
    match members.get("prompt") {
        Some(Value::String(words)) if words.trim().is_empty() => {
            Line::Unclear("its `prompt` is empty".to_owned())
        }
        Some(Value::String(words)) => Line::Prompt(vec![text(words)]),
        // Blocks are carried as they are: agents know more of them than we do.
        Some(Value::Array(blocks))
            if !blocks.is_empty() && blocks.iter().all(|it| it["type"].is_string()) =>
        {
            Line::Prompt(blocks.clone())
        }
        Some(_) => Line::Unclear("its `prompt` is neither text nor content blocks".to_owned()),
        None => Line::Unclear("it has no `prompt`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_is_a_prompt_as_it_stands() {
        assert_eq!(
            Input::Text.read("/compact {\"a\":1} \r"),
            Line::Prompt(vec![text("/compact {\"a\":1}")])
        );
        assert_eq!(Input::Text.read("  \t"), Line::Empty);
    }

    #[test]
    fn a_line_of_json_is_a_prompt_or_a_cancel() {
        let read = |line: &str| Input::Json.read(line);
        assert_eq!(read(r#"{"prompt":"two\nlines"}"#), Line::Prompt(vec![text("two\nlines")]));
        assert_eq!(read(r#"{"type":"prompt","prompt":"hi"}"#), Line::Prompt(vec![text("hi")]));
        let blocks = vec![text("a"), json!({ "type": "new", "x": 1 })];
        assert_eq!(read(&json!({ "prompt": blocks }).to_string()), Line::Prompt(blocks));
        assert_eq!(read(r#" {"type":"cancel"} "#), Line::Cancel);
        assert_eq!(read(""), Line::Empty);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let why = |line: &str| match Input::Json.read(line) {
            Line::Unclear(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("hello").starts_with("it is no JSON: "));
        assert_eq!(why("[1]"), "it is no object");
        assert_eq!(why("{}"), "it has no `prompt`");
        assert_eq!(why(r#"{"prompt":" "}"#), "its `prompt` is empty");
        assert_eq!(why(r#"{"prompt":[]}"#), "its `prompt` is neither text nor content blocks");
        assert_eq!(why(r#"{"prompt":[1]}"#), "its `prompt` is neither text nor content blocks");
        assert_eq!(why(r#"{"type":"stop"}"#), "nothing has the type \"stop\"");
        assert_eq!(why(r#"{"type":7}"#), "nothing has the type 7");
    }
}
