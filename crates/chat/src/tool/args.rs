//! The arguments of a call, as models write them: good JSON mostly, and sometimes nearly.

use super::table::Tool;
use jackfield_policy::is_name_of;
use serde_json::{Map, Value};

pub(super) struct Args {
    tool: &'static Tool,
    /// By the names of the tool's own fields, and nothing else.
    map: Map<String, Value>,
}

impl Args {
    /// Reads what a model wrote, or says what is wrong with it and how it should look.
    pub(super) fn read(tool: &'static Tool, arguments: &str) -> Result<Args, String> {
        let map = match parse(arguments) {
            Ok(Value::Object(map)) => map,
            Ok(Value::Null) => Map::new(),
            // The one thing it needs, without its name.
            Ok(value @ (Value::String(_) | Value::Array(_))) if sole_field(tool).is_some() => {
                let name = sole_field(tool).unwrap_or_default();
                Map::from_iter([(name.to_owned(), value)])
            }
            Ok(_) => return Err(shape(tool, "are JSON, but no object")),
            Err(error) => return Err(shape(tool, &format!("are no JSON ({error})"))),
        };
        let args = Args { tool, map: by_field(tool, map)? };
        for field in tool.fields.iter().filter(|it| it.is_required) {
            if !args.map.contains_key(field.name) {
                return Err(shape(tool, &format!("have no `{}`", field.name)));
            }
        }
        Ok(args)
    }

    pub(super) fn tool(&self) -> &'static Tool {
        self.tool
    }

    /// A text that must be there.
    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.find(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong(name, "is no text")),
        }
    }

    /// A whole number from 1.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let whole = |it: f64| it as u64;
        let number = match self.find(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_f64(),
        };
        let number = number.filter(|it: &f64| it.is_finite() && 0.0 <= *it);
        let number = number.ok_or_else(|| self.wrong(name, "is no whole number"))?;
        // Those who count from 0 mean the first.
        Ok(Some(whole(number).max(1)))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.find(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.is_empty() || text.eq_ignore_ascii_case("false") => {
                Ok(false)
            }
            Some(Value::Number(number)) => Ok(number.as_f64() != Some(0.0)),
            Some(_) => Err(self.wrong(name, "is neither true nor false")),
        }
    }

    /// A list that must be there.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Value>, String> {
        match self.find(name) {
            Some(Value::Array(list)) => Ok(list.clone()),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(list)) => Ok(list),
                _ => Err(self.wrong(name, "is no list")),
            },
            _ => Err(self.wrong(name, "is no list")),
        }
    }

    pub(super) fn wrong(&self, name: &str, what: &str) -> String {
        shape(self.tool, &format!("are wrong: `{name}` {what}"))
    }

    /// What will be carried out, by the names of the tool's own fields.
    pub(super) fn input(&self) -> Value {
        Value::Object(self.map.clone())
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }
}

/// The arguments by the names of the fields. An argument that no field takes is refused: what the
/// tool does not see must not be in what people are asked about.
fn by_field(tool: &Tool, map: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut found = Map::new();
    // `null` is as good as nothing.
    for (key, value) in map.into_iter().filter(|it| !it.1.is_null()) {
        let own = tool.fields.iter().find(|it| it.name == key);
        let field = own.or_else(|| tool.fields.iter().find(|it| is_name_of(&key, it.name)));
        let Some(field) = field else {
            let known: Vec<&str> = tool.fields.iter().map(|it| it.name).collect();
            let known = known.join("`, `");
            let why = format!("have `{key}`, which is not one of `{known}`");
            return Err(shape(tool, &why));
        };
        // A command as a list of words is the line that is run.
        let value = match value.as_array().filter(|_| field.is_text()).map(|it| line_of(it)) {
            Some(Some(line)) => Value::String(line),
            _ => value,
        };
        let before = found.insert(field.name.to_owned(), value);
        if before.is_some_and(|it| it != found[field.name]) {
            return Err(shape(tool, &format!("have `{}` twice, as `{key}`", field.name)));
        }
    }
    Ok(found)
}

fn shape(tool: &Tool, what: &str) -> String {
    let Tool { name, example, .. } = tool;
    format!("The arguments of `{name}` {what}. They look like this: {example}")
}

/// JSON, or JSON in a JSON string, or nothing at all; a model may put a fence around it.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let text = inner.and_then(|it| it.strip_suffix("```")).unwrap_or(text).trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    // A patch is often written as it is.
    if text.starts_with("*** Begin Patch") {
        return Ok(Value::String(text.to_owned()));
    }
    match serde_json::from_str(text)? {
        Value::String(inner) if inner.trim_start().starts_with(['{', '"']) => {
            Ok(serde_json::from_str(&inner).unwrap_or(Value::String(inner)))
        }
        value => Ok(value),
    }
}

fn sole_field(tool: &Tool) -> Option<&'static str> {
    let mut required = tool.fields.iter().filter(|it| it.is_required);
    let first = required.next()?;
    required.next().is_none().then_some(first.name)
}

/// A command as a list of words: what a shell was given, or the words quoted.
fn line_of(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [shell, option, line] if is_shell(shell) && matches!(*option, "-c" | "-lc") => {
            Some((*line).to_owned())
        }
        [] => None,
        words => Some(words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ")),
    }
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("sh" | "bash" | "zsh"))
}

fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./=:,+@%".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::table::TOOLS;

    fn args(tool: &str, text: &str) -> Result<Args, String> {
        Args::read(TOOLS.iter().find(|it| it.name == tool).unwrap(), text)
    }

    #[test]
    fn arguments_are_read_however_a_model_wraps_them() {
        for text in [
            r#"{"path": "a"}"#,
            r#""{\"path\": \"a\"}""#,
            r#"{"file_path": "a", "offset": null}"#,
            "```json\n{\"path\": \"a\"}\n```",
            r#""a""#,
        ] {
            assert_eq!(args("read", text).unwrap().text("path").unwrap(), "a", "{text}");
        }
        assert!(args("list", "").unwrap().optional_text("path").unwrap().is_none());
    }

    #[test]
    fn numbers_and_flags_may_be_texts() {
        let edit =
            args("edit", r#"{"path":1,"old_string":"a","new_string":"","replace_all":"True"}"#);
        let edit = edit.unwrap();
        assert_eq!(edit.text("path").unwrap(), "1");
        assert!(edit.flag("replace_all").unwrap());
        let read = args("read", r#"{"path":"a","offset":"7","limit":0}"#).unwrap();
        assert_eq!((read.number("offset"), read.number("limit")), (Ok(Some(7)), Ok(Some(1))));
        let bad = args("read", r#"{"path":"a","offset":"seven"}"#).unwrap();
        assert!(bad.number("offset").unwrap_err().contains("`offset` is no whole number"));
    }

    #[test]
    fn a_command_may_be_a_list_of_words() {
        let line = |text: &str| args("shell", text).unwrap().text("command").unwrap();
        assert_eq!(line(r#"{"cmd": ["bash", "-lc", "ls | wc"]}"#), "ls | wc");
        assert_eq!(line(r#"{"command": ["echo", "it's", "a b"]}"#), r"echo 'it'\''s' 'a b'");
        assert_eq!(line(r#"["ls", "-l"]"#), "ls -l");
    }

    #[test]
    fn argument_that_no_field_takes_is_refused() {
        for text in [
            r#"{"command": "touch A; id", "input": {"command": "ls"}}"#,
            r#"{"command": "ls", "description": "x"}"#,
            r#"{"command": "ls", "cmd": "id"}"#,
            r#"{"command": "ls", "Command": "id"}"#,
        ] {
            let why = args("shell", text).err().unwrap();
            assert!(why.contains("The arguments of `shell` have `"), "{why}");
        }
        let same = args("shell", r#"{"command": "ls", "cmd": "ls", "input": null}"#).unwrap();
        assert_eq!(same.input(), serde_json::json!({ "command": "ls" }));
    }

    #[test]
    fn input_is_what_will_be_run_under_the_own_names_of_the_tool() {
        let given = r#"{"commandLine": ["bash", "-lc", "ls | wc"], "workdir": "src"}"#;
        let input = args("shell", given).unwrap().input();
        assert_eq!(input, serde_json::json!({ "command": "ls | wc", "cwd": "src" }));
    }

    #[test]
    fn what_is_wrong_is_named_and_the_shape_is_shown() {
        let why = |tool: &str, text: &str| args(tool, text).err().unwrap();
        let missing = why("edit", r#"{"path": "a", "old_string": "x"}"#);
        assert!(missing.contains("have no `new_string`"), "{missing}");
        assert!(missing.contains(r#"{"path": "a.py", "old_string""#), "{missing}");
        assert!(why("read", r#"{"path": "#).contains("are no JSON"));
        assert!(why("edit", "[]").contains("no object"));
        let list = args("read", r#"{"path": {"a": 1}}"#).unwrap();
        assert!(list.text("path").unwrap_err().contains("`path` is no text"));
    }
}
