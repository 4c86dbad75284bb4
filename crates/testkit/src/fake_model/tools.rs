//! Picks a tool from those a request offers, and fills its arguments from their JSON schema.

use serde_json::{Map, Value, json};

use super::talk::Tool;

/// What agents call the tool that runs a command, most telling first.
pub(crate) const SHELLS: &[&str] = &[
    "bash",
    "shell",
    "shell_command",
    "exec_command",
    "run_shell_command",
    "execute_command",
    "run_command",
    "run_terminal_cmd",
    "run_in_terminal",
    "execute_bash",
    "terminal",
    "execute",
    "exec",
];

/// What agents call the tool that writes a file.
pub(crate) const WRITERS: &[&str] = &[
    "write",
    "write_file",
    "writefile",
    "write_to_file",
    "write_text_file",
    "create_file",
    "create",
    "save-file",
    "str_replace_editor",
    "text_editor",
    "file_editor",
];

/// A call of a tool the request offered.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// The first of these that is offered, also under a prefix (`developer__shell`).
pub(crate) fn pick<'a>(tools: &'a [Tool], wanted: &[&str]) -> Option<&'a Tool> {
    let lower = |tool: &Tool| tool.name.to_ascii_lowercase();
    let exact = |name: &&str| tools.iter().find(|it| lower(it) == *name);
    wanted.iter().find_map(exact).or_else(|| {
        let prefixed = |name: &str, it: &str| {
            it.strip_suffix(name).is_some_and(|head| head.ends_with(['_', '.', '-']))
        };
        tools.iter().find(|tool| wanted.iter().any(|name| prefixed(name, &lower(tool))))
    })
}

/// Arguments for a tool that runs a command or writes a file.
pub(crate) fn fill(tool: &Tool, command: &str, file: &str, content: &str) -> Value {
    let given = |name: &str| match name {
        "command" | "cmd" | "commands" | "script" => Some(command),
        "path" | "file_path" | "filePath" | "absolute_path" => Some(file),
        "content" | "contents" | "file_text" | "file_content" => Some(content),
        _ => None,
    };
    let required = |name: &str| {
        let list = tool.schema["required"].as_array();
        list.is_some_and(|it| it.iter().any(|it| it == name))
    };
    let mut arguments = Map::new();
    for (name, schema) in tool.schema["properties"].as_object().into_iter().flatten() {
        let value = match given(name) {
            Some(text) if type_of(schema) == "array" => words(name, text),
            Some(text) => json!(text),
            None if required(name) => sample(schema, name),
            None => continue,
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}

/// A command as a list of arguments; anything else as a list of one.
fn words(name: &str, text: &str) -> Value {
    if name == "command" { json!(["bash", "-lc", text]) } else { json!([text]) }
}

/// Any value that fits a schema.
pub(crate) fn sample(schema: &Value, name: &str) -> Value {
    if let Some(first) = schema["enum"].get(0).or(schema.get("const")) {
        return first.clone();
    }
    if let Some(first) = schema["anyOf"].get(0).or(schema["oneOf"].get(0)) {
        return sample(first, name);
    }
    match type_of(schema).as_str() {
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let member = |it: &str| (it.to_owned(), sample(&schema["properties"][it], it));
            Value::Object(names.map(member).collect())
        }
        "array" => match schema["minItems"].as_u64() {
            None | Some(0) => json!([]),
            Some(_) => json!([sample(&schema["items"], name)]),
        },
        // Long enough for the command, and never in the way of a test.
        "integer" | "number" if name.to_ascii_lowercase().contains("timeout") => json!(10_000),
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        _ => json!("fake"),
    }
}

/// `type` may be a list; some agents write it in capitals.
fn type_of(schema: &Value) -> String {
    let one = schema["type"].as_str().or(schema["type"][0].as_str());
    one.unwrap_or("string").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SHELLS, Tool, fill, pick};

    #[test]
    fn a_tool_under_a_prefix_is_found_and_its_required_arguments_are_filled() {
        let schema = json!({
            "properties": {
                "command": {"type": ["array", "null"]}, "timeout_ms": {"type": "INTEGER"},
                "risk": {"enum": ["LOW", "HIGH"]}, "comment": {"type": "string"},
            },
            "required": ["command", "timeout_ms", "risk"],
        });
        let other = Tool { name: "read".into(), schema: json!({}) };
        let tools = [other, Tool { name: "developer__shell".into(), schema }];
        let tool = pick(&tools, SHELLS).unwrap();
        let wanted = json!({"command": ["bash", "-lc", "ls"], "timeout_ms": 10_000, "risk": "LOW"});
        assert_eq!(fill(tool, "ls", "/f", "text"), wanted);
    }

    #[test]
    fn a_tool_that_only_ends_like_a_known_one_is_not_taken() {
        let tools = [Tool { name: "nutshell".into(), schema: json!({}) }];
        assert!(pick(&tools, SHELLS).is_none());
    }
}
