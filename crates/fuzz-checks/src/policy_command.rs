//! The reader of command lines: no panic, an allow is certain, a deny sees at least as much, and a
//! reading is in proportion to the line.

use jackfield_policy::{Call, Effect, Policy, Rule, Scope, Shell, decide, learn, learned_text};
use serde_json::{Value, json};

/// Up to five lines in each other are read, and each that is opaque is searched in two ways.
const BYTES_PER_BYTE: usize = 16;

/// What an explanation has room for, whatever the line is.
const WHY_BYTES_MAX: usize = 4096;

fn effect(rule: Rule, call: &Call) -> Option<Effect> {
    let decision = decide(&[(Scope::User, &Policy::learned(vec![rule]))], call);
    assert!(decision.why.len() <= WHY_BYTES_MAX, "an explanation of {} bytes", decision.why.len());
    decision.effect
}

fn run(effect: Effect, pattern: &str) -> Rule {
    Rule { run: vec![pattern.to_owned()], ..Rule::of(effect) }
}

fn call_of(input: &Value) -> Call {
    let params = json!({ "toolCall": { "rawInput": input } });
    Call::of("agent", "/project", Some("/user"), &params, None)
}

/// Size and number of what a reading holds: the time to read and to judge follows from them.
fn check_size(shell: &Shell) {
    let (size, length) = (shell.reading_size(), shell.text().len());
    assert!(size.bytes <= BYTES_PER_BYTE * length, "{size:?} for {length} bytes");
    assert!(size.words <= BYTES_PER_BYTE * length + 8, "{size:?} for {length} bytes");
    assert!(size.programs <= length + 1, "{size:?} for {length} bytes");
}

fn check_command(command: &Value) {
    let call = call_of(&json!({ "command": command }));
    call.commands.iter().for_each(check_size);
    let allowed = effect(run(Effect::Allow, "ls"), &call);
    let opaque = call.commands.iter().any(|it| it.opaque().is_some());
    assert!(allowed.is_none() || !opaque, "what is opaque was allowed");
    if allowed.is_some() {
        assert_eq!(effect(run(Effect::Deny, "ls"), &call), Some(Effect::Deny));
    }
    // A line that runs `rm` after anything that can be read is not the work of `ls` alone.
    if let Some(line) = command.as_str()
        && Shell::of_line(line).opaque().is_none()
    {
        let both = call_of(&json!({ "command": format!("rm x\n{line}") }));
        assert_eq!(effect(run(Effect::Allow, "ls"), &both), None);
        assert_eq!(effect(run(Effect::Deny, "rm"), &both), Some(Effect::Deny));
    }
    // A path anywhere in it is searched for, whatever else there is.
    let path = Rule { path: vec!["~/.ssh/**".to_owned()], ..Rule::of(Effect::Deny) };
    effect(path, &call);
    for always in [Effect::Allow, Effect::Deny] {
        assert!(!learned_text(&call, always).is_empty());
        if let Some(rule) = learn(&call, always) {
            assert_eq!(effect(rule, &call), Some(always), "a rule covers what it came from");
        }
    }
    check_disguises(command, allowed);
}

/// The same command beside a harmless one is not judged as the harmless one.
fn check_disguises(command: &Value, allowed: Option<Effect>) {
    for input in [
        json!({ "command": command, "input": { "command": "ls" } }),
        json!({ "command": "ls", "arguments": { "command": command } }),
        json!({ "command": "ls", "cmd": command }),
    ] {
        let judged = effect(run(Effect::Allow, "ls"), &call_of(&input));
        assert!(judged.is_none() || allowed.is_some() || says_nothing(command), "{input}");
    }
    let unknown = call_of(&json!({ "command": "ls", "unknown": command }));
    let judged = effect(run(Effect::Allow, "ls"), &unknown);
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
