//! Which of the options that an agent offers an automatic answer picks.

use crate::{Effect, Grant};
use serde_json::Value;

/// The id of the option that carries out an effect: one of those in the `params`, or none, and then
/// the ask is answered `cancelled`.
///
/// A permanent grant is picked only if the rule says so; a permanent refusal only if there is no
/// other, because it refuses at least.
pub fn option(params: &Value, effect: Effect, grant: Grant) -> Option<&str> {
    let kinds: &[&str] = match (effect, grant) {
        (Effect::Ask, _) => &[],
        (Effect::Allow, Grant::Once) => &["allow_once"],
        (Effect::Allow, Grant::Always) => &["allow_always", "allow_once"],
        (Effect::Deny, _) => &["reject_once", "reject_always"],
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
    fn a_permanent_grant_is_never_picked_unless_a_rule_says_so() {
        let both = params(&["allow_always", "allow_once", "allow_once"]);
        assert_eq!(option(&both, Effect::Allow, Grant::Once), Some("allow_once-1"));
        assert_eq!(option(&both, Effect::Allow, Grant::Always), Some("allow_always-0"));
        let permanent = params(&["allow_always", "reject_once"]);
        assert_eq!(option(&permanent, Effect::Allow, Grant::Once), None);
        let once = params(&["allow_once"]);
        assert_eq!(option(&once, Effect::Allow, Grant::Always), Some("allow_once-0"));
    }

    #[test]
    fn a_refusal_is_for_once_if_it_can_be() {
        let both = params(&["reject_always", "reject_once"]);
        assert_eq!(option(&both, Effect::Deny, Grant::Once), Some("reject_once-1"));
        let permanent = params(&["allow_once", "reject_always"]);
        assert_eq!(option(&permanent, Effect::Deny, Grant::Once), Some("reject_always-1"));
        assert_eq!(option(&params(&["allow_once"]), Effect::Deny, Grant::Once), None);
    }

    #[test]
    fn nothing_is_picked_for_an_ask_or_from_nothing() {
        assert_eq!(option(&params(&["allow_once"]), Effect::Ask, Grant::Always), None);
        for params in [json!({}), json!(null), json!({ "options": [{ "kind": "allow_once" }] })] {
            assert_eq!(option(&params, Effect::Allow, Grant::Once), None);
        }
    }
}
