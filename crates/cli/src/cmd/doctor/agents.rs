//! Checks the agents: their files and commands, and what each installed program answered about version, login and ACP.

use super::{check_context::CheckContext, finding::DoctorFinding};
use crate::hub::{MODEL_SERVER, OWN_AGENT, describe_login};
use jackfield_agents::{
    find::find_program,
    probe::{AgentDiagnostic, AgentStatus, AgentSurvey, DiagnosticReason, DiagnosticSeverity},
};
use jackfield_catalog::AgentSpec;
use jackfield_daemon::Settings;

/// The agents must have been probed.
pub(super) fn check_agents(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let survey = context.survey();
    let mut findings: Vec<DoctorFinding> = Vec::new();
    for error in survey.catalogue.errors() {
        findings.push(DoctorFinding::problem(error.to_string(), "correct or remove the file"));
    }
    if let Ok(settings) = context.settings() {
        findings.extend(check_configured(settings, survey));
    }
    let statuses = survey.catalogue.iter().map(|it| (it, survey.status(it)));
    let installed: Vec<_> = statuses.filter(|(_, it)| it.chosen.is_some()).collect();
    let has_server = survey.locations.var(MODEL_SERVER).is_some();
    findings.extend(installed.iter().map(|(spec, status)| judge_agent(spec, status, has_server)));
    let has_configured = context.settings().as_ref().is_ok_and(|it| !it.agents.is_empty());
    if !has_configured && installed.iter().all(|(spec, _)| spec.id == OWN_AGENT) {
        let fix = "`jackfield agents --all` lists what to install, for example: jackfield agents install claude";
        findings.push(DoctorFinding::warning("no agent is installed except our own", fix));
    }
    findings
}

/// Commands in `config.toml` whose program was not found, and names of agents that do not exist.
fn check_configured(settings: &Settings, survey: &AgentSurvey) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, agent) in &settings.agents {
        let Some(command) = &agent.command else {
            if survey.catalogue.get(name).is_none() {
                let found =
                    format!("[agents.{name}] has no `command`, and the catalog has no such agent");
                findings
                    .push(DoctorFinding::problem(found, "add a `command`, or correct the name"));
            }
            continue;
        };
        let program = command.first().cloned().unwrap_or_default();
        let found = find_program(std::slice::from_ref(&program), None, &survey.locations);
        findings.push(if let Ok(found) = found {
            DoctorFinding::ok(format!("starts {}", found.path.display())).about(name)
        } else {
            let found = format!("[agents.{name}] starts `{program}`, which was not found");
            let fix = format!("install `{program}`, or correct `command`");
            DoctorFinding::problem(found, fix)
        });
    }
    findings
}

/// The worst that the probe of an installed agent found, or what it answered.
fn judge_agent(spec: &AgentSpec, status: &AgentStatus, has_server: bool) -> DoctorFinding {
    let is_own = spec.id == OWN_AGENT;
    if is_own && !has_server {
        let found = format!("our own agent needs a model server, and {MODEL_SERVER} is not set");
        return DoctorFinding::ok(found).about(&spec.id);
    }
    let is_relevant = |it: &&AgentDiagnostic| {
        it.severity != DiagnosticSeverity::Info
            || (is_own && it.reason == DiagnosticReason::ModelsFallback)
    };
    let severity = |it: &&AgentDiagnostic| it.severity as u8;
    let worst = status.diagnostics.iter().filter(is_relevant).min_by_key(severity);
    let finding = match worst {
        None => DoctorFinding::ok(describe_answers(spec, status)),
        Some(it) if it.severity == DiagnosticSeverity::Error => {
            DoctorFinding::problem(&it.message, &it.fix)
        }
        Some(it) => DoctorFinding::warning(&it.message, &it.fix),
    };
    finding.about(&spec.id)
}

fn describe_answers(spec: &AgentSpec, status: &AgentStatus) -> String {
    let is_native = status.chosen.is_some_and(|it| spec.launch[it].is_native_acp());
    let mode = if is_native { "ACP mode works" } else { "used through an adapter" };
    let parts = [status.version.clone(), describe_login(status), Some(mode.to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};
    use jackfield_agents::{find::ProgramLocations, probe::ProbeResult};
    use jackfield_catalog::parse_agent_spec;

    fn spec(id: &str) -> AgentSpec {
        let text = format!("id = \"{id}\"\nname = \"Mine\"\nbins = [\"sh\"]\n[[launch]]\n");
        parse_agent_spec(&text).unwrap()
    }

    fn judge(id: &str, result: &ProbeResult) -> DoctorFinding {
        let path = [("PATH".to_owned(), "/bin:/usr/bin".to_owned())];
        let locations = ProgramLocations::new(path.into_iter());
        let spec = spec(id);
        judge_agent(&spec, &AgentStatus::new(&spec, &locations, Some(result)), true)
    }

    fn diagnostic(reason: DiagnosticReason, severity: DiagnosticSeverity) -> AgentDiagnostic {
        let (message, fix) = (format!("{reason:?}"), "do it".to_owned());
        AgentDiagnostic { reason, severity, message, fix }
    }

    #[test]
    fn worst_diagnostic_of_an_agent_is_its_finding() {
        let mut result = ProbeResult { version: Some("1.2".into()), ..ProbeResult::default() };
        assert_eq!(judge("mine", &result).found, "1.2, ACP mode works");
        let missing = DiagnosticReason::AuthMissing;
        result.diagnostics.push(diagnostic(missing, DiagnosticSeverity::Warning));
        assert_eq!(judge("mine", &result).verdict, CheckVerdict::Warning);
        result.variant_failures = vec![Some("it exited".into())];
        let finding = judge("mine", &result);
        assert_eq!(
            (finding.verdict, finding.subject.as_deref()),
            (CheckVerdict::Problem, Some("mine"))
        );
        assert!(finding.found.ends_with("its ACP mode cannot be used: it exited"), "{finding:?}");
    }

    #[test]
    fn unknown_models_are_a_warning_for_our_own_agent_only() {
        let unknown = diagnostic(DiagnosticReason::ModelsFallback, DiagnosticSeverity::Info);
        let result = ProbeResult { diagnostics: vec![unknown], ..ProbeResult::default() };
        assert_eq!(judge("mine", &result).verdict, CheckVerdict::Ok);
        assert_eq!(judge(OWN_AGENT, &result).verdict, CheckVerdict::Warning);
    }
}
