//! Values as JSON text: members on lines of their own, lists of simple values on one line.

use serde_json::Value;

/// How a value is laid out in a document.
#[derive(Debug, Clone)]
pub(super) struct ValueLayout {
    pub(super) newline: &'static str,
    /// The indentation of one level.
    pub(super) unit: String,
    pub(super) is_one_line: bool,
}

/// A whole document with this value, as it is written into a new file.
pub fn format_document(value: &Value, unit: &str) -> String {
    let layout = ValueLayout { newline: "\n", unit: unit.to_owned(), is_one_line: false };
    let mut text = String::new();
    layout.format_value(value, "", &mut text);
    text.push('\n');
    text
}

impl ValueLayout {
    /// A member; `indent` is the indentation of its line.
    pub(super) fn format_member(&self, name: &str, value: &Value, indent: &str, text: &mut String) {
        text.push_str(&Value::from(name).to_string());
        text.push_str(": ");
        self.format_value(value, indent, text);
    }

    pub(super) fn format_value(&self, value: &Value, indent: &str, text: &mut String) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let inner = format!("{indent}{}", self.unit);
                for (index, (name, member)) in members.iter().enumerate() {
                    text.push_str(match index {
                        0 => "{",
                        _ => ",",
                    });
                    self.break_line(&inner, text);
                    self.format_member(name, member, &inner, text);
                }
                self.break_line(indent, text);
                text.push('}');
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                text.extend(["[", &items.join(", "), "]"]);
            }
            simple => text.push_str(&simple.to_string()),
        }
    }

    fn break_line(&self, indent: &str, text: &mut String) {
        if self.is_one_line {
            text.push(' ');
        } else {
            text.push_str(self.newline);
            text.push_str(indent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_have_lines_of_their_own_and_lists_do_not() {
        let value = json!({ "a": { "args": ["acp", "x\"y"], "env": {} }, "b": 1 });
        let text = format_document(&value, "\t");
        assert_eq!(
            text,
            "{\n\t\"a\": {\n\t\t\"args\": [\"acp\", \"x\\\"y\"],\n\t\t\"env\": {}\n\t},\n\t\"b\": 1\n}\n"
        );
        let layout = ValueLayout { newline: "\n", unit: "  ".to_owned(), is_one_line: true };
        let mut line = String::new();
        layout.format_value(&value, "", &mut line);
        assert_eq!(line, "{ \"a\": { \"args\": [\"acp\", \"x\\\"y\"], \"env\": {} }, \"b\": 1 }");
    }
}
