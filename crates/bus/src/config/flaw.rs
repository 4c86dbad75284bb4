//! What is wrong with a configuration, and on which line.

use std::fmt;

/// One thing that is wrong, or that is not known and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Flaw {}
