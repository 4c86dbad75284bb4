//! Enforcement by the operating system, and the only place of this crate that tests for one or has
//! `unsafe` code.

mod environment;
mod forward;
mod layer_support;
#[cfg(target_os = "linux")]
pub mod linux;
// The text of a profile is tested on every system.
#[cfg(any(target_os = "macos", test))]
pub mod macos;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("this system is not supported: add a folder for it to `crates/sandbox/src/os`");

pub use environment::PROFILE_VARIABLE;
pub use layer_support::{LayerProblem, LayerSupport, choose_layer, layer_support};
use system::detect_layers;
pub use system::{delete_left_directories, init_main, probes, run};

use crate::plan::EnforcementLayer;

/// The hidden subcommand that is the first program inside a sandbox.
pub const INIT_SUBCOMMAND: &str = "sandbox-init";
/// The hidden subcommand that tries to leave a sandbox.
pub const PROBE_SUBCOMMAND: &str = "sandbox-probe";

/// A process could not be started in a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the sandbox with bubblewrap could not be started")]
    #[cfg(target_os = "linux")]
    Bubblewrap(#[from] linux::bubblewrap::BubblewrapError),
    #[error("the sandbox with Landlock could not be started")]
    #[cfg(target_os = "linux")]
    Landlock(#[from] linux::landlock::LandlockError),
    #[error("the sandbox with Seatbelt could not be started")]
    #[cfg(target_os = "macos")]
    Seatbelt(#[from] macos::SeatbeltError),
    #[error("no program was named")]
    NoProgram,
    #[error(
        "a plan for {layer:?} cannot be enforced on this system; the profile `open` starts an agent without \
         a sandbox"
    )]
    Unsupported { layer: EnforcementLayer },
}
