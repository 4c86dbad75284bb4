//! Enforcement on Linux.

pub mod bubblewrap;
mod descriptors;
mod detect;
pub mod init;
mod kernel_version;
pub mod landlock;
pub mod probes;
mod resources;
pub mod seccomp;

pub(super) use detect::detect_layers;
pub use init::main as init_main;
pub use landlock::delete_unused as delete_left_directories;

use super::{RunError, environment};
use crate::plan::{EnforcementLayer, SandboxPlan};
use std::{ffi::OsString, process::ExitCode};

/// Runs a program under a plan. It returns if the program has ended and this process is its parent, or if
/// it could not be started.
pub fn run(plan: &SandboxPlan, argv: &[OsString]) -> Result<ExitCode, RunError> {
    match plan.layer {
        EnforcementLayer::Bubblewrap => match bubblewrap::run(plan, argv)? {},
        EnforcementLayer::Landlock => {
            let (program, args) = argv.split_first().ok_or(RunError::NoProgram)?;
            Ok(ExitCode::from(landlock::run(plan, program, args)?))
        }
        layer @ EnforcementLayer::Seatbelt => Err(RunError::Unsupported { layer }),
    }
}
