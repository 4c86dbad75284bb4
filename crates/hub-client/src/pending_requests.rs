//! The requests of a connection that have no response yet.

use crate::HubResponse;
use jackfield_protocol::{Frame, acp::Method};
use serde_json::Value;
use std::collections::BTreeMap;

/// Assigns ids to requests and matches responses to them.
#[derive(Debug, Default)]
pub struct PendingRequests {
    last_id: u64,
    methods: BTreeMap<u64, Method>,
}

impl PendingRequests {
    /// Adds a request. Returns its id and the frame to send.
    pub fn add(&mut self, method: Method, params: &Value) -> (u64, Frame) {
        self.last_id += 1;
        self.methods.insert(self.last_id, method);
        let frame = Frame::request(&self.last_id.to_string(), method.name(), &params.to_string());
        (self.last_id, frame)
    }

    /// Removes the request that a response answers and returns its method; `None` if it is not
    /// pending.
    pub fn remove(&mut self, response: &HubResponse) -> Option<Method> {
        self.methods.remove(&response.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HubMessage;
    use serde_json::json;

    fn response(id: u64) -> HubResponse {
        let line = Frame::result_for(&id.to_string(), "{}").into_bytes();
        let Some(HubMessage::Response(response)) = HubMessage::parse(line) else { panic!("{id}") };
        response
    }

    #[test]
    fn response_matches_its_request_once_and_by_id() {
        let mut requests = PendingRequests::default();
        let (first, frame) = requests.add(Method::ControlStatus, &json!({ "a": 1 }));
        let (second, _) = requests.add(Method::SessionPrompt, &json!({}));
        assert_eq!(frame.id(), Some(first.to_string().as_str()));
        assert!(frame.is_method(Method::ControlStatus));
        assert_eq!(frame.params(), Some(r#"{"a":1}"#));
        assert_eq!(requests.remove(&response(second)), Some(Method::SessionPrompt));
        assert_eq!(requests.remove(&response(second)), None);
        assert_eq!(requests.remove(&response(first)), Some(Method::ControlStatus));
        assert_eq!(requests.remove(&response(9)), None);
    }
}
