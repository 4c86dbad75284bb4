//! Parses the lines of stdin of `run --interactive`.

use clap::ValueEnum;
use serde_json::{Value, json};

/// The format of a line of stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum InputFormat {
    /// Each line is a prompt; empty lines are ignored
    #[default]
    Text,
    /// `{"prompt":"…"}`, `{"prompt":[BLOCK,…]}` or `{"type":"cancel"}`
    Json,
}

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum InputLine {
    Empty,
    /// The content blocks of a prompt.
    Prompt(Vec<Value>),
    /// Cancels the running turn.
    Cancel,
    /// The line is invalid, and why.
    Invalid(String),
}

impl InputFormat {
    pub(super) fn parse_line(self, line: &str) -> InputLine {
        match self {
            _ if line.trim().is_empty() => InputLine::Empty,
            InputFormat::Text => InputLine::Prompt(vec![text_block(line.trim_end())]),
            InputFormat::Json => match serde_json::from_str(line) {
                Ok(value) => parse_message(&value),
                Err(error) => InputLine::Invalid(format!("it is not JSON: {error}")),
            },
        }
    }
}

/// Text as a content block.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn parse_message(value: &Value) -> InputLine {
    let Some(members) = value.as_object() else {
        return InputLine::Invalid("it is not an object".to_owned());
    };
    match members.get("type").map(|it| it.as_str().unwrap_or_default()) {
        Some("cancel") => return InputLine::Cancel,
        None | Some("prompt") => {}
        Some(_) => return InputLine::Invalid(format!("unknown type {}", members["type"])),
    }
    match members.get("prompt") {
        Some(Value::String(prompt)) if prompt.trim().is_empty() => {
            InputLine::Invalid("`prompt` is empty".to_owned())
        }
        Some(Value::String(prompt)) => InputLine::Prompt(vec![text_block(prompt)]),
        // Blocks are passed on unchanged: agents may support types that are unknown here.
        Some(Value::Array(blocks))
            if !blocks.is_empty() && blocks.iter().all(|it| it["type"].is_string()) =>
        {
            InputLine::Prompt(blocks.clone())
        }
        Some(_) => InputLine::Invalid("`prompt` is neither text nor content blocks".to_owned()),
        None => InputLine::Invalid("`prompt` is missing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_line_is_an_unchanged_prompt() {
        assert_eq!(
            InputFormat::Text.parse_line("/compact {\"a\":1} \r"),
            InputLine::Prompt(vec![text_block("/compact {\"a\":1}")])
        );
        assert_eq!(InputFormat::Text.parse_line("  \t"), InputLine::Empty);
    }

    #[test]
    fn json_line_is_a_prompt_or_a_cancel() {
        let read = |line: &str| InputFormat::Json.parse_line(line);
        assert_eq!(
            read(r#"{"prompt":"two\nlines"}"#),
            InputLine::Prompt(vec![text_block("two\nlines")])
        );
        assert_eq!(
            read(r#"{"type":"prompt","prompt":"hi"}"#),
            InputLine::Prompt(vec![text_block("hi")])
        );
        let blocks = vec![text_block("a"), json!({ "type": "new", "x": 1 })];
        assert_eq!(read(&json!({ "prompt": blocks }).to_string()), InputLine::Prompt(blocks));
        assert_eq!(read(r#" {"type":"cancel"} "#), InputLine::Cancel);
        assert_eq!(read(""), InputLine::Empty);
    }

    #[test]
    fn invalid_line_has_a_reason() {
        let why = |line: &str| match InputFormat::Json.parse_line(line) {
            InputLine::Invalid(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("hello").starts_with("it is not JSON: "));
        assert_eq!(why("[1]"), "it is not an object");
        assert_eq!(why("{}"), "`prompt` is missing");
        assert_eq!(why(r#"{"prompt":" "}"#), "`prompt` is empty");
        assert_eq!(why(r#"{"prompt":[]}"#), "`prompt` is neither text nor content blocks");
        assert_eq!(why(r#"{"prompt":[1]}"#), "`prompt` is neither text nor content blocks");
        assert_eq!(why(r#"{"type":"stop"}"#), "unknown type \"stop\"");
        assert_eq!(why(r#"{"type":7}"#), "unknown type 7");
    }
}
