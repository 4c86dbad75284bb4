//! A problem in a configuration file, with its line.

use std::fmt;

/// An invalid value, or an unknown member that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ConfigProblem {}
