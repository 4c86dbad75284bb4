//! One connection to the hub: requests with their responses, and everything else that the hub sends.

use crate::{ClientProtocol, HubClientError, HubMessage, PendingRequests, initialize_params};
use jackfield_protocol::{Fault, Frame, HUB_FRAME_BYTES_MAX, Kind, acp::Method};
use jackfield_transport::{ClientStream, FrameReceiver, FrameSender, HubDialer};
use serde_json::Value;
use std::collections::VecDeque;

/// A connection of asynchronous code. It reads no faster than its user, and the hub keeps the rest.
#[derive(Debug)]
pub struct HubConnection {
    receiver: FrameReceiver,
    sender: FrameSender,
    requests: PendingRequests,
    /// Messages that were received while waiting for a response.
    backlog: VecDeque<HubMessage>,
}

impl HubConnection {
    /// Opens a connection without `initialize`.
    pub async fn dial(hub: &HubDialer) -> Result<HubConnection, HubClientError> {
        Ok(HubConnection::new(hub.dial().await?))
    }

    /// Uses a connection that is already open.
    pub fn new(stream: ClientStream) -> HubConnection {
        let (receiver, sender) = stream.into_frame_halves(HUB_FRAME_BYTES_MAX);
        let requests = PendingRequests::default();
        HubConnection { receiver, sender, requests, backlog: VecDeque::new() }
    }

    /// Sends `initialize`. The result has the capabilities of this connection's agent, if it has one.
    pub async fn initialize(
        &mut self,
        client: &str,
        protocol: ClientProtocol,
    ) -> Result<Value, HubClientError> {
        self.call_method(Method::Initialize, &initialize_params(client, protocol)).await
    }

    /// Sends a request and returns its id. The response arrives through
    /// [`HubConnection::next_message`].
    pub async fn send_request(
        &mut self,
        method: Method,
        params: &Value,
    ) -> Result<u64, HubClientError> {
        let (id, frame) = self.requests.add(method, params);
        self.sender.send_frame(frame.bytes()).await?;
        Ok(id)
    }

    pub async fn send_notification(
        &mut self,
        method: Method,
        params: &Value,
    ) -> Result<(), HubClientError> {
        let frame = Frame::notification(method.name(), &params.to_string());
        Ok(self.sender.send_frame(frame.bytes()).await?)
    }

    /// Sends a request and waits for its response. Other messages are kept for
    /// [`HubConnection::next_message`].
    pub async fn call_method(
        &mut self,
        method: Method,
        params: &Value,
    ) -> Result<Value, HubClientError> {
        let id = self.send_request(method, params).await?;
        loop {
            match self.read_message().await? {
                HubMessage::Response(response) if response.id == id => {
                    return Ok(response.into_result()?);
                }
                HubMessage::Frame(frame) if is_about_request(&frame) => {
                    self.refuse_request(&frame).await?;
                }
                message => self.backlog.push_back(message),
            }
        }
    }

    /// Answers a message that is about a request of this connection, such as a form before a login, with an error: no
    /// other client gets it, and this one has no user. Requests about a session are left to other clients.
    pub async fn refuse_request(&mut self, frame: &Frame) -> Result<(), HubClientError> {
        let (Some(id), Some(method)) = (frame.id(), frame.method()) else { return Ok(()) };
        if is_about_request(frame) {
            let method = method.into_owned();
            let refusal = Frame::error_for(id, &Fault::MethodNotFound { method });
            self.sender.send_frame(refusal.bytes()).await?;
        }
        Ok(())
    }

    /// The next message. Safe to cancel.
    pub async fn next_message(&mut self) -> Result<HubMessage, HubClientError> {
        match self.backlog.pop_front() {
            Some(message) => Ok(message),
            None => self.read_message().await,
        }
    }

    /// Whether a message is available without waiting.
    pub fn has_buffered(&self) -> bool {
        !self.backlog.is_empty() || self.receiver.has_more()
    }

    async fn read_message(&mut self) -> Result<HubMessage, HubClientError> {
        loop {
            let line = self.receiver.next_frame().await?.ok_or(HubClientError::Closed)?;
            match HubMessage::parse(line) {
                Some(HubMessage::Response(it)) if self.requests.remove(&it).is_none() => {}
                Some(message) => return Ok(message),
                None => {}
            }
        }
    }
}

/// Whether an agent asks this client something about one of its requests.
fn is_about_request(frame: &Frame) -> bool {
    frame.kind() == Kind::Request && frame.request_id().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_hub::FakeHub;
    use serde_json::json;

    const STATUS: Method = Method::ControlStatus;

    #[tokio::test]
    async fn response_is_matched_by_id_and_other_messages_are_kept_in_order() {
        let (mut connection, mut hub) = FakeHub::connect();
        hub.send(&Frame::notification(Method::SessionUpdate.name(), r#"{"n":1}"#));
        hub.send(&Frame::result_for("9", r#""not requested""#));
        hub.send(&Frame::result_for("2", r#""second""#));
        hub.send(&Frame::notification(Method::SessionUpdate.name(), r#"{"n":2}"#));
        hub.send(&Frame::result_for("1", r#""first""#));
        let first = connection.send_request(STATUS, &json!({})).await.unwrap();
        assert_eq!(connection.call_method(STATUS, &json!({})).await.unwrap(), json!("second"));
        assert!(connection.has_buffered());
        let mut received = Vec::new();
        for _ in 0..3 {
            received.push(match connection.next_message().await.unwrap() {
                HubMessage::Frame(frame) => frame.params().unwrap().to_owned(),
                HubMessage::Response(response) => {
                    assert_eq!(response.id, first);
                    response.into_result().unwrap().to_string()
                }
                HubMessage::Event(event) => panic!("{event:?}"),
            });
        }
        assert_eq!(received, [r#"{"n":1}"#, r#"{"n":2}"#, r#""first""#]);
        assert!(hub.read_request().is_method(STATUS));
    }

    #[tokio::test]
    async fn request_about_a_request_is_refused_and_others_are_kept() {
        let (mut connection, mut hub) = FakeHub::connect();
        let elicit = Method::ElicitationCreate.name();
        hub.send(&Frame::request("7", elicit, r#"{"requestId":1}"#));
        hub.send(&Frame::request("8", elicit, r#"{"sessionId":"s-1"}"#));
        hub.send(&Frame::result_for("1", "{}"));
        connection.call_method(STATUS, &json!({})).await.unwrap();
        hub.read_request();
        let refusal = hub.read_request();
        assert_eq!((refusal.id(), refusal.error().is_some()), (Some("7"), true));
        let HubMessage::Frame(kept) = connection.next_message().await.unwrap() else {
            panic!("not a request");
        };
        assert_eq!(kept.id(), Some("8"));
    }

    #[tokio::test]
    async fn error_response_is_returned_to_the_caller() {
        let (mut connection, mut hub) = FakeHub::connect();
        hub.send(&Frame::error_for("1", &Fault::Stopping));
        let error = connection.call_method(STATUS, &json!({})).await.unwrap_err();
        assert_eq!(error.error_name(), "stopping");
        assert!(matches!(error, HubClientError::Refused(_)));
    }

    #[tokio::test]
    async fn closed_connection_ends_a_pending_request() {
        let (mut connection, hub) = FakeHub::connect();
        let params = json!({});
        let close = async {
            tokio::task::yield_now().await;
            drop(hub);
        };
        let (result, ()) = tokio::join!(connection.call_method(STATUS, &params), close);
        assert!(matches!(result, Err(HubClientError::Closed)), "{result:?}");
    }
}
