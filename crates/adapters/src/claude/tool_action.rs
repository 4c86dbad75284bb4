//! The actions of tools by name, and the human-readable title and diffs of a call.

use crate::known_tools::{first_text as text, to_absolute};
use crate::{ToolKind, ToolUpdate};
use serde_json::Value;

/// The action of a tool, independent of its name in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolAction {
    Run,
    Read,
    List,
    Edit,
    Write,
    Find,
    Search,
    Fetch,
    SearchWeb,
    Delegate,
    LeavePlan,
    Question,
    Skill,
    /// Sets the complete to-do list.
    Todos,
    /// Adds a task.
    NewTask,
    /// Changes a task.
    ChangeTask,
    Other,
}

impl ToolAction {
    pub(super) fn from_name(name: &str) -> ToolAction {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "bash" | "runshellcommand" | "shell" | "powershell" => ToolAction::Run,
            "read" | "readfile" | "notebookread" | "viewimage" => ToolAction::Read,
            "ls" | "listdirectory" | "listfiles" => ToolAction::List,
            "edit" | "editfile" | "multiedit" | "notebookedit" | "replace" => ToolAction::Edit,
            "write" | "writefile" | "createfile" => ToolAction::Write,
            "glob" => ToolAction::Find,
            "grep" | "grepsearch" | "searchfilecontent" | "finder" => ToolAction::Search,
            "webfetch" | "readwebpage" => ToolAction::Fetch,
            "websearch" | "googlewebsearch" => ToolAction::SearchWeb,
            "task" | "agent" | "oracle" => ToolAction::Delegate,
            "exitplanmode" => ToolAction::LeavePlan,
            "askuserquestion" => ToolAction::Question,
            "skill" => ToolAction::Skill,
            "todowrite" => ToolAction::Todos,
            "taskcreate" => ToolAction::NewTask,
            "taskupdate" => ToolAction::ChangeTask,
            _ => ToolAction::Other,
        }
    }

    /// Whether a call is sent as a plan and not as a tool call.
    pub(super) fn is_plan(self) -> bool {
        matches!(self, ToolAction::Todos | ToolAction::NewTask | ToolAction::ChangeTask)
    }

    /// Whether a call shows diffs, which its output must not replace.
    pub(super) fn is_file_change(self) -> bool {
        matches!(self, ToolAction::Edit | ToolAction::Write)
    }

    fn kind(self) -> ToolKind {
        match self {
            ToolAction::Run => ToolKind::Execute,
            ToolAction::Read | ToolAction::List => ToolKind::Read,
            ToolAction::Edit | ToolAction::Write => ToolKind::Edit,
            ToolAction::Find | ToolAction::Search => ToolKind::Search,
            ToolAction::Fetch | ToolAction::SearchWeb => ToolKind::Fetch,
            ToolAction::Delegate
            | ToolAction::Todos
            | ToolAction::NewTask
            | ToolAction::ChangeTask => ToolKind::Think,
            ToolAction::LeavePlan => ToolKind::SwitchMode,
            ToolAction::Question | ToolAction::Skill | ToolAction::Other => ToolKind::Other,
        }
    }
}

/// The longest title that fits into a line.
const TITLE_CHARS_MAX: usize = 120;

/// The title, kind and location; the input may still be incomplete.
pub(super) fn summary_update(name: &str, input: &Value, cwd: &str) -> ToolUpdate {
    let action = ToolAction::from_name(name);
    let title = title(action, name, input, cwd);
    let mut tool = ToolUpdate::new().with_title(shorten_title(&title)).with_kind(action.kind());
    if let Some(path) = input_path(input) {
        tool = tool.with_location(&to_absolute(cwd, path));
    }
    tool
}

/// All information that the input contains.
pub(super) fn full_update(name: &str, input: &Value, cwd: &str) -> ToolUpdate {
    let tool = summary_update(name, input, cwd).with_input(input.clone());
    match ToolAction::from_name(name) {
        ToolAction::Edit => with_edits(tool, input, cwd),
        ToolAction::Write => match (input_path(input), text(input, &["content", "file_text"])) {
            (Some(path), Some(content)) => tool.with_diff(&to_absolute(cwd, path), None, content),
            _ => tool,
        },
        ToolAction::LeavePlan => match text(input, &["plan"]) {
            Some(plan) => tool.with_text(plan),
            None => tool,
        },
        _ => tool,
    }
}

fn with_edits(tool: ToolUpdate, input: &Value, cwd: &str) -> ToolUpdate {
    let Some(path) = input_path(input).map(|path| to_absolute(cwd, path)) else { return tool };
    let one = std::slice::from_ref(input);
    let edits = input["edits"].as_array().map_or(one, Vec::as_slice);
    edits.iter().fold(tool, |tool, edit| {
        let old = text(edit, &["old_string", "old_str"]);
        match text(edit, &["new_string", "new_str", "new_source"]) {
            Some(new) => tool.with_diff(&path, old, new),
            None => tool,
        }
    })
}

pub(super) fn input_path(input: &Value) -> Option<&str> {
    text(input, &["file_path", "notebook_path", "absolute_path", "path", "filePath"])
}

fn title(action: ToolAction, name: &str, input: &Value, cwd: &str) -> String {
    let path = input_path(input).map(|path| to_relative(path, cwd));
    let with_path = |verb: &str| match path {
        Some(path) => format!("{verb} {path}"),
        None => verb.to_owned(),
    };
    let with_text = |verb: &str, names: &[&str]| match text(input, names) {
        Some(what) => format!("{verb} {what}"),
        None => verb.to_owned(),
    };
    let in_path = |title: String| match path {
        Some(path) if path != "." => format!("{title} in {path}"),
        _ => title,
    };
    match action {
        ToolAction::Run => text(input, &["command", "cmd"]).unwrap_or("Run a command").to_owned(),
        ToolAction::Read => with_path("Read"),
        ToolAction::List => with_path("List"),
        ToolAction::Edit => with_path("Edit"),
        ToolAction::Write => with_path("Write"),
        ToolAction::Find => in_path(with_text("Find", &["pattern", "filePattern"])),
        ToolAction::Search => in_path(with_text("Search", &["pattern", "query"])),
        ToolAction::Fetch => with_text("Fetch", &["url"]),
        ToolAction::SearchWeb => with_text("Search the web for", &["query", "objective"]),
        ToolAction::Delegate => {
            text(input, &["description", "task", "prompt"]).unwrap_or("Delegate").to_owned()
        }
        ToolAction::LeavePlan => "Leave plan mode".to_owned(),
        ToolAction::Question => {
            input["questions"][0]["question"].as_str().unwrap_or("Ask").to_owned()
        }
        ToolAction::Skill => with_text("Skill", &["skill", "name", "command"]),
        ToolAction::Todos => "Update the plan".to_owned(),
        ToolAction::NewTask => with_text("Plan", &["subject"]),
        ToolAction::ChangeTask => with_text("Update task", &["taskId"]),
        ToolAction::Other => mcp_title(name),
    }
}

/// The title of an MCP tool, whose name is `mcp__server__tool`, or of an unknown tool.
fn mcp_title(name: &str) -> String {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => format!("{server}: {tool}"),
        None => name.to_owned(),
    }
}

/// The path relative to the session's directory.
fn to_relative<'a>(path: &'a str, cwd: &str) -> &'a str {
    match path.strip_prefix(cwd) {
        Some("" | "/") if !cwd.is_empty() => ".",
        Some(rest) if !cwd.is_empty() => rest.strip_prefix('/').unwrap_or(path),
        _ => path,
    }
}

/// Shortens a title to one line of limited length.
fn shorten_title(title: &str) -> String {
    let title = title.trim();
    let line = title.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(TITLE_CHARS_MAX).collect();
    if short.len() < title.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn titles_name_the_action_and_its_object() {
        let cases = [
            ("Bash", json!({"command": "ls -la"}), "ls -la"),
            ("Bash", json!({"command": "cat <<E\nx\nE"}), "cat <<E…"),
            ("run_shell_command", json!({}), "Run a command"),
            ("Read", json!({"file_path": "/w/src/a.rs"}), "Read src/a.rs"),
            ("Read", json!({"file_path": "/other/a.rs"}), "Read /other/a.rs"),
            ("edit_file", json!({"path": "/w/b.rs"}), "Edit b.rs"),
            ("Glob", json!({"pattern": "*.rs", "path": "/w"}), "Find *.rs"),
            ("Grep", json!({"pattern": "fn", "path": "/w/src"}), "Search fn in src"),
            ("mcp__git__log", json!({}), "git: log"),
            ("Task", json!({"description": "Look around", "prompt": "p"}), "Look around"),
        ];
        for (name, input, title) in cases {
            assert_eq!(summary_update(name, &input, "/w").fields["title"], title, "{name}");
        }
    }

    #[test]
    fn every_edit_becomes_a_diff() {
        let edits = json!({"file_path": "/w/a", "edits": [
            {"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]});
        let tool = full_update("MultiEdit", &edits, "/w");
        let diff = |old: &str, new: &str| json!({"type": "diff", "path": "/w/a", "newText": new, "oldText": old});
        assert_eq!(tool.fields["content"], json!([diff("1", "2"), diff("3", "4")]));
        let cell = json!({"notebook_path": "/w/n.ipynb", "new_source": "x = 1"});
        assert_eq!(
            full_update("NotebookEdit", &cell, "/w").fields["content"][0]["newText"],
            "x = 1"
        );
        let file = json!({"file_path": "/w/a", "content": "new"});
        assert_eq!(full_update("write_file", &file, "/w").fields["content"][0]["newText"], "new");
    }
}
