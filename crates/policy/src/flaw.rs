//! What is wrong with a rule file, and on which line.

use std::{fmt, ops::Range};

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl Flaw {
    pub(crate) fn at(text: &str, span: &Range<usize>, reason: impl Into<String>) -> Flaw {
        Flaw { line: line_of(text, span), reason: reason.into() }
    }

    /// What the TOML reader says, without its drawing of the line.
    pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> Flaw {
        let span = error.span().unwrap_or_default();
        Flaw::at(text, &span, error.message().trim_end().replace('\n', ", "))
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Flaw {}

pub(crate) fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}
