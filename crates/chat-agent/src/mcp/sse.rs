//! The SSE transport, the predecessor of streamable HTTP: one stream carries all messages of the
//! server, and names the URL to which our messages are posted. The SDK no longer has a client for
//! it.

use super::http::{build_client, describe_request_error, parse_url};
use agent_client_protocol::v1::schema::McpServerSse;
use jackfield_protocol::sse::{Event, EventReader};
use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{borrow::Cow, collections::VecDeque};

/// The same limit as for a line on stdio.
const EVENT_BYTES_MAX: usize = 16 << 20;

pub(super) struct SseTransport {
    client: Client,
    post_url: Url,
    stream: EventStream,
}

/// The stream of the server.
struct EventStream {
    response: Response,
    reader: EventReader,
    queue: VecDeque<McpStreamEvent>,
}

enum McpStreamEvent {
    /// The URL to post to.
    Endpoint(String),
    Message(String),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error("failed to encode a message")]
    Encode(#[source] serde_json::Error),
    #[error("{cause}")]
    Post { cause: String },
}

pub(super) async fn connect(config: &McpServerSse) -> Result<SseTransport, String> {
    let (url, client) = (parse_url(&config.url)?, build_client(&config.headers)?);
    let sent = client.get(url.clone()).header(ACCEPT, "text/event-stream").send().await;
    let response = sent.and_then(Response::error_for_status);
    let response = response.map_err(|error| describe_request_error(&error))?;
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !content_type.is_some_and(|it| it.starts_with("text/event-stream")) {
        let content_type = content_type.unwrap_or("no content type").to_owned();
        return Err(format!("it answered with {content_type} instead of an event stream"));
    }
    let (reader, queue) = (EventReader::new(EVENT_BYTES_MAX), VecDeque::new());
    let mut stream = EventStream { response, reader, queue };
    loop {
        match stream.next_event().await {
            Some(McpStreamEvent::Endpoint(path)) => {
                let post_url = resolve_post_url(&url, &path)?;
                return Ok(SseTransport { client, post_url, stream });
            }
            Some(McpStreamEvent::Message(_)) => {}
            None => return Err("its stream ended before the URL to post to".to_owned()),
        }
    }
}

/// Refuses a URL of another origin, because keys are sent with each message.
fn resolve_post_url(url: &Url, path: &str) -> Result<Url, String> {
    let post_url =
        url.join(path).map_err(|_| format!("its URL to post to is invalid: `{path}`"))?;
    if post_url.origin() == url.origin() {
        Ok(post_url)
    } else {
        Err("its URL to post to is on another server, which must not receive our keys".to_owned())
    }
}

impl EventStream {
    /// Returns the next event, or `None` if the stream has ended or failed. Dropping the future
    /// loses nothing.
    async fn next_event(&mut self) -> Option<McpStreamEvent> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            let chunk = self.response.chunk().await.ok()??;
            let EventStream { reader, queue, .. } = self;
            let mut on_event = |event: Event<'_>| match event.name {
                "endpoint" => queue.push_back(McpStreamEvent::Endpoint(event.data.to_owned())),
                "" | "message" => queue.push_back(McpStreamEvent::Message(event.data.to_owned())),
                _ => {}
            };
            reader.push(&chunk, &mut on_event).ok()?;
        }
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn name() -> Cow<'static, str> {
        "sse".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        let request = self.client.post(self.post_url.clone());
        async move {
            let body = serde_json::to_vec(&message).map_err(SseError::Encode)?;
            let sent = request.header(CONTENT_TYPE, "application/json").body(body).send().await;
            match sent.and_then(Response::error_for_status) {
                Ok(_) => Ok(()),
                Err(error) => Err(SseError::Post { cause: describe_request_error(&error) }),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let McpStreamEvent::Message(text) = self.stream.next_event().await? {
                match serde_json::from_str(&text) {
                    Ok(message) => return Some(message),
                    Err(error) => tracing::debug!(%error, "invalid event from an MCP server"),
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), SseError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_posted_only_to_the_origin_of_the_stream() {
        let url = Url::parse("http://127.0.0.1:8000/a/sse?key=1").unwrap();
        let resolve = |path| resolve_post_url(&url, path).map(|it| it.to_string());
        assert_eq!(resolve("/message?id=1").unwrap(), "http://127.0.0.1:8000/message?id=1");
        assert_eq!(resolve("message").unwrap(), "http://127.0.0.1:8000/a/message");
        for elsewhere in ["http://127.0.0.1:8001/a", "https://127.0.0.1:8000/a", "//elsewhere/a"] {
            assert!(resolve(elsewhere).unwrap_err().contains("another server"), "{elsewhere}");
        }
    }
}
