//! Rules about paths with spaces, quotes and other scripts, such as a home directory of Windows that WSL mounts.

use jackfield_policy::{
    Policy, RuleEffect, RuleScope, ToolCallFacts, evaluate_rules, learn_rule, parse_policy,
};
use serde_json::{Value, json};

const PROJECT: &str = "/mnt/c/Users/Zoë O'Neil/my project";

fn call(tool_call: &Value) -> ToolCallFacts {
    let params = json!({ "toolCall": tool_call });
    ToolCallFacts::from_request("claude", PROJECT, Some("/mnt/c/Users/Zoë O'Neil"), &params, None)
}

fn edits(path: &str) -> ToolCallFacts {
    call(&json!({ "kind": "edit", "locations": [{ "path": path }] }))
}

fn runs(command: &Value) -> ToolCallFacts {
    call(&json!({ "kind": "execute", "rawInput": { "command": command } }))
}

fn effect(rules: &str, call: &ToolCallFacts) -> Option<RuleEffect> {
    let policy = parse_policy(&format!("rule = [{rules}]"), "policy.toml").unwrap();
    evaluate_rules(&[(RuleScope::User, &policy)], call).effect
}

#[test]
fn allow_rule_of_a_folder_ends_at_the_folder_and_not_at_a_space() {
    let rules = r#"{ do = "allow", kind = "edit", path = "src dir/**" }"#;
    for path in [format!("{PROJECT}/src dir/größe 1.txt"), "src dir/Ж/一.rs".to_owned()] {
        assert_eq!(effect(rules, &edits(&path)), Some(RuleEffect::Allow), "{path}");
    }
    for path in ["/mnt/c/Users/Zoë", "/mnt/c/Users/Zoë O'Neil/my", "src", "dir/a", "src dir/../a"]
    {
        assert_eq!(effect(rules, &edits(path)), None, "{path}");
    }
}

#[test]
fn quoted_and_escaped_words_of_a_command_are_one_path() {
    let rules = r#"{ do = "allow", run = "cat", path = "src dir/**" }"#;
    for line in [
        "cat 'src dir/größe 1.txt'",
        r#"cat "src dir/a b""#,
        r"cat src\ dir/a\ b",
        r#"cat "/mnt/c/Users/Zoë O'Neil/my project/src dir/a b""#,
        r"cat '/mnt/c/Users/Zoë O'\''Neil/my project/src dir/a b'",
    ] {
        assert_eq!(effect(rules, &runs(&json!(line))), Some(RuleEffect::Allow), "{line}");
    }
    for line in ["cat src dir/a", "cat 'src dir/../../x y'", "cat 'src dir'/a /etc/passwd"] {
        assert_eq!(effect(rules, &runs(&json!(line))), None, "{line}");
    }
    let argv = json!(["cat", format!("{PROJECT}/src dir/a b")]);
    assert_eq!(effect(rules, &runs(&argv)), Some(RuleEffect::Allow));
}

#[test]
fn deny_rule_finds_the_folder_in_every_spelling() {
    let rules =
        r#"{ do = "allow" }, { do = "deny", path = "/mnt/c/Users/Zoë O'Neil/Private Files/**" }"#;
    let private = "/mnt/c/Users/Zoë O'Neil/Private Files";
    for call in [
        edits(&format!("{private}/a b")),
        edits("~/Private Files/a"),
        edits("../private files/A"),
        edits(&private.to_uppercase()),
        edits("file:///mnt/c/Users/Zo%C3%AB%20O%27Neil/Private%20Files/a"),
        edits("file://localhost/mnt/c/users/zo%c3%ab%20o'neil/%50rivate%20files/a"),
        runs(&json!(["rm", format!("{private}/a b")])),
        runs(&json!("rm \"$HOME/Private Files/a\"")),
        runs(&json!(r"cd .. && rm Private\ Files/a")),
        runs(&json!("rm -rf ../Priv*")),
    ] {
        assert_eq!(effect(rules, &call), Some(RuleEffect::Deny), "{}", call.summary());
    }
    for path in ["../Private", "../Private Files 2/a", "file:///mnt/c/Users/100%"] {
        assert_eq!(effect(rules, &edits(path)), Some(RuleEffect::Allow), "{path}");
    }
}

#[test]
fn learned_rule_covers_the_file_and_no_other() {
    let rule = learn_rule(&edits(&format!("{PROJECT}/[a] b.rs")), RuleEffect::Allow).unwrap();
    let policy = Policy::from_learned_rules(vec![rule]);
    let effect = |path: &str| evaluate_rules(&[(RuleScope::Session, &policy)], &edits(path)).effect;
    assert_eq!(effect("[a] b.rs"), Some(RuleEffect::Allow));
    assert_eq!(effect("a b.rs"), None);
    assert_eq!(effect("[a]"), None);
}

#[test]
fn shown_command_distinguishes_one_argument_from_two() {
    let shown = |argv: &Value| runs(argv).summary();
    assert_eq!(shown(&json!(["rm", "a b"])), "`rm 'a b'`");
    assert_eq!(shown(&json!(["rm", "a", "b"])), "`rm a b`");
}
