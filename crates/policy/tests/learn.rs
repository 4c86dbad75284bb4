//! What an Always means, and what it does not.

use jackfield_policy::{Call, Effect, Policy, Rule, Scope, decide, gist, learn, learned_text};
use serde_json::{Value, json};

fn call(tool_call: &Value) -> Call {
    Call::of("claude", "/project", Some("/user"), &json!({ "toolCall": tool_call }), None)
}

fn runs(command: &str) -> Call {
    call(&json!({ "kind": "execute", "rawInput": { "command": command } }))
}

fn learned(command: &str) -> Option<Vec<String>> {
    learn(&runs(command), Effect::Allow).map(|it| it.run)
}

fn allows(rule: &Rule, call: &Call) -> bool {
    let policy = Policy::learned(vec![rule.clone()]);
    decide(&[(Scope::Session, &policy)], call).effect == Some(Effect::Allow)
}

#[test]
fn an_always_is_about_the_program_and_its_subcommand() {
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
fn always_to_what_cannot_be_undone_is_about_the_exact_line() {
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
        let rule = learn(&runs(line), Effect::Allow).unwrap();
        assert_eq!((rule.run.len(), rule.exact.as_slice()), (0, [line.to_owned()].as_slice()));
        assert!(allows(&rule, &runs(line)), "{line}");
        assert!(!allows(&rule, &runs(&format!("{line} more"))), "{line}");
        assert_eq!(gist(line), None, "our own agent means the exact line, too: {line}");
    }
    let rule = learn(&runs("rm build/x.o"), Effect::Allow).unwrap();
    assert!(!allows(&rule, &runs("rm -rf /")) && !allows(&rule, &runs("rm build/x.o /")));
    assert_eq!(learned("rm $X"), None, "a variable is not the same every time");
}

#[test]
fn what_an_always_will_mean_is_told_before_it_is_confirmed() {
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
        (runs("ls > x"), "no rule is learned from this, so the next call is asked about again"),
    ];
    for (call, text) in cases {
        assert_eq!(learned_text(&call, Effect::Allow), text);
    }
    let denied = learned_text(&runs("git push origin"), Effect::Deny);
    assert_eq!(denied, "denies `git push` with any arguments, in this session");
}

#[test]
fn nothing_is_learned_of_what_runs_other_things() {
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
fn an_always_on_ls_does_not_allow_anything_else() {
    let rule = learn(&runs("ls"), Effect::Allow).unwrap();
    assert!(allows(&rule, &runs("ls -la")));
    for line in ["rm", "ls; rm -rf x", "ls $(rm x)", "ls | sh", "ls > x", "./ls", "sudo ls"] {
        assert!(!allows(&rule, &runs(line)), "{line}");
    }
}

#[test]
fn a_rule_covers_the_call_it_was_learned_from() {
    let calls = [
        runs("cd src && cargo test | grep 'a b'"),
        runs("/usr/bin/ls -l"),
        call(&json!({ "kind": "edit", "locations": [{ "path": "src/[a].rs" }] })),
        call(&json!({ "kind": "other", "name": "write", "rawInput": { "path": "a" } })),
        call(&json!({ "title": "mcp__github__create_issue" })),
    ];
    for call in calls {
        let rule = learn(&call, Effect::Allow).unwrap();
        assert!(allows(&rule, &call), "{rule}");
        let read: Rule = serde_json::from_value(serde_json::to_value(&rule).unwrap()).unwrap();
        assert_eq!(read, rule, "it survives the journal");
    }
}

#[test]
fn a_file_is_learned_by_its_exact_path_and_kind() {
    let edit = |path: &str| call(&json!({ "kind": "edit", "locations": [{ "path": path }] }));
    let rule = learn(&edit("src/[a]*.rs"), Effect::Allow).unwrap();
    assert_eq!(rule.kind, ["edit"]);
    assert!(!allows(&rule, &edit("src/a.rs")) && !allows(&rule, &edit("src/[a]b.rs")));
    let delete = call(&json!({ "kind": "delete", "locations": [{ "path": "src/[a]*.rs" }] }));
    assert!(!allows(&rule, &delete));
}

#[test]
fn an_mcp_tool_is_learned_by_its_name_and_server() {
    let tool = |name: &str| call(&json!({ "title": name }));
    let rule = learn(&tool("mcp__github__create_issue"), Effect::Allow).unwrap();
    assert_eq!(
        (rule.tool.as_slice(), rule.mcp.as_slice()),
        (["mcp__github__create_issue".to_owned()].as_slice(), ["github".to_owned()].as_slice(),)
    );
    assert!(!allows(&rule, &tool("mcp__github__delete_repo")));
}

#[test]
fn what_cannot_be_said_narrowly_is_not_learned() {
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
        assert_eq!(learn(&call(&tool_call), Effect::Allow), None, "{tool_call}");
    }
    assert_eq!(learn(&runs("ls"), Effect::Ask), None);
}

#[test]
fn a_never_is_learned_of_one_command_only() {
    let rule = learn(&runs("git push origin"), Effect::Deny).unwrap();
    assert_eq!(
        (rule.effect, rule.run.as_slice()),
        (Effect::Deny, ["git push".to_owned()].as_slice())
    );
    assert_eq!(learn(&runs("cd x && rm y"), Effect::Deny), None, "`cd` alone was not refused");
}
