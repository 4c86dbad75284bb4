//! Asking programs what they are: version, login, models, and flags that only some versions know.
//!
//! Each question is a short life of the program in an empty folder, with an end, in the environment
//! that the agent would have. [`Prober`] asks many agents side by side, [`Cache`] keeps what was
//! learned, [`Standing`] is what is known of an agent without starting anything, and [`Survey`] has
//! that of all.
//!
//! **Invariant:** nothing that is started here outlives its time limit, or us.

mod acp;
mod ask;
mod cache;
mod command;
mod diagnostic;
mod models;
mod scratch;
mod standing;
mod survey;

pub use ask::environment;
pub use cache::Cache;
pub use diagnostic::{Diagnostic, Reason, Severity, missing as diagnose_missing};
pub use models::{Offered, Source};
pub use standing::Standing;
pub use survey::Survey;

use crate::find::Places;
use ask::Ask;
use jackfield_catalogue::Spec;
use scratch::Scratch;
use serde::{Deserialize, Serialize};
use std::{io, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

/// Programs that run at the same time: enough that one which hangs does not keep the others waiting,
/// few enough for a small machine.
const RUNNING_MAX: usize = 8;

/// What a program told about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    pub version: Option<String>,
    /// What it said about its login; the environment may know better.
    pub login: Option<Login>,
    /// What it listed itself.
    pub models: Option<Offered>,
    /// For each variant, which of its flags the program has.
    pub flags: Vec<Vec<bool>>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Login {
    Ok,
    Missing,
    #[default]
    Unknown,
}

impl Login {
    pub fn shown(self) -> &'static str {
        match self {
            Login::Ok => "ok",
            Login::Missing => "missing",
            Login::Unknown => "unknown",
        }
    }
}

impl Knowledge {
    /// What was not told this time is taken from an earlier probe of the same program.
    #[must_use]
    pub fn or(mut self, earlier: &Knowledge) -> Knowledge {
        let mut forgive = |reason: Reason| self.diagnostics.retain(|it| it.reason != reason);
        if self.version.is_none() && earlier.version.is_some() {
            self.version.clone_from(&earlier.version);
            forgive(Reason::VersionProbeFailed);
        }
        if self.login.is_none() && earlier.login.is_some() {
            self.login = earlier.login;
            forgive(Reason::AuthUnknown);
        }
        if self.models.is_none() && earlier.models.is_some() {
            self.models.clone_from(&earlier.models);
            forgive(Reason::ModelsFallback);
        }
        self
    }

    /// It cannot even be started.
    pub fn is_hopeless(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }
}

/// Asks agents, side by side.
#[derive(Debug)]
pub struct Prober {
    places: Arc<Places>,
    scratch: Arc<Scratch>,
    permits: Arc<Semaphore>,
    deadline: Option<Instant>,
}

impl Prober {
    /// `within` bounds everything together; without it each question has its own limit only. Must be
    /// called inside a tokio runtime.
    pub fn new(places: Places, within: Option<Duration>) -> io::Result<Prober> {
        Ok(Prober {
            places: Arc::new(places),
            scratch: Arc::new(Scratch::new()?),
            permits: Arc::new(Semaphore::new(RUNNING_MAX)),
            deadline: within.map(|it| Instant::now() + it),
        })
    }

    /// Asks every agent; `tell` hears of each as soon as it has answered. Dropped in between, it ends
    /// everything it started.
    pub async fn probe(&self, specs: Vec<Spec>, mut tell: impl FnMut(Spec, Knowledge)) {
        let mut asked = JoinSet::new();
        for spec in specs {
            let ask = Ask {
                spec,
                places: Arc::clone(&self.places),
                scratch: Arc::clone(&self.scratch),
                permits: Arc::clone(&self.permits),
                deadline: self.deadline,
            };
            asked.spawn(async move {
                let knowledge = ask.all().await;
                (ask.spec, knowledge)
            });
        }
        while let Some(answered) = asked.join_next().await {
            // One that panicked has told nothing; the others still do.
            if let Ok((spec, knowledge)) = answered {
                tell(spec, knowledge);
            }
        }
    }
}

#[cfg(test)]
mod tests;
