//! What a permission request is about, as the policy reads it: the facts that a person needs for an answer. The
//! title is the agent's words; these are not.

use jackfield_policy::{Call, Decision, Effect, learned_text};
use serde_json::{Value, json};

/// A longer text is cut, and says so.
const FACT_BYTES_MAX: usize = 16 << 10;
/// More commands or paths than these are counted instead.
const FACTS_MAX: usize = 64;

/// As it is in `_jackfield/asks`, in `_meta.jackfield.call` of an ask, and in notifications.
pub(super) fn approval_facts(call: &Call, decision: &Decision) -> Value {
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
    facts["always"] = json!(cut(&learned_text(call, Effect::Allow)));
    facts
}

/// The beginning of a long text, and how much is missing.
fn cut(text: &str) -> String {
    if text.len() <= FACT_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(FACT_BYTES_MAX);
    format!("{}… ({} more bytes)", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(input: &Value) -> Value {
        let params = json!({ "toolCall": { "title": "List files", "rawInput": input } });
        let call = Call::of("claude", "/x", None, &params, None);
        approval_facts(&call, &jackfield_policy::decide(&[], &call))
    }

    #[test]
    fn the_facts_are_what_the_policy_reads_and_not_the_title() {
        let facts = facts(&json!({ "command": "touch A; id", "input": { "command": "ls" } }));
        assert_eq!(facts["commands"], json!(["touch A; id", "ls"]));
        assert_eq!((&facts["cwd"], &facts["kind"]), (&json!("/x"), &json!("execute")));
        assert!(facts["always"].as_str().unwrap().contains("`touch`, `id`, `ls`"), "{facts}");
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
