//! What is allowed without asking a person, and what happens to the rest when there is none.

use super::Ask;
use clap::ValueEnum;
use serde_json::Value;

/// What to allow without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Whatever the agent wants, each time for this once
    All,
    /// What only looks: reading, searching, fetching, thinking
    Reads,
    /// Nothing
    None,
}

/// What happens to an ask that is not allowed and that nobody here can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnAsk {
    /// It waits for somebody else: `jackfield answer`, `jackfield attach`
    Wait,
    /// It is refused, the turn goes on, and the exit code is 5
    Deny,
    /// The turn is cancelled, and the exit code is 5
    Fail,
}

/// Kinds of tools that change nothing here.
const READS: &[&str] = &["read", "search", "think", "fetch"];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) approve: Approve,
    /// `None` if a person can be asked.
    pub(crate) otherwise: Option<OnAsk>,
}

/// What to do with an ask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Allow(Value),
    AskPerson,
    LeaveOpen,
    Deny(Value),
    Fail(Value),
}

impl Rules {
    pub(crate) fn judge(self, ask: &Ask) -> Verdict {
        let approved = match self.approve {
            Approve::All => true,
            Approve::Reads => READS.contains(&ask.tool.kind.as_str()),
            Approve::None => false,
        };
        if approved
            && !ask.ruled
            && let Some(answer) = ask.allow()
        {
            return Verdict::Allow(answer);
        }
        match self.otherwise {
            None => Verdict::AskPerson,
            Some(OnAsk::Wait) => Verdict::LeaveOpen,
            Some(OnAsk::Deny) => Verdict::Deny(ask.deny()),
            Some(OnAsk::Fail) => Verdict::Fail(ask.deny()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::ask, *};

    const OPTIONS: &[(&str, &str)] =
        &[("ever", "allow_always"), ("once", "allow_once"), ("no", "reject_once")];

    fn verdict(approve: Approve, otherwise: Option<OnAsk>, kind: &str) -> Verdict {
        Rules { approve, otherwise }.judge(&ask(kind, OPTIONS))
    }

    #[test]
    fn reads_allow_what_only_looks() {
        for kind in READS {
            let allowed = verdict(Approve::Reads, Some(OnAsk::Deny), kind);
            assert!(matches!(allowed, Verdict::Allow(it) if it["outcome"]["optionId"] == "once"));
        }
        for kind in ["edit", "execute", "delete", "other", ""] {
            let denied = verdict(Approve::Reads, Some(OnAsk::Deny), kind);
            assert!(matches!(denied, Verdict::Deny(it) if it["outcome"]["optionId"] == "no"));
        }
    }

    #[test]
    fn what_is_not_allowed_goes_to_a_person_or_by_the_rule() {
        assert_eq!(verdict(Approve::None, None, "read"), Verdict::AskPerson);
        assert_eq!(verdict(Approve::None, Some(OnAsk::Wait), "read"), Verdict::LeaveOpen);
        assert!(matches!(verdict(Approve::None, Some(OnAsk::Fail), "read"), Verdict::Fail(_)));
        assert!(matches!(verdict(Approve::All, Some(OnAsk::Fail), "edit"), Verdict::Allow(_)));
    }

    #[test]
    fn what_a_rule_wants_asked_is_not_allowed_unasked() {
        let ask = Ask { ruled: true, ..ask("edit", OPTIONS) };
        let rules = Rules { approve: Approve::All, otherwise: Some(OnAsk::Fail) };
        assert!(matches!(rules.judge(&ask), Verdict::Fail(_)));
    }

    #[test]
    fn a_grant_that_is_only_offered_for_ever_is_not_taken() {
        let ask = ask("edit", &[("ever", "allow_always"), ("no", "reject_once")]);
        let rules = Rules { approve: Approve::All, otherwise: Some(OnAsk::Deny) };
        assert!(matches!(rules.judge(&ask), Verdict::Deny(_)));
    }
}
