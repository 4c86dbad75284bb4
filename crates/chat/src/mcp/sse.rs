//! HTTP as servers spoke it before there was streamable HTTP: one stream brings all they say, and
//! names the address to which everything for them is posted. The SDK has no client for it any more.

use super::http::{client, parse, why_not_asked};
use agent_client_protocol::v1::schema::McpServerSse;
use jackfield_wire::sse::{Event, EventReader};
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

/// What a line on stdio may have, too.
const EVENT_BYTES_MAX: usize = 16 << 20;

pub(super) struct Sse {
    client: Client,
    post_to: Url,
    stream: Stream,
}

/// What a server says.
struct Stream {
    response: Response,
    reader: EventReader,
    heard: VecDeque<Heard>,
}

enum Heard {
    /// Where to post.
    Endpoint(String),
    Message(String),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error("a message could not be written")]
    Encode(#[source] serde_json::Error),
    #[error("{why}")]
    Post { why: String },
}

pub(super) async fn open(server: &McpServerSse) -> Result<Sse, String> {
    let (url, client) = (parse(&server.url)?, client(&server.headers)?);
    let asked = client.get(url.clone()).header(ACCEPT, "text/event-stream").send().await;
    let response = asked.and_then(Response::error_for_status);
    let response = response.map_err(|error| why_not_asked(&error))?;
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !kind.is_some_and(|it| it.starts_with("text/event-stream")) {
        let kind = kind.unwrap_or("nothing").to_owned();
        return Err(format!("it answered with {kind} instead of a stream of events"));
    }
    let (reader, heard) = (EventReader::new(EVENT_BYTES_MAX), VecDeque::new());
    let mut stream = Stream { response, reader, heard };
    loop {
        match stream.next().await {
            Some(Heard::Endpoint(path)) => {
                return Ok(Sse { client, post_to: endpoint(&url, &path)?, stream });
            }
            Some(Heard::Message(_)) => {}
            None => return Err("its stream ended before it said where to post".to_owned()),
        }
    }
}

/// Keys go along with what is posted, so it stays where the client pointed us to.
fn endpoint(url: &Url, path: &str) -> Result<Url, String> {
    let endpoint = url.join(path).map_err(|_| format!("it said to post to `{path}`"))?;
    if endpoint.origin() == url.origin() {
        Ok(endpoint)
    } else {
        Err("it said to post to another server, which might not be meant to see it".to_owned())
    }
}

impl Stream {
    /// Nothing is lost if it is dropped halfway. `None`: the stream has ended, well or badly.
    async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Some(heard);
            }
            let chunk = self.response.chunk().await.ok()??;
            let Stream { reader, heard, .. } = self;
            let mut on_event = |event: Event<'_>| match event.name {
                "endpoint" => heard.push_back(Heard::Endpoint(event.data.to_owned())),
                "" | "message" => heard.push_back(Heard::Message(event.data.to_owned())),
                _ => {}
            };
            reader.push(&chunk, &mut on_event).ok()?;
        }
    }
}

impl Transport<RoleClient> for Sse {
    type Error = SseError;

    fn name() -> Cow<'static, str> {
        "sse".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        let request = self.client.post(self.post_to.clone());
        async move {
            let body = serde_json::to_vec(&message).map_err(SseError::Encode)?;
            let asked = request.header(CONTENT_TYPE, "application/json").body(body).send().await;
            match asked.and_then(Response::error_for_status) {
                Ok(_) => Ok(()),
                Err(error) => Err(SseError::Post { why: why_not_asked(&error) }),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Heard::Message(text) = self.stream.next().await? {
                match serde_json::from_str(&text) {
                    Ok(message) => return Some(message),
                    Err(error) => {
                        tracing::debug!(%error, "an event of an MCP server means nothing");
                    }
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
    fn messages_are_posted_only_where_the_stream_came_from() {
        let url = Url::parse("http://127.0.0.1:8000/a/sse?key=1").unwrap();
        let posted = |path| endpoint(&url, path).map(|it| it.to_string());
        assert_eq!(posted("/message?id=1").unwrap(), "http://127.0.0.1:8000/message?id=1");
        assert_eq!(posted("message").unwrap(), "http://127.0.0.1:8000/a/message");
        for elsewhere in ["http://127.0.0.1:8001/a", "https://127.0.0.1:8000/a", "//elsewhere/a"] {
            assert!(posted(elsewhere).unwrap_err().contains("another server"), "{elsewhere}");
        }
    }
}
