//! Answers permission requests of a run automatically, as its client has chosen. Requests that a policy
//! rule decides or leaves to a person are not answered.

use jackfield_events::{EventBody, ReceivedEvent, UserAsked};
use jackfield_hub_client::EventLine;
use jackfield_policy::{ApprovalDecision, ApprovalMode};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How permission requests of a run are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Approve)]
pub(crate) enum RequestedApproval {
    /// A person answers, in `/api/asks` or another client.
    Ask,
    /// Allow everything: once if the agent offers it, else permanently or for the session. A request
    /// without such an option fails the run.
    All,
    /// Allow read-only tools, each time once; deny the rest.
    Reads,
    /// Deny everything.
    None,
}

impl From<RequestedApproval> for ApprovalMode {
    fn from(requested: RequestedApproval) -> ApprovalMode {
        match requested {
            RequestedApproval::Ask => ApprovalMode::Ask,
            RequestedApproval::All => ApprovalMode::All,
            RequestedApproval::Reads => ApprovalMode::Reads,
            RequestedApproval::None => ApprovalMode::None,
        }
    }
}

/// The number of tool calls whose kind is remembered; permission requests are about recent calls.
const CALLS_MAX: usize = 256;

/// Answers permission requests.
#[derive(Debug)]
pub(super) struct AutoApprover {
    mode: ApprovalMode,
    /// The kinds of tool calls, by call id: a permission request may have only the id.
    kinds: BTreeMap<String, String>,
}

impl AutoApprover {
    pub(super) fn new(mode: ApprovalMode) -> AutoApprover {
        AutoApprover { mode, kinds: BTreeMap::new() }
    }

    /// Remembers the kind of a tool call.
    pub(super) fn on_agent_message(&mut self, line: &EventLine) {
        if self.mode != ApprovalMode::Reads || !line.contains("toolCallId") {
            return;
        }
        let Some(ReceivedEvent { body: EventBody::Said(message), .. }) = line.to_event() else {
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

    /// The number of the request and its answer; `None` if it is not answered automatically.
    pub(super) fn answer(&self, asked: &UserAsked<Value>) -> Option<(u64, Value)> {
        let (number, frame) = (asked.ask, &asked.frame);
        if frame["method"] != Method::SessionRequestPermission.name() {
            return None;
        }
        let params = &frame["params"];
        let effect = asked.decision.as_ref().and_then(|it| it["effect"].as_str());
        match (effect, self.mode.decide(params, self.find_kind(&params["toolCall"]))) {
            // A rule allows it, but the agent offers no option for that.
            (None | Some("allow"), ApprovalDecision::FailTurn(answer))
            | (None, ApprovalDecision::Allow(answer) | ApprovalDecision::Deny(answer)) => {
                Some((number, answer))
            }
            // The hub answers it, or a person does.
            (_, ApprovalDecision::AskUser) | (Some(_), _) => None,
        }
    }

    fn find_kind<'a>(&'a self, call: &'a Value) -> &'a str {
        let known = || self.kinds.get(call["toolCallId"].as_str()?).map(String::as_str);
        call["kind"].as_str().or_else(known).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::hub_client::event_line;
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

    fn chosen(mode: ApprovalMode, asked: &UserAsked<Value>) -> Option<String> {
        let (number, result) = AutoApprover::new(mode).answer(asked)?;
        assert_eq!(number, 3);
        let outcome = &result["outcome"];
        Some(outcome["optionId"].as_str().or(outcome["outcome"].as_str())?.to_owned())
    }

    const ALL_KINDS: &[&str] = &["allow_always", "allow_once", "reject_once", "reject_always"];

    #[test]
    fn approved_request_is_allowed_once_and_others_are_denied() {
        let (read, edit) = (json!({ "kind": "read" }), json!({ "kind": "edit" }));
        let (read, edit) = (asked(&read, ALL_KINDS, None), asked(&edit, ALL_KINDS, None));
        assert_eq!(chosen(ApprovalMode::All, &edit).as_deref(), Some("allow_once"));
        assert_eq!(chosen(ApprovalMode::Reads, &read).as_deref(), Some("allow_once"));
        assert_eq!(chosen(ApprovalMode::Reads, &edit).as_deref(), Some("reject_once"));
        assert_eq!(chosen(ApprovalMode::Ask, &read), None);
    }

    #[test]
    fn request_is_answered_also_if_no_option_allows_it_once() {
        let edit = json!({ "kind": "edit" });
        let only = |kind| chosen(ApprovalMode::All, &asked(&edit, &[kind], None));
        assert_eq!(only("allow_always").as_deref(), Some("allow_always"));
        assert_eq!(only("approve_for_session").as_deref(), Some("approve_for_session"));
        assert_eq!(only("reject_once").as_deref(), Some("cancelled"));
    }

    #[test]
    fn rules_take_precedence() {
        for effect in ["ask", "allow", "deny"] {
            let asked = asked(&json!({ "kind": "edit" }), ALL_KINDS, Some(effect));
            assert_eq!(chosen(ApprovalMode::All, &asked), None);
        }
    }

    #[test]
    fn kind_of_a_call_may_come_from_an_earlier_update() {
        let mut approver = AutoApprover::new(ApprovalMode::Reads);
        let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "search" });
        let frame = json!({ "method": "session/update", "params": { "update": update } });
        approver.on_agent_message(&event_line(
            &json!({ "seq": 1, "at": 1, "is": "said", "turn": 1, "frame": frame }),
        ));
        let (_, result) =
            approver.answer(&asked(&json!({ "toolCallId": "c1" }), ALL_KINDS, None)).unwrap();
        assert_eq!(result["outcome"]["optionId"], "allow_once");
    }
}
