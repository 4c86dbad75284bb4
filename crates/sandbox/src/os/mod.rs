//! Enforcement by the operating system, and the only place of this crate that tests for one or has
//! `unsafe` code.

mod layer_support;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use layer_support::{LayerProblem, LayerSupport, choose_layer, layer_support};
#[cfg(target_os = "linux")]
use linux::detect::detect_layers;
#[cfg(target_os = "linux")]
pub use linux::{init::main as init_main, run};
#[cfg(not(target_os = "linux"))]
use unsupported::detect_layers;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{init_main, run};

use crate::plan::EnforcementLayer;

/// The hidden subcommand that is the first program inside a sandbox.
pub const INIT_SUBCOMMAND: &str = "sandbox-init";

/// A process could not be started in a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the sandbox with bubblewrap could not be started")]
    #[cfg(target_os = "linux")]
    Bubblewrap(#[from] linux::bubblewrap::BubblewrapError),
    #[error("the sandbox with Landlock could not be started")]
    #[cfg(target_os = "linux")]
    Landlock(#[from] linux::landlock::LandlockError),
    #[error("no program was named")]
    NoProgram,
    #[error(
        "a plan for {layer:?} cannot be enforced on this system; the profile `open` starts an agent without \
         a sandbox"
    )]
    Unsupported { layer: EnforcementLayer },
}
