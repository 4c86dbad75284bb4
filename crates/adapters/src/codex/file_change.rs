//! Converts file changes of Codex into a tool call with locations and diffs.

use crate::{ToolKind, ToolUpdate};
use serde_json::{Value, json};

/// The title (with paths relative to `cwd`), the kind, the locations, and the diffs if Codex
/// reports them (`exec` reports only the paths).
pub(super) fn to_tool_update(changes: &Value, cwd: &str) -> ToolUpdate {
    let changes = changes.as_array().map(Vec::as_slice).unwrap_or_default();
    // The diffs are sent as content; the input would only repeat them.
    let input =
        changes.iter().map(|change| json!({"path": change["path"], "kind": change["kind"]}));
    let input = Value::Array(input.collect());
    let mut tool = ToolUpdate::new()
        .with_title(title(changes, cwd))
        .with_kind(kind(changes))
        .with_input(input);
    for change in changes {
        let path = change["path"].as_str().unwrap_or_default();
        tool = tool.with_location(path);
        if let Some(target) = moved_to(change) {
            tool = tool.with_location(target);
        }
    }
    changes.iter().fold(tool, with_diffs)
}

fn title(changes: &[Value], cwd: &str) -> String {
    let path =
        |change: &Value| to_relative(change["path"].as_str().unwrap_or_default(), cwd).to_owned();
    match changes {
        [] => "Edit files".to_owned(),
        [one] => {
            let verb = match change_kind(one) {
                Some("add") => "Create",
                Some("delete") => "Delete",
                _ => "Edit",
            };
            match moved_to(one) {
                Some(target) => format!("Move {} to {}", path(one), to_relative(target, cwd)),
                None => format!("{verb} {}", path(one)),
            }
        }
        [first, rest @ ..] => {
            let files = if rest.len() == 1 { "file" } else { "files" };
            format!("Edit {} and {} more {files}", path(first), rest.len())
        }
    }
}

fn to_relative<'a>(path: &'a str, cwd: &str) -> &'a str {
    path.strip_prefix(cwd).and_then(|path| path.strip_prefix('/')).unwrap_or(path)
}

fn kind(changes: &[Value]) -> ToolKind {
    let all = |is: fn(&Value) -> bool| !changes.is_empty() && changes.iter().all(is);
    if all(|change| change_kind(change) == Some("delete")) {
        ToolKind::Delete
    } else if all(|change| moved_to(change).is_some()) {
        ToolKind::Move
    } else {
        ToolKind::Edit
    }
}

/// `add`, `delete` or `update`: a string in `exec`, an object in `app-server`.
fn change_kind(change: &Value) -> Option<&str> {
    let kind = &change["kind"];
    kind.as_str().or_else(|| kind["type"].as_str())
}

fn moved_to(change: &Value) -> Option<&str> {
    change["kind"]["move_path"].as_str()
}

fn with_diffs(tool: ToolUpdate, change: &Value) -> ToolUpdate {
    let path = moved_to(change).or_else(|| change["path"].as_str()).unwrap_or_default();
    let Some(diff) = change["diff"].as_str() else { return tool };
    match change_kind(change) {
        // The diff of a new or deleted file is its full text.
        Some("add") => tool.with_diff(path, None, diff),
        Some("delete") => tool.with_diff(path, Some(diff), ""),
        _ => {
            let hunks = parse_hunks(diff);
            if hunks.is_empty() && !diff.is_empty() && moved_to(change).is_none() {
                return tool.with_text(diff);
            }
            hunks.iter().fold(tool, |tool, (old, new)| tool.with_diff(path, Some(old), new))
        }
    }
}

/// The old and the new text of each hunk of a unified diff.
fn parse_hunks(diff: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    // The remaining lines of each side. Without these counts, a removed line `-- x` would look like
    // a header, and text after the last hunk like a part of it.
    let (mut old_left, mut new_left) = (0, 0);
    for line in diff.split_inclusive('\n') {
        if old_left == 0 && new_left == 0 {
            if let Some((old, new)) = parse_hunk_header(line) {
                (old_left, new_left) = (old, new);
                hunks.push(Default::default());
            }
            continue;
        }
        let Some((before, after)) = hunks.last_mut() else { continue };
        let text = line.get(1..).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b'-') => {
                before.push_str(text);
                old_left = old_left.saturating_sub(1);
            }
            Some(b'+') => {
                after.push_str(text);
                new_left = new_left.saturating_sub(1);
            }
            // Git's marker that a file does not end with a newline.
            Some(b'\\') => {}
            _ => {
                // An empty context line may lack its leading space.
                let text = if line.starts_with(' ') { text } else { line };
                before.push_str(text);
                after.push_str(text);
                (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
            }
        }
    }
    hunks
}

/// Reads the number of lines of each side from `@@ -1,3 +1,4 @@`.
fn parse_hunk_header(line: &str) -> Option<(usize, usize)> {
    let mut ranges = line.strip_prefix("@@ ")?.split(' ');
    let mut length = |sign: char| {
        let range = ranges.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, length)| length.trim().parse().ok())
    };
    Some((length('-')?, length('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(changes: &Value) -> Value {
        Value::Object(to_tool_update(changes, "/w").fields)
    }

    #[test]
    fn each_hunk_becomes_a_diff() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n keep\n--- old\n+new\n@@ -9 +9,2 @@\n end\n+more\n";
        let changes = json!([{"path": "/w/x.rs", "kind": {"type": "update"}, "diff": diff}]);
        let update = fields(&changes);
        assert_eq!((&update["title"], &update["kind"]), (&json!("Edit x.rs"), &json!("edit")));
        assert_eq!(
            update["content"],
            json!([
                {"type": "diff", "path": "/w/x.rs", "newText": "keep\nnew\n", "oldText": "keep\n-- old\n"},
                {"type": "diff", "path": "/w/x.rs", "newText": "end\nmore\n", "oldText": "end\n"},
            ])
        );
    }

    #[test]
    fn created_deleted_and_moved_files_have_their_own_titles() {
        let update = fields(&json!([{"path": "a", "kind": {"type": "add"}, "diff": "hi\n"}]));
        assert_eq!(update["title"], "Create a");
        assert_eq!(update["content"], json!([{"type": "diff", "path": "a", "newText": "hi\n"}]));
        let update = fields(&json!([{"path": "a", "kind": {"type": "delete"}, "diff": "hi\n"}]));
        assert_eq!((&update["title"], &update["kind"]), (&json!("Delete a"), &json!("delete")));
        let moved = json!([{"path": "a", "kind": {"type": "update", "move_path": "b"},
                            "diff": "\n\nMoved to: b"}]);
        let update = fields(&moved);
        assert_eq!((&update["title"], &update["kind"]), (&json!("Move a to b"), &json!("move")));
        assert_eq!(update["locations"], json!([{"path": "a"}, {"path": "b"}]));
        assert!(update.get("content").is_none());
    }

    #[test]
    fn changes_without_text_have_no_diffs() {
        let update =
            fields(&json!([{"path": "a", "kind": "update"}, {"path": "b", "kind": "add"}]));
        assert_eq!(update["title"], "Edit a and 1 more file");
        assert!(update.get("content").is_none());
    }

    #[test]
    fn unparsable_diff_is_shown_as_text() {
        let update = fields(&json!([{"path": "a", "kind": {"type": "update"}, "diff": "@@ huh"}]));
        assert_eq!(update["content"][0]["content"]["text"], "@@ huh");
    }
}
