//! What Codex tells of changed files, as a tool call with places and differences.

use crate::{Kind, Tool};
use serde_json::{Value, json};

/// A title for people (paths below `cwd` without it), the kind, the places, and the differences where their text is told (`exec`
/// names the files only).
pub(super) fn tool(changes: &Value, cwd: &str) -> Tool {
    let changes = changes.as_array().map(Vec::as_slice).unwrap_or_default();
    // The differences are content; to tell them as input too would only double them.
    let input =
        changes.iter().map(|change| json!({"path": change["path"], "kind": change["kind"]}));
    let input = Value::Array(input.collect());
    let mut tool = Tool::new().title(title(changes, cwd)).kind(kind(changes)).input(input);
    for change in changes {
        let path = change["path"].as_str().unwrap_or_default();
        tool = tool.location(path);
        if let Some(target) = moved_to(change) {
            tool = tool.location(target);
        }
    }
    changes.iter().fold(tool, differences)
}

fn title(changes: &[Value], cwd: &str) -> String {
    let path = |change: &Value| short(change["path"].as_str().unwrap_or_default(), cwd).to_owned();
    match changes {
        [] => "Edit files".to_owned(),
        [one] => {
            let verb = match kind_of(one) {
                Some("add") => "Create",
                Some("delete") => "Delete",
                _ => "Edit",
            };
            match moved_to(one) {
                Some(target) => format!("Move {} to {}", path(one), short(target, cwd)),
                None => format!("{verb} {}", path(one)),
            }
        }
        [first, rest @ ..] => {
            let files = if rest.len() == 1 { "file" } else { "files" };
            format!("Edit {} and {} more {files}", path(first), rest.len())
        }
    }
}

fn short<'a>(path: &'a str, cwd: &str) -> &'a str {
    path.strip_prefix(cwd).and_then(|path| path.strip_prefix('/')).unwrap_or(path)
}

fn kind(changes: &[Value]) -> Kind {
    let all = |is: fn(&Value) -> bool| !changes.is_empty() && changes.iter().all(is);
    if all(|change| kind_of(change) == Some("delete")) {
        Kind::Delete
    } else if all(|change| moved_to(change).is_some()) {
        Kind::Move
    } else {
        Kind::Edit
    }
}

/// `add`, `delete` or `update`: a word in `exec`, an object in `app-server`.
fn kind_of(change: &Value) -> Option<&str> {
    let kind = &change["kind"];
    kind.as_str().or_else(|| kind["type"].as_str())
}

fn moved_to(change: &Value) -> Option<&str> {
    change["kind"]["move_path"].as_str()
}

fn differences(tool: Tool, change: &Value) -> Tool {
    let path = moved_to(change).or_else(|| change["path"].as_str()).unwrap_or_default();
    let Some(diff) = change["diff"].as_str() else { return tool };
    match kind_of(change) {
        // These two come as the whole text of the file.
        Some("add") => tool.diff(path, None, diff),
        Some("delete") => tool.diff(path, Some(diff), ""),
        _ => {
            let hunks = hunks(diff);
            if hunks.is_empty() && !diff.is_empty() && moved_to(change).is_none() {
                return tool.text(diff);
            }
            hunks.iter().fold(tool, |tool, (old, new)| tool.diff(path, Some(old), new))
        }
    }
}

/// The text before and after of each hunk of a unified diff.
fn hunks(diff: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    // How many lines of each side are still to come; without it a removed line `-- x` would look
    // like a header, and what follows the last hunk like a part of it.
    let (mut old_left, mut new_left) = (0, 0);
    for line in diff.split_inclusive('\n') {
        if old_left == 0 && new_left == 0 {
            if let Some((old, new)) = lengths(line) {
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
            // Git's remark that a file has no newline at its end.
            Some(b'\\') => {}
            _ => {
                // An empty line of context may have lost its blank.
                let text = if line.starts_with(' ') { text } else { line };
                before.push_str(text);
                after.push_str(text);
                (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
            }
        }
    }
    hunks
}

/// `@@ -1,3 +1,4 @@` says how many lines of each side follow.
fn lengths(line: &str) -> Option<(usize, usize)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let mut length = |sign: char| {
        let range = words.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, length)| length.trim().parse().ok())
    };
    Some((length('-')?, length('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(changes: &Value) -> Value {
        Value::Object(tool(changes, "/w").fields)
    }

    #[test]
    fn each_hunk_is_a_difference() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n keep\n--- old\n+new\n@@ -9 +9,2 @@\n end\n+more\n";
        let changes = json!([{"path": "/w/x.rs", "kind": {"type": "update"}, "diff": diff}]);
        let told = fields(&changes);
        assert_eq!((&told["title"], &told["kind"]), (&json!("Edit x.rs"), &json!("edit")));
        assert_eq!(
            told["content"],
            json!([
                {"type": "diff", "path": "/w/x.rs", "newText": "keep\nnew\n", "oldText": "keep\n-- old\n"},
                {"type": "diff", "path": "/w/x.rs", "newText": "end\nmore\n", "oldText": "end\n"},
            ])
        );
    }

    #[test]
    fn a_new_file_a_lost_one_and_a_moved_one() {
        let told = fields(&json!([{"path": "a", "kind": {"type": "add"}, "diff": "hi\n"}]));
        assert_eq!(told["title"], "Create a");
        assert_eq!(told["content"], json!([{"type": "diff", "path": "a", "newText": "hi\n"}]));
        let told = fields(&json!([{"path": "a", "kind": {"type": "delete"}, "diff": "hi\n"}]));
        assert_eq!((&told["title"], &told["kind"]), (&json!("Delete a"), &json!("delete")));
        let moved = json!([{"path": "a", "kind": {"type": "update", "move_path": "b"},
                            "diff": "\n\nMoved to: b"}]);
        let told = fields(&moved);
        assert_eq!((&told["title"], &told["kind"]), (&json!("Move a to b"), &json!("move")));
        assert_eq!(told["locations"], json!([{"path": "a"}, {"path": "b"}]));
        assert!(told.get("content").is_none());
    }

    #[test]
    fn files_that_are_only_named_have_no_differences() {
        let told = fields(&json!([{"path": "a", "kind": "update"}, {"path": "b", "kind": "add"}]));
        assert_eq!(told["title"], "Edit a and 1 more file");
        assert!(told.get("content").is_none());
    }

    #[test]
    fn a_difference_that_cannot_be_read_is_shown_as_it_is() {
        let told = fields(&json!([{"path": "a", "kind": {"type": "update"}, "diff": "@@ huh"}]));
        assert_eq!(told["content"][0]["content"]["text"], "@@ huh");
    }
}
