//! The input of a tool call, as an agent may write it: no panic, a deny of everything denies, and a text that no rule
//! knows never makes a call allowed.

use jackfield_policy::{Call, Effect, Policy, Rule, Scope, decide, learn, learned_text};
use serde_json::{Value, json};

fn effect(rule: Rule, call: &Call) -> Option<Effect> {
    decide(&[(Scope::User, &Policy::learned(vec![rule]))], call).effect
}

fn call_of(params: &Value) -> Call {
    Call::of("agent", "/project", Some("/user"), params, None)
}

fn check_call(params: &Value) {
    let call = call_of(params);
    assert_eq!(effect(Rule::of(Effect::Deny), &call), Some(Effect::Deny), "{params}");
    let list = Rule { run: vec!["ls".to_owned()], ..Rule::of(Effect::Allow) };
    let below = Rule { path: vec!["src/**".to_owned()], ..Rule::of(Effect::Allow) };
    for rule in [list.clone(), below] {
        effect(rule, &call);
    }
    for always in [Effect::Allow, Effect::Deny] {
        assert!(!learned_text(&call, always).is_empty());
        if let Some(rule) = learn(&call, always) {
            assert_eq!(effect(rule, &call), Some(always), "a rule covers what it came from");
        }
    }
    let mut disguised = params.clone();
    if let Some(Value::Object(input)) = disguised.pointer_mut("/toolCall/rawInput") {
        input.insert("unknown member of no tool".to_owned(), json!("rm -rf build"));
        assert_eq!(effect(list, &call_of(&disguised)), None, "{disguised}");
        let deny = Rule { run: vec!["rm".to_owned()], ..Rule::of(Effect::Deny) };
        assert_eq!(effect(deny, &call_of(&disguised)), Some(Effect::Deny), "{disguised}");
    }
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    check_call(&value);
    check_call(&json!({ "toolCall": { "title": "a tool", "rawInput": value } }));
    check_call(&json!({ "toolCall": { "kind": "execute", "rawInput": { "command": value } } }));
}
