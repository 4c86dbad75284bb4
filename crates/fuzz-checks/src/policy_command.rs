//! The reader of command lines: no panic, an allow is certain, a deny sees at least as much.

use jackfield_policy::{Call, Effect, Policy, Rule, Scope, Shell, decide, learn};
use serde_json::{Value, json};

fn effect(rule: Rule, call: &Call) -> Option<Effect> {
    decide(&[(Scope::User, &Policy::learned(vec![rule]))], call).effect
}

fn run(effect: Effect, pattern: &str) -> Rule {
    Rule { run: vec![pattern.to_owned()], ..Rule::of(effect) }
}

fn check_command(command: &Value) {
    let params = json!({ "toolCall": { "rawInput": { "command": command } } });
    let call = Call::of("agent", "/project", Some("/user"), &params, None);
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
        let both = json!({ "toolCall": { "rawInput": { "command": format!("rm x\n{line}") } } });
        let both = Call::of("agent", "/project", None, &both, None);
        assert_eq!(effect(run(Effect::Allow, "ls"), &both), None);
        assert_eq!(effect(run(Effect::Deny, "rm"), &both), Some(Effect::Deny));
    }
    // A path anywhere in it is searched for, whatever else there is.
    let path = Rule { path: vec!["~/.ssh/**".to_owned()], ..Rule::of(Effect::Deny) };
    effect(path, &call);
    for always in [Effect::Allow, Effect::Deny] {
        if let Some(rule) = learn(&call, always) {
            assert_eq!(effect(rule, &call), Some(always), "a rule covers what it came from");
        }
    }
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_command(&json!(text));
    check_command(&json!(text.split('\u{1}').collect::<Vec<_>>()));
}
