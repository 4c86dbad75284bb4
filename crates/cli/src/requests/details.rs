//! The details of a permission request as labeled lines. Control characters are made visible, and omissions are marked.

use jackfield_protocol::visible;
use serde_json::Value;

/// How many lines of a diff are shown; the others are counted.
const CHANGE_LINES_MAX: usize = 40;

/// The lines for the daemon's analysis of a permission request.
pub(super) fn read_details(call: &Value) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    let mut add = |label: &'static str, value: &Value| {
        let one = value.as_str().into_iter();
        let many = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        details.extend(one.chain(many).map(|it| (label, visible::line(it).into_owned())));
    };
    if !call.is_object() {
        return details;
    }
    add("runs", &call["commands"]);
    add("MCP", &call["mcp"]);
    add("tool", &call["tool"]);
    add("touches", &call["paths"]);
    add("unknown", &call["unknown"]);
    add("in", if call["folders"].is_array() { &call["folders"] } else { &call["cwd"] });
    add("because", &call["why"]);
    add("always", &call["always"]);
    if call["isCut"] == true {
        details.push(("", "the call has more than could be analyzed".to_owned()));
    }
    details
}

/// The lines for the file changes in the content of a tool call.
pub(super) fn read_changes(content: &Value) -> Vec<(&'static str, String)> {
    let diffs = content.as_array().into_iter().flatten().filter(|it| it["type"] == "diff");
    diffs.flat_map(describe_change).collect()
}

fn describe_change(diff: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| diff[name].as_str().unwrap_or_default();
    let (old, new): (Vec<&str>, Vec<&str>) =
        (text("oldText").lines().collect(), text("newText").lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let removed = old[..old.len() - tail].iter().map(|it| format!("-{}", visible::line(it)));
    let added = new[..new.len() - tail].iter().map(|it| format!("+{}", visible::line(it)));
    let lines: Vec<String> = removed.chain(added).collect();
    let more = lines.len().saturating_sub(CHANGE_LINES_MAX);
    let mut details =
        vec![("changes", format!("{} from line {}", visible::line(text("path")), head + 1))];
    details.extend(lines.into_iter().take(CHANGE_LINES_MAX).map(|it| ("", it)));
    if 0 < more {
        details.push(("", format!("… and {more} more lines")));
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn details_show_control_characters_as_escapes() {
        let call = json!({
            "commands": ["ls\n\u{202e}rm -rf /"], "cwd": "/x", "paths": ["/x/a"],
            "why": "no rule matches", "isCut": true,
        });
        let expected = [
            ("runs", r"ls\n\u{202e}rm -rf /"),
            ("touches", "/x/a"),
            ("in", "/x"),
            ("because", "no rule matches"),
            ("", "the call has more than could be analyzed"),
        ];
        assert_eq!(read_details(&call), expected.map(|(label, text)| (label, text.to_owned())));
        assert!(read_details(&Value::Null).is_empty());
    }

    #[test]
    fn diff_shows_changed_lines_only_and_counts_omitted_ones() {
        let diff =
            json!([{ "type": "diff", "path": "a.rs", "oldText": "a\nb\nc", "newText": "a\nB\nc" }]);
        let shown = read_changes(&diff);
        let expected = [("changes", "a.rs from line 2"), ("", "-b"), ("", "+B")];
        assert_eq!(shown, expected.map(|(label, text)| (label, text.to_owned())));
        let long = "x\n".repeat(100);
        let shown = read_changes(&json!([{ "type": "diff", "path": "a", "newText": long }]));
        assert_eq!(shown.last().unwrap().1, "… and 60 more lines");
    }
}
