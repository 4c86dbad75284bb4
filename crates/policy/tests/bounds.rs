//! Lines that were written to cost much: what a reading consists of grows with the line, no faster.

use jackfield_policy::{Call, Effect, Policy, Rule, Scope, Shell, decide, learn};
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

/// Up to five lines in each other are read, and each that is opaque is searched in two ways.
const BYTES_PER_BYTE: usize = 16;

#[test]
fn size_of_a_reading_is_linear_in_the_length_of_the_line() {
    for count in [10, 500, 8_000] {
        for (name, line) in hostile(count) {
            let size = Shell::of_line(&line).reading_size();
            assert!(size.bytes <= BYTES_PER_BYTE * line.len(), "{name} {count}: {size:?}");
            assert!(size.words <= 8 * line.len() + 8, "{name} {count}: {size:?}");
            assert!(size.programs <= line.len(), "{name} {count}: {size:?}");
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let size = Shell::of_argv(&argv).reading_size();
            assert!(size.bytes <= BYTES_PER_BYTE * line.len(), "{name} {count}: {size:?}");
            assert!(size.programs <= 20, "{name} {count}: {size:?}");
        }
    }
}

#[test]
fn nested_programs_beyond_a_depth_are_opaque_and_searched() {
    let deep = "env ".repeat(14_000) + "rm x";
    let shell = Shell::of_line(&deep);
    assert!(shell.opaque().unwrap().contains("too deep"));
    assert!(shell.reading_size().programs <= 16);
    let near = "env ".repeat(10) + "ls";
    assert_eq!(Shell::of_line(&near).opaque(), None);
    assert!(denies("rm", &deep));
}

#[test]
fn rules_and_learning_get_through_every_hostile_line() {
    for (name, line) in hostile(1_500) {
        let call = call(&line);
        for rule in [
            Rule { run: vec!["git push".to_owned()], ..Rule::of(Effect::Deny) },
            Rule { run: vec!["ls".to_owned()], ..Rule::of(Effect::Allow) },
            Rule {
                path: vec!["~/.ssh/**".to_owned(), "**/*.env".to_owned()],
                ..Rule::of(Effect::Deny)
            },
        ] {
            let decision = decide(&[(Scope::User, &Policy::learned(vec![rule]))], &call);
            assert!(decision.why.len() < 1_000, "{name}: {}", decision.why);
        }
        if let Some(rule) = learn(&call, Effect::Allow) {
            let policy = Policy::learned(vec![rule]);
            let decision = decide(&[(Scope::User, &policy)], &call);
            assert_eq!(decision.effect, Some(Effect::Allow), "{name}");
        }
    }
}

#[test]
fn line_that_is_too_long_or_has_too_many_words_is_denied_by_every_rule() {
    for line in ["ls ".repeat(100_000), "x".repeat(300_000), "a ".repeat(120_000)] {
        assert!(denies("rm", &line));
        let path = Rule { path: vec!["~/.ssh/**".to_owned()], ..Rule::of(Effect::Deny) };
        let decision = decide(&[(Scope::User, &Policy::learned(vec![path]))], &call(&line));
        assert_eq!(decision.effect, Some(Effect::Deny));
    }
}

fn call(line: &str) -> Call {
    let params = json!({ "toolCall": { "kind": "execute", "rawInput": { "command": line } } });
    Call::of("claude", "/project", Some("/user"), &params, None)
}

fn denies(pattern: &str, line: &str) -> bool {
    let rule = Rule { run: vec![pattern.to_owned()], ..Rule::of(Effect::Deny) };
    decide(&[(Scope::User, &Policy::learned(vec![rule]))], &call(line)).effect == Some(Effect::Deny)
}
