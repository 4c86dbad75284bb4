//! Tool names. Agents name their tools differently; clients get a small set of names that mean the same
//! for every agent. They are those of Claude Code, which most clients know.

use serde_json::{Map, Value};

/// Finds the tool name by the kind, else by the agent's own name, else by the title.
pub(super) fn find_tool_name(
    kind: Option<&str>,
    own_name: Option<&str>,
    title: &str,
    input: &Map<String, Value>,
) -> String {
    // ACP has no tool kind for work that is delegated to a sub-agent.
    let is_delegation = kind == Some("think") && input.contains_key("subagent_type");
    let own_name = own_name.filter(|it| is_name(it)).or(is_delegation.then_some("Task"));
    if let Some(known) = own_name.filter(|it| KNOWN_NAMES.contains(it)) {
        return known.to_owned();
    }
    let by_kind = match kind.unwrap_or_default() {
        "execute" => "Bash",
        "read" => "Read",
        "edit" if is_write_title(own_name.unwrap_or(title)) => "Write",
        "edit" => "Edit",
        "delete" => "Delete",
        "move" => "Move",
        "search" => "Grep",
        "fetch" => "Fetch",
        "switch_mode" => "SwitchMode",
        "think" => own_name.unwrap_or("Think"),
        // `other`, no kind, or a kind that is newer than this table.
        _ => own_name.unwrap_or_else(|| name_from_title(title)),
    };
    by_kind.to_owned()
}

/// Whether an argument of this name is a file path.
pub(super) fn is_path_argument(argument: &str) -> bool {
    matches!(
        argument,
        "path" | "file_path" | "filePath" | "filepath" | "filename" | "fileName" | "file"
    )
}

const KNOWN_NAMES: [&str; 13] = [
    "Bash",
    "Read",
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "Grep",
    "Glob",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "Task",
    "Fetch",
];

/// Guesses the name from the title. Its first word is often the tool: `shell · ls`, `write: a.txt`,
/// `echo: say`. The first word of a sentence is not.
fn name_from_title(title: &str) -> &str {
    let first = title.split([' ', ':', '(', '\n']).next().unwrap_or_default();
    let rest = &title[first.len()..];
    match first.to_ascii_lowercase().as_str() {
        "bash" | "shell" | "terminal" | "run" | "running" | "execute" => "Bash",
        "read" | "reading" => "Read",
        "write" | "writing" | "create" | "creating" => "Write",
        "edit" | "editing" | "patch" | "apply_patch" => "Edit",
        "grep" | "glob" | "search" | "searching" | "find" => "Grep",
        "fetch" | "web_fetch" => "Fetch",
        _ if is_name(first) && (rest.is_empty() || rest.starts_with([':', '('])) => first,
        _ => "Tool",
    }
}

fn is_write_title(title: &str) -> bool {
    let first = title.split([' ', ':', '(', '\n']).next().unwrap_or_default().to_ascii_lowercase();
    ["write", "writing", "create", "creating", "save"].iter().any(|it| first.starts_with(it))
}

/// Whether the text looks like a function name rather than a sentence.
fn is_name(text: &str) -> bool {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.len() <= 64
        && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name(kind: Option<&str>, own_name: Option<&str>, title: &str) -> String {
        find_tool_name(kind, own_name, title, &Map::new())
    }

    #[test]
    fn delegation_to_a_sub_agent_is_a_task() {
        let Value::Object(input) = json!({ "subagent_type": "general", "prompt": "Look" }) else {
            panic!("an object");
        };
        assert_eq!(find_tool_name(Some("think"), None, "Look around", &input), "Task");
        assert_eq!(find_tool_name(Some("other"), None, "query: x", &input), "query");
    }

    #[test]
    fn each_kind_has_one_name_for_every_agent() {
        let rows = [
            ("execute", None, "echo hello", "Bash"),
            ("execute", Some("exec_command"), "echo hello", "Bash"),
            ("read", None, "a.txt", "Read"),
            ("edit", None, "Edit src/greet.rs", "Edit"),
            ("edit", None, "Write new.txt", "Write"),
            ("edit", Some("write_file"), "WriteFile", "Write"),
            ("search", None, "main", "Grep"),
            ("fetch", None, "https://a", "Fetch"),
            ("delete", None, "Delete old.txt", "Delete"),
            ("think", None, "Look around", "Think"),
            ("think", Some("Task"), "Look around", "Task"),
        ];
        for (kind, own_name, title, expected) in rows {
            assert_eq!(name(Some(kind), own_name, title), expected, "{kind} {title}");
        }
    }

    #[test]
    fn known_own_name_is_kept() {
        assert_eq!(name(Some("fetch"), Some("WebSearch"), "Search the web"), "WebSearch");
        assert_eq!(name(Some("edit"), Some("MultiEdit"), "Edit"), "MultiEdit");
    }

    #[test]
    fn without_a_kind_the_own_name_is_used_before_the_title() {
        assert_eq!(name(Some("other"), Some("mcp__db__query"), "Query"), "mcp__db__query");
        assert_eq!(name(None, None, "shell · echo hello"), "Bash");
        assert_eq!(name(Some("other"), None, "write · /user/project/a.txt"), "Write");
        assert_eq!(name(Some("other"), None, "run_commands: echo hello"), "run_commands");
        assert_eq!(name(Some("other"), None, "TaskList"), "TaskList");
        assert_eq!(name(Some("other"), None, "Which colour?"), "Tool");
        assert_eq!(name(Some("other"), None, "Größe ändern"), "Tool");
        assert_eq!(name(None, None, ""), "Tool");
    }
}
