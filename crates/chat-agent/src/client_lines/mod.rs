//! The lines between the client and the SDK.
//!
//! The SDK accepts only what the ACP schema defines. Clients of other agents send more: a protocol
//! version that is text or missing, MCP servers as a map, a model in `session/new`. `request_forms`
//! converts such requests before the SDK reads them, and this module converts the answers back.
//! `outer_sessions` restores the session id with which a bus routes.

mod outer_sessions;
mod request_forms;

use crate::mutex::lock;
use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _, future};
use jackfield_protocol::{Frame, Kind, acp::Method};
use outer_sessions::OuterSessions;
use serde_json::{Map, Value};
use std::{
    io,
    sync::{Arc, Mutex},
};

/// The version for clients that negotiate it as text. The ACP version is the same as for all others.
const TEXT_VERSION: &str = "2025-03-26";

/// Makes a transport for the agent of the lines that a client sends and receives.
pub fn line_transport(
    outgoing: impl Sink<String, Error = io::Error> + Send + 'static,
    incoming: impl Stream<Item = io::Result<String>> + Send + 'static,
) -> impl ConnectTo<Agent> {
    let incoming_state = Arc::new(Mutex::new(ClientLines::default()));
    let outgoing_state = Arc::clone(&incoming_state);
    let incoming =
        incoming.map(move |line| line.map(|it| lock(&incoming_state).convert_incoming(it)));
    let outgoing =
        outgoing.with(move |line: String| future::ok(lock(&outgoing_state).convert_outgoing(line)));
    Lines::new(outgoing, incoming)
}

/// What must be remembered of requests until they are answered.
#[derive(Debug, Default)]
struct ClientLines {
    /// The id of a pending `initialize` with a version that is text.
    text_version_request: Option<String>,
    outer_sessions: OuterSessions,
}

impl ClientLines {
    /// Converts a line of the client. A line that is not JSON-RPC is left to the SDK.
    fn convert_incoming(&mut self, line: String) -> String {
        let Ok(frame) = Frame::parse_str(&line) else { return line };
        if frame.is_method(Method::Initialize) && has_text_version(&frame) {
            self.text_version_request = frame.id().map(str::to_owned);
        }
        self.outer_sessions.record_incoming(&frame);
        request_forms::to_acp_form(&frame).unwrap_or(line)
    }

    /// Converts a line of the agent.
    fn convert_outgoing(&mut self, line: String) -> String {
        if self.text_version_request.is_none() && self.outer_sessions.is_empty() {
            return line;
        }
        let Ok(frame) = Frame::parse_str(&line) else { return line };
        let mut converted = None;
        if frame.kind() == Kind::Response && frame.id() == self.text_version_request.as_deref() {
            self.text_version_request = None;
            converted = with_text_version(&line);
        }
        if let Some(outer) = self.outer_sessions.find_outgoing(&frame) {
            converted =
                outer_sessions::with_outer_id(converted.as_deref().unwrap_or(&line), &outer);
        }
        converted.unwrap_or(line)
    }
}

fn has_text_version(frame: &Frame) -> bool {
    let params = frame.params().and_then(|it| serde_json::from_str::<Value>(it).ok());
    params.is_some_and(|it| it["protocolVersion"].is_string())
}

fn with_text_version(response: &str) -> Option<String> {
    let mut response: Map<String, Value> = serde_json::from_str(response).ok()?;
    let result = response.get_mut("result")?.as_object_mut()?;
    result.insert("protocolVersion".to_owned(), TEXT_VERSION.into());
    Some(Value::from(response).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(line: &str) -> Value {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn version_is_answered_in_the_form_of_the_request() {
        for (version, answered) in [
            (json!("2025-03-26"), json!("2025-03-26")),
            (json!("2024-11-05"), json!("2025-03-26")),
            (json!(1), json!(1)),
            (Value::Null, json!(1)),
        ] {
            let mut lines = ClientLines::default();
            let params = json!({ "protocolVersion": version });
            let request = json!({ "id": "1", "method": "initialize", "params": params });
            let request = parse(&lines.convert_incoming(request.to_string()));
            assert_eq!(request["params"]["protocolVersion"], 1);
            let other = json!({ "id": 1, "result": { "protocolVersion": 1 } }).to_string();
            assert_eq!(lines.convert_outgoing(other.clone()), other, "`1` is not `\"1\"`");
            let response = json!({ "id": "1", "result": { "protocolVersion": 1 } });
            let response = parse(&lines.convert_outgoing(response.to_string()));
            assert_eq!(response["result"]["protocolVersion"], answered);
        }
    }

    #[test]
    fn answers_have_the_outer_session_id_of_their_requests() {
        let mut lines = ClientLines::default();
        let params = json!({ "protocolVersion": "2025-03-26" });
        let request =
            json!({ "id": 1, "method": "initialize", "sessionId": "bus", "params": params });
        lines.convert_incoming(request.to_string());
        let response = json!({ "id": 1, "result": { "protocolVersion": 1 } });
        let response = parse(&lines.convert_outgoing(response.to_string()));
        let result = json!({ "protocolVersion": "2025-03-26" });
        assert_eq!(response, json!({ "id": 1, "result": result, "sessionId": "bus" }));
    }

    #[test]
    fn lines_that_need_no_conversion_are_not_changed() {
        let mut lines = ClientLines::default();
        let prompt =
            r#"{"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": {"x": 1.50}}"#;
        for line in [prompt, "no JSON", "[]", ""] {
            assert_eq!(lines.convert_incoming(line.to_owned()), line);
            assert_eq!(lines.convert_outgoing(line.to_owned()), line);
        }
    }
}
