//! Counters of a run: two runs of one seed must agree, and every kind of fault must occur.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunTally(BTreeMap<&'static str, u64>);

impl RunTally {
    pub(crate) fn count(&mut self, name: &'static str) {
        self.count_all(name, 1);
    }

    pub(crate) fn count_all(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }

    pub fn count_of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &RunTally) {
        for (name, count) in &other.0 {
            self.count_all(name, *count);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, count)| (*name, *count))
    }
}
