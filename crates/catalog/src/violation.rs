//! A rule that an agent file violates.

use crate::error::PathStep;

/// A violated rule, with the path to the offending value.
pub(crate) struct SpecViolation {
    pub(crate) path: Vec<PathStep>,
    pub(crate) reason: String,
}

pub(crate) type CheckResult = Result<(), SpecViolation>;

pub(crate) fn reject(path: &[PathStep], reason: impl Into<String>) -> CheckResult {
    Err(SpecViolation { path: path.to_vec(), reason: reason.into() })
}
