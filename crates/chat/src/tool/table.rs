//! The tools we have, as a model is told of them.

use super::Site;
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
pub(super) const PLAN: &str = "todo";
pub(super) const WEB_FETCH: &str = "web_fetch";

pub(super) struct Tool {
    pub(super) name: &'static str,
    description: &'static str,
    pub(super) kind: ToolKind,
    /// Whether it can change anything but the plan.
    pub(super) changes: bool,
    /// Whether it needs the web.
    pub(super) web: bool,
    pub(super) fields: &'static [Field],
    /// Good arguments, for a model that wrote bad ones.
    pub(super) example: &'static str,
}

/// One argument of a tool.
pub(super) struct Field {
    pub(super) name: &'static str,
    description: &'static str,
    kind: FieldKind,
    pub(super) is_required: bool,
}

#[derive(Clone, Copy)]
enum FieldKind {
    Text,
    Whole,
    Flag,
    Todos,
}

impl Tool {
    pub(super) fn to_spec(&self) -> Value {
        let properties = self.fields.iter().map(|it| (it.name.to_owned(), it.to_schema()));
        let required = self.fields.iter().filter(|it| it.is_required).map(|it| it.name);
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

impl Field {
    pub(super) fn is_text(&self) -> bool {
        matches!(self.kind, FieldKind::Text)
    }

    fn to_schema(&self) -> Value {
        let mut schema = match self.kind {
            FieldKind::Text => json!({ "type": "string" }),
            FieldKind::Whole => json!({ "type": "integer", "minimum": 1 }),
            FieldKind::Flag => json!({ "type": "boolean" }),
            FieldKind::Todos => json!({
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

/// A tool by its name.
pub(super) fn find(name: &str, site: &Site) -> Result<&'static Tool, String> {
    let known = || TOOLS.iter().filter(|it| site.fetch || !it.web);
    known().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<String> = known().map(|it| format!("`{}`", it.name)).collect();
        format!("There is no tool `{name}`. The tools are {}.", names.join(", "))
    })
}

const fn need(name: &'static str, kind: FieldKind, description: &'static str) -> Field {
    Field { name, description, kind, is_required: true }
}

const fn may(name: &'static str, kind: FieldKind, description: &'static str) -> Field {
    Field { name, description, kind, is_required: false }
}

const PATH: &str = "A path, relative to the working directory or absolute.";

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: READ,
        description: "Reads a text file. The text is given as it is, without line numbers. Long \
                      files come in parts: the end of a part says how to read on.",
        kind: ToolKind::Read,
        changes: false,
        web: false,
        fields: &[
            need("path", FieldKind::Text, PATH),
            may("offset", FieldKind::Whole, "The first line to read, from 1."),
            may("limit", FieldKind::Whole, "How many lines to read; 2000 if not given."),
        ],
        example: r#"{"path": "src/main.rs", "offset": 1, "limit": 200}"#,
    },
    Tool {
        name: LIST,
        description: "Lists one directory: a name a line, directories end with a slash. What git \
                      ignores is left out.",
        kind: ToolKind::Read,
        changes: false,
        web: false,
        fields: &[may("path", FieldKind::Text, "A directory; the working directory if not given.")],
        example: r#"{"path": "src"}"#,
    },
    Tool {
        name: GLOB,
        description: "Finds files by name: `*.rs` finds them in every directory, `src/**/*.rs` \
                      below `src`. What git ignores is left out.",
        kind: ToolKind::Search,
        changes: false,
        web: false,
        fields: &[
            need("pattern", FieldKind::Text, "A glob pattern."),
            may("path", FieldKind::Text, "A directory to look in; all directories if not given."),
        ],
        example: r#"{"pattern": "**/*.rs"}"#,
    },
    Tool {
        name: GREP,
        description: "Searches the lines of files for a regular expression and prints them as \
                      `path:line:text`. What git ignores is left out.",
        kind: ToolKind::Search,
        changes: false,
        web: false,
        fields: &[
            need("pattern", FieldKind::Text, "A regular expression, in the syntax of ripgrep."),
            may("path", FieldKind::Text, "A file or directory; all directories if not given."),
            may("glob", FieldKind::Text, "Only files whose name fits, such as `*.rs`."),
            may("ignore_case", FieldKind::Flag, "Whether upper and lower case are the same."),
        ],
        example: r#"{"pattern": "fn main", "glob": "*.rs"}"#,
    },
    Tool {
        name: WRITE,
        description: "Writes a whole file, new or in place of the old one. To change a part of a \
                      file, use `edit`.",
        kind: ToolKind::Edit,
        changes: true,
        web: false,
        fields: &[
            need("path", FieldKind::Text, PATH),
            need("content", FieldKind::Text, "The whole text of the file."),
        ],
        example: r#"{"path": "notes.md", "content": "text\n"}"#,
    },
    Tool {
        name: EDIT,
        description: "Replaces a text in a file by another one. `old_string` must be in the file \
                      exactly, with all its spaces, and only once: give some lines around it, or \
                      set `replace_all`.",
        kind: ToolKind::Edit,
        changes: true,
        web: false,
        fields: &[
            need("path", FieldKind::Text, PATH),
            need("old_string", FieldKind::Text, "The text to replace."),
            need("new_string", FieldKind::Text, "The text to put there; it may be empty."),
            may("replace_all", FieldKind::Flag, "Whether to replace it everywhere in the file."),
        ],
        example: r#"{"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}"#,
    },
    Tool {
        name: APPLY_PATCH,
        description: "Changes several places or files at once. A patch is `*** Begin Patch`, \
                      sections, `*** End Patch`. A section is `*** Add File: PATH` and lines with \
                      `+`, or `*** Delete File: PATH`, or `*** Update File: PATH` (then maybe \
                      `*** Move to: PATH`) and hunks: `@@`, maybe with a line above the place, \
                      then lines with a space (as they are), `-` (to remove) or `+` (to add), \
                      with three lines around each change. A unified diff is fine too.",
        kind: ToolKind::Edit,
        changes: true,
        web: false,
        fields: &[need("patch", FieldKind::Text, "The whole patch.")],
        example: r#"{"patch": "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"}"#,
    },
    Tool {
        name: SHELL,
        description: "Runs a command line with /bin/sh and tells what it printed and how it \
                      ended. It has no terminal and no input. It is ended, with all it started, \
                      after two minutes if `timeout` does not say otherwise, ten at most; nothing \
                      runs on in the background.",
        kind: ToolKind::Execute,
        changes: true,
        web: false,
        fields: &[
            need("command", FieldKind::Text, "The command line."),
            may("timeout", FieldKind::Whole, "After how many seconds it is ended: 1 to 600."),
            may("cwd", FieldKind::Text, "Where to run it; the working directory if not given."),
        ],
        example: r#"{"command": "cargo test", "timeout": 300}"#,
    },
    Tool {
        name: PLAN,
        description: "Writes down your plan, for yourself and the user: always the whole list, \
                      one entry in progress at a time. Use it for work of several steps.",
        kind: ToolKind::Think,
        changes: false,
        web: false,
        fields: &[need("todos", FieldKind::Todos, "All entries, in their order.")],
        example: r#"{"todos": [{"content": "write a test", "status": "in_progress"}]}"#,
    },
    Tool {
        name: WEB_FETCH,
        description: "Fetches a page of the public web and gives its text. Pages on this machine \
                      and in its network are not fetched.",
        kind: ToolKind::Fetch,
        changes: false,
        web: true,
        fields: &[need("url", FieldKind::Text, "A whole URL, with http or https.")],
        example: r#"{"url": "https://docs.rs/serde"}"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::args::Args;

    #[test]
    fn every_example_is_accepted_by_its_tool() {
        for tool in TOOLS {
            Args::read(tool, tool.example).unwrap();
            let spec = tool.to_spec();
            assert_eq!(spec["function"]["name"], tool.name);
            for field in tool.fields.iter().filter(|it| it.is_required) {
                let args: Value = serde_json::from_str(tool.example).unwrap();
                assert!(args.get(field.name).is_some(), "{}.{}", tool.name, field.name);
            }
        }
    }
}
