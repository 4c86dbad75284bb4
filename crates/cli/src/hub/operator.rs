//! Whether this command runs below an agent: asked before it does by itself what only the operator
//! may do.

use super::{Dial, answer_of};
use crate::report::Failure;
use jackfield_agents::MARK_VARIABLE;
use jackfield_protocol::acp::Method;
use jackfield_transport::{EndpointAddress, dial_daemon_blocking};
use serde_json::json;

impl Dial {
    /// Refuses if the daemon of this user says that we are below one of its agents. Where no daemon
    /// answers, the mark that agents inherit is the only hint.
    pub(crate) fn require_operator(&self, operation: &str) -> Result<(), Failure> {
        // Not the address that the caller may have named: that one may know other agents.
        let Ok(socket) = dial_daemon_blocking(&EndpointAddress::Unix(self.paths().socket()), None)
        else {
            return check_mark(operation);
        };
        match answer_of(&socket, Method::ControlOperator.name(), &json!({ "operation": operation }))
        {
            Err(failure @ Failure::Answer(_)) if is_refusal(&failure) => Err(failure),
            // It is older than this question, or about to end.
            Err(_) => check_mark(operation),
            Ok(_) => Ok(()),
        }
    }
}

fn is_refusal(failure: &Failure) -> bool {
    matches!(failure, Failure::Answer(answer) if answer.name() == "not_allowed")
}

/// Refuses if the environment has the mark that agents inherit.
pub(crate) fn check_mark(operation: &str) -> Result<(), Failure> {
    if std::env::var_os(MARK_VARIABLE).is_none() {
        return Ok(());
    }
    let what = format!(
        "`jackfield {operation}` is for the operator, and this process seems to run below an agent: \
         `{MARK_VARIABLE}` is set and no daemon says otherwise"
    );
    let hint =
        format!("run it in your own terminal, or unset `{MARK_VARIABLE}` if it is left over");
    Err(Failure::usage(what, hint))
}
