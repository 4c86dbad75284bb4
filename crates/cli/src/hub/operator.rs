//! Checks whether this command runs below an agent, in its process tree. Commands that only the operator may use call it
//! before they act without the daemon.

use super::{DaemonConnector, send_single_request};
use crate::report::CommandError;
use jackfield_agents::MARK_VARIABLE;
use jackfield_protocol::acp::Method;
use jackfield_transport::{EndpointAddress, dial_daemon_blocking};
use serde_json::json;

impl DaemonConnector {
    /// Fails if the daemon of this user reports that this process belongs to one of its agents. If no daemon answers,
    /// the variable that agents inherit decides.
    pub(crate) fn require_operator(&self, operation: &str) -> Result<(), CommandError> {
        // Not the address from `--socket`: a daemon there does not know the agents of this user's daemon.
        let default_address = || EndpointAddress::Unix(self.paths().socket());
        let socket = match self.dial_recorded_socket() {
            Ok(None) => dial_daemon_blocking(&default_address(), None).ok(),
            recorded => recorded.ok().flatten(),
        };
        let Some(socket) = socket else { return check_agent_mark(operation) };
        match send_single_request(
            &socket,
            Method::ControlOperator,
            &json!({ "operation": operation }),
        ) {
            Err(error @ CommandError::Response(_)) if is_refusal(&error) => Err(error),
            // The daemon is too old for this request, or about to stop.
            Err(_) => check_agent_mark(operation),
            Ok(_) => Ok(()),
        }
    }
}

fn is_refusal(error: &CommandError) -> bool {
    matches!(error, CommandError::Response(response) if response.error_name() == "not_allowed")
}

/// Whether the environment contains the variable that agents inherit.
pub(crate) fn has_agent_mark() -> bool {
    std::env::var_os(MARK_VARIABLE).is_some()
}

/// Fails if the environment contains the variable that agents inherit.
pub(crate) fn check_agent_mark(operation: &str) -> Result<(), CommandError> {
    if !has_agent_mark() {
        return Ok(());
    }
    let message = format!(
        "`jackfield {operation}` is for the operator, and this process seems to run below an agent: \
         `{MARK_VARIABLE}` is set and no daemon contradicts it"
    );
    let hint =
        format!("run it in your own terminal, or unset `{MARK_VARIABLE}` if no agent set it");
    Err(CommandError::usage(message, hint))
}
