//! The status of an agent on this machine, without starting anything.

use super::{
    AcpState, AgentDiagnostic, DiagnosticReason, DiagnosticSeverity, LoginState, ModelList,
    ProbeResult, diagnostic, models,
};
use crate::find::{
    FoundProgram, MissingProgram, MissingReason, ProgramLocations, choose_variant,
    find_own_program, find_variant_program,
};
use jackfield_catalog::{AgentSpec, ModelSource};

/// Where an agent's program is, how it would be started, and the result of the last probe.
#[derive(Debug, Clone)]
pub struct AgentStatus {
    /// The program that is probed and that results are stored for.
    pub program: Option<FoundProgram>,
    /// The program of each variant.
    pub variants: Vec<Result<FoundProgram, MissingProgram>>,
    /// The variant that would be used.
    pub chosen: Option<usize>,
    /// Whether it was probed.
    pub is_probed: bool,
    pub version: Option<String>,
    pub login: LoginState,
    /// The environment variable that provides the login.
    pub login_variable: Option<String>,
    pub models: ModelList,
    /// For each variant, which of its flags the program supports; empty if it was not probed.
    pub flags: Vec<Vec<bool>>,
    /// For each variant the reason why it cannot be used, if the last probe found one.
    pub variant_failures: Vec<Option<String>>,
    /// Whether its ACP mode answered in the last probe.
    pub acp: Option<AcpState>,
    pub diagnostics: Vec<AgentDiagnostic>,
}

impl AgentStatus {
    /// The program that [`super::ProbeCache`] stores results for.
    pub fn find_program(spec: &AgentSpec, locations: &ProgramLocations) -> Option<FoundProgram> {
        let chosen = || choose_variant(spec, locations).ok().map(|it| it.found);
        find_own_program(spec, locations).ok().or_else(chosen)
    }

    pub fn new(
        spec: &AgentSpec,
        locations: &ProgramLocations,
        result: Option<&ProbeResult>,
    ) -> AgentStatus {
        let variants: Vec<_> =
            spec.launch.iter().map(|it| find_variant_program(spec, it, locations)).collect();
        let variable =
            spec.auth.iter().flat_map(|it| &it.env).find(|it| locations.var(it).is_some());
        let login = result.and_then(|it| it.login).unwrap_or_default();
        let mut status = AgentStatus {
            program: AgentStatus::find_program(spec, locations),
            chosen: variants.iter().position(Result::is_ok),
            variants,
            is_probed: result.is_some(),
            version: result.and_then(|it| it.version.clone()),
            login: if variable.is_some() { LoginState::Ok } else { login },
            login_variable: variable.cloned(),
            models: models::fallback_models(spec),
            flags: result.map(|it| it.flags.clone()).unwrap_or_default(),
            variant_failures: result.map(|it| it.variant_failures.clone()).unwrap_or_default(),
            acp: result.and_then(|it| it.acp),
            diagnostics: Vec::new(),
        };
        status.diagnose_program(spec, locations);
        if let Some(result) = result {
            status.add_result(spec, result);
        }
        status.read_settings(spec, locations);
        status
    }

    /// Whether no known problem prevents its use.
    pub fn is_usable(&self) -> bool {
        self.chosen.is_some()
            && self.diagnostics.iter().all(|it| it.severity != DiagnosticSeverity::Error)
    }

    fn diagnose_program(&mut self, spec: &AgentSpec, locations: &ProgramLocations) {
        match (choose_variant(spec, locations), find_own_program(spec, locations)) {
            (Err(missing), _) => {
                self.diagnostics.push(diagnostic::describe_missing(spec, &missing));
            }
            // Another program is used instead, but the variable names this one.
            (Ok(_), Err(missing))
                if matches!(missing.reason, MissingReason::BadVariable { .. }) =>
            {
                let diagnostic = diagnostic::describe_missing(spec, &missing);
                self.diagnostics
                    .push(AgentDiagnostic { severity: DiagnosticSeverity::Warning, ..diagnostic });
            }
            _ => {}
        }
    }

    /// Uses the first variant that works, and reports those that do not.
    fn add_variant_failures(&mut self, spec: &AgentSpec, failures: &[Option<String>]) {
        let failure = |index: usize| failures.get(index).and_then(Option::as_ref);
        let works = |index: &usize| self.variants[*index].is_ok() && failure(*index).is_none();
        let working = (0..spec.launch.len()).find(works);
        self.chosen = working.or(self.chosen);
        let instead = working.map(|it| &spec.launch[it]);
        for (index, variant) in spec.launch.iter().enumerate() {
            if let Some(why) = failure(index).filter(|_| self.variants[index].is_ok()) {
                let it = diagnostic::describe_failed_variant(spec, variant, why, instead);
                self.diagnostics.push(it);
            }
        }
    }

    fn add_result(&mut self, spec: &AgentSpec, result: &ProbeResult) {
        self.add_variant_failures(spec, &result.variant_failures);
        if let Some(list) = &result.models {
            self.models = list.clone();
        }
        let is_relevant = |it: &&AgentDiagnostic| {
            let about_login =
                matches!(it.reason, DiagnosticReason::AuthMissing | DiagnosticReason::AuthUnknown);
            !(about_login && self.login_variable.is_some())
        };
        let reported: Vec<AgentDiagnostic> =
            result.diagnostics.iter().filter(is_relevant).cloned().collect();
        // If the agent's own program is broken, a variant with another program still works.
        let uses_other_program = self.chosen.is_some_and(|it| spec.launch[it].bins != spec.bins);
        self.diagnostics.extend(reported.into_iter().map(|it| match it.severity {
            DiagnosticSeverity::Error if uses_other_program => {
                AgentDiagnostic { severity: DiagnosticSeverity::Warning, ..it }
            }
            _ => it,
        }));
    }

    fn read_settings(&mut self, spec: &AgentSpec, locations: &ProgramLocations) {
        if spec.models.from != Some(ModelSource::Settings) || self.chosen.is_none() {
            return;
        }
        match models::settings_models(spec, locations) {
            Some(Ok(list)) => self.models = list,
            Some(Err(why)) => {
                self.diagnostics.push(diagnostic::describe_fallback_models(
                    spec,
                    &why,
                    "correct the file",
                ));
            }
            None => {}
        }
    }
}
