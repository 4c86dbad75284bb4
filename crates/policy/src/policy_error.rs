//! An error in a rule file, with its line.

use std::{fmt, ops::Range};

/// One error in a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl PolicyError {
    pub(crate) fn at_span(
        text: &str,
        span: &Range<usize>,
        reason: impl Into<String>,
    ) -> PolicyError {
        PolicyError { line: line_of(text, span), reason: reason.into() }
    }

    /// The message of the TOML parser without its excerpt of the line.
    pub(crate) fn from_toml_error(text: &str, error: &toml::de::Error) -> PolicyError {
        let span = error.span().unwrap_or_default();
        PolicyError::at_span(text, &span, error.message().trim_end().replace('\n', ", "))
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for PolicyError {}

pub(crate) fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}
