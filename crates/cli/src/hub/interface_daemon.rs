//! The daemon as the terminal interface finds and starts it.

use super::{BlockingSocket, DaemonConnector, EndpointAddress, survey_agents};
use crate::{
    out::{ColorMode, CommandOutput},
    report::CommandError,
};
use jackfield_daemon::Paths;
use jackfield_tui::{AgentOverview, DaemonAccess, DaemonStart};
use std::error::Error as _;

/// Connects from any thread, and prints nothing.
pub(crate) struct InterfaceDaemon {
    explicit_address: Option<EndpointAddress>,
    paths: Paths,
}

impl InterfaceDaemon {
    pub(crate) fn new(connector: &DaemonConnector) -> InterfaceDaemon {
        let DaemonConnector { explicit_address, paths, .. } = connector.clone();
        InterfaceDaemon { explicit_address, paths }
    }

    fn connector(&self) -> DaemonConnector {
        let (explicit_address, paths) = (self.explicit_address.clone(), self.paths.clone());
        let output = CommandOutput::new(ColorMode::Never, true, 0);
        DaemonConnector { explicit_address, paths, output }
    }
}

impl DaemonAccess for InterfaceDaemon {
    fn dial(&self, start: DaemonStart) -> Result<Option<BlockingSocket>, String> {
        let connector = self.connector();
        let dialed = match start {
            DaemonStart::Always => connector.dial_or_start().map(Some),
            DaemonStart::IfKilled => connector.dial_unless_stopped(),
        };
        dialed.map_err(|error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })
    }

    fn list_agents(&self) -> AgentOverview {
        survey_agents(&self.paths)
    }
}

impl DaemonConnector {
    /// Connects to the daemon, and starts one if the last one was killed; `None` if it was stopped: a daemon that
    /// stops removes its socket.
    fn dial_unless_stopped(&self) -> Result<Option<BlockingSocket>, CommandError> {
        match self.dial_if_running()? {
            None if self.paths.socket().exists() => self.dial_or_start().map(Some),
            dialed => Ok(dialed),
        }
    }
}
