//! Which failures stored events survive, and how a loss is reported.

/// Which failures an event survives once its append has returned `Ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityLevel {
    /// The end of the process, for whatever reason. A power failure may lose the last commits, but
    /// never the order or the integrity of the remaining events.
    Process,
    /// A power failure as well: every commit waits for the disk.
    Power,
}

/// Records that were acknowledged before the journal was opened and are missing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostRecords {
    pub count: u64,
}
