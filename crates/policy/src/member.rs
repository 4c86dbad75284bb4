//! The names of members in the input of tools, and the meaning of each name.
//!
//! This is the only table of such names: the policy reads the input of every agent with it, and our
//! own agent accepts exactly the names in it. Names are compared without case, `_` and `-`:
//! `filePath`, `file_path` and `FilePath` are one name.

/// The meaning of a member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberKind {
    /// A command line, a list of words, or a list of command lines.
    Command,
    /// The arguments of a command, or an object around the whole input.
    Arguments,
    /// A copy of the whole input.
    Whole,
    /// A file or a folder that is touched.
    Path,
    /// The folder in which a command runs.
    Folder,
    /// An object whose keys are files.
    Files,
    /// A patch that names files.
    Patch,
    /// A glob or a regular expression.
    CommandPattern,
    /// A text that is neither run nor opened.
    Text,
}

/// One member with the name that our own agent uses, and its aliases.
struct InputMember {
    name: &'static str,
    kind: MemberKind,
    aliases: &'static [&'static str],
}

const fn member(
    name: &'static str,
    kind: MemberKind,
    aliases: &'static [&'static str],
) -> InputMember {
    InputMember { name, kind, aliases }
}

/// A name may be in several rows: then its value has the kinds of all these rows.
const MEMBERS: &[InputMember] = &[
    member(
        "command",
        MemberKind::Command,
        &[
            "argv",
            "bash_command",
            "cmd",
            "cmd_line",
            "cmds",
            "command_line",
            "command_lines",
            "commands",
            "exec",
            "executable",
            "program",
            "script",
            "shell_command",
            "shell_script",
            "terminal_command",
        ],
    ),
    member("args", MemberKind::Arguments, &["arguments", "argument", "parameters", "params"]),
    member("input", MemberKind::Whole, &["kwargs", "raw_input", "tool_input"]),
    member(
        "path",
        MemberKind::Path,
        &[
            "absolute_path",
            "destination",
            "destination_path",
            "file",
            "file_name",
            "file_path",
            "file_paths",
            "files",
            "from_path",
            "input_path",
            "move_path",
            "new_path",
            "notebook_path",
            "old_path",
            "output_path",
            "paths",
            "relative_path",
            "source",
            "source_path",
            "target",
            "target_file",
            "target_path",
            "to_path",
            "uri",
        ],
    ),
    member(
        "path",
        MemberKind::Path,
        &["dir", "dir_path", "directories", "directory", "folder", "root", "target_directory"],
    ),
    member(
        "cwd",
        MemberKind::Folder,
        &["dir_path", "work_dir", "working_dir", "working_directory", "workspace_path"],
    ),
    member("changes", MemberKind::Files, &["file_changes"]),
    member("patch", MemberKind::Patch, &["diff", "input", "patch_text", "unified_diff"]),
    member("pattern", MemberKind::CommandPattern, &["glob_pattern", "query", "regex", "regexp"]),
    member(
        "glob",
        MemberKind::CommandPattern,
        &["exclude", "exclude_pattern", "file_pattern", "globs", "include", "include_pattern"],
    ),
    member("content", MemberKind::Text, &["contents", "file_text", "new_source", "text"]),
    member("old_string", MemberKind::Text, &["old", "old_str", "old_text"]),
    member("new_string", MemberKind::Text, &["new", "new_str", "new_text", "insert_text"]),
    member("replace_all", MemberKind::Text, &[]),
    member("ignore_case", MemberKind::Text, &["case_insensitive", "-i"]),
    member("offset", MemberKind::Text, &["line", "start", "start_line"]),
    member("limit", MemberKind::Text, &["line_count", "lines", "max_lines"]),
    member("timeout", MemberKind::Text, &["timeout_ms", "timeout_seconds", "timeout_secs"]),
    member("todos", MemberKind::Text, &["entries", "items", "plan", "tasks", "todo"]),
    member("url", MemberKind::Text, &["href", "link", "uri"]),
    member(
        "description",
        MemberKind::Text,
        &["explanation", "intent", "justification", "purpose", "reason", "summary", "thought"],
    ),
    member("status", MemberKind::Text, &["active_form", "priority"]),
    member("prompt", MemberKind::Text, &["instruction", "message", "question", "subject"]),
    member("tool", MemberKind::Text, &["name", "tool_name", "toolname", "kind", "type"]),
    member("server", MemberKind::Text, &["server_name", "mcp_server", "extension_name"]),
    member("id", MemberKind::Text, &["call_id", "session_id", "shell_id", "tool_call_id"]),
    member("output_mode", MemberKind::Text, &["encoding", "format", "language", "mode"]),
];

/// Whether `key` is the name of this member or one of its aliases.
pub fn is_member_name(key: &str, member: &str) -> bool {
    let mut rows = MEMBERS.iter().filter(|it| it.name == member);
    is_same_name(key, member) || rows.any(|it| it.has_name(key))
}

/// All kinds that the value of a member may have; empty for an unknown name.
pub(crate) fn member_kinds(key: &str) -> Vec<MemberKind> {
    MEMBERS.iter().filter(|it| it.has_name(key)).map(|it| it.kind).collect()
}

impl InputMember {
    fn has_name(&self, key: &str) -> bool {
        is_same_name(key, self.name) || self.aliases.iter().any(|it| is_same_name(key, it))
    }
}

fn is_same_name(one: &str, two: &str) -> bool {
    normalize_name(one).eq(normalize_name(two))
}

fn normalize_name(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|it| !matches!(it, '_' | '-')).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_found_in_every_spelling() {
        for key in ["command", "Command", "commandLine", "command-line", "COMMAND_LINE", "argv"] {
            assert!(is_member_name(key, "command"), "{key}");
            assert_eq!(member_kinds(key), [MemberKind::Command], "{key}");
        }
        assert!(!is_member_name("description", "command"));
        assert!(member_kinds("stdin").is_empty() && member_kinds("c\u{43e}mmand").is_empty());
    }

    #[test]
    fn name_in_two_rows_has_both_kinds() {
        assert_eq!(member_kinds("input"), [MemberKind::Whole, MemberKind::Patch]);
        assert_eq!(member_kinds("dir_path"), [MemberKind::Path, MemberKind::Folder]);
    }
}
