//! The input of a tool call, as an agent may write it: no panic, a deny of everything denies, and a text that no rule
//! knows never makes a call allowed.

use jackfield_policy::{
    Policy, Rule, RuleEffect, RuleScope, ToolCallFacts, describe_learned_rule, evaluate_rules,
    learn_rule,
};
use serde_json::{Value, json};

fn effect(rule: Rule, call: &ToolCallFacts) -> Option<RuleEffect> {
    evaluate_rules(&[(RuleScope::User, &Policy::from_learned_rules(vec![rule]))], call).effect
}

fn call_of(params: &Value) -> ToolCallFacts {
    ToolCallFacts::from_request("agent", "/project", Some("/user"), params, None)
}

fn check_call(params: &Value) {
    let call = call_of(params);
    assert_eq!(
        effect(Rule::for_every_call(RuleEffect::Deny), &call),
        Some(RuleEffect::Deny),
        "{params}"
    );
    let list = Rule { run: vec!["ls".to_owned()], ..Rule::for_every_call(RuleEffect::Allow) };
    let below = Rule { path: vec!["src/**".to_owned()], ..Rule::for_every_call(RuleEffect::Allow) };
    for rule in [list.clone(), below] {
        effect(rule, &call);
    }
    for always in [RuleEffect::Allow, RuleEffect::Deny] {
        assert!(!describe_learned_rule(&call, always).is_empty());
        if let Some(rule) = learn_rule(&call, always) {
            assert_eq!(effect(rule, &call), Some(always), "a rule covers what it came from");
        }
    }
    let mut disguised = params.clone();
    if let Some(Value::Object(input)) = disguised.pointer_mut("/toolCall/rawInput") {
        input.insert("unknown member of no tool".to_owned(), json!("rm -rf build"));
        assert_eq!(effect(list, &call_of(&disguised)), None, "{disguised}");
        let deny = Rule { run: vec!["rm".to_owned()], ..Rule::for_every_call(RuleEffect::Deny) };
        assert_eq!(effect(deny, &call_of(&disguised)), Some(RuleEffect::Deny), "{disguised}");
    }
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    check_call(&value);
    check_call(&json!({ "toolCall": { "title": "a tool", "rawInput": value } }));
    check_call(&json!({ "toolCall": { "kind": "execute", "rawInput": { "command": value } } }));
}
