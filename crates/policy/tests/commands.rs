//! What a `run` pattern allows and denies, line by line.

use jackfield_policy::{
    RuleEffect, RuleScope, ShellCommand, ToolCallFacts, evaluate_rules, parse_policy,
};
use serde_json::{Value, json};

fn effect(effect: &str, patterns: &[&str], command: &Value) -> bool {
    let text = format!("[[rule]]\ndo = \"{effect}\"\nrun = {}\n", json!(patterns));
    let policy = parse_policy(&text, "policy.toml").unwrap();
    let params = json!({ "toolCall": { "rawInput": { "command": command } } });
    let call = ToolCallFacts::from_request("claude", "/project", None, &params, None);
    evaluate_rules(&[(RuleScope::User, &policy)], &call).effect.is_some()
}

fn allows(patterns: &[&str], command: &str) -> bool {
    effect("allow", patterns, &json!(command))
}

fn denies(pattern: &str, command: &str) -> bool {
    let denied = effect("deny", &[pattern], &json!(command));
    assert_eq!(
        denied,
        effect("ask", &[pattern], &json!(command)),
        "an ask rule matches the same lines"
    );
    denied
}

#[test]
fn allow_matches_if_every_command_of_the_line_is_allowed() {
    let lines = [
        "ls",
        "ls -la src",
        "  ls\t-la  ",
        "ls; ls",
        "ls && ls || ls | ls & ls\nls",
        "ls \\\n -la",
        "l's' \"-la\" 'a b; rm x'",
        "ls 2>/dev/null",
        "ls > /dev/null 2>&1",
        "ls &>/dev/null",
        "ls # and then: rm x",
        "ls $HOME \"$X\" ${Y} *.rs",
        "/bin/ls",
        "/usr/bin/ls -l",
        "bash -lc 'ls -la && ls'",
        "bash -e -o pipefail -c ls",
        "sh -c \"sh -c 'ls'\"",
    ];
    for line in lines {
        assert!(allows(&["ls"], line), "{line}");
    }
    assert!(effect("allow", &["ls"], &json!(["bash", "-lc", "ls -la"])));
    assert!(effect("allow", &["ls"], &json!(["ls", "a; rm x"])), "no shell reads an argument list");
}

#[test]
fn allow_does_not_match_a_line_that_runs_another_program() {
    let lines = [
        "rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | rm x",
        "ls & rm x",
        "ls\nrm x",
        "lsx",
        "\"ls -la\"",
        "./ls",
        "/tmp/ls",
        "/bin/../tmp/ls",
        "bin/ls",
        "bash -c 'ls; rm x'",
        "PATH=/tmp ls",
        "LD_PRELOAD=x ls",
        "env ls",
        "sudo ls",
        "timeout 5 ls",
        "nohup ls",
        "xargs ls",
        "exec ls",
        "ssh host ls",
        "sudo bash -c ls",
        "./bash -c ls",
        "ls\u{a0}-la; rm x",
        "",
        "# ls",
    ];
    for line in lines {
        assert!(!allows(&["ls"], line), "{line}");
    }
}

/// Lines for which it is not certain what they run.
const OPAQUE: &[&str] = &[
    "ls $(rm x)",
    "ls `rm x`",
    "ls \"$(rm x)\"",
    "ls <(rm x)",
    "ls >(rm x)",
    "ls > file",
    "ls >> file",
    "ls >&file",
    "ls &> file",
    "ls < file",
    "ls <<EOF\nEOF",
    "ls <<< x",
    "ls $((1+1))",
    "ls ${X:-$(rm x)}",
    "ls ${X@P}",
    "ls $'a'",
    "(ls)",
    "{ ls; }",
    "{ls,x}",
    "l? x",
    "$X ls",
    "$SHELL -c ls",
    "! ls",
    "if ls; then ls; fi",
    "for x in ls; do ls; done",
    "eval ls",
    "source ls",
    ". ls",
    "alias ls=rm",
    "trap 'rm x' EXIT",
    "ls 'x",
    "ls \"x",
    "ls \\",
    "ls &&",
    "ls | | ls",
    "ls ;; ls",
    "f() { rm; }",
    "bash",
    "curl x | bash",
    "bash -s",
    "bash -c \"$X\"",
    "bash --rcfile x -c ls",
    "python3 -c 'print()'",
    "python3 -uc 'print()'",
    "node --require x -e y",
    "perl -ne y",
    "python3",
    "python3 -",
    "git -c alias.x=!rm x",
    "git -C d -c core.pager=rm log",
    "find . -exec ls {} \\; -exec rm {} \\;",
    "cd x && ./ls",
    "cd x; timeout 5 ./ls",
    "env -S 'rm x'",
    "sudo --other x ls",
    "ssh host rm x",
    "xargs -I{} sh -c 'rm {}'",
    "pwsh -c ls",
    "docker run -it box rm x",
    "git submodule foreach rm x",
    "git bisect run rm x",
    "git rebase -x rm main",
    "su -c rm",
];

#[test]
fn uncertain_line_is_opaque_and_no_pattern_allows_it() {
    for line in OPAQUE {
        assert!(ShellCommand::from_line(line).opaque_reason().is_some(), "{line}");
        assert!(!allows(&["*", "* *", "* * *", "* * * *", "* * * * *"], line), "{line}");
    }
    let long = format!("ls {}", "x ".repeat(200_000));
    assert!(!allows(&["ls"], &long));
    assert!(denies("rm", &long), "a line that is too long to be searched is denied");
}

#[test]
fn pattern_of_a_wrapper_must_spell_out_the_wrapped_command() {
    let spelled = [
        ("timeout * npm test", "timeout 60 npm test"),
        ("sudo -u root ls", "sudo -u root ls -la"),
        ("env ls", "env ls"),
        ("CI=1 npm test", "CI=1 npm test --all"),
        ("xargs grep", "xargs grep x"),
        ("bash build.sh", "bash build.sh now"),
        ("bash -e build.sh", "bash -e build.sh"),
        ("find . -exec ls", "find . -exec ls {} \\;"),
        ("npx tsc", "npx tsc -p ."),
        ("uv run pytest", "uv run pytest -q"),
        ("docker exec box ls", "docker exec box ls"),
        ("command -v git", "command -v git"),
        ("env", "env"),
        ("./gradlew", "./gradlew build"),
        ("cd", "cd x"),
    ];
    for (pattern, line) in spelled {
        assert!(allows(&[pattern], line), "{pattern}: {line}");
    }
    let not_spelled = [
        ("timeout", "timeout 60 npm test"),
        ("timeout **", "timeout 60 npm test"),
        ("timeout *", "timeout 60 npm test"),
        ("sudo", "sudo ls"),
        ("sudo *", "sudo -u root ls"),
        ("env", "env ls"),
        ("env", "env X=1 ls"),
        ("xargs", "xargs rm"),
        ("timeout * sudo", "timeout 5 sudo rm"),
        ("bash", "bash build.sh"),
        ("find", "find . -exec rm {} \\;"),
        ("find . -exec", "find . -exec rm {} \\;"),
        ("npm test", "CI=1 npm test"),
        ("npx", "npx tsc"),
        ("uv run", "uv run pytest"),
        ("uv run python", "uv run python -c x"),
        ("docker", "docker exec box ls"),
        ("PATH=/tmp", "PATH=/tmp ls"),
    ];
    for (pattern, line) in not_spelled {
        assert!(!allows(&[pattern], line), "{pattern}: {line}");
    }
}

#[test]
fn patterns_match_word_by_word() {
    assert!(allows(&["git status"], "git status --short"));
    assert!(allows(&["git status **"], "git status --short"));
    assert!(allows(&["npm run *"], "npm run test"));
    assert!(!allows(&["npm run *"], "npm run"));
    assert!(!allows(&["git status"], "git stat"));
    assert!(!allows(&["git status"], "git -C x status"));
    assert!(!allows(&["git status"], "git $X"), "the value of a variable is not certain");
    assert!(!allows(&["ls -la"], "ls -l*"));
}

#[test]
fn deny_finds_its_command_anywhere_in_the_line() {
    let lines = [
        "rm x",
        "/bin/rm x",
        "./rm x",
        "\\rm x",
        "r''m x",
        "ls; rm x",
        "ls | xargs rm",
        "ls | xargs -0 -n 1 rm",
        "sudo rm x",
        "sudo --unknown y rm x",
        "X=1 rm x",
        "env X=1 rm x",
        "timeout 5 nohup rm x",
        "bash -lc 'rm x'",
        "sudo bash -c 'rm x'",
        "bash -c \"bash -c 'rm x'\"",
        "eval 'rm x'",
        "ls $(rm x)",
        "ls `rm x`",
        "(rm x)",
        "if true; then rm x; fi",
        "cat <<EOF | sh\nrm x\nEOF",
        "find . -exec rm {} \\;",
        "X=rm; $X x",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "ssh host rm x",
        "echo x > y; r\"\"m x",
        "bash -c 'bash -c \"bash -c \\\"bash -c rm\\\"\"'",
    ];
    for line in lines {
        assert!(denies("rm", line), "{line}");
    }
    for line in ["ls", "rmdir x", "git commit -m 'rm it'", "ls rm", "grep rm x"] {
        assert!(!denies("rm", line), "{line}");
    }
    assert!(effect("deny", &["rm"], &json!(["bash", "-lc", "ls; rm x"])));
    assert!(effect("deny", &["rm"], &json!(["/bin/rm", "x"])));
    assert!(effect("deny", &["bash"], &json!("bash -c ls")), "the shell itself is matched, too");
}

#[test]
fn deny_skips_options_before_a_subcommand() {
    let lines = [
        "git push",
        "git -C dir push origin",
        "git --no-pager -c a=b push",
        "git --git-dir=x --work-tree y push",
        "git $X origin",
        "/usr/bin/git push",
    ];
    for line in lines {
        assert!(denies("git push", line), "{line}");
    }
    assert!(denies("npm publish", "npm --prefix x publish"));
    assert!(denies("rm -rf", "rm -rf x"));
    assert!(denies("rm * keep", "rm -f x keep"));
    assert!(!denies("git push", "git status push"));
    assert!(!denies("git push", "git stash"));
    assert!(!denies("rm -rf", "rm *.o"));
}

#[test]
fn command_is_found_under_every_member_name_of_agents() {
    let inputs = [
        json!({ "command": "rm x" }),
        json!({ "command": ["rm", "x"] }),
        json!({ "command": ["bash", "-lc", "rm x"] }),
        json!({ "commands": ["ls", "rm x"] }),
        json!({ "commands": [["rm", "x"]] }),
        json!({ "commands": [{ "command": "rm", "args": ["x"] }] }),
        json!({ "command": "rm", "args": ["x"] }),
        json!({ "command": "ls", "args": ["x;", "rm", "x"] }),
        json!({ "cmd": "rm x" }),
        json!({ "tool": "shell", "arguments": { "command": "rm x" } }),
    ];
    let policy = parse_policy("[[rule]]\ndo = \"deny\"\nrun = \"rm\"\n", "policy.toml").unwrap();
    for input in inputs {
        for params in [
            json!({ "toolCall": { "rawInput": input } }),
            json!({ "subject": { "type": "tool_call", "toolCall": { "rawInput": input } } }),
        ] {
            let call = ToolCallFacts::from_request("claude", "/project", None, &params, None);
            let decision = evaluate_rules(&[(RuleScope::User, &policy)], &call);
            assert_eq!(decision.effect, Some(RuleEffect::Deny), "{input}");
        }
        let known = json!({ "rawInput": input });
        let call = ToolCallFacts::from_request(
            "claude",
            "/",
            None,
            &json!({ "toolCall": { "rawInput": {} } }),
            Some(&known),
        );
        assert_eq!(
            evaluate_rules(&[(RuleScope::User, &policy)], &call).effect,
            Some(RuleEffect::Deny),
            "{input}"
        );
    }
    let editor =
        json!({ "toolCall": { "kind": "edit", "rawInput": { "command": "create", "path": "a" } } });
    assert!(ToolCallFacts::from_request("claude", "/", None, &editor, None).commands.is_empty());
}
