//! Combines the catalogue with this machine: which agents are installed, and their probe results.

use super::{AgentStatus, ProbeCache, ProbeResult};
use crate::find::ProgramLocations;
use jackfield_catalog::{AgentSpec, Catalog};
use std::{io, path::Path};

/// The status of all agents, without starting anything.
#[derive(Debug)]
pub struct AgentSurvey {
    pub catalogue: Catalog,
    pub locations: ProgramLocations,
    cache: ProbeCache,
}

impl AgentSurvey {
    /// `probes` is the file that [`AgentSurvey::save`] writes.
    pub fn new(catalogue: Catalog, locations: ProgramLocations, probes: &Path) -> AgentSurvey {
        AgentSurvey { catalogue, locations, cache: ProbeCache::load(probes) }
    }

    /// The status of an agent.
    pub fn status(&self, spec: &AgentSpec) -> AgentStatus {
        let found = AgentStatus::find_program(spec, &self.locations);
        let result = found.as_ref().and_then(|it| self.cache.get(spec, it));
        AgentStatus::new(spec, &self.locations, result)
    }

    /// The specs whose program exists, so that it can be probed.
    pub fn retain_installed(&self, specs: Vec<AgentSpec>) -> Vec<AgentSpec> {
        let is_installed =
            |it: &AgentSpec| AgentStatus::find_program(it, &self.locations).is_some();
        specs.into_iter().filter(is_installed).collect()
    }

    /// Adds the result of a probe. What it lacks is taken from the previous result.
    pub fn add_result(&mut self, spec: &AgentSpec, result: ProbeResult) {
        let Some(found) = AgentStatus::find_program(spec, &self.locations) else { return };
        let result = match self.cache.get(spec, &found) {
            Some(earlier) => result.or_earlier(earlier),
            None => result,
        };
        self.cache.insert(spec, &found, result);
    }

    /// Writes the results to the file.
    pub fn save(&self) -> io::Result<()> {
        self.cache.save()
    }
}
