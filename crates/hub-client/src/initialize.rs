//! The `initialize` request of a client.

use serde_json::{Value, json};

/// What a client receives from the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientProtocol {
    /// ACP messages only.
    AcpOnly,
    /// ACP messages. Agents may send forms, which another client of the user answers.
    AcpWithForms,
    /// ACP messages, and `_jackfield/…` notifications for events that have no ACP message.
    WithHubEvents,
}

/// The params of `initialize`; `client` is the last word of the client's name.
pub fn initialize_params(client: &str, protocol: ClientProtocol) -> Value {
    let mut capabilities = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
    });
    match protocol {
        ClientProtocol::AcpOnly => {}
        ClientProtocol::AcpWithForms => {
            capabilities["elicitation"] = json!({ "form": {}, "url": {} });
        }
        ClientProtocol::WithHubEvents => capabilities["_meta"] = json!({ "jackfield": {} }),
    }
    json!({
        "protocolVersion": 1,
        "clientCapabilities": capabilities,
        "clientInfo": {
            "name": format!("jackfield-{client}"),
            "title": format!("jackfield {client}"),
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}
