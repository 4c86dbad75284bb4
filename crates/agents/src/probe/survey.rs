//! The catalogue and this machine, looked at together: who is here, and what probes have told of it.

use super::{Cache, Knowledge, Standing};
use crate::find::Places;
use jackfield_catalogue::{Catalogue, Spec};
use std::{io, path::Path};

/// Everything that is known of agents without starting anything.
#[derive(Debug)]
pub struct Survey {
    pub catalogue: Catalogue,
    pub places: Places,
    cache: Cache,
}

impl Survey {
    /// `probes` is the file that [`Survey::save`] writes.
    pub fn new(catalogue: Catalogue, places: Places, probes: &Path) -> Survey {
        Survey { catalogue, places, cache: Cache::load(probes) }
    }

    /// What is known of an agent.
    pub fn standing(&self, spec: &Spec) -> Standing {
        let found = Standing::program(spec, &self.places);
        let knowledge = found.as_ref().and_then(|it| self.cache.get(spec, it));
        Standing::new(spec, &self.places, knowledge)
    }

    /// Those of them that can be asked: their program is there.
    pub fn there(&self, specs: Vec<Spec>) -> Vec<Spec> {
        let is_there = |it: &Spec| Standing::program(it, &self.places).is_some();
        specs.into_iter().filter(is_there).collect()
    }

    /// Takes in what a program told; what it did not tell this time is what it told before.
    pub fn learn(&mut self, spec: &Spec, knowledge: Knowledge) {
        let Some(found) = Standing::program(spec, &self.places) else { return };
        let knowledge = match self.cache.get(spec, &found) {
            Some(earlier) => knowledge.or(earlier),
            None => knowledge,
        };
        self.cache.put(spec, &found, knowledge);
    }

    /// Writes the file for whoever looks next.
    pub fn save(&self) -> io::Result<()> {
        self.cache.save()
    }
}
