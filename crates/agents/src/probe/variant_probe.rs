//! Which launch variants of an agent work: a variant that speaks ACP is initialized, another one is
//! started if its file wants that. Variants after the first that works are not started.

use super::{
    AcpState, AgentDiagnostic, ModelList, ModelListSource,
    acp::{self, QueryError, SessionModels},
    agent_probe::{AgentProbe, ModelsResult},
    command::ProbeCommand,
    diagnostic, models,
    start_check::check_start,
};
use crate::find::{ChosenVariant, list_installed_variants};
use jackfield_catalog::{LaunchOptions, ModelSource};
use std::time::Duration;

/// The time that agents need to open their first session.
const ACP_MAX: Duration = Duration::from_secs(15);
/// The time after which a program that was started with an empty stdin is taken to work.
const START_MAX: Duration = Duration::from_secs(4);

/// What the installed variants have shown.
pub(super) struct VariantResults {
    /// For each variant the reason why it cannot be used, if one is known.
    pub(super) failures: Vec<Option<String>>,
    /// Whether one of the variants that speak ACP has answered; `None` if none is installed.
    pub(super) acp: Option<AcpState>,
    /// Present if the agent lists its models over ACP.
    pub(super) models: Option<AcpModels>,
}

pub(super) type AcpModels = Result<ModelsResult, AgentDiagnostic>;

impl AgentProbe {
    /// Starts the installed variants in order until one works.
    pub(super) async fn probe_variants(&self) -> VariantResults {
        let lists_models = self.spec.models.from == Some(ModelSource::Acp);
        let mut failures = vec![None; self.spec.launch.len()];
        let (mut acp, mut models) = (None, None);
        for installed in list_installed_variants(&self.spec, &self.locations) {
            let variant = installed.variant;
            if variant.is_native_acp() {
                match self.query(&installed).await {
                    Err(QueryError::NotAcp(why)) => {
                        failures[installed.index] = Some(why);
                        acp = Some(AcpState::Failed);
                    }
                    answer => {
                        let is_late = matches!(answer, Err(QueryError::InitializeLate(_)));
                        acp = Some(if is_late { AcpState::NoAnswer } else { AcpState::Works });
                        models = Some(self.read_answer(answer));
                        break;
                    }
                }
            } else if variant.start_check {
                let (spec, found) = (&self.spec, &installed.found);
                let Some((_permit, limit)) = self.acquire_permit(START_MAX).await else { break };
                match check_start(spec, variant, found, &self.locations, limit).await {
                    Ok(()) => break,
                    Err(why) => failures[installed.index] = Some(why),
                }
            } else {
                break;
            }
        }
        let nothing = || {
            let why = "none of its installed programs supports ACP";
            let fix = "run it in a terminal: it may want a login or settings first";
            Err(diagnostic::describe_fallback_models(&self.spec, why, fix))
        };
        let models = lists_models.then(|| models.unwrap_or_else(nothing));
        VariantResults { failures, acp, models }
    }

    async fn query(&self, installed: &ChosenVariant<'_>) -> Result<SessionModels, QueryError> {
        let cwd = self.scratch.path();
        let options =
            LaunchOptions { cwd: cwd.to_str().unwrap_or("/"), ..LaunchOptions::default() };
        let args = installed.variant.compose_argv(&options);
        let args = args.map_err(|it| QueryError::Other(it.to_string()))?;
        let Some((_permit, limit)) = self.acquire_permit(ACP_MAX).await else {
            return Err(QueryError::InitializeLate("no time was left to query it".to_owned()));
        };
        let env = self.env(&installed.found);
        let program = &installed.found.path;
        let command = ProbeCommand { program, args: &args, env: &env, cwd };
        let lists_models = self.spec.models.from == Some(ModelSource::Acp);
        let answer = acp::query_models(command, limit, lists_models).await;
        match answer {
            // A program that was given all the time that it may need does not speak ACP.
            Err(QueryError::InitializeLate(why)) if self.deadline.is_none() => {
                Err(QueryError::NotAcp(why))
            }
            answer => answer,
        }
    }

    fn read_answer(&self, answer: Result<SessionModels, QueryError>) -> AcpModels {
        let failed = |why: &str| {
            let fix = "run it in a terminal: it may want a login or settings first";
            diagnostic::describe_fallback_models(&self.spec, why, fix)
        };
        match answer {
            Ok(offer) => {
                let list = models::reported_models(ModelListSource::Acp, offer.models);
                let list = list.map(|it| ModelList { current: offer.current, ..it });
                list.map(ModelsResult::Listed).ok_or_else(|| failed("a session of it lists none"))
            }
            Err(QueryError::LoginFirst) => Ok(ModelsResult::LoginFirst),
            Err(QueryError::Late(why) | QueryError::InitializeLate(why)) => {
                let fix = self.fix_for_timeout();
                Err(diagnostic::describe_fallback_models(&self.spec, &why, fix))
            }
            Err(QueryError::Other(why) | QueryError::NotAcp(why)) => Err(failed(&why)),
        }
    }
}
