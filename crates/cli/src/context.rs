//! The context in which a command runs.

use crate::{hub::DaemonConnector, out::CommandOutput};

/// What every command needs: the daemon and the output.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) daemon: DaemonConnector,
    pub(crate) output: CommandOutput,
}
