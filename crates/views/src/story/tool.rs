//! Names of tools. Agents name theirs as they like; whoever shows them wants few names that mean
//! the same everywhere. They are those of Claude Code, which clients know best.

use serde_json::{Map, Value};

/// The name of a tool: by its kind, else the agent's own name for it, else by the title.
pub(super) fn name(
    kind: Option<&str>,
    own: Option<&str>,
    title: &str,
    input: &Map<String, Value>,
) -> String {
    // To hand work to a sub-agent has no kind of its own in ACP.
    let delegates = kind == Some("think") && input.contains_key("subagent_type");
    let own = own.filter(|it| is_name(it)).or(delegates.then_some("Task"));
    if let Some(known) = own.filter(|it| KNOWN.contains(it)) {
        return known.to_owned();
    }
    let by_kind = match kind.unwrap_or_default() {
        "execute" => "Bash",
        "read" => "Read",
        "edit" if is_writing(own.unwrap_or(title)) => "Write",
        "edit" => "Edit",
        "delete" => "Delete",
        "move" => "Move",
        "search" => "Grep",
        "fetch" => "Fetch",
        "switch_mode" => "SwitchMode",
        "think" => own.unwrap_or("Think"),
        // `other`, nothing, or a kind that came later than this table.
        _ => own.unwrap_or_else(|| by_title(title)),
    };
    by_kind.to_owned()
}

/// Whether an argument of this name says which file is meant.
pub(super) fn is_path(argument: &str) -> bool {
    matches!(
        argument,
        "path" | "file_path" | "filePath" | "filepath" | "filename" | "fileName" | "file"
    )
}

const KNOWN: [&str; 13] = [
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

/// The first word of a title often is the tool: `shell · ls`, `write: a.txt`, `echo: say`. That of a
/// sentence is not.
fn by_title(title: &str) -> &str {
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

fn is_writing(words: &str) -> bool {
    let first = words.split([' ', ':', '(', '\n']).next().unwrap_or_default().to_ascii_lowercase();
    ["write", "writing", "create", "creating", "save"].iter().any(|it| first.starts_with(it))
}

/// Whether it looks like the name of a function, and not like a sentence.
fn is_name(text: &str) -> bool {
    let legal = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.len() <= 64
        && text.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name(kind: Option<&str>, own: Option<&str>, title: &str) -> String {
        super::name(kind, own, title, &Map::new())
    }

    #[test]
    fn work_for_a_sub_agent_is_a_task() {
        let Value::Object(input) = json!({ "subagent_type": "general", "prompt": "Look" }) else {
            panic!("an object");
        };
        assert_eq!(super::name(Some("think"), None, "Look around", &input), "Task");
        assert_eq!(super::name(Some("other"), None, "query: x", &input), "query");
    }

    #[test]
    fn kinds_have_one_name_whoever_the_agent_is() {
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
        for (kind, own, title, expected) in rows {
            assert_eq!(name(Some(kind), own, title), expected, "{kind} {title}");
        }
    }

    #[test]
    fn a_name_that_clients_know_is_kept() {
        assert_eq!(name(Some("fetch"), Some("WebSearch"), "Search the web"), "WebSearch");
        assert_eq!(name(Some("edit"), Some("MultiEdit"), "Edit"), "MultiEdit");
    }

    #[test]
    fn without_a_kind_the_agents_own_name_counts_and_then_the_title() {
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
