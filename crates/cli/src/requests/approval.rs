//! Answers permission requests by the flags `--approve` and `--on-ask`.

use super::PermissionPrompt;
use clap::ValueEnum;
use jackfield_policy::{ApprovalDecision, ApprovalMode};
use serde_json::Value;

/// Which requests are approved without asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApprovalLevel {
    /// Every request; once if the agent offers it, else for the session or permanently
    All,
    /// Tools that change nothing: read, search, fetch, think
    Reads,
    /// Nothing
    None,
}

/// What happens to a request that `--approve` does not cover when the user cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnapprovedAction {
    /// Wait until another client answers: `jackfield answer`, `jackfield attach`
    Wait,
    /// Reject it and continue the turn; the exit code is 5
    Deny,
    /// Cancel the turn; the exit code is 5
    Fail,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ApprovalRules {
    pub(crate) approve: ApprovalLevel,
    /// `None` if the user can be asked.
    pub(crate) otherwise: Option<UnapprovedAction>,
}

/// What to do with a permission request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestAction {
    Allow(Value),
    AskUser,
    LeaveOpen,
    Deny(Value),
    /// Deny it and cancel the turn.
    Fail(Value),
    /// Everything is approved, but no option allows the request: this answer ends the turn.
    FailTurn(Value),
}

impl ApprovalRules {
    pub(crate) fn decide(self, request: &PermissionPrompt) -> RequestAction {
        let mode = match self.approve {
            ApprovalLevel::All => ApprovalMode::All,
            ApprovalLevel::Reads => ApprovalMode::Reads,
            ApprovalLevel::None => ApprovalMode::Ask,
        };
        let mode = if request.must_ask_user { ApprovalMode::Ask } else { mode };
        match mode.decide(&request.to_params(), &request.tool.kind) {
            ApprovalDecision::Allow(answer) => return RequestAction::Allow(answer),
            ApprovalDecision::FailTurn(answer) => return RequestAction::FailTurn(answer),
            ApprovalDecision::AskUser | ApprovalDecision::Deny(_) => {}
        }
        match self.otherwise {
            None => RequestAction::AskUser,
            Some(UnapprovedAction::Wait) => RequestAction::LeaveOpen,
            Some(UnapprovedAction::Deny) => RequestAction::Deny(request.reject_once()),
            Some(UnapprovedAction::Fail) => RequestAction::Fail(request.reject_once()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::permission_request, *};

    const OPTIONS: &[(&str, &str)] =
        &[("ever", "allow_always"), ("once", "allow_once"), ("no", "reject_once")];

    fn decide(
        approve: ApprovalLevel,
        otherwise: Option<UnapprovedAction>,
        kind: &str,
    ) -> RequestAction {
        ApprovalRules { approve, otherwise }.decide(&permission_request(kind, OPTIONS))
    }

    #[test]
    fn approve_reads_leaves_other_tools_to_on_ask() {
        let allowed = decide(ApprovalLevel::Reads, Some(UnapprovedAction::Deny), "read");
        assert!(matches!(allowed, RequestAction::Allow(it) if it["outcome"]["optionId"] == "once"));
        let denied = decide(ApprovalLevel::Reads, Some(UnapprovedAction::Deny), "edit");
        assert!(matches!(denied, RequestAction::Deny(it) if it["outcome"]["optionId"] == "no"));
        assert_eq!(decide(ApprovalLevel::Reads, None, "edit"), RequestAction::AskUser);
    }

    #[test]
    fn unapproved_request_goes_to_the_user_or_follows_on_ask() {
        assert_eq!(decide(ApprovalLevel::None, None, "read"), RequestAction::AskUser);
        assert_eq!(
            decide(ApprovalLevel::None, Some(UnapprovedAction::Wait), "read"),
            RequestAction::LeaveOpen
        );
        assert!(matches!(
            decide(ApprovalLevel::None, Some(UnapprovedAction::Fail), "read"),
            RequestAction::Fail(_)
        ));
        assert!(matches!(
            decide(ApprovalLevel::All, Some(UnapprovedAction::Fail), "edit"),
            RequestAction::Allow(_)
        ));
    }

    #[test]
    fn request_that_a_policy_rule_sends_to_the_user_is_not_approved() {
        let request =
            PermissionPrompt { must_ask_user: true, ..permission_request("edit", OPTIONS) };
        let rules =
            ApprovalRules { approve: ApprovalLevel::All, otherwise: Some(UnapprovedAction::Fail) };
        assert!(matches!(rules.decide(&request), RequestAction::Fail(_)));
    }

    #[test]
    fn approve_all_takes_a_permanent_option_if_nothing_else_is_offered_or_fails_the_turn() {
        let rules =
            ApprovalRules { approve: ApprovalLevel::All, otherwise: Some(UnapprovedAction::Deny) };
        let permanent =
            permission_request("edit", &[("ever", "allow_always"), ("no", "reject_once")]);
        let allowed = rules.decide(&permanent);
        assert!(matches!(allowed, RequestAction::Allow(it) if it["outcome"]["optionId"] == "ever"));
        let refusal = permission_request("edit", &[("no", "reject_once")]);
        assert!(matches!(rules.decide(&refusal), RequestAction::FailTurn(_)));
    }
}
