//! Systems without enforcement: every plan is refused.

use super::{LayerSupport, RunError};
use crate::plan::SandboxPlan;
use std::{ffi::OsString, process::ExitCode};

/// Refuses the plan.
pub fn run(plan: &SandboxPlan, _argv: &[OsString]) -> Result<ExitCode, RunError> {
    Err(RunError::Unsupported { layer: plan.layer })
}

/// No layer of this system has a first program.
pub fn init_main(_args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

/// This system has no layer.
pub(super) fn detect_layers() -> Vec<LayerSupport> {
    Vec::new()
}
