//! What is known of an agent on this machine without starting anything.

use super::{Diagnostic, Knowledge, Login, Offered, Reason, Severity, diagnostic, models};
use crate::find::{Found, Missing, Places, Why, choose, find_own, find_variant};
use jackfield_catalogue::{ModelsFrom, Spec};

/// An agent: where it is, how it would be started, and what a probe told.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The program that probes ask and that their answers are kept for.
    pub program: Option<Found>,
    /// The program of each variant.
    pub variants: Vec<Result<Found, Missing>>,
    /// The variant that would be used.
    pub chosen: Option<usize>,
    /// It was probed.
    pub known: bool,
    pub version: Option<String>,
    pub login: Login,
    /// The variable that is the login.
    pub login_by: Option<String>,
    pub models: Offered,
    /// For each variant, which of its flags the program has; nothing if it was not probed.
    pub flags: Vec<Vec<bool>>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Standing {
    /// The program that [`super::Cache`] keeps knowledge for.
    pub fn program(spec: &Spec, places: &Places) -> Option<Found> {
        let chosen = || choose(spec, places).ok().map(|it| it.found);
        find_own(spec, places).ok().or_else(chosen)
    }

    pub fn new(spec: &Spec, places: &Places, knowledge: Option<&Knowledge>) -> Standing {
        let variants: Vec<_> =
            spec.launch.iter().map(|it| find_variant(spec, it, places)).collect();
        let by = spec.auth.iter().flat_map(|it| &it.env).find(|it| places.var(it).is_some());
        let login = knowledge.and_then(|it| it.login).unwrap_or_default();
        let mut standing = Standing {
            program: Standing::program(spec, places),
            chosen: variants.iter().position(Result::is_ok),
            variants,
            known: knowledge.is_some(),
            version: knowledge.and_then(|it| it.version.clone()),
            login: if by.is_some() { Login::Ok } else { login },
            login_by: by.cloned(),
            models: models::fallback(spec),
            flags: knowledge.map(|it| it.flags.clone()).unwrap_or_default(),
            diagnostics: Vec::new(),
        };
        standing.diagnose_program(spec, places);
        if let Some(knowledge) = knowledge {
            standing.learn(spec, knowledge);
        }
        standing.read_settings(spec, places);
        standing
    }

    /// Nothing is known to keep it from being used.
    pub fn is_usable(&self) -> bool {
        self.chosen.is_some() && self.diagnostics.iter().all(|it| it.severity != Severity::Error)
    }

    fn diagnose_program(&mut self, spec: &Spec, places: &Places) {
        match (choose(spec, places), find_own(spec, places)) {
            (Err(missing), _) => self.diagnostics.push(diagnostic::missing(spec, &missing)),
            // Another program stands in for it, but somebody meant this one.
            (Ok(_), Err(missing)) if matches!(missing.why, Why::BadVariable { .. }) => {
                let diagnostic = diagnostic::missing(spec, &missing);
                self.diagnostics.push(Diagnostic { severity: Severity::Warning, ..diagnostic });
            }
            _ => {}
        }
    }

    fn learn(&mut self, spec: &Spec, knowledge: &Knowledge) {
        if let Some(offered) = &knowledge.models {
            self.models = offered.clone();
        }
        let own = |it: &&Diagnostic| {
            let about_login = matches!(it.reason, Reason::AuthMissing | Reason::AuthUnknown);
            !(about_login && self.login_by.is_some())
        };
        let told: Vec<Diagnostic> = knowledge.diagnostics.iter().filter(own).cloned().collect();
        // A broken program of its own does not matter to a variant that is another program.
        let elsewhere = self.chosen.is_some_and(|it| spec.launch[it].bins != spec.bins);
        self.diagnostics.extend(told.into_iter().map(|it| match it.severity {
            Severity::Error if elsewhere => Diagnostic { severity: Severity::Warning, ..it },
            _ => it,
        }));
    }

    fn read_settings(&mut self, spec: &Spec, places: &Places) {
        if spec.models.from != Some(ModelsFrom::Settings) || self.chosen.is_none() {
            return;
        }
        match models::settings(spec, places) {
            Some(Ok(offered)) => self.models = offered,
            Some(Err(why)) => {
                self.diagnostics.push(diagnostic::fallback_models(spec, &why, "correct the file"));
            }
            None => {}
        }
    }
}
