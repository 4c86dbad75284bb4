//! The `initialize` request of a command.

use super::{CommandConnection, ResponseWait, WaitLimit};
use crate::report::CommandError;
use jackfield_hub_client::{ClientProtocol, initialize_params};
use jackfield_protocol::acp::Method;
use serde_json::Value;

/// Sends `initialize` and returns its result.
pub(crate) fn initialize(
    conn: &mut CommandConnection,
    command: &str,
    protocol: ClientProtocol,
    wait: ResponseWait<'_>,
) -> Result<Value, CommandError> {
    let params = initialize_params(command, protocol);
    let result = conn.call_method(Method::Initialize, &params, wait)?;
    conn.set_initialized(&result);
    Ok(result)
}

/// Sends `initialize` on a connection without an agent: the hub itself answers.
pub(crate) fn initialize_client(
    conn: &mut CommandConnection,
    command: &str,
    protocol: ClientProtocol,
) -> Result<(), CommandError> {
    let wait = ResponseWait { waited_for: "the daemon to answer", limit: WaitLimit::Hub };
    initialize(conn, command, protocol, wait).map(drop)
}
