//! The client side of the connection to the daemon: finding or starting a daemon, sending requests, reading events.

mod agent_choice;
mod agent_overview;
mod bridge;
mod bridge_link;
mod connection;
mod default_agent;
mod event_sources;
mod in_process;
mod initialize;
mod interface_daemon;
mod locate;
mod operator;
mod response_wait;
mod session_list;
mod session_log;
mod single_request;
mod start;
mod storage;

pub(crate) use agent_choice::{
    AgentChoice, caller_environment, resolve_directory, send_connect, working_directory,
};
pub(crate) use agent_overview::{MODEL_SERVER, describe_login, survey_agents};
pub(crate) use bridge::{BridgeEnd, BridgeHandle, RunningTurns};
pub(crate) use bridge_link::{BridgeLink, DaemonLink, InProcessLink, LinkClient};
pub(crate) use connection::{CommandConnection, ConnectionEvent};
pub(crate) use default_agent::{OWN_AGENT, find_installed_agents, with_default_agent};
pub(crate) use event_sources::on_termination_signals;
pub(crate) use in_process::{
    GUARD_SUBCOMMAND, InProcessHub, UNENCRYPTED_HINT, boot_error, default_options, guard_command,
    load_settings,
};
pub(crate) use initialize::{initialize, initialize_client};
pub(crate) use interface_daemon::InterfaceDaemon;
pub(crate) use jackfield_transport::{BlockingSocket, EndpointAddress};
pub(crate) use operator::{check_agent_mark, has_agent_mark};
pub(crate) use response_wait::{ResponseWait, TimeLimit, WaitLimit};
pub(crate) use session_list::{
    SessionRow, find_latest_session, find_session, list_sessions, list_sessions_and_starts,
    rename_session, unique_prefix_length,
};
pub(crate) use session_log::{
    LogRange, read_log, read_log_range, read_notifications, warn_if_incomplete,
};
pub(crate) use single_request::{send_single_request, send_single_request_within};
pub(crate) use start::ALREADY_RUNS;
use start::StartedDaemon;
pub(crate) use storage::{lost_records_warning, storage_warning};

use crate::{out::CommandOutput, report::CommandError};
use jackfield_daemon::{LockHolder, Paths, token};
use jackfield_hub_client::ClientProtocol;
use jackfield_protocol::acp::Method;
use jackfield_transport::{CONNECT_TIMEOUT, DialError, dial_daemon_blocking};
use serde_json::json;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Finds the daemon and connects to it.
#[derive(Debug, Clone)]
pub(crate) struct DaemonConnector {
    /// The address given with `--socket`. If nothing listens there, no other daemon is used or started.
    explicit_address: Option<EndpointAddress>,
    paths: Paths,
    output: CommandOutput,
}

impl DaemonConnector {
    pub(crate) fn new(
        explicit_address: Option<EndpointAddress>,
        output: &CommandOutput,
    ) -> DaemonConnector {
        DaemonConnector { explicit_address, paths: Paths::from_env(), output: output.clone() }
    }

    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(crate) fn address(&self) -> EndpointAddress {
        self.explicit_address.clone().unwrap_or_else(|| EndpointAddress::Unix(self.paths.socket()))
    }

    /// Whether the caller gave an address with `--socket`.
    pub(crate) fn has_explicit_address(&self) -> bool {
        self.explicit_address.is_some()
    }

    /// Connects to the running daemon; `None` if no daemon runs. A daemon that holds the lock of the state directory
    /// and cannot be reached is an error.
    pub(crate) fn dial_if_running(&self) -> Result<Option<BlockingSocket>, CommandError> {
        if self.explicit_address.is_none()
            && let Some(socket) = self.dial_recorded_socket()?
        {
            return Ok(Some(socket));
        }
        match self.dial_address()? {
            None if self.explicit_address.is_none() => self.dial_lock_holder(),
            connected => Ok(connected),
        }
    }

    /// Connects to the address; `None` if nothing listens there and the caller did not give it.
    fn dial_address(&self) -> Result<Option<BlockingSocket>, CommandError> {
        let address = self.address();
        let token = match address {
            EndpointAddress::Tcp(_) => Some(token::read(&self.paths)).transpose(),
            _ => Ok(None),
        };
        match dial_daemon_blocking(&address, token.as_ref().ok().and_then(Option::as_ref)) {
            Ok(socket) => Ok(Some(socket)),
            Err(error @ DialError::NeedsToken { .. }) => {
                Err(token.map_or_else(CommandError::Token, |_| CommandError::Unreachable(error)))
            }
            Err(error) if error.is_absent() && self.explicit_address.is_none() => Ok(None),
            Err(error) => Err(self.dial_failure(error)),
        }
    }

    /// Reports a daemon whose accept queue is full as one that does not reply: it has stopped accepting clients.
    fn dial_failure(&self, error: DialError) -> CommandError {
        if self.explicit_address.is_some() || !error.is_full() {
            return CommandError::Unreachable(error);
        }
        let pid = self.find_lock_holder().ok().flatten().and_then(|it| it.pid);
        let pid = pid.and_then(|it| it.try_into().ok());
        let waited_for = "the daemon to accept the connection".to_owned();
        CommandError::NoReply { waited_for, seconds: CONNECT_TIMEOUT.as_secs(), pid }
    }

    /// Whether a daemon runs: it listens, or it holds the lock of the state directory.
    pub(crate) fn is_running(&self) -> bool {
        let listens = match self.dial_address() {
            Ok(socket) => socket.is_some(),
            Err(error) => matches!(error, CommandError::NoReply { .. }),
        };
        listens
            || (self.explicit_address.is_none() && matches!(self.find_lock_holder(), Ok(Some(_))))
    }

    /// Connects to the daemon. Starts one if none runs and the caller gave no address.
    pub(crate) fn dial_or_start(&self) -> Result<BlockingSocket, CommandError> {
        let limit = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        loop {
            let Some(socket) = self.dial_if_running()? else {
                match start::start_daemon(&self.paths, &self.output)? {
                    StartedDaemon::Connected(socket) => return Ok(socket),
                    // Another command has started it at the same time, with another runtime directory.
                    StartedDaemon::RunsElsewhere if Instant::now() < limit => continue,
                    StartedDaemon::RunsElsewhere => {
                        let hint = "`jackfield daemon status` shows it";
                        return Err(CommandError::NoDaemon { hint });
                    }
                }
            };
            // A daemon that is about to stop still accepts connections; one that has a client does not stop when idle.
            match send_single_request(&socket, Method::ControlStatus, &json!({})) {
                Ok(_) => return Ok(socket),
                Err(error) if self.explicit_address.is_some() || !is_stopping(&error) => {
                    return Err(error);
                }
                Err(error) if limit < Instant::now() => return Err(error),
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Waits until the daemon that held the lock before it was asked to stop has exited; if none held it, until
    /// nothing listens on the address. If a service manager owns the listening socket, only the lock shows that the
    /// daemon has exited.
    pub(crate) fn wait_until_stopped(
        &self,
        holder: Option<&LockHolder>,
    ) -> Result<(), CommandError> {
        let limit = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        let is_running = || match holder {
            Some(holder) => self.find_lock_holder().map(|it| it.as_ref() == Some(holder)),
            None => Ok(self.is_running()),
        };
        while is_running()? {
            if limit < Instant::now() {
                let pid = holder.and_then(|it| it.pid?.try_into().ok());
                let waited_for = "the daemon to stop".to_owned();
                return Err(CommandError::NoReply { waited_for, seconds: STOP_SECONDS_MAX, pid });
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// The pid of the daemon. A service manager can own the listening socket, so the lock takes precedence.
    pub(crate) fn daemon_pid(&self, conn: &CommandConnection) -> Option<i32> {
        let holder = if self.explicit_address.is_some() {
            None
        } else {
            self.find_lock_holder().ok().flatten()
        };
        holder.and_then(|it| it.pid?.try_into().ok()).or_else(|| conn.peer_pid())
    }

    /// Connects to the daemon, which is started if needed, and sends `initialize`.
    pub(crate) fn connect(&self, command: &str) -> Result<CommandConnection, CommandError> {
        self.initialize_socket(self.dial_or_start()?, command)
    }

    /// The same on a connection that survives the end of the daemon.
    pub(crate) fn connect_through_bridge(
        &self,
        command: &str,
    ) -> Result<CommandConnection, CommandError> {
        let mut conn = self.dial_through_bridge(&self.output)?;
        initialize_client(&mut conn, command, ClientProtocol::WithHubEvents)?;
        Ok(conn)
    }

    /// Connects to the daemon if it runs, and sends `initialize`.
    pub(crate) fn connect_if_running(
        &self,
        command: &str,
    ) -> Result<Option<CommandConnection>, CommandError> {
        let socket = self.dial_if_running()?;
        socket.map(|it| self.initialize_socket(it, command)).transpose()
    }

    fn initialize_socket(
        &self,
        socket: BlockingSocket,
        command: &str,
    ) -> Result<CommandConnection, CommandError> {
        let mut conn = CommandConnection::new(socket, &self.output)?;
        initialize_client(&mut conn, command, ClientProtocol::WithHubEvents)?;
        Ok(conn)
    }
}

/// The longest that a daemon may take to stop: running turns get two seconds, agents a few more.
pub(crate) const STOP_SECONDS_MAX: u64 = 20;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

fn is_stopping(error: &CommandError) -> bool {
    match error {
        CommandError::ConnectionClosed { .. } => true,
        CommandError::Response(response) => response.error_name() == "stopping",
        _ => false,
    }
}
