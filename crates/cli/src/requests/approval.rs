//! Answers permission requests by the flags `--approve` and `--on-ask`.

use super::PermissionPrompt;
use clap::ValueEnum;
use serde_json::Value;

/// Which requests are approved without asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApprovalLevel {
    /// Every request, each time once
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

/// The tool kinds that change nothing.
const READ_KINDS: &[&str] = &["read", "search", "think", "fetch"];

#[derive(Debug, Clone, Copy)]
pub(crate) struct ApprovalRules {
    pub(crate) approve: ApprovalLevel,
    /// `None` if the user can be asked.
    pub(crate) otherwise: Option<UnapprovedAction>,
}

/// What to do with a permission request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ApprovalDecision {
    Allow(Value),
    AskUser,
    LeaveOpen,
    Deny(Value),
    Fail(Value),
}

impl ApprovalRules {
    pub(crate) fn decide(self, request: &PermissionPrompt) -> ApprovalDecision {
        let approved = match self.approve {
            ApprovalLevel::All => true,
            ApprovalLevel::Reads => READ_KINDS.contains(&request.tool.kind.as_str()),
            ApprovalLevel::None => false,
        };
        if approved
            && !request.must_ask_user
            && let Some(answer) = request.allow_once()
        {
            return ApprovalDecision::Allow(answer);
        }
        match self.otherwise {
            None => ApprovalDecision::AskUser,
            Some(UnapprovedAction::Wait) => ApprovalDecision::LeaveOpen,
            Some(UnapprovedAction::Deny) => ApprovalDecision::Deny(request.reject_once()),
            Some(UnapprovedAction::Fail) => ApprovalDecision::Fail(request.reject_once()),
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
    ) -> ApprovalDecision {
        ApprovalRules { approve, otherwise }.decide(&permission_request(kind, OPTIONS))
    }

    #[test]
    fn approve_reads_allows_only_tools_that_change_nothing() {
        for kind in READ_KINDS {
            let allowed = decide(ApprovalLevel::Reads, Some(UnapprovedAction::Deny), kind);
            assert!(
                matches!(allowed, ApprovalDecision::Allow(it) if it["outcome"]["optionId"] == "once")
            );
        }
        for kind in ["edit", "execute", "delete", "other", ""] {
            let denied = decide(ApprovalLevel::Reads, Some(UnapprovedAction::Deny), kind);
            assert!(
                matches!(denied, ApprovalDecision::Deny(it) if it["outcome"]["optionId"] == "no")
            );
        }
    }

    #[test]
    fn unapproved_request_goes_to_the_user_or_follows_on_ask() {
        assert_eq!(decide(ApprovalLevel::None, None, "read"), ApprovalDecision::AskUser);
        assert_eq!(
            decide(ApprovalLevel::None, Some(UnapprovedAction::Wait), "read"),
            ApprovalDecision::LeaveOpen
        );
        assert!(matches!(
            decide(ApprovalLevel::None, Some(UnapprovedAction::Fail), "read"),
            ApprovalDecision::Fail(_)
        ));
        assert!(matches!(
            decide(ApprovalLevel::All, Some(UnapprovedAction::Fail), "edit"),
            ApprovalDecision::Allow(_)
        ));
    }

    #[test]
    fn request_that_a_policy_rule_sends_to_the_user_is_not_approved() {
        let request =
            PermissionPrompt { must_ask_user: true, ..permission_request("edit", OPTIONS) };
        let rules =
            ApprovalRules { approve: ApprovalLevel::All, otherwise: Some(UnapprovedAction::Fail) };
        assert!(matches!(rules.decide(&request), ApprovalDecision::Fail(_)));
    }

    #[test]
    fn permanent_permission_is_not_granted_automatically() {
        let request =
            permission_request("edit", &[("ever", "allow_always"), ("no", "reject_once")]);
        let rules =
            ApprovalRules { approve: ApprovalLevel::All, otherwise: Some(UnapprovedAction::Deny) };
        assert!(matches!(rules.decide(&request), ApprovalDecision::Deny(_)));
    }
}
