//! What an ask is about, as lines for people. Nothing in them is hidden or cut without saying so.

use jackfield_protocol::visible;
use serde_json::Value;

/// Lines of a change that are shown; the others are counted.
const CHANGE_LINES_MAX: usize = 40;

/// Reads the facts that the daemon tells of a permission request.
pub(super) fn read(call: &Value) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |label: &'static str, value: &Value| {
        let one = value.as_str().into_iter();
        let many = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        facts.extend(one.chain(many).map(|it| (label, visible::line(it).into_owned())));
    };
    if !call.is_object() {
        return facts;
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
        facts.push(("", "there is more in it than could be read".to_owned()));
    }
    facts
}

/// Reads the changes to files that a tool call shows.
pub(super) fn changes(content: &Value) -> Vec<(&'static str, String)> {
    let diffs = content.as_array().into_iter().flatten().filter(|it| it["type"] == "diff");
    diffs.flat_map(change).collect()
}

fn change(diff: &Value) -> Vec<(&'static str, String)> {
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
    let mut facts =
        vec![("changes", format!("{} from line {}", visible::line(text("path")), head + 1))];
    facts.extend(lines.into_iter().take(CHANGE_LINES_MAX).map(|it| ("", it)));
    if 0 < more {
        facts.push(("", format!("… and {more} more lines")));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_are_shown_with_everything_that_is_in_them() {
        let call = json!({
            "commands": ["ls\n\u{202e}rm -rf /"], "cwd": "/x", "paths": ["/x/a"],
            "why": "no rule matches it", "isCut": true,
        });
        let expected = [
            ("runs", r"ls\n\u{202e}rm -rf /"),
            ("touches", "/x/a"),
            ("in", "/x"),
            ("because", "no rule matches it"),
            ("", "there is more in it than could be read"),
        ];
        assert_eq!(read(&call), expected.map(|(label, text)| (label, text.to_owned())));
        assert!(read(&Value::Null).is_empty());
    }

    #[test]
    fn a_change_is_shown_without_what_stays_and_says_what_is_left_out() {
        let diff =
            json!([{ "type": "diff", "path": "a.rs", "oldText": "a\nb\nc", "newText": "a\nB\nc" }]);
        let shown = changes(&diff);
        let expected = [("changes", "a.rs from line 2"), ("", "-b"), ("", "+B")];
        assert_eq!(shown, expected.map(|(label, text)| (label, text.to_owned())));
        let long = "x\n".repeat(100);
        let shown = changes(&json!([{ "type": "diff", "path": "a", "newText": long }]));
        assert_eq!(shown.last().unwrap().1, "… and 60 more lines");
    }
}
