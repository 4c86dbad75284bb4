//! Common tools by name: the kind, the title and the edits of a call. Programs differ in spelling
//! (`run_shell_command`, `Bash`, `filePath`, `file_path`), but hardly in meaning.

use crate::{PlanEntry, ToolKind, ToolUpdate};
use serde_json::Value;

/// A tool call as the program reports it, with the program's working directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramToolCall<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Value,
    pub(crate) cwd: &'a str,
}

/// One edit: the file, the old text if it is known, and the new text.
type FileEdit<'a> = (String, Option<&'a str>, &'a str);

impl ProgramToolCall<'_> {
    pub(crate) fn kind(&self) -> ToolKind {
        match normalize_name(self.name).as_str() {
            "bash" | "shell" | "runshellcommand" | "terminal" | "powershell" | "execute"
            | "exec" | "runcommand" | "readbash" | "writebash" | "stopbash" => ToolKind::Execute,
            "read" | "readfile" | "view" | "readmanyfiles" | "readmediafile" | "list" | "ls"
            | "listdirectory" | "readlints" => ToolKind::Read,
            "write" | "writefile" | "edit" | "editfile" | "replace" | "create" | "createfile"
            | "strreplace" | "strreplacefile" | "multiedit" | "patch" | "applypatch"
            | "editnotebook" => ToolKind::Edit,
            "delete" | "deletefile" => ToolKind::Delete,
            "move" | "rename" => ToolKind::Move,
            "grep" | "glob" | "search" | "find" | "searchfilecontent" | "grepsearch"
            | "searchfiles" | "codesearch" | "semsearch" | "semanticsearch" | "websearch"
            | "googlewebsearch" | "searchweb" => ToolKind::Search,
            "webfetch" | "fetch" | "fetchurl" => ToolKind::Fetch,
            "think" | "task" | "agent" | "delegatetoagent" | "reportintent" | "todoread"
            | "readtodos" => ToolKind::Think,
            "exitplanmode" | "enterplanmode" | "switchmode" => ToolKind::SwitchMode,
            _ => ToolKind::Other,
        }
    }

    /// Everything that is known before the tool has run.
    pub(crate) fn to_update(self) -> ToolUpdate {
        let mut tool = ToolUpdate::new().with_title(self.title()).with_kind(self.kind());
        if !self.input.is_null() {
            tool = tool.with_input(self.input.clone());
        }
        if let Some(path) = self.path() {
            tool = tool.with_location(&to_absolute(self.cwd, path));
        }
        for (path, old, new) in self.edits() {
            tool = tool.with_diff(&path, old, new);
        }
        tool
    }

    fn title(&self) -> String {
        let path = self.path().map(|path| self.to_relative(path));
        let query = self.input_text(&["pattern", "query", "globPattern", "searchTerm"]);
        let title = match (self.kind(), path) {
            (ToolKind::Execute, _) => self.input_text(&["command", "cmd"]).map(str::to_owned),
            (ToolKind::Read, Some(path)) => {
                let is_list =
                    matches!(normalize_name(self.name).as_str(), "list" | "ls" | "listdirectory");
                Some(format!("{} {path}", if is_list { "List" } else { "Read" }))
            }
            (ToolKind::Edit, Some(path)) => {
                let is_write = self.full_content().is_some();
                Some(format!("{} {path}", if is_write { "Write" } else { "Edit" }))
            }
            (ToolKind::Delete, Some(path)) => Some(format!("Delete {path}")),
            (ToolKind::Search, Some(path)) => query.map(|it| format!("Search {it} in {path}")),
            (ToolKind::Search, None) => query.map(|it| format!("Search {it}")),
            (ToolKind::Fetch, _) => {
                self.input_text(&["url", "prompt"]).map(|url| format!("Fetch {url}"))
            }
            _ => self.input_text(&["description", "intent"]).map(str::to_owned),
        };
        shorten_title(&title.unwrap_or_else(|| self.name.to_owned()))
    }

    fn path(&self) -> Option<&str> {
        self.input_text(&[
            "path",
            "file_path",
            "filePath",
            "absolute_path",
            "dir_path",
            "targetDirectory",
            "notebook_path",
        ])
    }

    fn input_text(&self, names: &[&str]) -> Option<&str> {
        first_text(self.input, names)
    }

    /// The complete new content of a file.
    fn full_content(&self) -> Option<&str> {
        self.input_text(&["content", "contents", "file_text", "fileText"])
    }

    fn edits(&self) -> Vec<FileEdit<'_>> {
        let Some(path) = self.path().filter(|_| self.kind() == ToolKind::Edit) else {
            return Vec::new();
        };
        let path = to_absolute(self.cwd, path);
        if let Some(new) = self.full_content() {
            return vec![(path, None, new)];
        }
        let nested = ["edits", "edit"].iter().find_map(|name| match &self.input[*name] {
            Value::Array(edits) => Some(edits.iter().collect()),
            edit @ Value::Object(_) => Some(vec![edit]),
            _ => None,
        });
        let edits: Vec<&Value> = nested.unwrap_or_else(|| vec![self.input]);
        let to_edit = |edit| {
            let old = first_text(edit, &["old_string", "oldString", "old_str", "oldText", "old"]);
            let new = first_text(edit, &["new_string", "newString", "new_str", "newText", "new"]);
            Some((path.clone(), Some(old?), new?))
        };
        edits.into_iter().filter_map(to_edit).collect()
    }

    /// The path relative to the working directory, which is shorter in titles.
    fn to_relative(self, path: &str) -> &str {
        let relative = path.strip_prefix(self.cwd).and_then(|rest| rest.strip_prefix('/'));
        relative.filter(|rest| !rest.is_empty() && !self.cwd.is_empty()).unwrap_or(path)
    }

    /// The plan, if the call only sets a new to-do list.
    pub(crate) fn to_plan(self) -> Option<Vec<PlanEntry>> {
        if !normalize_name(self.name).contains("todo") {
            return None;
        }
        match &self.input["todos"] {
            Value::Array(todos) => Some(todos.iter().filter_map(parse_todo).collect()),
            Value::String(list) => Some(list.lines().filter_map(parse_checkbox).collect()),
            _ => None,
        }
    }
}

/// Makes a path absolute, because ACP requires absolute paths.
pub(crate) fn to_absolute(cwd: &str, path: &str) -> String {
    let is_absolute = path.starts_with('/') || path.starts_with('~') || path.contains(":\\");
    if is_absolute || cwd.is_empty() {
        return path.to_owned();
    }
    format!("{}/{}", cwd.trim_end_matches('/'), path.trim_start_matches("./"))
}

/// Maps `run_shell_command`, `runShellCommand` and `RunShellCommand` to one name.
fn normalize_name(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The first of these fields that holds a string.
pub(crate) fn first_text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value[*name].as_str())
}

/// Shortens a title to one line of limited length.
fn shorten_title(title: &str) -> String {
    const TITLE_CHARS_MAX: usize = 200;
    let title = title.trim();
    let first = title.lines().next().unwrap_or_default();
    let mut line: String = first.chars().take(TITLE_CHARS_MAX).collect();
    if line.len() < title.len() {
        line.push('…');
    }
    line
}

fn parse_todo(todo: &Value) -> Option<PlanEntry> {
    let content = first_text(todo, &["content", "description", "title", "text"])?.to_owned();
    let status = todo["status"].as_str().unwrap_or("pending").to_lowercase();
    let status = match status.trim_start_matches("todo_status_") {
        "completed" | "done" => "completed",
        "in_progress" | "in-progress" => "in_progress",
        // ACP has no status for a canceled entry, so it is removed from the plan.
        "cancelled" | "canceled" => return None,
        _ => "pending",
    };
    let priority = match todo["priority"].as_str() {
        Some("high") => "high",
        Some("low") => "low",
        _ => "medium",
    };
    Some(PlanEntry { content, status, priority })
}

/// Parses `- [x] done`, as in Markdown.
fn parse_checkbox(line: &str) -> Option<PlanEntry> {
    let line = line.trim().trim_start_matches(['-', '*']).trim_start();
    let (mark, content) = line.strip_prefix('[')?.split_once(']')?;
    let status = match mark.trim() {
        "" => "pending",
        "x" | "X" => "completed",
        _ => "in_progress",
    };
    Some(PlanEntry { content: content.trim().to_owned(), status, priority: "medium" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(name: &str, input: &Value) -> Value {
        Value::Object(ProgramToolCall { name, input, cwd: "/w" }.to_update().fields)
    }

    #[test]
    fn titles_describe_the_call() {
        let calls = [
            ("run_shell_command", json!({"command": "ls -la\npwd"}), "ls -la…"),
            ("view", json!({"path": "/w/src/a.rs"}), "Read src/a.rs"),
            ("list_directory", json!({"dir_path": "/w"}), "List /w"),
            ("StrReplaceFile", json!({"path": "a.rs"}), "Edit a.rs"),
            ("create", json!({"path": "/w/b", "file_text": ""}), "Write b"),
            ("grep", json!({"pattern": "fn", "path": "/w/src"}), "Search fn in src"),
            ("web_fetch", json!({"url": "https://a.b"}), "Fetch https://a.b"),
            ("task", json!({"description": "Look around"}), "Look around"),
            ("anything", json!(7), "anything"),
        ];
        for (name, input, title) in calls {
            assert_eq!(fields(name, &input)["title"], title, "{name}");
        }
    }

    #[test]
    fn edits_in_every_spelling_become_diffs() {
        let inputs = [
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            json!({"filePath": "a", "oldString": "x", "newString": "y"}),
            json!({"path": "/w/a", "edit": {"old": "x", "new": "y"}}),
            json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ];
        for input in inputs {
            let expected =
                json!([{"type": "diff", "path": "/w/a", "newText": "y", "oldText": "x"}]);
            assert_eq!(fields("edit", &input)["content"], expected, "{input}");
        }
        let new = fields("write", &json!({"path": "n", "content": "all"}));
        assert_eq!(new["content"], json!([{"type": "diff", "path": "/w/n", "newText": "all"}]));
        assert_eq!(new["locations"], json!([{"path": "/w/n"}]));
    }

    #[test]
    fn todo_lists_in_every_spelling_become_plans() {
        let plan_of = |input: &Value| {
            let call = ProgramToolCall { name: "write_todos", input, cwd: "" };
            let entries = call.to_plan().unwrap().into_iter();
            entries.map(|it| format!("{} {}", it.content, it.status)).collect::<Vec<_>>()
        };
        let list = json!({"todos": [
            {"content": "a", "status": "TODO_STATUS_IN_PROGRESS"},
            {"description": "b", "status": "cancelled"},
            {"title": "c", "status": "done"},
        ]});
        assert_eq!(plan_of(&list), ["a in_progress", "c completed"]);
        let checkboxes = json!({"todos": "Plan:\n- [x] a\n- [ ] b"});
        assert_eq!(plan_of(&checkboxes), ["a completed", "b pending"]);
    }
}
