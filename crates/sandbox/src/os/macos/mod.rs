//! Enforcement on macOS with Seatbelt.

#[cfg(target_os = "macos")]
mod launch;
#[cfg(target_os = "macos")]
pub mod probes;
mod seatbelt;

#[cfg(target_os = "macos")]
pub(super) use launch::detect_layers;
#[cfg(target_os = "macos")]
pub use launch::{SeatbeltError, delete_left_directories, init_main, run};
