//! Tool inputs that show one command and may run another.

use jackfield_policy::{
    RuleEffect, RuleScope, ToolCallFacts, evaluate_rules, learn_rule, parse_policy,
};
use serde_json::{Value, json};

fn call(kind: &str, input: &Value) -> ToolCallFacts {
    let params = json!({ "toolCall": { "kind": kind, "rawInput": input } });
    ToolCallFacts::from_request("claude", "/project", Some("/user"), &params, None)
}

fn effect(rules: &str, call: &ToolCallFacts) -> Option<RuleEffect> {
    let policy = parse_policy(&format!("rule = [{rules}]"), "policy.toml").unwrap();
    evaluate_rules(&[(RuleScope::User, &policy)], call).effect
}

const ALLOW_LS: &str = r#"{ do = "allow", run = "ls" }"#;
const ALL_BUT_PUSH: &str = r#"{ do = "allow" }, { do = "deny", run = "git push" }"#;

#[test]
fn every_member_that_may_be_the_command_must_be_allowed() {
    for name in ["input", "arguments", "args", "parameters", "params", "tool_input", "anything"] {
        let input = json!({ "command": "touch A; id", name: { "command": "ls" } });
        assert_eq!(effect(ALLOW_LS, &call("execute", &input)), None, "{input}");
        let input = json!({ "command": "ls", name: { "command": "touch A; id" } });
        assert_eq!(effect(ALLOW_LS, &call("execute", &input)), None, "{input}");
        let input = json!({ "command": "ls", name: { "deep": [{ "cmd": "ls -la" }] } });
        assert_eq!(effect(ALLOW_LS, &call("execute", &input)), Some(RuleEffect::Allow), "{input}");
    }
    for input in [
        json!({ "command": "ls", "cmd": "id" }),
        json!({ "command": "ls", "argv": ["id"] }),
        json!({ "command": "ls", "args": "; id" }),
        json!({ "command": "ls", "args": "[\";\", \"id\"]" }),
        json!({ "command": "ls", "arguments": "{\"command\": \"id\"}" }),
        json!({ "command": ["ls"], "args": [";", "id"] }),
        json!({ "commands": ["ls", { "run": "x", "command": "id" }] }),
    ] {
        assert_eq!(effect(ALLOW_LS, &call("execute", &input)), None, "{input}");
    }
}

#[test]
fn request_and_earlier_update_are_both_evaluated() {
    let own = json!({ "toolCall": { "kind": "execute", "rawInput": { "command": "ls" } } });
    let known = json!({ "rawInput": { "command": "git push" } });
    let call = ToolCallFacts::from_request("claude", "/project", None, &own, Some(&known));
    assert_eq!(effect(ALLOW_LS, &call), None);
    assert_eq!(effect(ALL_BUT_PUSH, &call), Some(RuleEffect::Deny));
}

#[test]
fn deny_finds_a_command_under_any_name_and_at_any_depth() {
    for input in [
        json!({ "command_line": "git push" }),
        json!({ "commandLine": "git push" }),
        json!({ "Command": "git push" }),
        json!({ "anything": "git push" }),
        json!({ "a": { "b": [{ "c": "cd x && git push" }] } }),
        json!({ "a": ["git", "push"] }),
        json!({ "program": "git", "arguments": ["push"] }),
        json!({ "command": "git", "args": "push" }),
        json!({ "command": "ls", "input": { "command": "git push" } }),
        json!({ "arguments": "{\"command\": \"git push\"}" }),
        json!(["git", "push"]),
        json!("git push"),
        json!({ "content": "git push" }),
    ] {
        assert_eq!(
            effect(ALL_BUT_PUSH, &call("execute", &input)),
            Some(RuleEffect::Deny),
            "{input}"
        );
    }
    let text = json!({ "path": "a", "content": "git push" });
    assert_eq!(
        effect(ALL_BUT_PUSH, &call("edit", &text)),
        Some(RuleEffect::Allow),
        "it is not run"
    );
}

#[test]
fn unknown_text_prevents_an_allow_about_contents() {
    let unknown = [
        json!({ "command": "ls", "stdin": "x" }),
        json!({ "command": "ls", "env": { "LD_PRELOAD": "x" } }),
        json!({ "command": "ls", "c\u{43e}mmand": "id" }),
        json!({ "command": "ls", "deep": { "er": ["x"] } }),
    ];
    for input in unknown {
        let call = call("execute", &input);
        assert_eq!(effect(ALLOW_LS, &call), None, "{input}");
        assert_eq!(learn_rule(&call, RuleEffect::Allow), None, "{input}");
        let all = r#"{ do = "allow" }"#;
        assert_eq!(
            effect(all, &call),
            Some(RuleEffect::Allow),
            "a rule without matchers does not check the contents"
        );
    }
    let read = json!({ "path": "src/a", "transform": "id" });
    let rule = r#"{ do = "allow", kind = "read", path = "src/**" }"#;
    assert_eq!(effect(rule, &call("read", &read)), None);
    let plain = json!({ "command": "ls", "description": "id", "timeout": 5, "background": false });
    assert_eq!(effect(ALLOW_LS, &call("execute", &plain)), Some(RuleEffect::Allow));
}

#[test]
fn every_path_of_an_input_counts() {
    let deny = r#"{ do = "allow" }, { do = "deny", path = "~/.ssh/**" }"#;
    let allow = r#"{ do = "allow", path = "src/**" }"#;
    for input in [
        json!({ "path": "src/a", "input": { "path": "~/.ssh/id" } }),
        json!({ "path": "src/a", "target": "/user/.ssh/id" }),
        json!({ "path": "src/a", "unknown": "/user/.ssh/id" }),
        json!({ "path": "src/a", "FilePath": "~/.ssh/id" }),
        json!({ "path": "src/a", "pattern": "/user/.ssh/id" }),
        json!({ "path": "src/a", "changes": { "/user/.ssh/id": {} } }),
        json!({ "path": "src/a", "diff": "--- a/x\n+++ /user/.ssh/id\n" }),
    ] {
        assert_eq!(effect(deny, &call("edit", &input)), Some(RuleEffect::Deny), "{input}");
        assert_eq!(effect(allow, &call("edit", &input)), None, "{input}");
    }
}

#[test]
fn input_with_too_many_parts_is_never_allowed_and_always_denied() {
    let many = json!({ "commands": (0..100).map(|it| format!("ls {it}")).collect::<Vec<_>>() });
    let mut deep = json!({ "command": "ls" });
    for _ in 0..40 {
        deep = json!({ "a": deep });
    }
    let long = json!({ "command": "ls", "x": "y ".repeat(200_000) });
    for input in [many, deep, long] {
        let call = call("execute", &input);
        assert!(call.is_cut);
        assert_eq!(effect(r#"{ do = "allow" }"#, &call), None);
        assert_eq!(effect(ALL_BUT_PUSH, &call), Some(RuleEffect::Deny));
    }
}

#[test]
fn expensive_input_is_cut() {
    let spelled = |it: usize| format!("c{}ommand", "_".repeat(it));
    let many = (0..5000).map(|it| (spelled(it % 60 + it / 60), json!(format!("ls {it}"))));
    let many: serde_json::Map<String, Value> = many.collect();
    let names = (0..6000).map(|it| (format!("k{it}"), json!("x"))).collect();
    let long: Vec<String> = (0..8).map(|it| format!("{it}{}", "x".repeat(100_000))).collect();
    let files = "+++ b/f\n".repeat(6000);
    for input in [
        Value::Object(many),
        Value::Object(names),
        json!({ "commands": long }),
        json!({ "diff": files }),
        json!({ "paths": (0..6000).map(|it| it.to_string()).collect::<Vec<_>>() }),
    ] {
        assert!(call("execute", &input).is_cut);
    }
    let params = json!({ "toolCall": { "title": "x".repeat(300_000) } });
    assert!(
        ToolCallFacts::from_request("claude", "/", None, &params, None).is_cut,
        "a title of 300 KB"
    );
}

#[test]
fn files_in_the_keys_of_changes_are_paths() {
    let input =
        json!({ "changes": { "src/a": { "update": { "unified_diff": "@@ -1 +1 @@\n-a\n+b" } } } });
    let allow = r#"{ do = "allow", path = "src/**" }"#;
    assert_eq!(effect(allow, &call("edit", &input)), Some(RuleEffect::Allow));
}

#[test]
fn tool_with_two_names_can_only_be_denied_by_name() {
    let call = |meta: &str, input: &str| {
        let params = json!({ "toolCall": {
            "_meta": { "claudeCode": { "toolName": meta } }, "rawInput": { "tool": input },
        } });
        ToolCallFacts::from_request("claude", "/project", None, &params, None)
    };
    let (allow, deny) = (r#"{ do = "allow", tool = "Read" }"#, r#"{ do = "deny", tool = "Bash" }"#);
    assert_eq!(effect(allow, &call("Read", "Read")), Some(RuleEffect::Allow));
    for call in [call("Read", "Bash"), call("Bash", "Read")] {
        assert_eq!(effect(allow, &call), None);
        assert_eq!(effect(deny, &call), Some(RuleEffect::Deny));
    }
}
