//! JSON values, such as the input of a tool, as lines: one member on each line, long texts as they are.

use super::{ViewTheme, escape_hidden, span_list::SpanList, wrap::wrap_spans};
use ratatui::{
    style::Style,
    text::{Line, Span},
};
use serde_json::Value;

/// Deeper values are written as JSON on one line.
const DEPTH_MAX: usize = 8;
const INDENT: usize = 2;

/// Hidden characters are shown as escapes, because a reader may have to permit the call.
pub(crate) fn render_json(value: &Value, width: u16, theme: &ViewTheme) -> Vec<Line<'static>> {
    let mut writer = JsonWriter { theme, width: usize::from(width.max(1)), lines: Vec::new() };
    writer.write_value(value, 0, SpanList::default());
    writer.lines
}

struct JsonWriter<'a> {
    theme: &'a ViewTheme,
    width: usize,
    lines: Vec<Line<'static>>,
}

impl JsonWriter<'_> {
    /// Writes a value after `start`, which is the name of the member or the dash of the item.
    fn write_value(&mut self, value: &Value, depth: usize, mut start: SpanList) {
        match value {
            Value::Object(members) if !members.is_empty() && depth < DEPTH_MAX => {
                self.write_start(start, depth);
                for (name, value) in members {
                    self.write_member(name, value, depth + 1, SpanList::default());
                }
            }
            Value::Array(items) if !items.is_empty() && depth < DEPTH_MAX => {
                self.write_start(start, depth);
                for item in items {
                    self.write_item(item, depth + 1);
                }
            }
            Value::String(text) if !is_scalar(value) => {
                self.write_start(start, depth);
                for line in escape_hidden(text).lines() {
                    let mut content = SpanList::default();
                    content.push(line, self.theme.text);
                    self.write_line(content, depth + 1);
                }
            }
            _ => {
                let (text, style) = self.scalar(value);
                start.push(&text, style);
                self.write_line(start, depth);
            }
        }
    }

    /// An object starts beside its dash, if its first member has one line.
    fn write_item(&mut self, item: &Value, depth: usize) {
        let mut start = SpanList::default();
        start.push("- ", self.theme.dim);
        let members = item.as_object().filter(|_| depth < DEPTH_MAX);
        let first = members.and_then(|it| it.iter().next()).filter(|it| is_scalar(it.1));
        let (Some(members), Some((name, value))) = (members, first) else {
            return self.write_value(item, depth, start);
        };
        self.write_member(name, value, depth, start);
        for (name, value) in members.iter().skip(1) {
            self.write_member(name, value, depth + 1, SpanList::default());
        }
    }

    fn write_member(&mut self, name: &str, value: &Value, depth: usize, mut start: SpanList) {
        start.push(&escape_name(name), self.theme.accent);
        start.push(": ", self.theme.dim);
        self.write_value(value, depth, start);
    }

    fn scalar(&self, value: &Value) -> (String, Style) {
        let syntax = &self.theme.syntax;
        match value {
            Value::String(text) if text.is_empty() => ("\"\"".to_owned(), self.theme.dim),
            Value::String(text) => (escape_name(text), self.theme.text),
            Value::Number(_) | Value::Bool(_) => (value.to_string(), syntax.constant),
            Value::Null => ("null".to_owned(), self.theme.dim),
            // An empty object or array, or a deep one.
            _ => (escape_name(&value.to_string()), self.theme.dim),
        }
    }

    fn write_start(&mut self, start: SpanList, depth: usize) {
        if !start.is_empty() {
            self.write_line(start, depth);
        }
    }

    /// The members of the outermost value have depth 1 and no indentation.
    fn write_line(&mut self, mut content: SpanList, depth: usize) {
        let indent = (INDENT * depth.saturating_sub(1)).min(self.width / 2);
        let first = self.width - indent;
        let rest = first.saturating_sub(INDENT).max(self.width / 2).min(first).max(1);
        let mut spans = content.take();
        if let Some(last) = spans.last_mut() {
            let end = last.content.trim_end().len();
            last.content.to_mut().truncate(end);
        }
        for (index, line) in wrap_spans(spans, first, rest).into_iter().enumerate() {
            let indent = if index == 0 { indent } else { indent + first - rest };
            let mut spans = line;
            if indent > 0 {
                spans.insert(0, Span::raw(" ".repeat(indent)));
            }
            self.lines.push(Line::from(spans));
        }
    }
}

/// Whether a value takes one line.
fn is_scalar(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim_end_matches('\n').contains('\n'),
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

/// A name or a text on one line.
fn escape_name(text: &str) -> String {
    escape_hidden(text.trim_end_matches('\n')).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ColorDepth;
    use serde_json::json;

    fn render(value: &Value, width: u16) -> Vec<String> {
        let lines = render_json(value, width, &ViewTheme::new(ColorDepth::None));
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_are_indented_under_their_names() {
        let value = json!({
            "command": "cargo test",
            "count": 3,
            "env": {"RUST_LOG": "debug", "empty": {}},
            "paths": ["a.rs", "b.rs"],
            "script": "one\n\ttwo\n",
            "zero": null,
        });
        assert_eq!(
            render(&value, 40),
            [
                "command: cargo test",
                "count: 3",
                "env:",
                "  RUST_LOG: debug",
                "  empty: {}",
                "paths:",
                "  - a.rs",
                "  - b.rs",
                "script:",
                "  one",
                "      two",
                "zero: null",
            ]
        );
    }

    #[test]
    fn scalars_and_hidden_characters() {
        assert_eq!(render(&json!("text"), 40), ["text"]);
        assert_eq!(render(&json!({}), 40), ["{}"]);
        assert_eq!(render(&json!({"a\u{202e}": "b\u{1b}[8m"}), 40), [r"a\u{202e}: b\x1b[8m"]);
    }

    #[test]
    fn long_values_are_wrapped_and_deep_values_stay_on_their_line() {
        assert_eq!(render(&json!({"a": "one two three"}), 10), ["a: one two", "  three"]);
        let deep = (0..100).fold(json!(1), |value, _| json!([value]));
        assert!(render(&deep, 20).len() < 40);
    }
}
