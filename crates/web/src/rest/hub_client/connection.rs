//! One connection to the hub: requests with their responses, and everything else that the hub sends.

use super::{EventLine, HubClientError};
use bytes::Bytes;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use jackfield_transport::{FrameReceiver, FrameSender, HubDialer};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The hub sends no longer lines than it accepts, which is a little more than 16 MiB.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct HubConnection {
    receiver: FrameReceiver,
    sender: FrameSender,
    next_id: u64,
    /// Messages that were received while waiting for a response.
    backlog: VecDeque<HubMessage>,
}

/// A message of the hub.
#[derive(Debug)]
pub(crate) enum HubMessage {
    Event(EventLine),
    /// The response to the request with this id.
    Response(u64, Result<Value, Value>),
    /// A message that the REST API does not use: an update, a request to an editor.
    Other,
}

impl HubConnection {
    pub(super) async fn dial(hub: &HubDialer) -> Result<HubConnection, HubClientError> {
        let (receiver, sender) = hub.dial().await?.into_frame_halves(LINE_BYTES_MAX);
        Ok(HubConnection { receiver, sender, next_id: 0, backlog: VecDeque::new() })
    }

    /// Sends `initialize`. The result has the capabilities of this connection's agent, if it has one.
    pub(crate) async fn initialize(&mut self) -> Result<Value, HubClientError> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": {
                "name": "jackfield-api",
                "title": "jackfield api",
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        self.call(Method::Initialize.name(), &params).await
    }

    /// Sends a request and returns its id. The response arrives as a [`HubMessage`].
    pub(crate) async fn send_request(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<u64, HubClientError> {
        self.next_id += 1;
        let id = self.next_id;
        let frame = Frame::request(&id.to_string(), method, &params.to_string());
        self.sender.send_frame(frame.bytes()).await?;
        Ok(id)
    }

    pub(crate) async fn send_notification(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<(), HubClientError> {
        let frame = Frame::notification(method, &params.to_string());
        Ok(self.sender.send_frame(frame.bytes()).await?)
    }

    /// Sends a request and waits for its response. Other messages are kept for
    /// [`HubConnection::next_message`].
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Value, HubClientError> {
        let id = self.send_request(method, params).await?;
        loop {
            match self.read_message().await? {
                HubMessage::Response(it, response) if it == id => {
                    return response.map_err(HubClientError::Refused);
                }
                HubMessage::Other => {}
                message => self.backlog.push_back(message),
            }
        }
    }

    /// The next message. Safe to cancel.
    pub(crate) async fn next_message(&mut self) -> Result<HubMessage, HubClientError> {
        match self.backlog.pop_front() {
            Some(message) => Ok(message),
            None => self.read_message().await,
        }
    }

    /// Whether [`HubConnection::next_message`] returns without waiting.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.backlog.is_empty() || self.receiver.has_more()
    }

    async fn read_message(&mut self) -> Result<HubMessage, HubClientError> {
        let line = self.receiver.next_frame().await?.ok_or(HubClientError::Closed)?;
        Ok(parse_message(&line))
    }
}

fn parse_message(line: &Bytes) -> HubMessage {
    if let Some(event) = EventLine::parse(line) {
        return HubMessage::Event(event);
    }
    let Ok(frame) = Frame::parse(line.clone()) else { return HubMessage::Other };
    let id = frame.id().filter(|_| frame.kind() == Kind::Response).and_then(|it| it.parse().ok());
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    match (id, frame.result(), frame.error()) {
        (Some(id), Some(result), _) => HubMessage::Response(id, Ok(value(result))),
        (Some(id), None, error) => HubMessage::Response(id, Err(value(error.unwrap_or("null")))),
        _ => HubMessage::Other,
    }
}
