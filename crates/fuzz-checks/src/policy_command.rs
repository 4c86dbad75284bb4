//! The reader of command lines: no panic, an allow is certain, a deny sees at least as much, and a
//! reading is in proportion to the line.

use jackfield_policy::{
    Policy, Rule, RuleEffect, RuleScope, ShellCommand, ToolCallFacts, describe_learned_rule,
    evaluate_rules, learn_rule,
};
use serde_json::{Value, json};

/// Up to five lines in each other are read, and each that is opaque is searched in two ways.
const BYTES_PER_BYTE: usize = 16;

/// What an explanation has room for, whatever the line is.
const WHY_BYTES_MAX: usize = 4096;

fn effect(rule: Rule, call: &ToolCallFacts) -> Option<RuleEffect> {
    let decision =
        evaluate_rules(&[(RuleScope::User, &Policy::from_learned_rules(vec![rule]))], call);
    assert!(decision.why.len() <= WHY_BYTES_MAX, "an explanation of {} bytes", decision.why.len());
    decision.effect
}

fn run(effect: RuleEffect, pattern: &str) -> Rule {
    Rule { run: vec![pattern.to_owned()], ..Rule::for_every_call(effect) }
}

fn call_of(input: &Value) -> ToolCallFacts {
    let params = json!({ "toolCall": { "rawInput": input } });
    ToolCallFacts::from_request("agent", "/project", Some("/user"), &params, None)
}

/// Size and number of what a reading holds: the time to read and to judge follows from them.
fn check_size(shell: &ShellCommand) {
    let (size, length) = (shell.analysis_size(), shell.text().len());
    assert!(size.bytes <= BYTES_PER_BYTE * length, "{size:?} for {length} bytes");
    assert!(size.words <= BYTES_PER_BYTE * length + 8, "{size:?} for {length} bytes");
    assert!(size.programs <= length + 1, "{size:?} for {length} bytes");
}

fn check_command(command: &Value) {
    let call = call_of(&json!({ "command": command }));
    call.commands.iter().for_each(check_size);
    let allowed = effect(run(RuleEffect::Allow, "ls"), &call);
    let opaque = call.commands.iter().any(|it| it.opaque_reason().is_some());
    assert!(allowed.is_none() || !opaque, "what is opaque was allowed");
    if allowed.is_some() {
        assert_eq!(effect(run(RuleEffect::Deny, "ls"), &call), Some(RuleEffect::Deny));
    }
    // A line that runs `rm` after anything that can be read is not the work of `ls` alone.
    if let Some(line) = command.as_str()
        && ShellCommand::from_line(line).opaque_reason().is_none()
    {
        let both = call_of(&json!({ "command": format!("rm x\n{line}") }));
        assert_eq!(effect(run(RuleEffect::Allow, "ls"), &both), None);
        assert_eq!(effect(run(RuleEffect::Deny, "rm"), &both), Some(RuleEffect::Deny));
    }
    // A path anywhere in it is searched for, whatever else there is.
    let path =
        Rule { path: vec!["~/.ssh/**".to_owned()], ..Rule::for_every_call(RuleEffect::Deny) };
    effect(path, &call);
    for always in [RuleEffect::Allow, RuleEffect::Deny] {
        assert!(!describe_learned_rule(&call, always).is_empty());
        if let Some(rule) = learn_rule(&call, always) {
            assert_eq!(effect(rule, &call), Some(always), "a rule covers what it came from");
        }
    }
    check_disguises(command, allowed);
}

/// The same command beside a harmless one is not judged as the harmless one.
fn check_disguises(command: &Value, allowed: Option<RuleEffect>) {
    for input in [
        json!({ "command": command, "input": { "command": "ls" } }),
        json!({ "command": "ls", "arguments": { "command": command } }),
        json!({ "command": "ls", "cmd": command }),
    ] {
        let judged = effect(run(RuleEffect::Allow, "ls"), &call_of(&input));
        assert!(judged.is_none() || allowed.is_some() || says_nothing(command), "{input}");
    }
    let unknown = call_of(&json!({ "command": "ls", "unknown": command }));
    let judged = effect(run(RuleEffect::Allow, "ls"), &unknown);
    assert!(judged.is_none() || says_nothing(command), "a text that may be anything was allowed");
}

fn says_nothing(command: &Value) -> bool {
    let is_blank = |it: &Value| it.as_str().is_some_and(|it| it.trim().is_empty());
    is_blank(command) || command.as_array().is_some_and(|it| it.iter().all(is_blank))
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_command(&json!(text));
    check_command(&json!(text.split('\u{1}').collect::<Vec<_>>()));
}
