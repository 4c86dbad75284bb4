//! A tool call as people read it: what the CLIs call their tools, and what their inputs mean.

use crate::kinds::{absolute, text_of as text};
use crate::{Kind, Tool};
use serde_json::Value;

/// What a tool does, whatever a program calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
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
    /// The whole list of things to do.
    Todos,
    /// One more thing to do.
    NewTask,
    /// News about a thing to do.
    ChangeTask,
    Other,
}

impl Deed {
    pub(super) fn of(name: &str) -> Deed {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "bash" | "runshellcommand" | "shell" | "powershell" => Deed::Run,
            "read" | "readfile" | "notebookread" | "viewimage" => Deed::Read,
            "ls" | "listdirectory" | "listfiles" => Deed::List,
            "edit" | "editfile" | "multiedit" | "notebookedit" | "replace" => Deed::Edit,
            "write" | "writefile" | "createfile" => Deed::Write,
            "glob" => Deed::Find,
            "grep" | "grepsearch" | "searchfilecontent" | "finder" => Deed::Search,
            "webfetch" | "readwebpage" => Deed::Fetch,
            "websearch" | "googlewebsearch" => Deed::SearchWeb,
            "task" | "agent" | "oracle" => Deed::Delegate,
            "exitplanmode" => Deed::LeavePlan,
            "askuserquestion" => Deed::Question,
            "skill" => Deed::Skill,
            "todowrite" => Deed::Todos,
            "taskcreate" => Deed::NewTask,
            "taskupdate" => Deed::ChangeTask,
            _ => Deed::Other,
        }
    }

    /// Shown as a plan, not as a tool call.
    pub(super) fn is_plan(self) -> bool {
        matches!(self, Deed::Todos | Deed::NewTask | Deed::ChangeTask)
    }

    /// Its content is a change of files: what the tool answers about it would hide that.
    pub(super) fn changes_files(self) -> bool {
        matches!(self, Deed::Edit | Deed::Write)
    }

    fn kind(self) -> Kind {
        match self {
            Deed::Run => Kind::Execute,
            Deed::Read | Deed::List => Kind::Read,
            Deed::Edit | Deed::Write => Kind::Edit,
            Deed::Find | Deed::Search => Kind::Search,
            Deed::Fetch | Deed::SearchWeb => Kind::Fetch,
            Deed::Delegate | Deed::Todos | Deed::NewTask | Deed::ChangeTask => Kind::Think,
            Deed::LeavePlan => Kind::SwitchMode,
            Deed::Question | Deed::Skill | Deed::Other => Kind::Other,
        }
    }
}

/// Longer titles do not fit into a line.
const TITLE_CHARS_MAX: usize = 120;

/// Title and kind, before the input is known and after.
pub(super) fn outline(name: &str, input: &Value, cwd: &str) -> Tool {
    let deed = Deed::of(name);
    let title = title(deed, name, input, cwd);
    let mut tool = Tool::new().title(shortened(&title)).kind(deed.kind());
    if let Some(path) = path_of(input) {
        tool = tool.location(&absolute(cwd, path));
    }
    tool
}

/// Everything the input tells.
pub(super) fn full(name: &str, input: &Value, cwd: &str) -> Tool {
    let tool = outline(name, input, cwd).input(input.clone());
    match Deed::of(name) {
        Deed::Edit => with_edits(tool, input, cwd),
        Deed::Write => match (path_of(input), text(input, &["content", "file_text"])) {
            (Some(path), Some(content)) => tool.diff(&absolute(cwd, path), None, content),
            _ => tool,
        },
        Deed::LeavePlan => match text(input, &["plan"]) {
            Some(plan) => tool.text(plan),
            None => tool,
        },
        _ => tool,
    }
}

fn with_edits(tool: Tool, input: &Value, cwd: &str) -> Tool {
    let Some(path) = path_of(input).map(|path| absolute(cwd, path)) else { return tool };
    let one = std::slice::from_ref(input);
    let edits = input["edits"].as_array().map_or(one, Vec::as_slice);
    edits.iter().fold(tool, |tool, edit| {
        let old = text(edit, &["old_string", "old_str"]);
        match text(edit, &["new_string", "new_str", "new_source"]) {
            Some(new) => tool.diff(&path, old, new),
            None => tool,
        }
    })
}

pub(super) fn path_of(input: &Value) -> Option<&str> {
    text(input, &["file_path", "notebook_path", "absolute_path", "path", "filePath"])
}

fn title(deed: Deed, name: &str, input: &Value, cwd: &str) -> String {
    let path = path_of(input).map(|path| short(path, cwd));
    let of_path = |verb: &str| match path {
        Some(path) => format!("{verb} {path}"),
        None => verb.to_owned(),
    };
    let with = |verb: &str, names: &[&str]| match text(input, names) {
        Some(what) => format!("{verb} {what}"),
        None => verb.to_owned(),
    };
    let within = |title: String| match path {
        Some(path) if path != "." => format!("{title} in {path}"),
        _ => title,
    };
    match deed {
        Deed::Run => text(input, &["command", "cmd"]).unwrap_or("Run a command").to_owned(),
        Deed::Read => of_path("Read"),
        Deed::List => of_path("List"),
        Deed::Edit => of_path("Edit"),
        Deed::Write => of_path("Write"),
        Deed::Find => within(with("Find", &["pattern", "filePattern"])),
        Deed::Search => within(with("Search", &["pattern", "query"])),
        Deed::Fetch => with("Fetch", &["url"]),
        Deed::SearchWeb => with("Search the web for", &["query", "objective"]),
        Deed::Delegate => {
            text(input, &["description", "task", "prompt"]).unwrap_or("Delegate").to_owned()
        }
        Deed::LeavePlan => "Leave plan mode".to_owned(),
        Deed::Question => input["questions"][0]["question"].as_str().unwrap_or("Ask").to_owned(),
        Deed::Skill => with("Skill", &["skill", "name", "command"]),
        Deed::Todos => "Update the plan".to_owned(),
        Deed::NewTask => with("Plan", &["subject"]),
        Deed::ChangeTask => with("Update task", &["taskId"]),
        Deed::Other => other(name),
    }
}

/// MCP tools are called `mcp__server__tool`.
fn other(name: &str) -> String {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => format!("{server}: {tool}"),
        None => name.to_owned(),
    }
}

/// A path as seen from the session's folder.
fn short<'a>(path: &'a str, cwd: &str) -> &'a str {
    match path.strip_prefix(cwd) {
        Some("" | "/") if !cwd.is_empty() => ".",
        Some(rest) if !cwd.is_empty() => rest.strip_prefix('/').unwrap_or(path),
        _ => path,
    }
}

/// The first line, and no more of it than fits.
fn shortened(title: &str) -> String {
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
    fn titles_say_what_is_done_to_what() {
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
            assert_eq!(outline(name, &input, "/w").fields["title"], title, "{name}");
        }
    }

    #[test]
    fn every_edit_of_a_file_is_a_diff() {
        let edits = json!({"file_path": "/w/a", "edits": [
            {"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]});
        let tool = full("MultiEdit", &edits, "/w");
        let diff = |old: &str, new: &str| json!({"type": "diff", "path": "/w/a", "newText": new, "oldText": old});
        assert_eq!(tool.fields["content"], json!([diff("1", "2"), diff("3", "4")]));
        let cell = json!({"notebook_path": "/w/n.ipynb", "new_source": "x = 1"});
        assert_eq!(full("NotebookEdit", &cell, "/w").fields["content"][0]["newText"], "x = 1");
        let file = json!({"file_path": "/w/a", "content": "new"});
        assert_eq!(full("write_file", &file, "/w").fields["content"][0]["newText"], "new");
    }
}
