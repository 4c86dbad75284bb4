//! The definitions of the built-in tools, in the words that the model gets.

use super::{SessionContext, features::ToolFeature, optional_definitions::OPTIONAL_TOOLS};
use agent_client_protocol::v1::schema::ToolKind;
use serde_json::{Value, json};

pub(super) const READ: &str = "read";
pub(super) const LIST: &str = "list";
pub(super) const GLOB: &str = "glob";
pub(super) const GREP: &str = "grep";
pub(super) const WRITE: &str = "write";
pub(super) const EDIT: &str = "edit";
pub(super) const APPLY_PATCH: &str = "apply_patch";
pub(super) const SHELL: &str = "shell";
pub(super) const TODO_LIST: &str = "todo";

pub(super) struct ToolDefinition {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: ToolKind,
    /// Whether the tool can change anything but the plan.
    pub(super) has_side_effects: bool,
    /// What the tool depends on, if it is off by default.
    pub(super) feature: Option<ToolFeature>,
    pub(super) parameters: &'static [ToolParameter],
    /// Valid arguments, shown to a model that wrote invalid ones.
    pub(super) example: &'static str,
}

pub(super) struct ToolParameter {
    pub(super) name: &'static str,
    description: &'static str,
    parameter_type: ParameterType,
    pub(super) is_required: bool,
}

#[derive(Clone, Copy)]
pub(super) enum ParameterType {
    Text,
    Integer,
    Boolean,
    Todos,
}

impl ToolDefinition {
    /// Whether the session has what the tool depends on.
    pub(super) fn is_enabled(&self, context: &SessionContext) -> bool {
        self.feature.is_none_or(|it| context.features.has(it))
    }

    pub(super) fn to_spec(&self) -> Value {
        let properties = self.parameters.iter().map(|it| (it.name.to_owned(), it.to_schema()));
        let required = self.parameters.iter().filter(|it| it.is_required).map(|it| it.name);
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": {
                    "type": "object",
                    "properties": properties.collect::<serde_json::Map<_, _>>(),
                    "required": required.collect::<Vec<_>>(),
                    "additionalProperties": false,
                },
            },
        })
    }
}

impl ToolParameter {
    pub(super) fn is_text(&self) -> bool {
        matches!(self.parameter_type, ParameterType::Text)
    }

    fn to_schema(&self) -> Value {
        let mut schema = match self.parameter_type {
            ParameterType::Text => json!({ "type": "string" }),
            ParameterType::Integer => json!({ "type": "integer", "minimum": 1 }),
            ParameterType::Boolean => json!({ "type": "boolean" }),
            ParameterType::Todos => json!({
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": { "type": "string" },
                        "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                        "priority": { "type": "string", "enum": ["high", "medium", "low"] },
                    },
                    "required": ["content", "status"],
                },
            }),
        };
        schema["description"] = self.description.into();
        schema
    }
}

/// All tools, also those that are off.
pub(super) fn all_tools() -> impl Iterator<Item = &'static ToolDefinition> {
    TOOLS.iter().chain(OPTIONAL_TOOLS)
}

/// Finds a tool that the session offers.
pub(super) fn find_tool(
    name: &str,
    context: &SessionContext,
) -> Result<&'static ToolDefinition, String> {
    let known = || all_tools().filter(|it| it.is_enabled(context));
    known().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<String> = known().map(|it| format!("`{}`", it.name)).collect();
        format!("There is no tool `{name}`. The tools are {}.", names.join(", "))
    })
}

pub(super) const fn required_parameter(
    name: &'static str,
    parameter_type: ParameterType,
    description: &'static str,
) -> ToolParameter {
    ToolParameter { name, description, parameter_type, is_required: true }
}

pub(super) const fn optional_parameter(
    name: &'static str,
    parameter_type: ParameterType,
    description: &'static str,
) -> ToolParameter {
    ToolParameter { name, description, parameter_type, is_required: false }
}

const PATH: &str = "A path, relative to the working directory or absolute.";

const TOOLS: &[ToolDefinition] = &[
    ToolDefinition {
        name: READ,
        description: "Reads a text file. The text is given as it is, without line numbers. Long \
                      files come in parts: the end of a part says how to read on.",
        kind: ToolKind::Read,
        has_side_effects: false,
        feature: None,
        parameters: &[
            required_parameter("path", ParameterType::Text, PATH),
            optional_parameter("offset", ParameterType::Integer, "The first line to read, from 1."),
            optional_parameter(
                "limit",
                ParameterType::Integer,
                "How many lines to read; 2000 if not given.",
            ),
        ],
        example: r#"{"path": "src/main.rs", "offset": 1, "limit": 200}"#,
    },
    ToolDefinition {
        name: LIST,
        description: "Lists one directory: one name per line, directories end with a slash. Files \
                      that git ignores are left out.",
        kind: ToolKind::Read,
        has_side_effects: false,
        feature: None,
        parameters: &[optional_parameter(
            "path",
            ParameterType::Text,
            "A directory; the working directory if not given.",
        )],
        example: r#"{"path": "src"}"#,
    },
    ToolDefinition {
        name: GLOB,
        description: "Finds files by name: `*.rs` finds them in every directory, `src/**/*.rs` \
                      below `src`. Files that git ignores are left out.",
        kind: ToolKind::Search,
        has_side_effects: false,
        feature: None,
        parameters: &[
            required_parameter("pattern", ParameterType::Text, "A glob pattern."),
            optional_parameter(
                "path",
                ParameterType::Text,
                "A directory to look in; all directories if not given.",
            ),
        ],
        example: r#"{"pattern": "**/*.rs"}"#,
    },
    ToolDefinition {
        name: GREP,
        description: "Searches the lines of files for a regular expression and prints them as \
                      `path:line:text`. Files that git ignores are left out.",
        kind: ToolKind::Search,
        has_side_effects: false,
        feature: None,
        parameters: &[
            required_parameter(
                "pattern",
                ParameterType::Text,
                "A regular expression, in the syntax of ripgrep.",
            ),
            optional_parameter(
                "path",
                ParameterType::Text,
                "A file or directory; all directories if not given.",
            ),
            optional_parameter(
                "glob",
                ParameterType::Text,
                "Only files whose name matches, such as `*.rs`.",
            ),
            optional_parameter(
                "ignore_case",
                ParameterType::Boolean,
                "Whether upper and lower case are the same.",
            ),
        ],
        example: r#"{"pattern": "fn main", "glob": "*.rs"}"#,
    },
    ToolDefinition {
        name: WRITE,
        description: "Writes a whole file, new or in place of the old one. To change a part of a \
                      file, use `edit`.",
        kind: ToolKind::Edit,
        has_side_effects: true,
        feature: None,
        parameters: &[
            required_parameter("path", ParameterType::Text, PATH),
            required_parameter("content", ParameterType::Text, "The whole text of the file."),
        ],
        example: r#"{"path": "notes.md", "content": "text\n"}"#,
    },
    ToolDefinition {
        name: EDIT,
        description: "Replaces a text in a file by another one. `old_string` must be in the file \
                      exactly, with all its spaces, and only once: give some lines around it, or \
                      set `replace_all`.",
        kind: ToolKind::Edit,
        has_side_effects: true,
        feature: None,
        parameters: &[
            required_parameter("path", ParameterType::Text, PATH),
            required_parameter("old_string", ParameterType::Text, "The text to replace."),
            required_parameter(
                "new_string",
                ParameterType::Text,
                "The text to put there; it may be empty.",
            ),
            optional_parameter(
                "replace_all",
                ParameterType::Boolean,
                "Whether to replace it everywhere in the file.",
            ),
        ],
        example: r#"{"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}"#,
    },
    ToolDefinition {
        name: APPLY_PATCH,
        description: "ChangeSet several places or files at once. A patch is `*** Begin Patch`, \
                      sections, `*** End Patch`. A section is `*** Add File: PATH` and lines with \
                      `+`, or `*** Delete File: PATH`, or `*** Update File: PATH` (then maybe \
                      `*** Move to: PATH`) and hunks: `@@`, maybe with a line above the place, \
                      then lines with a space (as they are), `-` (to remove) or `+` (to add), \
                      with three lines around each change. A unified diff is fine too.",
        kind: ToolKind::Edit,
        has_side_effects: true,
        feature: None,
        parameters: &[required_parameter("patch", ParameterType::Text, "The whole patch.")],
        example: r#"{"patch": "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"}"#,
    },
    ToolDefinition {
        name: SHELL,
        description: "Runs a command line with /bin/sh and returns its output and its exit \
                      status. It has no terminal and no input. After two minutes, or after \
                      `timeout`, ten minutes at most, it is killed with all its child processes; \
                      nothing keeps running in the background.",
        kind: ToolKind::Execute,
        has_side_effects: true,
        feature: None,
        parameters: &[
            required_parameter("command", ParameterType::Text, "The command line."),
            optional_parameter(
                "timeout",
                ParameterType::Integer,
                "After how many seconds it is killed: 1 to 600.",
            ),
            optional_parameter(
                "cwd",
                ParameterType::Text,
                "Where to run it; the working directory if not given.",
            ),
        ],
        example: r#"{"command": "cargo test", "timeout": 300}"#,
    },
    ToolDefinition {
        name: TODO_LIST,
        description: "Writes down your plan, for yourself and the user: always the whole list, \
                      one entry in progress at a time. Use it for work of several steps.",
        kind: ToolKind::Think,
        has_side_effects: false,
        feature: None,
        parameters: &[required_parameter(
            "todos",
            ParameterType::Todos,
            "All entries, in their order.",
        )],
        example: r#"{"todos": [{"content": "write a test", "status": "in_progress"}]}"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::arguments::ToolArguments;

    #[test]
    fn every_example_is_valid() {
        for tool in all_tools() {
            ToolArguments::parse(tool, tool.example).unwrap();
            let spec = tool.to_spec();
            assert_eq!(spec["function"]["name"], tool.name);
            for parameter in tool.parameters.iter().filter(|it| it.is_required) {
                let example: Value = serde_json::from_str(tool.example).unwrap();
                assert!(example.get(parameter.name).is_some(), "{}.{}", tool.name, parameter.name);
            }
        }
    }
}
