//! Selects the option of a permission request that an automatic answer uses.

use crate::{GrantDuration, RuleEffect};
use serde_json::Value;

/// Returns the id of the offered option that implements an effect. If there is none, a denied
/// request is answered `cancelled`.
///
/// A permanent grant is selected only if the rule asks for it. A permanent refusal is selected only
/// if no other refusal is offered.
pub fn select_option(params: &Value, effect: RuleEffect, grant: GrantDuration) -> Option<&str> {
    let kinds: &[&str] = match (effect, grant) {
        (RuleEffect::Ask, _) => &[],
        (RuleEffect::Allow, GrantDuration::Once) => &["allow_once"],
        (RuleEffect::Allow, GrantDuration::Always) => &["allow_always", "allow_once"],
        (RuleEffect::Deny, _) => &["reject_once", "reject_always"],
    };
    let options = params["options"].as_array()?;
    let first = |kind: &&str| options.iter().find(|it| it["kind"] == **kind);
    kinds.iter().find_map(first)?["optionId"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(kinds: &[&str]) -> Value {
        let option = |(index, kind): (usize, &&str)| json!({ "optionId": format!("{kind}-{index}"), "kind": kind });
        json!({ "options": kinds.iter().enumerate().map(option).collect::<Vec<_>>() })
    }

    #[test]
    fn permanent_grant_is_selected_only_if_a_rule_asks_for_it() {
        let both = params(&["allow_always", "allow_once", "allow_once"]);
        assert_eq!(
            select_option(&both, RuleEffect::Allow, GrantDuration::Once),
            Some("allow_once-1")
        );
        assert_eq!(
            select_option(&both, RuleEffect::Allow, GrantDuration::Always),
            Some("allow_always-0")
        );
        let permanent = params(&["allow_always", "reject_once"]);
        assert_eq!(select_option(&permanent, RuleEffect::Allow, GrantDuration::Once), None);
        let once = params(&["allow_once"]);
        assert_eq!(
            select_option(&once, RuleEffect::Allow, GrantDuration::Always),
            Some("allow_once-0")
        );
    }

    #[test]
    fn single_refusal_is_preferred_to_a_permanent_one() {
        let both = params(&["reject_always", "reject_once"]);
        assert_eq!(
            select_option(&both, RuleEffect::Deny, GrantDuration::Once),
            Some("reject_once-1")
        );
        let permanent = params(&["allow_once", "reject_always"]);
        assert_eq!(
            select_option(&permanent, RuleEffect::Deny, GrantDuration::Once),
            Some("reject_always-1")
        );
        assert_eq!(
            select_option(&params(&["allow_once"]), RuleEffect::Deny, GrantDuration::Once),
            None
        );
    }

    #[test]
    fn no_option_is_selected_for_an_ask_or_without_options() {
        assert_eq!(
            select_option(&params(&["allow_once"]), RuleEffect::Ask, GrantDuration::Always),
            None
        );
        for params in [json!({}), json!(null), json!({ "options": [{ "kind": "allow_once" }] })] {
            assert_eq!(select_option(&params, RuleEffect::Allow, GrantDuration::Once), None);
        }
    }
}
