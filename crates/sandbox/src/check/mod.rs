//! Makes the attempts of [`probes`](crate::probes) without a sandbox and on a layer, and judges them.

mod check_scene;
mod layer_check;

pub use layer_check::{CheckError, ControlRun, LayerCheck, SandboxChecker};
