//! Answers permission requests without a person, as the user has chosen for a run: `--approve`,
//! `approve` of the HTTP API, and `[http] approve` of the configuration.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Which permission requests of a run are answered without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// A person answers every request.
    #[default]
    Ask,
    /// Every request is allowed.
    All,
    /// Requests of tools that change nothing are allowed, the others denied.
    Reads,
    /// Every request is denied.
    None,
}

/// The decision about one permission request. An answer is the result of the request.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalDecision {
    AskUser,
    Allow(Value),
    Deny(Value),
    /// Everything is approved, but no option allows this request. The answer ends the turn.
    FailTurn(Value),
}

/// The tool kinds that change nothing.
const READ_KINDS: [&str; 4] = ["read", "search", "think", "fetch"];

impl ApprovalMode {
    /// Decides a request; `params` are those of `session/request_permission`, and `tool_kind` is the
    /// kind of the tool call, which the agent may have reported before the request.
    pub fn decide(self, params: &Value, tool_kind: &str) -> ApprovalDecision {
        let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
        match self {
            ApprovalMode::Ask => ApprovalDecision::AskUser,
            ApprovalMode::All => find_kind(options, "allow_once")
                .or_else(|| find_kind(options, "allow_always"))
                .or_else(|| options.iter().find(|it| is_session_grant(it)))
                .and_then(select)
                .map_or_else(
                    || ApprovalDecision::FailTurn(failing_answer(options)),
                    ApprovalDecision::Allow,
                ),
            ApprovalMode::Reads if READ_KINDS.contains(&tool_kind) => {
                match find_kind(options, "allow_once").and_then(select) {
                    Some(answer) => ApprovalDecision::Allow(answer),
                    None => ApprovalDecision::Deny(deny_once(params)),
                }
            }
            ApprovalMode::Reads | ApprovalMode::None => ApprovalDecision::Deny(deny_once(params)),
        }
    }
}

/// The answer that allows a request once; `None` if no option does.
pub fn allow_once(params: &Value) -> Option<Value> {
    find_kind(params["options"].as_array()?, "allow_once").and_then(select)
}

/// The answer that denies a request once. Without such an option the request is cancelled.
pub fn deny_once(params: &Value) -> Value {
    let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
    let rejection = find_kind(options, "reject_once").and_then(select);
    rejection.unwrap_or_else(|| json!({ "outcome": { "outcome": "cancelled" } }))
}

/// Why the answer of a client ends the turn; `None` if it does not.
pub fn turn_failure(answer: &Value) -> Option<&str> {
    answer.pointer("/_meta/jackfield/failTurn")?.as_str()
}

fn find_kind<'a>(options: &'a [Value], kind: &str) -> Option<&'a Value> {
    options.iter().find(|it| it["kind"] == kind)
}

/// Some agents name a grant for the rest of the session in the id of an option, others in its kind.
fn is_session_grant(option: &Value) -> bool {
    const NAME: &str = "approve_for_session";
    let is_refusal = option["kind"].as_str().is_some_and(|it| it.starts_with("reject"));
    !is_refusal && (option["kind"] == NAME || option["optionId"] == NAME)
}

fn select(option: &Value) -> Option<Value> {
    let id = option["optionId"].as_str()?;
    Some(json!({ "outcome": { "outcome": "selected", "optionId": id } }))
}

fn failing_answer(options: &[Value]) -> Value {
    let name = |it: &Value| {
        let name = it["name"].as_str().or(it["optionId"].as_str()).unwrap_or_default();
        format!("`{name}` ({})", it["kind"].as_str().unwrap_or("no kind"))
    };
    let names: Vec<String> = options.iter().map(name).collect();
    let names = if names.is_empty() { "no options".to_owned() } else { names.join(", ") };
    let why = format!("no option allows it; the agent offers {names}");
    let meta = json!({ "jackfield": { "failTurn": why } });
    json!({ "outcome": { "outcome": "cancelled" }, "_meta": meta })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(options: &[(&str, &str)]) -> Value {
        let option =
            |(id, kind): &(&str, &str)| json!({ "optionId": id, "name": id, "kind": kind });
        json!({ "options": options.iter().map(option).collect::<Vec<_>>() })
    }

    /// The chosen option, or the outcome.
    fn decide(mode: ApprovalMode, options: &[(&str, &str)], kind: &str) -> String {
        let outcome = |answer: &Value| {
            let outcome = &answer["outcome"];
            outcome["optionId"].as_str().or(outcome["outcome"].as_str()).unwrap().to_owned()
        };
        match mode.decide(&params(options), kind) {
            ApprovalDecision::AskUser => "ask".to_owned(),
            ApprovalDecision::Allow(answer) => format!("allow {}", outcome(&answer)),
            ApprovalDecision::Deny(answer) => format!("deny {}", outcome(&answer)),
            ApprovalDecision::FailTurn(answer) => {
                assert_eq!(outcome(&answer), "cancelled");
                turn_failure(&answer).unwrap().to_owned()
            }
        }
    }

    const FOUR: &[(&str, &str)] = &[
        ("session", "approve_for_session"),
        ("ever", "allow_always"),
        ("once", "allow_once"),
        ("no", "reject_once"),
    ];

    #[test]
    fn approve_all_prefers_once_to_always_to_the_session() {
        assert_eq!(decide(ApprovalMode::All, FOUR, "edit"), "allow once");
        assert_eq!(decide(ApprovalMode::All, &FOUR[..2], "edit"), "allow ever");
        assert_eq!(decide(ApprovalMode::All, &FOUR[..1], "edit"), "allow session");
        let by_id = [("reject", "reject_once"), ("approve_for_session", "other")];
        assert_eq!(decide(ApprovalMode::All, &by_id, "edit"), "allow approve_for_session");
    }

    #[test]
    fn request_without_an_acceptable_option_fails_the_turn_and_names_the_options() {
        let refusals = [("no", "reject_once"), ("approve_for_session", "reject_always")];
        assert_eq!(
            decide(ApprovalMode::All, &refusals, "edit"),
            "no option allows it; the agent offers `no` (reject_once), `approve_for_session` \
             (reject_always)"
        );
        assert_eq!(
            decide(ApprovalMode::All, &[], "edit"),
            "no option allows it; the agent offers no options"
        );
        let nameless = json!({ "options": [{ "kind": "allow_once" }] });
        let decision = ApprovalMode::All.decide(&nameless, "");
        assert!(matches!(decision, ApprovalDecision::FailTurn(_)), "{decision:?}");
    }

    #[test]
    fn approve_reads_allows_tools_that_change_nothing_once() {
        for kind in READ_KINDS {
            assert_eq!(decide(ApprovalMode::Reads, FOUR, kind), "allow once");
        }
        for kind in ["edit", "execute", "delete", "other", ""] {
            assert_eq!(decide(ApprovalMode::Reads, FOUR, kind), "deny no");
        }
        let permanent = [("ever", "allow_always"), ("never", "reject_always")];
        assert_eq!(decide(ApprovalMode::Reads, &permanent, "read"), "deny cancelled");
    }

    #[test]
    fn other_modes_deny_once_or_leave_it_to_a_person() {
        assert_eq!(decide(ApprovalMode::None, FOUR, "read"), "deny no");
        assert_eq!(decide(ApprovalMode::None, &FOUR[..3], "read"), "deny cancelled");
        assert_eq!(decide(ApprovalMode::Ask, FOUR, "read"), "ask");
    }
}
