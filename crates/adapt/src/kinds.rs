//! Tools by name: what a call is for, how people read it, and what it changes. Programs differ in
//! spelling (`run_shell_command`, `Bash`, `filePath`, `file_path`), hardly in meaning.

use crate::{Entry, Kind, Tool};
use serde_json::Value;

/// A call as the program spells it, seen from the folder it works in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Value,
    pub(crate) cwd: &'a str,
}

/// One edit: the file, what was there if that is known, what is there now.
type Edit<'a> = (String, Option<&'a str>, &'a str);

impl Call<'_> {
    pub(crate) fn kind(&self) -> Kind {
        match plain(self.name).as_str() {
            "bash" | "shell" | "runshellcommand" | "terminal" | "powershell" | "execute"
            | "exec" | "runcommand" | "readbash" | "writebash" | "stopbash" => Kind::Execute,
            "read" | "readfile" | "view" | "readmanyfiles" | "readmediafile" | "list" | "ls"
            | "listdirectory" | "readlints" => Kind::Read,
            "write" | "writefile" | "edit" | "editfile" | "replace" | "create" | "createfile"
            | "strreplace" | "strreplacefile" | "multiedit" | "patch" | "applypatch"
            | "editnotebook" => Kind::Edit,
            "delete" | "deletefile" => Kind::Delete,
            "move" | "rename" => Kind::Move,
            "grep" | "glob" | "search" | "find" | "searchfilecontent" | "grepsearch"
            | "searchfiles" | "codesearch" | "semsearch" | "semanticsearch" | "websearch"
            | "googlewebsearch" | "searchweb" => Kind::Search,
            "webfetch" | "fetch" | "fetchurl" => Kind::Fetch,
            "think" | "task" | "agent" | "delegatetoagent" | "reportintent" | "todoread"
            | "readtodos" => Kind::Think,
            "exitplanmode" | "enterplanmode" | "switchmode" => Kind::SwitchMode,
            _ => Kind::Other,
        }
    }

    /// Everything a client can know before the tool has run.
    pub(crate) fn tool(&self) -> Tool {
        let mut tool = Tool::new().title(self.title()).kind(self.kind());
        if !self.input.is_null() {
            tool = tool.input(self.input.clone());
        }
        if let Some(path) = self.path() {
            tool = tool.location(&absolute(self.cwd, path));
        }
        for (path, old, new) in self.edits() {
            tool = tool.diff(&path, old, new);
        }
        tool
    }

    fn title(&self) -> String {
        let path = self.path().map(|path| self.relative(path));
        let about = self.word(&["pattern", "query", "globPattern", "searchTerm"]);
        let title = match (self.kind(), path) {
            (Kind::Execute, _) => self.word(&["command", "cmd"]).map(str::to_owned),
            (Kind::Read, Some(path)) => {
                let lists = matches!(plain(self.name).as_str(), "list" | "ls" | "listdirectory");
                Some(format!("{} {path}", if lists { "List" } else { "Read" }))
            }
            (Kind::Edit, Some(path)) => {
                let writes = self.whole().is_some();
                Some(format!("{} {path}", if writes { "Write" } else { "Edit" }))
            }
            (Kind::Delete, Some(path)) => Some(format!("Delete {path}")),
            (Kind::Search, Some(path)) => about.map(|about| format!("Search {about} in {path}")),
            (Kind::Search, None) => about.map(|about| format!("Search {about}")),
            (Kind::Fetch, _) => self.word(&["url", "prompt"]).map(|url| format!("Fetch {url}")),
            _ => self.word(&["description", "intent"]).map(str::to_owned),
        };
        one_line(&title.unwrap_or_else(|| self.name.to_owned()))
    }

    fn path(&self) -> Option<&str> {
        self.word(&[
            "path",
            "file_path",
            "filePath",
            "absolute_path",
            "dir_path",
            "targetDirectory",
            "notebook_path",
        ])
    }

    fn word(&self, names: &[&str]) -> Option<&str> {
        text_of(self.input, names)
    }

    /// The whole new text of a file.
    fn whole(&self) -> Option<&str> {
        self.word(&["content", "contents", "file_text", "fileText"])
    }

    fn edits(&self) -> Vec<Edit<'_>> {
        let Some(path) = self.path().filter(|_| self.kind() == Kind::Edit) else {
            return Vec::new();
        };
        let path = absolute(self.cwd, path);
        if let Some(new) = self.whole() {
            return vec![(path, None, new)];
        }
        let several = ["edits", "edit"].iter().find_map(|name| match &self.input[*name] {
            Value::Array(edits) => Some(edits.iter().collect()),
            edit @ Value::Object(_) => Some(vec![edit]),
            _ => None,
        });
        let edits: Vec<&Value> = several.unwrap_or_else(|| vec![self.input]);
        let change = |edit| {
            let old = text_of(edit, &["old_string", "oldString", "old_str", "oldText", "old"]);
            let new = text_of(edit, &["new_string", "newString", "new_str", "newText", "new"]);
            Some((path.clone(), Some(old?), new?))
        };
        edits.into_iter().filter_map(change).collect()
    }

    /// People want short ones.
    fn relative<'a>(&self, path: &'a str) -> &'a str {
        let below = path.strip_prefix(self.cwd).and_then(|rest| rest.strip_prefix('/'));
        below.filter(|rest| !rest.is_empty() && !self.cwd.is_empty()).unwrap_or(path)
    }

    /// The plan, if the call is nothing but a new list of things to do.
    pub(crate) fn plan(&self) -> Option<Vec<Entry>> {
        if !plain(self.name).contains("todo") {
            return None;
        }
        match &self.input["todos"] {
            Value::Array(todos) => Some(todos.iter().filter_map(entry).collect()),
            Value::String(list) => Some(list.lines().filter_map(checkbox).collect()),
            _ => None,
        }
    }
}

/// ACP wants absolute paths.
pub(crate) fn absolute(cwd: &str, path: &str) -> String {
    let absolute = path.starts_with('/') || path.starts_with('~') || path.contains(":\\");
    if absolute || cwd.is_empty() {
        return path.to_owned();
    }
    format!("{}/{}", cwd.trim_end_matches('/'), path.trim_start_matches("./"))
}

/// `run_shell_command`, `runShellCommand` and `RunShellCommand` are one tool.
fn plain(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The first of these fields that is a text.
pub(crate) fn text_of<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value[*name].as_str())
}

/// A title is one line of bearable length.
fn one_line(title: &str) -> String {
    const TITLE_CHARS_MAX: usize = 200;
    let title = title.trim();
    let first = title.lines().next().unwrap_or_default();
    let mut line: String = first.chars().take(TITLE_CHARS_MAX).collect();
    if line.len() < title.len() {
        line.push('…');
    }
    line
}

fn entry(todo: &Value) -> Option<Entry> {
    let content = text_of(todo, &["content", "description", "title", "text"])?.to_owned();
    let status = todo["status"].as_str().unwrap_or("pending").to_lowercase();
    let status = match status.trim_start_matches("todo_status_") {
        "completed" | "done" => "completed",
        "in_progress" | "in-progress" => "in_progress",
        // A plan has no word for what was given up; what is not in it will not be done.
        "cancelled" | "canceled" => return None,
        _ => "pending",
    };
    let priority = match todo["priority"].as_str() {
        Some("high") => "high",
        Some("low") => "low",
        _ => "medium",
    };
    Some(Entry { content, status, priority })
}

/// `- [x] done`, as in Markdown.
fn checkbox(line: &str) -> Option<Entry> {
    let line = line.trim().trim_start_matches(['-', '*']).trim_start();
    let (mark, content) = line.strip_prefix('[')?.split_once(']')?;
    let status = match mark.trim() {
        "" => "pending",
        "x" | "X" => "completed",
        _ => "in_progress",
    };
    Some(Entry { content: content.trim().to_owned(), status, priority: "medium" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(name: &str, input: &Value) -> Value {
        Value::Object(Call { name, input, cwd: "/w" }.tool().fields)
    }

    #[test]
    fn a_call_is_told_in_words_that_people_use() {
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
    fn every_spelling_of_an_edit_is_a_diff() {
        let inputs = [
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            json!({"filePath": "a", "oldString": "x", "newString": "y"}),
            json!({"path": "/w/a", "edit": {"old": "x", "new": "y"}}),
            json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ];
        for input in inputs {
            let wanted = json!([{"type": "diff", "path": "/w/a", "newText": "y", "oldText": "x"}]);
            assert_eq!(fields("edit", &input)["content"], wanted, "{input}");
        }
        let new = fields("write", &json!({"path": "n", "content": "all"}));
        assert_eq!(new["content"], json!([{"type": "diff", "path": "/w/n", "newText": "all"}]));
        assert_eq!(new["locations"], json!([{"path": "/w/n"}]));
    }

    #[test]
    fn a_list_of_things_to_do_is_a_plan_in_every_spelling() {
        let told = |input: &Value| {
            let call = Call { name: "write_todos", input, cwd: "" };
            let entries = call.plan().unwrap().into_iter();
            entries.map(|it| format!("{} {}", it.content, it.status)).collect::<Vec<_>>()
        };
        let list = json!({"todos": [
            {"content": "a", "status": "TODO_STATUS_IN_PROGRESS"},
            {"description": "b", "status": "cancelled"},
            {"title": "c", "status": "done"},
        ]});
        assert_eq!(told(&list), ["a in_progress", "c completed"]);
        let boxes = json!({"todos": "Plan:\n- [x] a\n- [ ] b"});
        assert_eq!(told(&boxes), ["a completed", "b pending"]);
    }
}
