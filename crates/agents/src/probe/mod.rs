//! Probes programs for their version, login, models, flags that only some versions support, and
//! whether their launch variants work.
//!
//! Each query runs the program briefly in an empty folder with a time limit, in the environment
//! that the agent would have. [`AgentProber`] probes many agents concurrently, [`ProbeCache`]
//! stores the results, [`AgentStatus`] is what is known about an agent without starting anything,
//! and [`AgentSurvey`] has the status of all agents.
//!
//! **Invariant:** no process that is started here outlives its time limit or this process.

mod acp;
mod agent_probe;
mod cache;
pub(crate) mod command;
mod diagnostic;
mod models;
mod scratch_folder;
mod start_check;
mod status;
mod survey;
mod text_lines;
mod variant_probe;

pub use agent_probe::agent_environment;
pub(crate) use agent_probe::query_version;
pub use cache::ProbeCache;
pub use diagnostic::{AgentDiagnostic, DiagnosticReason, DiagnosticSeverity, describe_missing};
pub use models::{ModelList, ModelListSource};
pub use start_check::check_start;
pub use status::AgentStatus;
pub use survey::AgentSurvey;

use crate::find::ProgramLocations;
use agent_probe::AgentProbe;
use jackfield_catalog::AgentSpec;
use scratch_folder::ScratchFolder;
use serde::{Deserialize, Serialize};
use std::{io, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

/// The number of programs that run at the same time: enough that a hanging program does not delay
/// the others, and few enough for a small machine.
const RUNNING_MAX: usize = 8;

/// The result of probing a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    pub version: Option<String>,
    /// The login that it reported; an API key in the environment takes precedence.
    pub login: Option<LoginState>,
    /// The models that it listed.
    pub models: Option<ModelList>,
    /// For each variant, which of its flags the program supports.
    pub flags: Vec<Vec<bool>>,
    /// For each variant the reason why it cannot be used, if one is known.
    #[serde(default)]
    pub variant_failures: Vec<Option<String>>,
    /// Whether its ACP mode works; `None` if it has none.
    #[serde(default)]
    pub acp: Option<AcpState>,
    pub diagnostics: Vec<AgentDiagnostic>,
}

/// Whether a program answers the ACP request `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcpState {
    Works,
    /// It ended, refused the request, or did not answer within the time that such a program may need.
    Failed,
    /// It did not answer within the time of this probe, which was shorter.
    NoAnswer,
}

impl AcpState {
    pub fn name(self) -> &'static str {
        match self {
            AcpState::Works => "works",
            AcpState::Failed => "failed",
            AcpState::NoAnswer => "no answer",
        }
    }
}

/// Whether an agent is logged in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginState {
    Ok,
    Missing,
    #[default]
    Unknown,
}

impl LoginState {
    pub fn name(self) -> &'static str {
        match self {
            LoginState::Ok => "ok",
            LoginState::Missing => "missing",
            LoginState::Unknown => "unknown",
        }
    }
}

impl ProbeResult {
    /// Adds results of an earlier probe of the same program that this probe did not get.
    #[must_use]
    pub fn or_earlier(mut self, earlier: &ProbeResult) -> ProbeResult {
        let mut remove_diagnostic =
            |reason: DiagnosticReason| self.diagnostics.retain(|it| it.reason != reason);
        if self.version.is_none() && earlier.version.is_some() {
            self.version.clone_from(&earlier.version);
            remove_diagnostic(DiagnosticReason::VersionProbeFailed);
        }
        if self.login.is_none() && earlier.login.is_some() {
            self.login = earlier.login;
            remove_diagnostic(DiagnosticReason::AuthUnknown);
        }
        if matches!(self.acp, None | Some(AcpState::NoAnswer)) && earlier.acp.is_some() {
            self.acp = earlier.acp;
        }
        if self.models.is_none() && earlier.models.is_some() {
            self.models.clone_from(&earlier.models);
            remove_diagnostic(DiagnosticReason::ModelsFallback);
        }
        self
    }

    /// Whether the program cannot be started.
    pub fn is_unusable(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == DiagnosticSeverity::Error)
    }
}

/// Probes agents concurrently.
#[derive(Debug)]
pub struct AgentProber {
    locations: Arc<ProgramLocations>,
    scratch: Arc<ScratchFolder>,
    permits: Arc<Semaphore>,
    deadline: Option<Instant>,
}

impl AgentProber {
    /// `within` limits the total time; without it each query has only its own limit. Must be called
    /// inside a tokio runtime.
    pub fn new(locations: ProgramLocations, within: Option<Duration>) -> io::Result<AgentProber> {
        Ok(AgentProber {
            locations: Arc::new(locations),
            scratch: Arc::new(ScratchFolder::new()?),
            permits: Arc::new(Semaphore::new(RUNNING_MAX)),
            deadline: within.map(|it| Instant::now() + it),
        })
    }

    /// Probes every agent and calls `on_result` as soon as one has finished. If the future is
    /// dropped, all started processes are killed.
    pub async fn probe(
        &self,
        specs: Vec<AgentSpec>,
        mut on_result: impl FnMut(AgentSpec, ProbeResult),
    ) {
        let mut probes = JoinSet::new();
        for spec in specs {
            let ask = AgentProbe {
                spec,
                locations: Arc::clone(&self.locations),
                scratch: Arc::clone(&self.scratch),
                permits: Arc::clone(&self.permits),
                deadline: self.deadline,
            };
            probes.spawn(async move {
                let result = ask.probe_all().await;
                (ask.spec, result)
            });
        }
        while let Some(finished) = probes.join_next().await {
            // A probe that panicked has no result; the others continue.
            if let Ok((spec, result)) = finished {
                on_result(spec, result);
            }
        }
    }
}

#[cfg(test)]
mod tests;
