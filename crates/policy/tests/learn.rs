//! The rules that "always" answers create.

use jackfield_policy::{
    Policy, Rule, RuleEffect, RuleScope, ToolCallFacts, command_prefix, describe_learned_rule,
    evaluate_rules, learn_rule,
};
use serde_json::{Value, json};

fn call(tool_call: &Value) -> ToolCallFacts {
    ToolCallFacts::from_request(
        "claude",
        "/project",
        Some("/user"),
        &json!({ "toolCall": tool_call }),
        None,
    )
}

fn runs(command: &str) -> ToolCallFacts {
    call(&json!({ "kind": "execute", "rawInput": { "command": command } }))
}

fn learned(command: &str) -> Option<Vec<String>> {
    learn_rule(&runs(command), RuleEffect::Allow).map(|it| it.run)
}

fn allows(rule: &Rule, call: &ToolCallFacts) -> bool {
    let policy = Policy::from_learned_rules(vec![rule.clone()]);
    evaluate_rules(&[(RuleScope::Session, &policy)], call).effect == Some(RuleEffect::Allow)
}

#[test]
fn learned_rule_covers_the_program_and_its_subcommand() {
    let cases: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("ls -la src", &["ls"]),
        ("/bin/ls", &["/bin/ls"]),
        ("git status --short", &["git status"]),
        ("git --no-pager diff", &["git --no-pager diff"]),
        ("cargo test -p x", &["cargo test"]),
        ("cargo --version", &["cargo --version"]),
        ("npm run test -- --all", &["npm run test"]),
        ("npm test", &["npm test"]),
        ("docker ps -a", &["docker ps"]),
        ("bun run build", &["bun run build"]),
        ("go run ./x a", &["go run ./x"]),
        ("make", &["make"]),
        ("make test", &["make test"]),
        ("python3 tools/x.py a", &["python3 tools/x.py"]),
        ("python3 -m pytest -q", &["python3 -m pytest"]),
        ("cd src && cargo test | grep x; ls", &["cd", "cargo test", "grep", "ls"]),
        ("ls; ls -la", &["ls"]),
        ("bash -lc 'git log | head'", &["git log", "head"]),
    ];
    for (command, patterns) in cases {
        assert_eq!(learned(command).unwrap(), *patterns, "{command}");
    }
}

#[test]
fn learned_rule_for_irreversible_command_covers_exact_line() {
    let lines = [
        "rm build/x.o",
        "rm -rf build",
        "/bin/rm x",
        "mv a b",
        "chmod +x a",
        "git push origin main",
        "git stash pop",
        "git reset --hard",
        "npm publish",
        "kubectl get pods",
        "docker compose up -d",
        "cd build && rm x.o",
        "sed -n 1p a",
        "find . -name x",
        "mkfs.ext4 /dev/x",
    ];
    for line in lines {
        let rule = learn_rule(&runs(line), RuleEffect::Allow).unwrap();
        assert_eq!((rule.run.len(), rule.exact.as_slice()), (0, [line.to_owned()].as_slice()));
        assert!(allows(&rule, &runs(line)), "{line}");
        assert!(!allows(&rule, &runs(&format!("{line} more"))), "{line}");
        assert_eq!(
            command_prefix(line),
            None,
            "our own agent requires the exact line, too: {line}"
        );
    }
    let rule = learn_rule(&runs("rm build/x.o"), RuleEffect::Allow).unwrap();
    assert!(!allows(&rule, &runs("rm -rf /")) && !allows(&rule, &runs("rm build/x.o /")));
    assert_eq!(learned("rm $X"), None, "a variable is not the same every time");
}

#[test]
fn learned_rule_is_described_before_it_is_confirmed() {
    let cases = [
        (runs("cargo test -p x"), "allows `cargo test` with any arguments, in this session"),
        (runs("cd a && ls"), "allows `cd`, `ls` with any arguments, in this session"),
        (runs("rm a"), "allows exactly this line: `rm a`, in this session"),
        (
            call(&json!({ "kind": "edit", "locations": [{ "path": "a" }] })),
            "allows `edit` of `/project/a`, in this session",
        ),
        (
            call(&json!({ "title": "mcp__github__create" })),
            "allows the tool `mcp__github__create` of `github` with any input, in this session",
        ),
        (runs("ls > x"), "no rule is learned from this call; you will be asked again"),
    ];
    for (call, text) in cases {
        assert_eq!(describe_learned_rule(&call, RuleEffect::Allow), text);
    }
    let denied = describe_learned_rule(&runs("git push origin"), RuleEffect::Deny);
    assert_eq!(denied, "denies `git push` with any arguments, in this session");
}

#[test]
fn no_rule_is_learned_from_a_program_that_runs_others() {
    let lines = [
        "bash",
        "bash build.sh",
        "bash -c \"$X\"",
        "python3 -c 'x'",
        "python3",
        "python3 -u x.py",
        "node -e x",
        "sudo ls",
        "env ls",
        "env",
        "CI=1 npm test",
        "timeout 5 ls",
        "xargs rm",
        "find . -exec rm {} \\;",
        "npx tsc",
        "eval ls",
        "export PATH=/tmp",
        "PATH=/tmp",
        "git -C dir status",
        "git -c x=y status",
        "npm run",
        "cargo +nightly test",
        "git $X",
        "ls $(rm x)",
        "ls > file",
        "ls; sudo rm x",
        "'*' x",
        "pwsh -c x",
        "awk 'BEGIN { system(1) }'",
        "uv run python x",
        "docker exec box ls",
        "npm exec tsc",
        "go run",
        "su root",
    ];
    for line in lines {
        assert_eq!(learned(line), None, "{line}");
    }
}

#[test]
fn rule_learned_from_ls_allows_only_ls() {
    let rule = learn_rule(&runs("ls"), RuleEffect::Allow).unwrap();
    assert!(allows(&rule, &runs("ls -la")));
    for line in ["rm", "ls; rm -rf x", "ls $(rm x)", "ls | sh", "ls > x", "./ls", "sudo ls"] {
        assert!(!allows(&rule, &runs(line)), "{line}");
    }
}

#[test]
fn learned_rule_allows_the_call_it_came_from() {
    let calls = [
        runs("cd src && cargo test | grep 'a b'"),
        runs("/usr/bin/ls -l"),
        call(&json!({ "kind": "edit", "locations": [{ "path": "src/[a].rs" }] })),
        call(&json!({ "kind": "other", "name": "write", "rawInput": { "path": "a" } })),
        call(&json!({ "title": "mcp__github__create_issue" })),
    ];
    for call in calls {
        let rule = learn_rule(&call, RuleEffect::Allow).unwrap();
        assert!(allows(&rule, &call), "{rule}");
        let read: Rule = serde_json::from_value(serde_json::to_value(&rule).unwrap()).unwrap();
        assert_eq!(read, rule, "it survives the journal");
    }
}

#[test]
fn rule_for_a_file_has_its_exact_path_and_kind() {
    let edit = |path: &str| call(&json!({ "kind": "edit", "locations": [{ "path": path }] }));
    let rule = learn_rule(&edit("src/[a]*.rs"), RuleEffect::Allow).unwrap();
    assert_eq!(rule.kind, ["edit"]);
    assert!(!allows(&rule, &edit("src/a.rs")) && !allows(&rule, &edit("src/[a]b.rs")));
    let delete = call(&json!({ "kind": "delete", "locations": [{ "path": "src/[a]*.rs" }] }));
    assert!(!allows(&rule, &delete));
}

#[test]
fn rule_for_an_mcp_tool_has_its_name_and_server() {
    let tool = |name: &str| call(&json!({ "title": name }));
    let rule = learn_rule(&tool("mcp__github__create_issue"), RuleEffect::Allow).unwrap();
    assert_eq!(
        (rule.tool.as_slice(), rule.mcp.as_slice()),
        (["mcp__github__create_issue".to_owned()].as_slice(), ["github".to_owned()].as_slice(),)
    );
    assert!(!allows(&rule, &tool("mcp__github__delete_repo")));
}

#[test]
fn no_rule_is_learned_if_it_would_be_broad() {
    let vague = [
        json!({ "title": "Confirm Agent Actions", "kind": "other" }),
        json!({ "title": "Say hello", "kind": "execute" }),
        json!({ "kind": "other", "rawInput": { "path": "a" } }),
        json!({ "kind": "fetch", "rawInput": { "url": "https://example.com" } }),
        json!({ "kind": "switch_mode", "title": "Leave plan mode" }),
        json!({ "rawInput": { "questions": [], "command": "ls" } }),
        json!({}),
    ];
    for tool_call in vague {
        assert_eq!(learn_rule(&call(&tool_call), RuleEffect::Allow), None, "{tool_call}");
    }
    assert_eq!(learn_rule(&runs("ls"), RuleEffect::Ask), None);
}

#[test]
fn deny_rule_is_learned_from_a_single_command_only() {
    let rule = learn_rule(&runs("git push origin"), RuleEffect::Deny).unwrap();
    assert_eq!(
        (rule.effect, rule.run.as_slice()),
        (RuleEffect::Deny, ["git push".to_owned()].as_slice())
    );
    assert_eq!(
        learn_rule(&runs("cd x && rm y"), RuleEffect::Deny),
        None,
        "`cd` alone was not refused"
    );
}
