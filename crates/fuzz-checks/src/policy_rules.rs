//! The text of a rules file: no panic, and what is accepted is printed and judged without one.

use jackfield_policy::{
    RuleScope, ToolCallFacts, evaluate_rules, parse_policy, parse_project_policy,
};
use serde_json::json;

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let params =
        json!({ "toolCall": { "kind": "execute", "rawInput": { "command": "rm -r src" } } });
    let call = ToolCallFacts::from_request("agent", "/project", Some("/user"), &params, None);
    for parsed in [parse_policy(text, "policy.toml"), parse_project_policy(text, ".jackfield.toml")]
    {
        match parsed {
            Ok(policy) => {
                assert!(policy.rules.iter().all(|it| !it.to_string().is_empty()));
                evaluate_rules(&[(RuleScope::User, &policy)], &call);
            }
            Err(flaws) => assert!(!flaws.is_empty(), "a file is refused without a reason"),
        }
    }
}
