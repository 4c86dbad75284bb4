//! Converts requests of clients that were written for other agents into the form that the ACP
//! schema defines.

use crate::options::MODEL;
use jackfield_protocol::{Frame, acp::Method, mcp_servers::parse_mcp_servers};
use serde_json::{Map, Value, json};

/// The only version of ACP that the agent supports.
const ACP_VERSION: u16 = 1;
/// The name of `session/cancel` in the description of `openai-agent`.
const SHORT_CANCEL: &str = "cancel";

/// Returns the request in the form of ACP. `None` if it needs no conversion.
pub(super) fn to_acp_form(frame: &Frame) -> Option<String> {
    let name = frame.method()?;
    let (convert, method): (fn(&mut Map<String, Value>), Method) = match Method::from_name(&name) {
        Some(it @ Method::Initialize) => (convert_initialize, it),
        Some(
            it @ (Method::SessionNew
            | Method::SessionLoad
            | Method::SessionResume
            | Method::SessionFork),
        ) => (convert_open_request, it),
        Some(Method::SessionSetModel) => (convert_set_model, Method::SessionSetConfigOption),
        None if name == SHORT_CANCEL => (|_| {}, Method::SessionCancel),
        _ => return None,
    };
    let mut message: Map<String, Value> = serde_json::from_str(frame.text()).ok()?;
    convert(message.entry("params").or_insert_with(|| json!({})).as_object_mut()?);
    message.insert("method".to_owned(), method.name().into());
    Some(Value::from(message).to_string())
}

/// Sets the version if it is missing, text, or a number that is not a version.
fn convert_initialize(params: &mut Map<String, Value>) {
    let is_replaced = match params.get("protocolVersion") {
        None | Some(Value::Null | Value::String(_)) => true,
        Some(Value::Number(it)) => it.as_u64().and_then(|it| u16::try_from(it).ok()).is_none(),
        Some(_) => false,
    };
    if is_replaced {
        params.insert("protocolVersion".to_owned(), ACP_VERSION.into());
    }
}

/// Converts the MCP servers, and moves `model` and `mode` to where the agent reads them.
fn convert_open_request(params: &mut Map<String, Value>) {
    let sent = params.remove("mcpServers").unwrap_or_default();
    // The SDK refuses what is not a description of servers.
    let servers = match parse_mcp_servers(&sent) {
        Ok(found) if found.names.is_empty() => found.servers.into(),
        _ => sent,
    };
    params.insert("mcpServers".to_owned(), servers);
    for name in ["model", "mode"] {
        if let Some(Value::String(value)) = params.get(name) {
            let value = value.clone();
            let meta = object_member(params, "_meta");
            object_member(meta, "jackfield").entry(name).or_insert(value.into());
        }
    }
}

/// Returns the member as an object; anything else there is replaced.
fn object_member<'a>(parent: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let member = parent.entry(name).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("it was made an object above")
}

/// `session/set_model` is older than the options of a session, one of which is the model.
fn convert_set_model(params: &mut Map<String, Value>) {
    let model = params.remove("modelId").unwrap_or_default();
    params.insert("configId".to_owned(), MODEL.into());
    params.insert("value".to_owned(), model);
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol::v1::schema::{LoadSessionRequest, NewSessionRequest};

    fn convert(method: &str, params: &Value) -> Value {
        let frame = Frame::request("1", method, &params.to_string());
        serde_json::from_str(&to_acp_form(&frame).unwrap()).unwrap()
    }

    fn convert_servers(servers: &Value) -> Value {
        let request = convert("session/new", &json!({ "cwd": "/x", "mcpServers": servers }));
        let parsed = serde_json::from_value::<NewSessionRequest>(request["params"].clone());
        serde_json::to_value(parsed.unwrap().mcp_servers).unwrap()
    }

    #[test]
    fn version_that_is_no_number_becomes_one() {
        for params in [
            json!({}),
            json!({ "protocolVersion": null }),
            json!({ "protocolVersion": "2025-03-26" }),
            json!({ "protocolVersion": 100_000 }),
        ] {
            assert_eq!(convert("initialize", &params)["params"]["protocolVersion"], 1, "{params}");
        }
        let newer = convert("initialize", &json!({ "protocolVersion": 2 }));
        assert_eq!(newer["params"]["protocolVersion"], 2, "the SDK negotiates it");
        let bare = Frame::parse_str(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#).unwrap();
        assert!(to_acp_form(&bare).unwrap().contains(r#""protocolVersion":1"#));
    }

    #[test]
    fn servers_may_be_missing() {
        for servers in [json!(null), json!({}), json!([])] {
            assert_eq!(convert_servers(&servers), json!([]));
        }
        let load = convert("session/load", &json!({ "sessionId": "s", "cwd": "/x" }));
        serde_json::from_value::<LoadSessionRequest>(load["params"].clone()).unwrap();
    }

    #[test]
    fn servers_may_be_a_map_in_the_forms_of_other_programs() {
        let expected = json!([
            { "name": "a", "command": "npx", "args": ["-y", "x"], "env": [{ "name": "K", "value": "v" }] },
            { "name": "b", "command": "npx", "args": ["-y"], "env": [{ "name": "K", "value": "v" }] },
            { "type": "sse", "name": "c", "url": "http://h/sse", "headers": [{ "name": "A", "value": "1" }] },
            { "type": "http", "name": "d", "url": "http://h/", "headers": [] },
            { "type": "http", "name": "e", "url": "http://h/", "headers": [] },
        ]);
        let servers = json!({
            "a": { "type": "stdio", "command": "npx", "args": ["-y", "x"], "env": { "K": "v" } },
            "b": { "type": "local", "command": ["npx", "-y"], "environment": { "K": "v" } },
            "c": { "transport": "sse", "url": "http://h/sse", "headers": { "A": "1" } },
            "d": { "type": "remote", "url": "http://h/", "enabled": true },
            "e": { "url": "http://h/" },
            "f": { "type": "remote", "url": "http://h/", "enabled": false },
        });
        assert_eq!(convert_servers(&servers), expected);
        assert_eq!(convert_servers(&expected), expected, "the form of ACP stays as it is");
    }

    #[test]
    fn model_and_mode_are_moved_to_our_metadata() {
        let meta = json!({ "other": 1, "jackfield": { "mode": "edit" } });
        let params = json!({ "cwd": "/x", "model": "large", "mode": "ask", "_meta": meta });
        let meta = convert("session/new", &params)["params"]["_meta"].clone();
        let expected = json!({ "other": 1, "jackfield": { "mode": "edit", "model": "large" } });
        assert_eq!(meta, expected);
    }

    #[test]
    fn older_methods_have_their_current_names() {
        let set = convert("session/set_model", &json!({ "sessionId": "s", "modelId": "m" }));
        assert_eq!(set["method"], "session/set_config_option");
        let expected = json!({ "sessionId": "s", "configId": "model", "value": "m" });
        assert_eq!(set["params"], expected);
        assert_eq!(convert("cancel", &json!({ "sessionId": "s" }))["method"], "session/cancel");
    }
}
