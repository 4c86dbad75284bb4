//! Names that a rule would refuse although they are right, each with its reason.

use super::rules::{RatchetRule, RuleViolation};

/// An exception from one rule.
#[derive(Debug)]
pub(crate) struct AllowedName {
    pub(crate) rule: RatchetRule,
    /// How the paths start in which it is allowed.
    pub(crate) path: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) reason: &'static str,
}

pub(crate) const ALLOWED: &[AllowedName] = &[
    AllowedName {
        rule: RatchetRule::MethodLiterals,
        path: "crates/adapters/src/codex/",
        subject: "initialize",
        reason: "a method of the app server of Codex, not of ACP",
    },
    AllowedName {
        rule: RatchetRule::MethodLiterals,
        path: "crates/adapters/src/claude/",
        subject: "initialize",
        reason: "a control request of Claude Code, not of ACP",
    },
    AllowedName {
        rule: RatchetRule::Metaphors,
        path: "crates/policy/",
        subject: "words",
        reason: "the words of a shell command",
    },
    AllowedName {
        rule: RatchetRule::Metaphors,
        path: "crates/agents/src/",
        subject: "AGAIN",
        reason: "an error number of the system",
    },
    AllowedName {
        rule: RatchetRule::Metaphors,
        path: "crates/transport/src/relay.rs",
        subject: "AGAIN",
        reason: "an error number of the system",
    },
    AllowedName {
        rule: RatchetRule::Metaphors,
        path: "crates/workspace-fs/src/",
        subject: "AGAIN",
        reason: "an error number of the system",
    },
];

/// Removes what the exceptions allow, and complains about exceptions that nothing needs.
pub(crate) fn remove_allowed(
    violations: &mut Vec<RuleViolation>,
    allowed: &[AllowedName],
) -> Vec<String> {
    let matches = |name: &AllowedName, it: &RuleViolation| {
        name.rule == it.rule && name.subject == it.subject && it.place.starts_with(name.path)
    };
    let mut complaints = Vec::new();
    for name in allowed {
        let AllowedName { rule, path, subject, reason } = name;
        if reason.is_empty() {
            complaints.push(format!("ALLOWED: `{subject}` in {path} has no reason"));
        }
        if !violations.iter().any(|it| matches(name, it)) {
            let rule = rule.id();
            complaints.push(format!(
                "ALLOWED: nothing in {path} needs `{subject}` ({rule}): remove it from \
                 xtask/src/tidy/ratchet/allowed.rs"
            ));
        }
    }
    violations.retain(|it| !allowed.iter().any(|name| matches(name, it)));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(place: &str) -> RuleViolation {
        RuleViolation {
            rule: RatchetRule::OneWordTypes,
            crate_name: "hub".to_owned(),
            subject: "Entry".to_owned(),
            place: place.to_owned(),
        }
    }

    const ENTRY: AllowedName = AllowedName {
        rule: RatchetRule::OneWordTypes,
        path: "crates/hub/src/a/",
        subject: "Entry",
        reason: "the name in the standard library",
    };

    #[test]
    fn allowed_name_is_removed_where_it_is_allowed() {
        let mut violations =
            vec![violation("crates/hub/src/a/b.rs:1"), violation("crates/hub/src/c.rs:1")];
        assert_eq!(remove_allowed(&mut violations, &[ENTRY]), [""; 0]);
        assert_eq!(violations, [violation("crates/hub/src/c.rs:1")]);
    }

    #[test]
    fn exception_without_use_or_reason_is_refused() {
        let complaints = remove_allowed(&mut Vec::new(), &[ENTRY]);
        assert!(complaints[0].contains("nothing in crates/hub/src/a/ needs `Entry`"));
        let mut violations = vec![violation("crates/hub/src/a/b.rs:1")];
        let complaints = remove_allowed(&mut violations, &[AllowedName { reason: "", ..ENTRY }]);
        assert_eq!(complaints, ["ALLOWED: `Entry` in crates/hub/src/a/ has no reason"]);
    }
}
