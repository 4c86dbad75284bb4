//! What every process of this daemon is started with.

use jackfield_agents::{GuardCommand, ProcessLedger};

/// What every process of this daemon is started with.
#[derive(Debug, Clone)]
pub(crate) struct SpawnContext {
    pub(crate) guard: GuardCommand,
    pub(crate) ledger: ProcessLedger,
    /// Marks the processes of this daemon among all processes of the machine.
    pub(crate) mark: String,
}
