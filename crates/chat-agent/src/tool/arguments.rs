//! Parses the arguments of a call. Models mostly write valid JSON, and sometimes nearly valid JSON.

use super::definitions::ToolDefinition;
use jackfield_policy::is_member_name;
use serde_json::{Map, Value};

pub(super) struct ToolArguments {
    tool: &'static ToolDefinition,
    /// The arguments by the names of the tool's own parameters, and nothing else.
    map: Map<String, Value>,
}

impl ToolArguments {
    /// Parses what a model wrote. An error says what is invalid and shows valid arguments.
    pub(super) fn parse(
        tool: &'static ToolDefinition,
        arguments: &str,
    ) -> Result<ToolArguments, String> {
        let map = match parse_json(arguments) {
            Ok(Value::Object(map)) => map,
            Ok(Value::Null) => Map::new(),
            // The only required argument, without its name.
            Ok(value @ (Value::String(_) | Value::Array(_)))
                if sole_required_parameter(tool).is_some() =>
            {
                let name = sole_required_parameter(tool).unwrap_or_default();
                Map::from_iter([(name.to_owned(), value)])
            }
            Ok(_) => return Err(describe_error(tool, "are not a JSON object")),
            Err(error) => {
                return Err(describe_error(tool, &format!("are not valid JSON ({error})")));
            }
        };
        let args = ToolArguments { tool, map: normalize_names(tool, map)? };
        for parameter in tool.parameters.iter().filter(|it| it.is_required) {
            if !args.map.contains_key(parameter.name) {
                return Err(describe_error(tool, &format!("have no `{}`", parameter.name)));
            }
        }
        Ok(args)
    }

    pub(super) fn tool(&self) -> &'static ToolDefinition {
        self.tool
    }

    pub(super) fn required_text(&self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| self.invalid_argument(name, "is missing"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.map.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.invalid_argument(name, "is not a string")),
        }
    }

    /// Returns an integer of at least 1.
    pub(super) fn optional_number(&self, name: &str) -> Result<Option<u64>, String> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let to_integer = |it: f64| it as u64;
        let number = match self.map.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_f64(),
        };
        let number = number.filter(|it: &f64| it.is_finite() && 0.0 <= *it);
        let number = number.ok_or_else(|| self.invalid_argument(name, "is not an integer"))?;
        // A model that counts from 0 means the first.
        Ok(Some(to_integer(number).max(1)))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.map.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.is_empty() || text.eq_ignore_ascii_case("false") => {
                Ok(false)
            }
            Some(Value::Number(number)) => Ok(number.as_f64() != Some(0.0)),
            Some(_) => Err(self.invalid_argument(name, "is neither true nor false")),
        }
    }

    pub(super) fn required_list(&self, name: &str) -> Result<Vec<Value>, String> {
        match self.map.get(name) {
            Some(Value::Array(list)) => Ok(list.clone()),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(list)) => Ok(list),
                _ => Err(self.invalid_argument(name, "is not a list")),
            },
            _ => Err(self.invalid_argument(name, "is not a list")),
        }
    }

    pub(super) fn invalid_argument(&self, name: &str, problem: &str) -> String {
        describe_error(self.tool, &format!("are invalid: `{name}` {problem}"))
    }

    /// Returns the arguments that will be used, by the names of the tool's own parameters.
    pub(super) fn to_input(&self) -> Value {
        Value::Object(self.map.clone())
    }
}

/// Renames the arguments to the names of the parameters. An argument that matches no parameter is
/// refused: what the tool ignores must not be part of what the user is asked to permit.
fn normalize_names(
    tool: &ToolDefinition,
    map: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut normalized = Map::new();
    // `null` means that the argument is missing.
    for (key, value) in map.into_iter().filter(|it| !it.1.is_null()) {
        let exact = tool.parameters.iter().find(|it| it.name == key);
        let parameter =
            exact.or_else(|| tool.parameters.iter().find(|it| is_member_name(&key, it.name)));
        let Some(parameter) = parameter else {
            let known: Vec<&str> = tool.parameters.iter().map(|it| it.name).collect();
            let known = known.join("`, `");
            let problem = format!("have `{key}`, which is not one of `{known}`");
            return Err(describe_error(tool, &problem));
        };
        // A command may be a list of arguments.
        let argv = value.as_array().filter(|_| parameter.is_text());
        let value = match argv.map(|it| to_command_line(it)) {
            Some(Some(line)) => Value::String(line),
            _ => value,
        };
        let previous = normalized.insert(parameter.name.to_owned(), value);
        if previous.is_some_and(|it| it != normalized[parameter.name]) {
            let problem = format!("have `{}` twice, as `{key}`", parameter.name);
            return Err(describe_error(tool, &problem));
        }
    }
    Ok(normalized)
}

fn describe_error(tool: &ToolDefinition, problem: &str) -> String {
    let ToolDefinition { name, example, .. } = tool;
    format!("The arguments of `{name}` {problem}. They look like this: {example}")
}

/// Parses JSON, JSON inside a JSON string, or nothing. The model may have put a code fence around
/// it.
pub(crate) fn parse_json(text: &str) -> Result<Value, serde_json::Error> {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let text = inner.and_then(|it| it.strip_suffix("```")).unwrap_or(text).trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    // A patch is often written without any JSON around it.
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

fn sole_required_parameter(tool: &ToolDefinition) -> Option<&'static str> {
    let mut required = tool.parameters.iter().filter(|it| it.is_required);
    let first = required.next()?;
    required.next().is_none().then_some(first.name)
}

/// Converts a list of arguments to a command line: the script of `sh -c`, or the arguments quoted.
fn to_command_line(argv: &[Value]) -> Option<String> {
    let argv: Vec<&str> = argv.iter().map(Value::as_str).collect::<Option<_>>()?;
    match argv.as_slice() {
        [shell, option, line] if is_shell(shell) && matches!(*option, "-c" | "-lc") => {
            Some((*line).to_owned())
        }
        [] => None,
        argv => Some(jackfield_protocol::quote_argv(argv)),
    }
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("sh" | "bash" | "zsh"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::definitions::all_tools;

    fn args(tool: &str, text: &str) -> Result<ToolArguments, String> {
        ToolArguments::parse(all_tools().find(|it| it.name == tool).unwrap(), text)
    }

    #[test]
    fn arguments_are_parsed_in_every_wrapping() {
        for text in [
            r#"{"path": "a"}"#,
            r#""{\"path\": \"a\"}""#,
            r#"{"file_path": "a", "offset": null}"#,
            "```json\n{\"path\": \"a\"}\n```",
            r#""a""#,
        ] {
            assert_eq!(args("read", text).unwrap().required_text("path").unwrap(), "a", "{text}");
        }
        assert!(args("list", "").unwrap().optional_text("path").unwrap().is_none());
    }

    #[test]
    fn numbers_and_flags_may_be_strings() {
        let edit =
            args("edit", r#"{"path":1,"old_string":"a","new_string":"","replace_all":"True"}"#);
        let edit = edit.unwrap();
        assert_eq!(edit.required_text("path").unwrap(), "1");
        assert!(edit.flag("replace_all").unwrap());
        let read = args("read", r#"{"path":"a","offset":"7","limit":0}"#).unwrap();
        assert_eq!(
            (read.optional_number("offset"), read.optional_number("limit")),
            (Ok(Some(7)), Ok(Some(1)))
        );
        let bad = args("read", r#"{"path":"a","offset":"seven"}"#).unwrap();
        assert!(bad.optional_number("offset").unwrap_err().contains("`offset` is not an integer"));
    }

    #[test]
    fn command_may_be_a_list_of_words() {
        let line = |text: &str| args("shell", text).unwrap().required_text("command").unwrap();
        assert_eq!(line(r#"{"cmd": ["bash", "-lc", "ls | wc"]}"#), "ls | wc");
        assert_eq!(line(r#"{"command": ["echo", "it's", "a b"]}"#), r"echo 'it'\''s' 'a b'");
        assert_eq!(line(r#"["ls", "-l"]"#), "ls -l");
    }

    #[test]
    fn argument_without_a_matching_parameter_is_refused() {
        for text in [
            r#"{"command": "touch A; id", "input": {"command": "ls"}}"#,
            r#"{"command": "ls", "description": "x"}"#,
            r#"{"command": "ls", "cmd": "id"}"#,
            r#"{"command": "ls", "Command": "id"}"#,
        ] {
            let error = args("shell", text).err().unwrap();
            assert!(error.contains("The arguments of `shell` have `"), "{error}");
        }
        let same = args("shell", r#"{"command": "ls", "cmd": "ls", "input": null}"#).unwrap();
        assert_eq!(same.to_input(), serde_json::json!({ "command": "ls" }));
    }

    #[test]
    fn input_has_the_names_of_the_parameters() {
        let given = r#"{"commandLine": ["bash", "-lc", "ls | wc"], "workdir": "src"}"#;
        let input = args("shell", given).unwrap().to_input();
        assert_eq!(input, serde_json::json!({ "command": "ls | wc", "cwd": "src" }));
    }

    #[test]
    fn error_names_the_problem_and_shows_valid_arguments() {
        let error = |tool: &str, text: &str| args(tool, text).err().unwrap();
        let missing = error("edit", r#"{"path": "a", "old_string": "x"}"#);
        assert!(missing.contains("have no `new_string`"), "{missing}");
        assert!(missing.contains(r#"{"path": "a.py", "old_string""#), "{missing}");
        assert!(error("read", r#"{"path": "#).contains("are not valid JSON"));
        assert!(error("edit", "[]").contains("are not a JSON object"));
        let object = args("read", r#"{"path": {"a": 1}}"#).unwrap();
        assert!(object.required_text("path").unwrap_err().contains("`path` is not a string"));
    }
}
