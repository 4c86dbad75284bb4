//! Judges one attempt: the outcome without a sandbox, the outcome inside, and what was promised.

use super::{ExpectedResult, ProbeGroup, ProbeOutcome, RefusingPart, SandboxProbe};
use crate::plan::EnforcementLayer;
use serde::Serialize;

/// What an attempt says about the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeVerdict {
    AsPromised,
    /// Something is possible that the profile refuses, or an agent cannot do its work, or the attempt failed.
    NotAsPromised,
    /// The machine refuses it without a sandbox, too, so that its refusal proves nothing; or it was not tried.
    NotApplicable,
}

/// One attempt and its judgment.
#[derive(Debug, Clone)]
pub struct JudgedProbe {
    pub probe: &'static SandboxProbe,
    /// Without a sandbox.
    pub control: ProbeOutcome,
    pub expected: Option<ExpectedResult>,
    /// Inside the sandbox; `None` if it was not tried.
    pub outcome: Option<ProbeOutcome>,
    /// What refused it, if the sign of the refusal is one of this part.
    pub refused_by: Option<RefusingPart>,
    pub verdict: ProbeVerdict,
}

impl JudgedProbe {
    pub fn new(
        probe: &'static SandboxProbe,
        layer: Option<EnforcementLayer>,
        control: ProbeOutcome,
        expected: Option<ExpectedResult>,
        outcome: Option<ProbeOutcome>,
    ) -> JudgedProbe {
        let part = layer.and_then(|it| probe.refusing_part(it));
        let refused_by = match &outcome {
            Some(ProbeOutcome::Refused(sign)) => part.filter(|it| it.explains(sign)),
            _ => None,
        };
        let verdict = judge(probe, &control, expected, outcome.as_ref());
        JudgedProbe { probe, control, expected, outcome, refused_by, verdict }
    }
}

fn judge(
    probe: &SandboxProbe,
    control: &ProbeOutcome,
    expected: Option<ExpectedResult>,
    outcome: Option<&ProbeOutcome>,
) -> ProbeVerdict {
    let (Some(expected), Some(outcome)) = (expected, outcome) else {
        return ProbeVerdict::NotApplicable;
    };
    let is_possible = *control == ProbeOutcome::Worked;
    match (expected, outcome) {
        (ExpectedResult::Refused, ProbeOutcome::Worked) => ProbeVerdict::NotAsPromised,
        _ if !is_possible => ProbeVerdict::NotApplicable,
        (_, ProbeOutcome::Failed(_)) => ProbeVerdict::NotAsPromised,
        (ExpectedResult::Allowed, ProbeOutcome::Refused(_)) if probe.group == ProbeGroup::Work => {
            ProbeVerdict::NotAsPromised
        }
        // A layer may be stricter than the profile.
        (ExpectedResult::Allowed, ProbeOutcome::Worked | ProbeOutcome::Refused(_))
        | (ExpectedResult::Refused, ProbeOutcome::Refused(_)) => ProbeVerdict::AsPromised,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(sign: &str) -> ProbeOutcome {
        ProbeOutcome::Refused(sign.to_owned())
    }

    fn report(name: &str, control: ProbeOutcome, outcome: ProbeOutcome) -> JudgedProbe {
        let probe = SandboxProbe::find(name).unwrap();
        let is_work = probe.group == ProbeGroup::Work;
        let expected = if is_work { ExpectedResult::Allowed } else { ExpectedResult::Refused };
        let layer = Some(EnforcementLayer::Bubblewrap);
        JudgedProbe::new(probe, layer, control, Some(expected), Some(outcome))
    }

    #[test]
    fn refusal_proves_something_only_if_the_attempt_works_without_a_sandbox() {
        use ProbeOutcome::Worked;
        use ProbeVerdict::{AsPromised, NotApplicable, NotAsPromised};
        let failed = || ProbeOutcome::Failed("no result".to_owned());
        for (name, control, outcome, verdict) in [
            ("read-ssh-key", Worked, refused("ENOENT"), AsPromised),
            ("read-ssh-key", Worked, Worked, NotAsPromised),
            ("read-ssh-key", Worked, failed(), NotAsPromised),
            ("raw-socket", refused("EPERM"), refused("EACCES"), NotApplicable),
            ("raw-socket", refused("EPERM"), Worked, NotAsPromised),
            ("write-project", Worked, Worked, AsPromised),
            ("write-project", Worked, refused("EROFS"), NotAsPromised),
        ] {
            let found = report(name, control, outcome.clone());
            assert_eq!(found.verdict, verdict, "{name} {outcome:?}");
        }
    }

    #[test]
    fn part_is_named_only_if_the_error_is_one_of_it() {
        let by =
            |sign: &str| report("read-ssh-key", ProbeOutcome::Worked, refused(sign)).refused_by;
        assert_eq!(by("ENOENT"), Some(RefusingPart::MountNamespace));
        assert_eq!(by("EIO"), None);
    }
}
