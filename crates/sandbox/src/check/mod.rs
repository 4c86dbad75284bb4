//! Makes the attempts of [`probes`](crate::probes) without a sandbox and on a layer, and judges them.

mod layer_check;
mod probe_fixture;

pub use layer_check::{CheckError, ControlRun, LayerCheck, SandboxChecker};
