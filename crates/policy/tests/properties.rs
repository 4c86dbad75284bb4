//! Properties of the command analysis, tested with generated lines.

use jackfield_policy::{
    Policy, Rule, RuleEffect, RuleScope, ShellCommand, ToolCallFacts, evaluate_rules, learn_rule,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(command: &Value) -> ToolCallFacts {
    let params = json!({ "toolCall": { "kind": "execute", "rawInput": { "command": command } } });
    ToolCallFacts::from_request("claude", "/project", None, &params, None)
}

fn decided(effect: RuleEffect, pattern: &str, command: &Value) -> Option<RuleEffect> {
    let rule = Rule { run: vec![pattern.to_owned()], ..Rule::for_every_call(effect) };
    evaluate_rules(&[(RuleScope::User, &Policy::from_learned_rules(vec![rule]))], &call(command))
        .effect
}

/// The words of all commands that the analysis reports.
fn words(line: &str) -> Vec<Vec<String>> {
    let command = serde_json::to_value(ShellCommand::from_line(line)).unwrap();
    serde_json::from_value(command["runs"].clone()).unwrap()
}

fn single(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn double(word: &str) -> String {
    let special = |it: char| matches!(it, '"' | '\\' | '$' | '`');
    let escaped: String =
        word.chars().flat_map(|it| special(it).then_some('\\').into_iter().chain([it])).collect();
    format!("\"{escaped}\"")
}

fn escaped(word: &str) -> String {
    // A newline cannot be escaped outside quotes.
    word.chars().map(|it| if it == '\n' { "'\n'".to_owned() } else { format!("\\{it}") }).collect()
}

/// Text with all characters that are special to a shell.
fn shell_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,4}",
        "[ \t\n;&|<>()$`\"'\\\\{}*?\\[\\]#!~=0-9-]{1,3}",
        Just("bash -c ".to_owned()),
        Just("sudo ".to_owned()),
        Just("env X=1 ".to_owned()),
        Just("$(".to_owned()),
        Just("2>&1".to_owned()),
        Just("find . -exec ".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn analysis_never_panics(line in shell_text(), argv in proptest::collection::vec(shell_text(), 0..5)) {
        for command in [json!(line), json!(argv)] {
            let call = call(&command);
            for effect in [RuleEffect::Allow, RuleEffect::Deny] {
                if let Some(rule) = learn_rule(&call, effect) {
                    let policy = Policy::from_learned_rules(vec![rule]);
                    prop_assert_eq!(evaluate_rules(&[(RuleScope::User, &policy)], &call).effect, Some(effect));
                }
            }
        }
    }

    #[test]
    fn quoted_word_is_read_unchanged(
        word in "[^\0]{1,12}",
        quote in 0..3_usize,
    ) {
        let quoted = [single, double, escaped][quote](&word);
        prop_assert_eq!(words(&format!("echo {quoted} end")), vec![vec!["echo".to_owned(), word, "end".to_owned()]]);
    }

    #[test]
    fn allow_of_one_program_allows_no_other_program(
        programs in proptest::collection::vec(0..4_usize, 1..5),
        joins in proptest::collection::vec(0..7_usize, 5),
        wraps in proptest::collection::vec(0..9_usize, 5),
        shells in 0..3_usize,
    ) {
        let names = ["ls", "rm", "cat", "touch"];
        let joints = [" && ", " || ", ";", " | ", " & ", "\n", "|&"];
        let mut line = String::new();
        let mut plain = true;
        for (index, program) in programs.iter().enumerate() {
            let name = names[*program];
            let part = match wraps[index] {
                0..5 => format!("{name} -x 'a; rm b'"),
                5 => { plain = false; format!("sudo {name} x") }
                6 => { plain = false; format!("X=1 {name} x") }
                7 => { plain = false; format!("ls $({name} x)") }
                _ => format!("sh -c {}", single(&format!("{name} x"))),
            };
            if index > 0 {
                line.push_str(joints[joins[index]]);
            }
            line.push_str(&part);
        }
        for _ in 0..shells {
            line = format!("bash -lc {}", single(&line));
        }
        let only = plain && programs.iter().all(|it| *it == 0);
        let allowed = decided(RuleEffect::Allow, "ls", &json!(line)).is_some();
        prop_assert_eq!(allowed, only, "{}", line);
        for (index, name) in names.iter().enumerate() {
            if programs.contains(&index) {
                prop_assert!(decided(RuleEffect::Deny, name, &json!(line)).is_some(), "{name}: {line}");
            }
        }
    }

    #[test]
    fn text_after_an_allowed_program_adds_no_other_program(tail in shell_text()) {
        let line = format!("ls {tail}");
        let other = words(&line).iter().any(|it| it[0] != "ls" && it[0] != "/bin/ls");
        if other {
            prop_assert_eq!(decided(RuleEffect::Allow, "ls", &json!(line)), None);
        }
    }
}
