//! What a permission request is about, as the policy reads it: the facts that a person needs for an answer. The
//! title is the agent's words; these are not.

use jackfield_policy::{PolicyDecision, RuleEffect, ToolCallFacts, describe_learned_rule};
use jackfield_protocol::visible;
use serde_json::{Value, json};

/// A longer text is cut, and says so.
const FACT_BYTES_MAX: usize = 16 << 10;
/// The same in a title, which is one line.
const TITLE_BYTES_MAX: usize = 2 << 10;
/// More commands or paths than these are counted instead.
const FACTS_MAX: usize = 64;

/// As it is in `_jackfield/asks`, in `_meta.jackfield.call` of an ask, and in notifications.
pub(super) fn approval_facts(call: &ToolCallFacts, decision: &PolicyDecision) -> Value {
    let commands: Vec<String> = call.commands.iter().map(|it| it.text().to_owned()).collect();
    let mut facts = json!({
        "kind": call.kind(),
        "cwd": call.cwd,
        "why": cut(&decision.why),
    });
    let lists = [
        ("commands", &commands),
        ("folders", &call.folders),
        ("paths", &call.paths),
        ("unknown", &call.unknown),
        ("mcp", &call.mcp),
    ];
    for (name, list) in lists.into_iter().filter(|(_, it)| !it.is_empty()) {
        let mut shown: Vec<String> = list.iter().take(FACTS_MAX).map(|it| cut(it)).collect();
        if FACTS_MAX < list.len() {
            shown.push(format!("… and {} more", list.len() - FACTS_MAX));
        }
        facts[name] = json!(shown);
    }
    if let Some(name) = &call.name {
        facts["tool"] = json!(cut(name));
    }
    if call.is_cut {
        facts["isCut"] = json!(true);
    }
    facts["always"] = json!(cut(&describe_learned_rule(call, RuleEffect::Allow)));
    facts
}

/// A title for clients that show nothing but the title of a tool call: what will be done, then the agent's words.
/// None if the agent's title says it already, or there is nothing to say.
pub(super) fn title_with_facts(facts: &Value, title: Option<&str>) -> Option<String> {
    let cwd = facts["cwd"].as_str().unwrap_or_default();
    let subjects = ["commands", "paths", "mcp"].map(|it| facts[it].as_array());
    let subjects = subjects.into_iter().flatten().find(|it| !it.is_empty())?;
    let subjects: Vec<&str> = subjects.iter().filter_map(Value::as_str).collect();
    let title = title.unwrap_or_default();
    let is_plain = visible::line(title) == title;
    let is_shown = |it: &&str| title.contains(*it) || title.contains(below(cwd, it));
    if is_plain && subjects.iter().all(is_shown) {
        return None;
    }
    let done = visible::line(&subjects.join("; ")).into_owned();
    let done = cut_at(&done, TITLE_BYTES_MAX);
    if title.is_empty() {
        return Some(done);
    }
    let title = cut_at(&visible::line(title), TITLE_BYTES_MAX);
    Some(format!("{done} (title by the agent: {title})"))
}

/// A path as it is written from the working directory.
fn below<'a>(cwd: &str, path: &'a str) -> &'a str {
    let rest = path.strip_prefix(cwd).and_then(|it| it.strip_prefix('/'));
    rest.filter(|it| !it.is_empty()).unwrap_or(path)
}

/// The beginning of a long text, and how much is missing.
fn cut(text: &str) -> String {
    cut_at(text, FACT_BYTES_MAX)
}

fn cut_at(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}… ({} more bytes)", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(input: &Value) -> Value {
        let params = json!({ "toolCall": { "title": "List files", "rawInput": input } });
        let call = ToolCallFacts::from_request("claude", "/x", None, &params, None);
        approval_facts(&call, &jackfield_policy::evaluate_rules(&[], &call))
    }

    #[test]
    fn the_facts_are_what_the_policy_reads_and_not_the_title() {
        let facts = facts(&json!({ "command": "touch A; id", "input": { "command": "ls" } }));
        assert_eq!(facts["commands"], json!(["touch A; id", "ls"]));
        assert_eq!((&facts["cwd"], &facts["kind"]), (&json!("/x"), &json!("execute")));
        assert!(facts["always"].as_str().unwrap().contains("`touch`, `id`, `ls`"), "{facts}");
    }

    #[test]
    fn title_has_the_facts_unless_it_shows_them_already() {
        for (title, input, expected) in [
            ("Run `ls -la`", json!({ "command": "ls -la" }), None),
            ("Edit src/a.rs", json!({ "path": "/x/src/a.rs" }), None),
            ("Think", json!({}), None),
            (
                "List files",
                json!({ "command": "rm -rf /" }),
                Some("rm -rf / (title by the agent: List files)"),
            ),
            (
                "Edit passwd",
                json!({ "path": "/etc/passwd" }),
                Some("/etc/passwd (title by the agent: Edit passwd)"),
            ),
            ("", json!({ "command": "id" }), Some("id")),
            (
                "id\u{202e}\n",
                json!({ "command": "id" }),
                Some("id (title by the agent: id\\u{202e}\\n)"),
            ),
            (
                "ls",
                json!({ "command": "ls", "input": { "command": "id" } }),
                Some("ls; id (title by the agent: ls)"),
            ),
        ] {
            let found = title_with_facts(&facts(&input), Some(title));
            assert_eq!(found.as_deref(), expected, "{title}: {input}");
        }
    }

    #[test]
    fn a_long_text_says_how_much_of_it_is_missing() {
        let facts = facts(&json!({ "command": format!("echo {}", "é".repeat(FACT_BYTES_MAX)) }));
        let shown = facts["commands"][0].as_str().unwrap();
        assert!(
            shown.len() < FACT_BYTES_MAX + 40 && shown.ends_with("more bytes)"),
            "{}",
            shown.len()
        );
    }
}
