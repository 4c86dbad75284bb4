//! Checks whether agents can run in a sandbox: which layers work, and a few attempts to leave the best one.

use super::{check_context::CheckContext, finding::DoctorFinding};
use crate::plain_text::format_count;
use jackfield_daemon::{
    CheckScope, CheckedLayer, LayerState, ProfileCheck, ProfileCheckError, check_profile,
};
use jackfield_protocol::chain;
use jackfield_sandbox::{check::LayerCheck, probes::ProbeVerdict};

const PROFILE: &str = "workspace";
const ALL_PROBES: &str =
    "`jackfield sandbox check` shows what is not refused; do not rely on the sandbox until then";

pub(super) fn check_sandbox(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let layer = context.settings().as_ref().ok().and_then(|it| it.sandbox_layer);
    let scope = CheckScope { layer, is_short: true };
    judge_sandbox(check_profile(context.paths, &program, PROFILE, scope))
}

fn judge_sandbox(checked: Result<ProfileCheck, ProfileCheckError>) -> Vec<DoctorFinding> {
    match checked {
        Ok(check) => judge_layers(&check.layers),
        Err(error @ ProfileCheckError::Profiles(_)) => {
            vec![DoctorFinding::problem(
                error.to_string(),
                "`jackfield policy check` shows all errors",
            )]
        }
        Err(error) => vec![DoctorFinding::warning(
            format!("the sandbox was not checked: {}", chain(&error)),
            "`jackfield sandbox check` tries it again",
        )],
    }
}

/// A finding for the layer that is used; without one, a finding for each layer.
fn judge_layers(layers: &[CheckedLayer]) -> Vec<DoctorFinding> {
    let first = layers.iter().find(|it| !matches!(it.state, LayerState::Unavailable(_)));
    match first.map(|it| (it, &it.state)) {
        Some((layer, LayerState::Checked { version, check })) => {
            let name = layer.layer.map(|it| it.to_string()).unwrap_or_default();
            vec![judge_check(&name, version, check)]
        }
        Some((_, LayerState::Failed(error))) => {
            let found = format!("a sandbox cannot be started: {}", chain(error));
            vec![DoctorFinding::problem(
                found,
                "what the message says, or use another `sandbox_layer`",
            )]
        }
        _ => layers.iter().filter_map(judge_unavailable).collect(),
    }
}

fn judge_check(name: &str, version: &str, check: &LayerCheck) -> DoctorFinding {
    let broken: Vec<&str> = check
        .reports
        .iter()
        .filter(|it| it.verdict == ProbeVerdict::NotAsPromised)
        .map(|it| it.probe.attempt)
        .collect();
    if broken.is_empty() {
        let count = check.count(ProbeVerdict::AsPromised);
        let tried = format_count(check.reports.len(), "probe");
        return DoctorFinding::ok(format!("{version}: {count} of {tried} as promised"));
    }
    let found =
        format!("with {name}, these have another result than promised: {}", broken.join("; "));
    DoctorFinding::problem(found, ALL_PROBES)
}

fn judge_unavailable(layer: &CheckedLayer) -> Option<DoctorFinding> {
    let LayerState::Unavailable(problem) = &layer.state else { return None };
    let name = layer.layer.map(|it| it.to_string()).unwrap_or_default();
    let found = format!("agents cannot run in a sandbox with {name}: {}", problem.reason);
    Some(DoctorFinding::warning(found, problem.hint.clone()))
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};
    use jackfield_sandbox::{
        os::LayerProblem,
        plan::EnforcementLayer,
        probes::{ExpectedResult, JudgedProbe, ProbeOutcome, SandboxProbe},
    };

    fn unavailable(layer: EnforcementLayer, reason: &str, hint: &str) -> CheckedLayer {
        let problem = LayerProblem { reason: reason.to_owned(), hint: hint.to_owned() };
        CheckedLayer { layer: Some(layer), state: LayerState::Unavailable(problem) }
    }

    fn checked(outcome: ProbeOutcome) -> CheckedLayer {
        let layer = Some(EnforcementLayer::Landlock);
        let probe = SandboxProbe::find("read-ssh-key").unwrap();
        let expected = Some(ExpectedResult::Refused);
        let report = JudgedProbe::new(probe, layer, ProbeOutcome::Worked, expected, Some(outcome));
        let check = LayerCheck { layer, without_protection: true, reports: vec![report] };
        CheckedLayer {
            layer,
            state: LayerState::Checked { version: "Landlock ABI 7".into(), check },
        }
    }

    #[test]
    fn missing_layers_have_a_fix_unless_another_one_works() {
        let missing = || {
            unavailable(
                EnforcementLayer::Bubblewrap,
                "not installed",
                "sudo apt install bubblewrap",
            )
        };
        let old = unavailable(EnforcementLayer::Landlock, "old kernel", "use a newer kernel");
        let findings = judge_layers(&[missing(), old]);
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|it| it.verdict == CheckVerdict::Warning));
        assert_eq!(findings[0].fix.as_deref(), Some("sudo apt install bubblewrap"));
        let refused = checked(ProbeOutcome::Refused("EACCES".to_owned()));
        let findings = judge_layers(&[missing(), refused]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].verdict, CheckVerdict::Ok);
        assert_eq!(findings[0].found, "Landlock ABI 7: 1 of 1 probe as promised");
    }

    #[test]
    fn broken_promise_is_a_problem() {
        let findings = judge_layers(&[checked(ProbeOutcome::Worked)]);
        assert_eq!(findings[0].verdict, CheckVerdict::Problem);
        assert!(findings[0].found.ends_with("promised: read a private key in ~/.ssh"));
    }
}
