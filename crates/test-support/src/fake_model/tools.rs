//! Picks one of the offered tools and fills its arguments from its JSON schema.

use serde_json::{Map, Value, json};

use super::model_request::{OfferedTool, ToolInput};

/// Names of tools that run a command, most specific first.
pub(crate) const SHELLS: &[&str] = &[
    "bash",
    "shell",
    "shell_command",
    "exec_command",
    "run_shell_command",
    "execute_command",
    "run_command",
    "run_commands",
    "run_terminal_cmd",
    "run_in_terminal",
    "execute_bash",
    "terminal",
    "execute",
    "exec",
];

/// Names of tools that write a file.
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
    "apply_patch",
];

/// A call of an offered tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    /// An object, or text for a tool that takes text.
    pub(crate) arguments: Value,
    pub(crate) namespace: Option<String>,
}

/// What a tool should do, in forms for each kind of tool.
#[derive(Debug)]
pub(crate) struct ToolOrder<'a> {
    pub(crate) command: &'a str,
    pub(crate) file: &'a str,
    /// Whether a file should be written; the command then does the same.
    pub(crate) writes: bool,
}

impl ToolOrder<'_> {
    /// Builds the call of a tool that runs a command or writes a file.
    pub(crate) fn call(&self, tool: &OfferedTool) -> ToolCall {
        let arguments = match tool.form {
            ToolInput::Arguments => self.fill(tool),
            ToolInput::Patch => json!(self.patch()),
            ToolInput::Code if self.writes => {
                json!(format!(
                    "text(JSON.stringify(await tools.apply_patch({})))",
                    json!(self.patch())
                ))
            }
            ToolInput::Code => {
                let command = json!({"cmd": self.command});
                json!(format!("text((await tools.exec_command({command})).output)"))
            }
        };
        ToolCall { name: tool.name.clone(), arguments, namespace: tool.namespace.clone() }
    }

    fn patch(&self) -> String {
        format!("*** Begin Patch\n*** Add File: {}\n+{}*** End Patch\n", self.file, CONTENT)
    }

    fn fill(&self, tool: &OfferedTool) -> Value {
        let patch = self.patch();
        let given = |name: &str| match name {
            "command" | "cmd" | "commands" | "script" => Some(self.command),
            "path" | "file_path" | "filePath" | "absolute_path" => Some(self.file),
            "content" | "contents" | "file_text" | "file_content" => Some(CONTENT),
            "input" | "patch" => Some(patch.as_str()),
            _ => None,
        };
        let required = |name: &str| {
            let list = tool.schema["required"].as_array();
            list.is_some_and(|it| it.iter().any(|it| it == name))
        };
        let mut arguments = Map::new();
        for (name, schema) in tool.schema["properties"].as_object().into_iter().flatten() {
            let value = match given(name) {
                Some(text) if type_of(schema) == "array" => argument_list(name, text),
                Some(text) => json!(text),
                None if required(name) => sample_value(schema, name),
                None => continue,
            };
            arguments.insert(name.clone(), value);
        }
        Value::Object(arguments)
    }
}

/// The content of a written file.
const CONTENT: &str = "hello-from-tool\n";

/// The first of these that is offered, with or without a prefix (`developer__shell`).
pub(crate) fn pick_tool<'a>(tools: &'a [OfferedTool], wanted: &[&str]) -> Option<&'a OfferedTool> {
    let lower = |tool: &OfferedTool| tool.name.to_ascii_lowercase();
    let exact = |name: &&str| tools.iter().find(|it| lower(it) == *name);
    wanted.iter().find_map(exact).or_else(|| {
        let prefixed = |name: &str, it: &str| {
            it.strip_suffix(name).is_some_and(|head| head.ends_with(['_', '.', '-']))
        };
        tools.iter().find(|tool| wanted.iter().any(|name| prefixed(name, &lower(tool))))
    })
}

/// A command as a list of arguments; anything else as a list of one element.
fn argument_list(name: &str, text: &str) -> Value {
    if name == "command" { json!(["bash", "-lc", text]) } else { json!([text]) }
}

/// Any value that fits a schema.
pub(crate) fn sample_value(schema: &Value, name: &str) -> Value {
    if let Some(first) = schema["enum"].get(0).or(schema.get("const")) {
        return first.clone();
    }
    if let Some(first) = schema["anyOf"].get(0).or(schema["oneOf"].get(0)) {
        return sample_value(first, name);
    }
    match type_of(schema).as_str() {
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let member = |it: &str| (it.to_owned(), sample_value(&schema["properties"][it], it));
            Value::Object(names.map(member).collect())
        }
        "array" => match schema["minItems"].as_u64() {
            None | Some(0) => json!([]),
            Some(_) => json!([sample_value(&schema["items"], name)]),
        },
        // Longer than the command needs, and short enough for a test.
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

    use super::{OfferedTool, SHELLS, ToolOrder, pick_tool};
    use crate::fake_model::model_request::ToolInput;

    const TOOL_ORDER: ToolOrder<'_> = ToolOrder { command: "ls", file: "/f", writes: false };

    #[test]
    fn prefixed_tool_is_found_and_its_required_arguments_are_filled() {
        let schema = json!({
            "properties": {
                "command": {"type": ["array", "null"]}, "timeout_ms": {"type": "INTEGER"},
                "risk": {"enum": ["LOW", "HIGH"]}, "comment": {"type": "string"},
            },
            "required": ["command", "timeout_ms", "risk"],
        });
        let other = OfferedTool::function("read", &json!({}));
        let tools = [other, OfferedTool::function("developer__shell", &schema)];
        let tool = pick_tool(&tools, SHELLS).unwrap();
        let wanted = json!({"command": ["bash", "-lc", "ls"], "timeout_ms": 10_000, "risk": "LOW"});
        assert_eq!(TOOL_ORDER.call(tool).arguments, wanted);
    }

    #[test]
    fn tool_whose_name_only_ends_like_a_known_one_is_not_picked() {
        let tools = [OfferedTool::function("nutshell", &json!({}))];
        assert!(pick_tool(&tools, SHELLS).is_none());
    }

    #[test]
    fn code_tool_gets_a_program_and_patch_tool_gets_a_patch() {
        let mut tool = OfferedTool::function("exec", &json!(null));
        tool.form = ToolInput::Code;
        let program = r#"text((await tools.exec_command({"cmd":"ls"})).output)"#;
        assert_eq!(TOOL_ORDER.call(&tool).arguments, program);
        let order = ToolOrder { writes: true, ..TOOL_ORDER };
        let program = order.call(&tool).arguments;
        assert!(program.as_str().unwrap().contains("tools.apply_patch(\"*** Begin"), "{program}");
        tool.form = ToolInput::Patch;
        let patch = "*** Begin Patch\n*** Add File: /f\n+hello-from-tool\n*** End Patch\n";
        assert_eq!(order.call(&tool).arguments, patch);
    }
}
