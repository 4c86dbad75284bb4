//! The `initialize` request of a command.

use super::{HubConnection, ResponseWait, WaitLimit};
use crate::report::CommandError;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// What a client receives from the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientProtocol {
    /// ACP messages only.
    AcpOnly,
    /// ACP messages, and `_jackfield/…` notifications for events that have no ACP message.
    WithHubEvents,
}

/// Sends `initialize` and returns its result.
pub(crate) fn initialize(
    conn: &mut HubConnection,
    command: &str,
    protocol: ClientProtocol,
    wait: ResponseWait<'_>,
) -> Result<Value, CommandError> {
    let mut capabilities = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
    });
    if protocol == ClientProtocol::WithHubEvents {
        capabilities["_meta"] = json!({ "jackfield": {} });
    }
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": capabilities,
        "clientInfo": {
            "name": format!("jackfield-{command}"),
            "title": format!("jackfield {command}"),
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    let result = conn.call_method(Method::Initialize.name(), &params, wait)?;
    conn.is_operator = result["_meta"]["jackfield"]["operator"] != false;
    Ok(result)
}

/// Sends `initialize` on a connection without an agent: the hub itself answers.
pub(crate) fn initialize_client(
    conn: &mut HubConnection,
    command: &str,
    protocol: ClientProtocol,
) -> Result<(), CommandError> {
    let wait = ResponseWait { waited_for: "the daemon to answer", limit: WaitLimit::Hub };
    initialize(conn, command, protocol, wait).map(drop)
}
