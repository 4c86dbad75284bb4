//! A message of the hub, as it arrives on a connection.

use crate::{ErrorResponse, EventLine};
use bytes::Bytes;
use jackfield_protocol::{Frame, Kind};
use serde_json::Value;

/// A message of the hub.
#[derive(Debug)]
pub enum HubMessage {
    /// An event of a log that the client reads.
    Event(EventLine),
    Response(HubResponse),
    /// A notification, or a request to the client.
    Frame(Frame),
}

impl HubMessage {
    /// Parses a line of the hub; `None` if it is not a frame.
    pub fn parse(line: Bytes) -> Option<HubMessage> {
        if let Some(event) = EventLine::parse(&line) {
            return Some(HubMessage::Event(event));
        }
        let frame = Frame::parse(line).ok()?;
        let id = frame.id().filter(|_| frame.kind() == Kind::Response);
        Some(match id.and_then(|it| it.parse().ok()) {
            Some(id) => HubMessage::Response(HubResponse { id, frame }),
            None => HubMessage::Frame(frame),
        })
    }
}

/// A response of the hub.
#[derive(Debug)]
pub struct HubResponse {
    /// The id of the request.
    pub id: u64,
    frame: Frame,
}

impl HubResponse {
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The result, or the error object.
    pub fn into_result(self) -> Result<Value, ErrorResponse> {
        let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
        match (self.frame.result(), self.frame.error()) {
            (Some(result), _) => Ok(value(result)),
            (None, error) => Err(ErrorResponse::new(value(error.unwrap_or("null")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse_response(text: &'static str) -> HubResponse {
        match HubMessage::parse(text.into()) {
            Some(HubMessage::Response(response)) => response,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn response_has_a_result_or_an_error_object() {
        let response = parse_response(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
        assert_eq!(response.id, 7);
        assert_eq!(response.into_result(), Ok(json!({ "a": 1 })));
        let refused = parse_response(
            r#"{"id":8,"error":{"code":-32600,"message":"no","data":{"jackfield":{"code":"stopping"}}}}"#,
        );
        let error = refused.into_result().unwrap_err();
        assert_eq!(
            (error.code(), error.message(), error.error_name()),
            (-32600, Some("no"), "stopping")
        );
        assert_eq!(error.to_string(), "no");
    }

    #[test]
    fn other_frames_are_kept_and_other_lines_are_dropped() {
        for text in [
            r#"{"method":"session/update","params":{}}"#,
            r#"{"id":1,"method":"session/request_permission","params":{}}"#,
            r#"{"id":null,"error":{"code":-32700,"message":"no JSON"}}"#,
        ] {
            let message = HubMessage::parse(text.into());
            assert!(matches!(message, Some(HubMessage::Frame(_))), "{text}: {message:?}");
        }
        assert!(HubMessage::parse("not a frame".into()).is_none());
    }
}
