//! Answering asks for a run whose maker said how. What a rule decides, or wants a person for, is
//! left alone.

use crate::rest::{
    asks::{AskOption, allow, refuse},
    hub::Fact,
};
use jackfield_events::{EventBody, ReceivedEvent, UserAsked};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How asks of a run are answered when nobody else does. Nothing is ever granted for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Approve {
    /// Everything is allowed, each time for this once.
    All,
    /// What only looks is allowed; the rest is refused.
    Reads,
    /// Everything is refused.
    None,
}

/// Kinds of tools that change nothing here.
const READS: &[&str] = &["read", "search", "think", "fetch"];
/// Tool calls whose kind is remembered; an agent asks about one that it has just begun.
const CALLS_MAX: usize = 256;

/// Answers asks.
#[derive(Debug)]
pub(super) struct Clerk {
    approve: Approve,
    /// The kinds of tool calls as they were told: an ask may name only the call.
    kinds: BTreeMap<String, String>,
}

impl Clerk {
    pub(super) fn new(approve: Approve) -> Clerk {
        Clerk { approve, kinds: BTreeMap::new() }
    }

    /// Remembers what the agent says about its tool calls.
    pub(super) fn hear(&mut self, said: &Fact) {
        if self.approve != Approve::Reads || !said.mentions("toolCallId") {
            return;
        }
        let Some(ReceivedEvent { body: EventBody::Said(message), .. }) = said.event() else {
            return;
        };
        let update = &message.frame["params"]["update"];
        if let (Some(id), Some(kind)) = (update["toolCallId"].as_str(), update["kind"].as_str()) {
            if CALLS_MAX <= self.kinds.len() {
                self.kinds.pop_first();
            }
            self.kinds.insert(id.to_owned(), kind.to_owned());
        }
    }

    /// The number of an ask and the answer to it, if it is ours to answer.
    pub(super) fn answer(&self, asked: &UserAsked<Value>) -> Option<(u64, Value)> {
        let (number, frame) = (asked.ask, &asked.frame);
        let ruled = asked.decision.as_ref().is_some_and(|it| it["effect"].is_string());
        if ruled || frame["method"] != Method::SessionRequestPermission.name() {
            return None;
        }
        let params = &frame["params"];
        let options: Vec<AskOption> =
            serde_json::from_value(params["options"].clone()).unwrap_or_default();
        let granted = if self.approves(&params["toolCall"]) { allow(&options) } else { None };
        match (granted, self.approve) {
            (Some(result), _) => Some((number, result)),
            // It is only offered for ever: that is for a person to decide.
            (None, Approve::All) => None,
            (None, Approve::Reads | Approve::None) => Some((number, refuse(&options))),
        }
    }

    fn approves(&self, call: &Value) -> bool {
        let known = || self.kinds.get(call["toolCallId"].as_str()?).map(String::as_str);
        let kind = call["kind"].as_str().or_else(known).unwrap_or_default();
        match self.approve {
            Approve::All => true,
            Approve::Reads => READS.contains(&kind),
            Approve::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(call: &Value, kinds: &[&str], effect: Option<&str>) -> UserAsked<Value> {
        let options: Vec<Value> =
            kinds.iter().map(|it| json!({ "optionId": it, "name": it, "kind": it })).collect();
        let params = json!({ "toolCall": call, "options": options });
        UserAsked {
            ask: 3,
            decision: Some(json!({ "effect": effect })),
            call: None,
            frame: json!({ "method": "session/request_permission", "params": params }),
        }
    }

    fn chosen(approve: Approve, asked: &UserAsked<Value>) -> Option<String> {
        let (number, result) = Clerk::new(approve).answer(asked)?;
        assert_eq!(number, 3);
        let outcome = &result["outcome"];
        Some(outcome["optionId"].as_str().or(outcome["outcome"].as_str())?.to_owned())
    }

    const FOUR: &[&str] = &["allow_always", "allow_once", "reject_once", "reject_always"];

    #[test]
    fn what_is_approved_is_allowed_for_this_once() {
        let (read, edit) = (json!({ "kind": "read" }), json!({ "kind": "edit" }));
        let (read, edit) = (asked(&read, FOUR, None), asked(&edit, FOUR, None));
        assert_eq!(chosen(Approve::All, &edit).as_deref(), Some("allow_once"));
        assert_eq!(chosen(Approve::Reads, &read).as_deref(), Some("allow_once"));
        assert_eq!(chosen(Approve::Reads, &edit).as_deref(), Some("reject_once"));
        assert_eq!(chosen(Approve::None, &read).as_deref(), Some("reject_once"));
    }

    #[test]
    fn nothing_is_granted_for_good_and_a_rule_comes_first() {
        let edit = json!({ "kind": "edit" });
        assert_eq!(chosen(Approve::All, &asked(&edit, &["allow_always"], None)), None);
        assert_eq!(chosen(Approve::None, &asked(&edit, &[], None)).as_deref(), Some("cancelled"));
        for effect in ["ask", "allow", "deny"] {
            assert_eq!(chosen(Approve::All, &asked(&edit, FOUR, Some(effect))), None);
        }
    }

    #[test]
    fn the_kind_of_a_call_may_have_been_told_before() {
        let mut clerk = Clerk::new(Approve::Reads);
        let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "search" });
        let frame = json!({ "method": "session/update", "params": { "update": update } });
        clerk.hear(&Fact::of(
            &json!({ "seq": 1, "at": 1, "is": "said", "turn": 1, "frame": frame }),
        ));
        let (_, result) = clerk.answer(&asked(&json!({ "toolCallId": "c1" }), FOUR, None)).unwrap();
        assert_eq!(result["outcome"]["optionId"], "allow_once");
    }
}
