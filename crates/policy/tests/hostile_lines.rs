//! Lines that are built to be expensive: the size of an analysis is linear in the length of the
//! line.

use jackfield_policy::{
    Policy, Rule, RuleEffect, RuleScope, ShellCommand, ToolCallFacts, evaluate_rules, learn_rule,
};
use serde_json::json;

/// Texts that nest or repeat something `count` times.
fn hostile(count: usize) -> Vec<(&'static str, String)> {
    let nested =
        |open: &str, close: &str| format!("{}ls{}", open.repeat(count), close.repeat(count));
    vec![
        ("wrappers", "env ".repeat(count) + "ls"),
        ("mixed wrappers", "sudo env nice -n 1 timeout 5 ".repeat(count / 4) + "ls"),
        ("assignments", "A=1 ".repeat(count) + "ls"),
        ("wrapped assignments", "env A=1 ".repeat(count) + "ls"),
        ("xargs", "xargs ".repeat(count) + "rm"),
        ("finds", "find . -exec ".repeat(count) + "rm"),
        ("runners", "npx ".repeat(count) + "rm"),
        ("substitutions", nested("$(", ")")),
        ("quoted substitutions", nested("\"$(", ")\"")),
        ("backticks", "`ls ".repeat(count)),
        ("parentheses", nested("(", ")")),
        ("braces", nested("{", "}")),
        ("open braces", "{".repeat(count)),
        ("open classes", "[".repeat(count)),
        ("classes", "[]".repeat(count)),
        ("variables", "$a".repeat(count)),
        ("stars", format!("ls {}x", "*".repeat(count))),
        ("pipeline", "ls | ".repeat(count) + "ls"),
        ("list", "ls;".repeat(count)),
        ("lines", "ls\n".repeat(count)),
        ("shells in shells", "sh -c 'sh -c ".repeat(count)),
        ("heredocs", "cat <<EOF\nx\nEOF\n".repeat(count)),
        ("open heredocs", "cat <<".repeat(count)),
        ("quotes with escapes", "$'\\x61' ".repeat(count)),
        ("open quotes with escapes", "$'".repeat(count)),
        ("options", format!("git {}", "-C x ".repeat(count))),
        ("long options", format!("sort {}", "--output-x ".repeat(count))),
        ("sed", format!("sed '{}'", "s/a/b/;".repeat(count))),
        ("slashes", "/".repeat(count)),
        ("parents", format!("ls {}", "../".repeat(count))),
        ("folders", "cd a;".repeat(count)),
        ("equals", "=".repeat(count)),
        ("colons", format!("ls {}", "a:".repeat(count))),
    ]
}

/// Up to five nested lines are analyzed, and each opaque line is split into words in two ways.
const BYTES_PER_BYTE: usize = 16;

#[test]
fn size_of_an_analysis_is_linear_in_the_length_of_the_line() {
    for count in [10, 500, 8_000] {
        for (name, line) in hostile(count) {
            let size = ShellCommand::from_line(&line).analysis_size();
            assert!(size.bytes <= BYTES_PER_BYTE * line.len(), "{name} {count}: {size:?}");
            assert!(size.words <= 8 * line.len() + 8, "{name} {count}: {size:?}");
            assert!(size.programs <= line.len(), "{name} {count}: {size:?}");
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let size = ShellCommand::from_argv(&argv).analysis_size();
            assert!(size.bytes <= BYTES_PER_BYTE * line.len(), "{name} {count}: {size:?}");
            assert!(size.programs <= 20, "{name} {count}: {size:?}");
        }
    }
}

#[test]
fn wrappers_nested_too_deep_are_opaque_and_searched() {
    let deep = "env ".repeat(14_000) + "rm x";
    let shell = ShellCommand::from_line(&deep);
    assert!(shell.opaque_reason().unwrap().contains("too deep"));
    assert!(shell.analysis_size().programs <= 16);
    let near = "env ".repeat(10) + "ls";
    assert_eq!(ShellCommand::from_line(&near).opaque_reason(), None);
    assert!(denies("rm", &deep));
}

#[test]
fn rules_and_learning_handle_every_hostile_line() {
    for (name, line) in hostile(1_500) {
        let call = call(&line);
        for rule in [
            Rule { run: vec!["git push".to_owned()], ..Rule::for_every_call(RuleEffect::Deny) },
            Rule { run: vec!["ls".to_owned()], ..Rule::for_every_call(RuleEffect::Allow) },
            Rule {
                path: vec!["~/.ssh/**".to_owned(), "**/*.env".to_owned()],
                ..Rule::for_every_call(RuleEffect::Deny)
            },
        ] {
            let decision = evaluate_rules(
                &[(RuleScope::User, &Policy::from_learned_rules(vec![rule]))],
                &call,
            );
            assert!(decision.why.len() < 1_000, "{name}: {}", decision.why);
        }
        if let Some(rule) = learn_rule(&call, RuleEffect::Allow) {
            let policy = Policy::from_learned_rules(vec![rule]);
            let decision = evaluate_rules(&[(RuleScope::User, &policy)], &call);
            assert_eq!(decision.effect, Some(RuleEffect::Allow), "{name}");
        }
    }
}

#[test]
fn oversized_line_matches_every_deny_rule() {
    for line in ["ls ".repeat(100_000), "x".repeat(300_000), "a ".repeat(120_000)] {
        assert!(denies("rm", &line));
        let path =
            Rule { path: vec!["~/.ssh/**".to_owned()], ..Rule::for_every_call(RuleEffect::Deny) };
        let decision = evaluate_rules(
            &[(RuleScope::User, &Policy::from_learned_rules(vec![path]))],
            &call(&line),
        );
        assert_eq!(decision.effect, Some(RuleEffect::Deny));
    }
}

fn call(line: &str) -> ToolCallFacts {
    let params = json!({ "toolCall": { "kind": "execute", "rawInput": { "command": line } } });
    ToolCallFacts::from_request("claude", "/project", Some("/user"), &params, None)
}

fn denies(pattern: &str, line: &str) -> bool {
    let rule = Rule { run: vec![pattern.to_owned()], ..Rule::for_every_call(RuleEffect::Deny) };
    evaluate_rules(&[(RuleScope::User, &Policy::from_learned_rules(vec![rule]))], &call(line))
        .effect
        == Some(RuleEffect::Deny)
}
